/* SPDX-License-Identifier: MIT */
/* __try, __except and __finally: the handler of functions that have them, by their scope tables. */
#include "unwind.h"

/* The data after the handler in .xdata. jump 0: `handler` is the code of a __finally. */
struct scopes {
    ULONG count;
    struct scope {
        ULONG begin, end, handler, jump;
    } scope[];
};

typedef LONG(__cdecl *filter_function)(EXCEPTION_POINTERS *, PVOID frame);
typedef void(__cdecl *finally_function)(BOOLEAN abnormal, PVOID frame);

#define FILTER_ALWAYS 1 /* __except (EXCEPTION_EXECUTE_HANDLER) */

static LONG ask_filter(const struct scope *s, DWORD64 base, EXCEPTION_POINTERS *pointers,
                       PVOID frame)
{
    if (s->handler == FILTER_ALWAYS)
        return EXCEPTION_EXECUTE_HANDLER;
    return ((filter_function)(base + s->handler))(pointers, frame);
}

static EXCEPTION_DISPOSITION search_scopes(PEXCEPTION_RECORD record, PVOID frame, PCONTEXT context,
                                           PDISPATCHER_CONTEXT d)
{
    const struct scopes *scopes = d->HandlerData;
    EXCEPTION_POINTERS pointers = { record, context };
    ULONG pc = (ULONG)(d->ControlPc - d->ImageBase);
    for (ULONG i = d->ScopeIndex; i < scopes->count; i++) {
        const struct scope *s = &scopes->scope[i];
        if (pc < s->begin || pc >= s->end || !s->jump)
            continue;
        LONG answer = ask_filter(s, d->ImageBase, &pointers, frame);
        if (answer < 0)
            return ExceptionContinueExecution;
        if (answer > 0)
            RtlUnwindEx(frame, (PVOID)(d->ImageBase + s->jump), record,
                        (PVOID)(ULONG_PTR)record->ExceptionCode, d->ContextRecord, d->HistoryTable);
    }
    return ExceptionContinueSearch;
}

static EXCEPTION_DISPOSITION unwind(PEXCEPTION_RECORD record, PVOID frame, PDISPATCHER_CONTEXT d)
{
    const struct scopes *scopes = d->HandlerData;
    ULONG pc = (ULONG)(d->ControlPc - d->ImageBase), target = (ULONG)(d->TargetIp - d->ImageBase);
    bool arrived = record->ExceptionFlags & EXCEPTION_TARGET_UNWIND;
    for (ULONG i = d->ScopeIndex; i < scopes->count; i++) {
        const struct scope *s = &scopes->scope[i];
        if (pc < s->begin || pc >= s->end)
            continue;
        if (arrived && (s->jump ? s->jump == target : target >= s->begin && target < s->end))
            break; /* the target is inside this scope, or is its handler */
        d->ScopeIndex = i + 1;
        if (!s->jump)
            ((finally_function)(d->ImageBase + s->handler))(TRUE, frame);
    }
    return ExceptionContinueSearch;
}

EXCEPTION_DISPOSITION __cdecl __C_specific_handler(struct _EXCEPTION_RECORD *ExceptionRecord,
                                                   void *EstablisherFrame,
                                                   struct _CONTEXT *ContextRecord,
                                                   struct _DISPATCHER_CONTEXT *DispatcherContext)
{
    if (ExceptionRecord->ExceptionFlags & (EXCEPTION_UNWINDING | EXCEPTION_EXIT_UNWIND))
        return unwind(ExceptionRecord, EstablisherFrame, DispatcherContext);
    return search_scopes(ExceptionRecord, EstablisherFrame, ContextRecord, DispatcherContext);
}
