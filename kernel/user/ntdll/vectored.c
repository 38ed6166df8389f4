/* SPDX-License-Identifier: MIT */
/* Handlers that belong to no frame: those asked before all frames, and the last filter. */
#include "unwind.h"

#define HANDLERS 64

struct list {
    struct vectored {
        PVECTORED_EXCEPTION_HANDLER handler;
        ULONG_PTR order;
    } entry[HANDLERS];
};

static struct list lists[2]; /* 0: asked before frames; 1: after a handler continues */
static ULONG_PTR first_order = (ULONG_PTR)1 << 62, last_order = (ULONG_PTR)1 << 62;
static RTL_CRITICAL_SECTION lock = { .LockCount = -1 };
static LPTOP_LEVEL_EXCEPTION_FILTER filter;

static PVOID add_handler(struct list *list, ULONG first, PVECTORED_EXCEPTION_HANDLER handler)
{
    struct vectored *found = NULL;
    RtlEnterCriticalSection(&lock);
    for (unsigned i = 0; i < HANDLERS && !found; i++)
        if (!list->entry[i].handler)
            found = &list->entry[i];
    if (found) {
        found->order = first ? --first_order : ++last_order;
        found->handler = handler;
    }
    RtlLeaveCriticalSection(&lock);
    return found;
}

static ULONG remove_handler(struct list *list, PVOID handle)
{
    struct vectored *v = handle;
    bool known = v >= list->entry && v < list->entry + HANDLERS && v->handler;
    if (known)
        v->handler = NULL;
    return known;
}

PVOID NTAPI RtlAddVectoredExceptionHandler(ULONG First, PVECTORED_EXCEPTION_HANDLER Handler)
{
    return add_handler(&lists[0], First, Handler);
}

PVOID NTAPI RtlAddVectoredContinueHandler(ULONG First, PVECTORED_EXCEPTION_HANDLER Handler)
{
    return add_handler(&lists[1], First, Handler);
}

ULONG NTAPI RtlRemoveVectoredExceptionHandler(PVOID Handle)
{
    return remove_handler(&lists[0], Handle);
}
ULONG NTAPI RtlRemoveVectoredContinueHandler(PVOID Handle)
{
    return remove_handler(&lists[1], Handle);
}

/* The next one after `order`. */
static struct vectored *next_handler(struct list *list, ULONG_PTR order)
{
    struct vectored *best = NULL;
    for (unsigned i = 0; i < HANDLERS; i++) {
        struct vectored *v = &list->entry[i];
        if (v->handler && v->order > order && (!best || v->order < best->order))
            best = v;
    }
    return best;
}

LONG call_vectored(EXCEPTION_POINTERS *pointers, bool continue_handlers)
{
    struct list *list = &lists[continue_handlers];
    if (!continue_handlers)
        missing_used(pointers);
    for (struct vectored *v = next_handler(list, 0); v; v = next_handler(list, v->order))
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
