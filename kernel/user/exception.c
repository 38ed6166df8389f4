/* SPDX-License-Identifier: MIT */
/* Vectored exception handlers. */
#include "windows.h"

#define HANDLERS_MAX 8

static PVECTORED_EXCEPTION_HANDLER
    handlers[HANDLERS_MAX]; /* in the order of calls; written before there are threads */

int exception_handled(PEXCEPTION_RECORD record, PCONTEXT context);
int exception_handled(PEXCEPTION_RECORD record, PCONTEXT context)
{
    EXCEPTION_POINTERS pointers = { record, context };
    for (unsigned i = 0; i < HANDLERS_MAX; i++)
        if (handlers[i] && handlers[i](&pointers) == EXCEPTION_CONTINUE_EXECUTION)
            return 1;
    return 0;
}

PVOID AddVectoredExceptionHandler(ULONG First, PVECTORED_EXCEPTION_HANDLER Handler)
{
    for (unsigned i = 0; i < HANDLERS_MAX; i++) {
        unsigned at = First ? HANDLERS_MAX - 1 - i : i;
        if (handlers[at])
            continue;
        handlers[at] = Handler;
        return (PVOID)&handlers[at];
    }
    return NULL;
}

ULONG RemoveVectoredExceptionHandler(PVOID Handle)
{
    *(PVECTORED_EXCEPTION_HANDLER *)Handle = NULL;
    return 1;
}
