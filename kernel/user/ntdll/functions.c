/* SPDX-License-Identifier: MIT */
/* The function around an address, from the tables of modules. NT: a program adds none for code that
 * it generates. */
#include "unwind.h"

/* NULL: the function at ControlPc is a leaf, which calls and saves nothing, or is no module's. */
PRUNTIME_FUNCTION NTAPI RtlLookupFunctionEntry(DWORD64 ControlPc, PDWORD64 ImageBase,
                                               PUNWIND_HISTORY_TABLE HistoryTable)
{
    const struct module *m = module_at((const void *)ControlPc);
    if (!m)
        return NULL;
    const struct pe_directory *d = &m->pe.directories[PE_EXCEPTIONS];
    *ImageBase = (DWORD64)m->base;
    return search_functions((PRUNTIME_FUNCTION)(m->base + d->rva),
                            d->size / sizeof(RUNTIME_FUNCTION), (ULONG)(ControlPc - *ImageBase));
}

/* --- The stack. --- */

struct stack current_stack(void) { return (struct stack){ teb()->stack_limit, teb()->stack_base }; }

/* NULL too, which was called. */
bool can_look_through(DWORD64 pc) { return true; }

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
