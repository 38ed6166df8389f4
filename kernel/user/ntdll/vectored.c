/* SPDX-License-Identifier: MIT */
/* Handlers that belong to no frame: those asked before all frames, and the last filter. */
#include "unwind.h"

#define HANDLERS 64

static struct vectored {
    PVECTORED_EXCEPTION_HANDLER handler;
    ULONG_PTR order;
} handlers[HANDLERS];
static ULONG_PTR first_order = (ULONG_PTR)1 << 62, last_order = (ULONG_PTR)1 << 62;
static RTL_CRITICAL_SECTION lock = { .LockCount = -1 };
static LPTOP_LEVEL_EXCEPTION_FILTER filter;

PVOID NTAPI RtlAddVectoredExceptionHandler(ULONG First, PVECTORED_EXCEPTION_HANDLER Handler)
{
    struct vectored *found = NULL;
    RtlEnterCriticalSection(&lock);
    for (unsigned i = 0; i < HANDLERS && !found; i++)
        if (!handlers[i].handler)
            found = &handlers[i];
    if (found) {
        found->order = First ? --first_order : ++last_order;
        found->handler = Handler;
    }
    RtlLeaveCriticalSection(&lock);
    return found;
}

ULONG NTAPI RtlRemoveVectoredExceptionHandler(PVOID Handle)
{
    struct vectored *v = Handle;
    bool known = v >= handlers && v < handlers + HANDLERS && v->handler;
    if (known)
        v->handler = NULL;
    return known;
}

/* The next one after `order`. */
static struct vectored *next_handler(ULONG_PTR order)
{
    struct vectored *best = NULL;
    for (struct vectored *v = handlers; v < handlers + HANDLERS; v++)
        if (v->handler && v->order > order && (!best || v->order < best->order))
            best = v;
    return best;
}

LONG call_vectored(EXCEPTION_POINTERS *pointers)
{
    missing_used(pointers);
    for (struct vectored *v = next_handler(0); v; v = next_handler(v->order))
        if (v->handler(pointers) == EXCEPTION_CONTINUE_EXECUTION)
            return EXCEPTION_CONTINUE_EXECUTION;
    return EXCEPTION_CONTINUE_SEARCH;
}

LPTOP_LEVEL_EXCEPTION_FILTER NTAPI
RtlSetUnhandledExceptionFilter(LPTOP_LEVEL_EXCEPTION_FILTER Filter)
{
    return (LPTOP_LEVEL_EXCEPTION_FILTER)InterlockedExchangePointer((PVOID *)&filter,
                                                                    (PVOID)Filter);
}

/* EXCEPTION_EXECUTE_HANDLER ends the program with the exception's code. */
LONG call_unhandled(EXCEPTION_POINTERS *pointers)
{
    LPTOP_LEVEL_EXCEPTION_FILTER call = filter;
    LONG answer = call ? call(pointers) : EXCEPTION_CONTINUE_SEARCH;
    if (answer == EXCEPTION_EXECUTE_HANDLER)
        NtTerminateProcess(CURRENT_PROCESS, (NTSTATUS)pointers->ExceptionRecord->ExceptionCode);
    return answer;
}
