/* SPDX-License-Identifier: MIT */
/* Imports that no library has. A program starts without them: their slots lead into a range of
 * addresses where nothing is mapped, so that an exception tells which one the program calls or
 * reads. NT: Windows does not start such a program. */
#include "kernel/base/print.h"
#include "unwind.h"

#define RANGE 0x10000u
#define STEP 16u /* between two imports' addresses; of 4,096 imports each has its own */

static uint8_t *range;
static ULONG used;

static void add_name(struct text *text, const struct pe_import *import)
{
    char digits[8];
    print_to(digits, sizeof digits, "#%u", import->ordinal);
    text_add(text, import->library);
    text_add(text, import->slot ? "!" : "");
    text_add(text, !import->slot ? "" : import->name ? import->name : digits);
}

/* Of a library one line is enough. */
static void tell_missing(const struct module *m, const struct pe_import *import, struct text *line)
{
    const bool full = line->length > sizeof line->bytes - 60;
    if (full && m->pe.flags & PE_DLL) {
        line->omitted++;
        return;
    }
    if (full)
        text_print(line);
    text_add(line, line->length ? " " : "# ");
    if (line->length == 2) {
        text_add(line, m->short_name);
        text_add(line, ": imports are missing, a call of one ends the program: ");
    }
    add_name(line, import);
}

void *missing_import(const struct module *m, const struct pe_import *import, struct text *line)
{
    SIZE_T size = RANGE;
    tell_missing(m, import, line);
    if (!range)
        NtAllocateVirtualMemory(CURRENT_PROCESS, (PVOID *)&range, 0, &size, MEM_RESERVE,
                                PAGE_NOACCESS);
    return range && import->slot ? range + (STEP * used++ & (RANGE - 1)) : NULL;
}

/* The import whose slot holds the address. False: the program has written there. */
static bool find_missing(const uint8_t *address, struct pe_import *import)
{
    for (LIST_ENTRY *e = loader.load_order.Flink; e != &loader.load_order; e = e->Flink) {
        const struct module *m = module_of(e);
        struct pe_imports at = { 0 };
        while (pe_next_import(&m->pe, m->base, &at, import) == PE_FOUND)
            if (import->slot && *(const uint8_t **)(m->base + import->slot) == address)
                return true;
    }
    return false;
}

void missing_used(const EXCEPTION_POINTERS *pointers)
{
    EXCEPTION_RECORD *record = pointers->ExceptionRecord;
    CONTEXT *context = pointers->ContextRecord;
    const ULONG_PTR offset = record->ExceptionInformation[1] - (ULONG_PTR)range;
    struct pe_import import;
    struct text line = { 0 };
    if (!range || record->ExceptionCode != (DWORD)STATUS_ACCESS_VIOLATION || offset >= RANGE ||
        !find_missing(range + offset / STEP * STEP, &import))
        return;
    const bool called = context->Rip - (ULONG_PTR)range < RANGE;
    text_add(&line, called ? "# missing import is called: " : "# missing import is read: ");
    add_name(&line, &import);
    text_print(&line);
    if (called) /* the program's end names the caller */
        context->Rip = *(DWORD64 *)context->Rsp;
    record->ExceptionCode = (DWORD)STATUS_ENTRYPOINT_NOT_FOUND;
    record->ExceptionAddress = (PVOID)context->Rip;
    NtRaiseException(record, context, FALSE);
}
