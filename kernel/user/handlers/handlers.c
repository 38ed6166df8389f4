/* SPDX-License-Identifier: MIT */
/* Exceptions of drivers: ntdll's search for handlers and its unwinding, in ring 0. The image is
 * loaded like a driver, before the first one, and drivers import it as ntoskrnl.exe. It has memory
 * routines of its own because they may touch a program's memory: the calling driver can handle an
 * exception in them, but not one in the kernel's routines. */
#include "kernel/user/ntdll/unwind.h"

#undef RtlCopyMemory
#undef RtlMoveMemory
#undef RtlZeroMemory
#undef RtlFillMemory

#define PROBE_END 0x7fffffff0000ull /* MmUserProbeAddress */

/* kernel/driver/exceptions.c */
PRUNTIME_FUNCTION NTAPI exception_table(DWORD64 pc, DWORD64 *base, ULONG *count);
VOID NTAPI exception_stack(DWORD64 *low, DWORD64 *high);
DECLSPEC_NORETURN VOID NTAPI exception_unhandled(PEXCEPTION_RECORD record, PCONTEXT context);

/* --- What ring 3 does differently. --- */

struct stack current_stack(void)
{
    struct stack s;
    exception_stack(&s.low, &s.high);
    return s;
}

/* The kernel's own code has no tables: the search ends there. */
bool can_look_through(DWORD64 pc)
{
    DWORD64 base;
    ULONG count;
    return exception_table(pc, &base, &count);
}

PRUNTIME_FUNCTION NTAPI RtlLookupFunctionEntry(DWORD64 ControlPc, PDWORD64 ImageBase,
                                               PUNWIND_HISTORY_TABLE HistoryTable)
{
    ULONG count;
    PRUNTIME_FUNCTION table = exception_table(ControlPc, ImageBase, &count);
    return table ? search_functions(table, count, (ULONG)(ControlPc - *ImageBase)) : NULL;
}

LONG call_vectored(EXCEPTION_POINTERS *pointers) { return EXCEPTION_CONTINUE_SEARCH; }

LONG call_unhandled(EXCEPTION_POINTERS *pointers) { return EXCEPTION_CONTINUE_SEARCH; }

NTSTATUS NTAPI NtContinue(PCONTEXT ContextRecord, BOOLEAN TestAlert)
{
    RtlRestoreContext(ContextRecord, NULL);
    __builtin_unreachable();
}

NTSTATUS NTAPI NtRaiseException(PEXCEPTION_RECORD ExceptionRecord, PCONTEXT ContextRecord,
                                BOOLEAN FirstChance)
{
    exception_unhandled(ExceptionRecord, ContextRecord);
}

/* --- Raising. --- */

DECLSPEC_NORETURN static void raise(NTSTATUS status, PVOID where)
{
    EXCEPTION_RECORD record = { .ExceptionCode = (DWORD)status,
                                .ExceptionFlags = EXCEPTION_NONCONTINUABLE,
                                .ExceptionAddress = where };
    CONTEXT context;
    RtlCaptureContext(&context);
    dispatch_exception(&record, &context);
    exception_unhandled(&record, &context);
}

#define CALLER __builtin_return_address(0)

DECLSPEC_NORETURN VOID NTAPI ExRaiseStatus(NTSTATUS Status) { raise(Status, CALLER); }
DECLSPEC_NORETURN VOID NTAPI ExRaiseAccessViolation(VOID)
{
    raise(STATUS_ACCESS_VIOLATION, CALLER);
}
DECLSPEC_NORETURN VOID NTAPI ExRaiseDatatypeMisalignment(VOID)
{
    raise(STATUS_DATATYPE_MISALIGNMENT, CALLER);
}

static void check_range(DWORD64 at, SIZE_T length, ULONG alignment, PVOID where)
{
    if (at & (alignment - 1))
        raise(STATUS_DATATYPE_MISALIGNMENT, where);
    if (at + length < at || at + length > PROBE_END)
        raise(STATUS_ACCESS_VIOLATION, where);
}

/* Raises an exception if the range is misaligned or not a program's. */
VOID NTAPI ProbeForRead(const volatile VOID *Address, SIZE_T Length, ULONG Alignment)
{
    if (Length)
        check_range((DWORD64)Address, Length, Alignment, CALLER);
}

/* Also touches each page, so that memory that is not writable faults. */
VOID NTAPI ProbeForWrite(volatile VOID *Address, SIZE_T Length, ULONG Alignment)
{
    DWORD64 at = (DWORD64)Address, end = at + Length;
    if (!Length)
        return;
    check_range(at, Length, Alignment, CALLER);
    for (; at < end; at = (at | 0xfff) + 1)
        asm volatile("lock orb $0, %0" : "+m"(*(volatile char *)at));
}

/* --- Memory, which may be a program's. --- */

VOID NTAPI RtlCopyMemory(PVOID to, const VOID *from, SIZE_T size) { memcpy(to, from, size); }
VOID NTAPI RtlMoveMemory(PVOID to, const VOID *from, SIZE_T size) { memmove(to, from, size); }
VOID NTAPI RtlZeroMemory(PVOID to, SIZE_T size) { memset(to, 0, size); }
VOID NTAPI RtlFillMemory(PVOID to, SIZE_T size, UCHAR value) { memset(to, value, size); }

SIZE_T NTAPI RtlCompareMemory(const VOID *a, const VOID *b, SIZE_T size)
{
    const UCHAR *x = a, *y = b;
    SIZE_T n = 0;
    while (n < size && x[n] == y[n])
        n++;
    return n;
}

/* What the C library calls for a wrong parameter; as in ntoskrnl.exe, nothing happens. */
int wrong(int error);
int wrong(int error) { return error; }
