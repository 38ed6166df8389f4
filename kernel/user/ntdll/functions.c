/* SPDX-License-Identifier: MIT */
/* The function around an address: from the tables of modules, and from those that programs add for
 * generated code. */
#include "unwind.h"

#define DYNAMIC_TABLES 64

/* For generated code: a table, or a callback. */
static struct dynamic_table {
    PRUNTIME_FUNCTION table;
    ULONG count;
    ULONG64 base, length, identifier;
    PGET_RUNTIME_FUNCTION_CALLBACK callback;
    PVOID context;
} dynamic[DYNAMIC_TABLES];

static BOOLEAN add_dynamic(struct dynamic_table entry)
{
    BOOLEAN added = FALSE;
    RtlEnterCriticalSection(&loader_lock);
    for (unsigned i = 0; i < DYNAMIC_TABLES && !added; i++)
        if (!dynamic[i].identifier) {
            dynamic[i] = entry;
            added = TRUE;
        }
    RtlLeaveCriticalSection(&loader_lock);
    return added;
}

BOOLEAN __cdecl RtlAddFunctionTable(PRUNTIME_FUNCTION FunctionTable, DWORD EntryCount,
                                    DWORD64 BaseAddress)
{
    return add_dynamic((struct dynamic_table){ .table = FunctionTable,
                                               .count = EntryCount,
                                               .base = BaseAddress,
                                               .length = 1ull << 32,
                                               .identifier = (ULONG64)FunctionTable });
}

/* FALSE: the two lowest bits of TableIdentifier are not set, or there are too many tables. */
BOOLEAN __cdecl RtlInstallFunctionTableCallback(DWORD64 TableIdentifier, DWORD64 BaseAddress,
                                                DWORD Length,
                                                PGET_RUNTIME_FUNCTION_CALLBACK Callback,
                                                PVOID Context, PCWSTR OutOfProcessCallbackDll)
{
    (void)OutOfProcessCallbackDll;
    return (TableIdentifier & 3) == 3 &&
           add_dynamic((struct dynamic_table){ .base = BaseAddress,
                                               .length = Length,
                                               .identifier = TableIdentifier,
                                               .callback = Callback,
                                               .context = Context });
}

BOOLEAN __cdecl RtlDeleteFunctionTable(PRUNTIME_FUNCTION FunctionTable)
{
    BOOLEAN found = FALSE;
    RtlEnterCriticalSection(&loader_lock);
    for (unsigned i = 0; i < DYNAMIC_TABLES; i++)
        if (dynamic[i].identifier && dynamic[i].identifier == (ULONG64)FunctionTable) {
            dynamic[i] = (struct dynamic_table){ 0 };
            found = TRUE;
        }
    RtlLeaveCriticalSection(&loader_lock);
    return found;
}

static PRUNTIME_FUNCTION look_in_dynamic(DWORD64 pc, PDWORD64 base)
{
    PRUNTIME_FUNCTION found = NULL;
    for (unsigned i = 0; i < DYNAMIC_TABLES && !found; i++) {
        const struct dynamic_table *d = &dynamic[i];
        if (!d->identifier || pc - d->base >= d->length)
            continue;
        *base = d->base;
        found = d->callback ? d->callback(pc, d->context)
                            : search_functions(d->table, d->count, (ULONG)(pc - d->base));
    }
    return found;
}

/* NULL: the function at ControlPc is a leaf: it calls and saves nothing. */
PRUNTIME_FUNCTION NTAPI RtlLookupFunctionEntry(DWORD64 ControlPc, PDWORD64 ImageBase,
                                               PUNWIND_HISTORY_TABLE HistoryTable)
{
    const struct module *m = module_at((const void *)ControlPc);
    (void)HistoryTable;
    if (!m)
        return look_in_dynamic(ControlPc, ImageBase);
    const struct pe_directory *d = &m->pe.directories[PE_EXCEPTIONS];
    *ImageBase = (DWORD64)m->base;
    return search_functions((PRUNTIME_FUNCTION)(m->base + d->rva),
                            d->size / sizeof(RUNTIME_FUNCTION), (ULONG)(ControlPc - *ImageBase));
}

/* --- The stack. --- */

struct stack current_stack(void) { return (struct stack){ teb()->stack_limit, teb()->stack_base }; }

/* NULL too, which was called. */
bool can_look_through(DWORD64 pc)
{
    (void)pc;
    return true;
}

void unwind_to_program(PCONTEXT context)
{
    const struct module *program = module_of(loader.load_order.Flink);
    const struct stack stack = current_stack();
    while (module_at((const void *)context->Rip) != program && context->Rsp >= stack.low &&
           context->Rsp < stack.high) {
        DWORD64 base, frame;
        PVOID data;
        PRUNTIME_FUNCTION function = RtlLookupFunctionEntry(context->Rip, &base, NULL);
        if (function) {
            RtlVirtualUnwind(0, base, context->Rip, function, context, &data, &frame, NULL);
        } else {
            context->Rip = *(DWORD64 *)context->Rsp;
            context->Rsp += 8;
        }
    }
}
