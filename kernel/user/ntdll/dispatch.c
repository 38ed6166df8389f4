/* SPDX-License-Identifier: MIT */
/* Exceptions: the search for a handler, frame by frame, and the unwinding to it. */
#include "unwind.h"

/* One frame of a walk up the stack, and the state of its caller. */
struct walk {
    CONTEXT context; /* inside the function */
    CONTEXT caller;  /* after its return to the caller */
    DISPATCHER_CONTEXT dispatcher;
};

/* Fills in the current frame. False: it is not on the thread's stack. */
static bool find_frame(struct walk *w, DWORD handlers)
{
    DISPATCHER_CONTEXT *d = &w->dispatcher;
    w->caller = w->context;
    *d = (DISPATCHER_CONTEXT){ .ControlPc = w->context.Rip, .ContextRecord = &w->context };
    d->FunctionEntry = RtlLookupFunctionEntry(d->ControlPc, &d->ImageBase, NULL);
    struct stack s = current_stack();
    if (w->context.Rsp < s.low || w->context.Rsp + 8 > s.high)
        return false;
    if (!d->FunctionEntry) {
        if (!can_look_through(w->context.Rip))
            return false;
        d->EstablisherFrame = w->context.Rsp;
        w->caller.Rip = *(DWORD64 *)w->caller.Rsp;
        w->caller.Rsp += 8;
        return true;
    }
    d->LanguageHandler = RtlVirtualUnwind(handlers, d->ImageBase, d->ControlPc, d->FunctionEntry,
                                          &w->caller, &d->HandlerData, &d->EstablisherFrame, NULL);
    return d->EstablisherFrame >= s.low && d->EstablisherFrame < s.high &&
           !(d->EstablisherFrame & 7);
}

static void raise_status(NTSTATUS status, PEXCEPTION_RECORD because)
{
    EXCEPTION_RECORD record = { .ExceptionCode = (DWORD)status,
                                .ExceptionFlags = EXCEPTION_NONCONTINUABLE,
                                .ExceptionRecord = because };
    RtlRaiseException(&record);
}

/* Calls d->LanguageHandler with its four arguments and keeps `d` in its frame. If the handler
 * raises an exception, that one continues from `d`, not through frames that were unwound before. */
C_ASSERT(offsetof(DISPATCHER_CONTEXT, LanguageHandler) == 0x30);
asm(".text\n"
    ".globl call_unwind_handler\n"
    ".seh_proc call_unwind_handler\n"
    "call_unwind_handler:\n"
    "    sub $0x28, %rsp\n"
    "    .seh_stackalloc 0x28\n"
    "    .seh_endprologue\n"
    "    mov %r9, 0x20(%rsp)\n"
    "    call *0x30(%r9)\n"
    "    nop\n"
    "    add $0x28, %rsp\n"
    "    ret\n"
    "    .seh_handler meet_unwinding, @unwind, @except\n"
    "    .seh_endproc\n");
EXCEPTION_DISPOSITION call_unwind_handler(PEXCEPTION_RECORD record, PVOID frame, PCONTEXT context,
                                          PDISPATCHER_CONTEXT d);

/* The handler of call_unwind_handler's frame. */
EXCEPTION_DISPOSITION meet_unwinding(PEXCEPTION_RECORD record, PVOID frame, PCONTEXT context,
                                     PDISPATCHER_CONTEXT d);
EXCEPTION_DISPOSITION meet_unwinding(PEXCEPTION_RECORD record, PVOID frame, PCONTEXT context,
                                     PDISPATCHER_CONTEXT d)
{
    DWORD64 target = d->TargetIp;
    *d = **(PDISPATCHER_CONTEXT *)((uint8_t *)frame + 0x20);
    d->TargetIp = target;
    return ExceptionCollidedUnwind;
}

/* Continues from the frame that another unwinding had reached. */
static void collide(struct walk *w)
{
    PVOID data;
    DWORD64 frame;
    w->context = *w->dispatcher.ContextRecord;
    w->dispatcher.ContextRecord = &w->context;
    w->caller = w->context;
    RtlVirtualUnwind(0, w->dispatcher.ImageBase, w->dispatcher.ControlPc,
                     w->dispatcher.FunctionEntry, &w->caller, &data, &frame, NULL);
}

/* --- The search. --- */

/* Whether a handler of this frame lets the program continue at the exception. */
static bool ask_frame(struct walk *w, PEXCEPTION_RECORD record, PCONTEXT original)
{
    DISPATCHER_CONTEXT *d = &w->dispatcher;
    while (d->LanguageHandler)
        switch (d->LanguageHandler(record, (PVOID)d->EstablisherFrame, original, d)) {
        case ExceptionContinueExecution:
            if (record->ExceptionFlags & EXCEPTION_NONCONTINUABLE)
                raise_status(STATUS_NONCONTINUABLE_EXCEPTION, record);
            return true;
        case ExceptionContinueSearch:
        case ExceptionNestedException: return false;
        case ExceptionCollidedUnwind: collide(w); break;
        default: raise_status(STATUS_INVALID_DISPOSITION, record);
        }
    return false;
}

bool dispatch_exception(PEXCEPTION_RECORD record, PCONTEXT context)
{
    EXCEPTION_POINTERS pointers = { record, context };
    struct walk w;
    if (call_vectored(&pointers) == EXCEPTION_CONTINUE_EXECUTION)
        return true;
    for (w.context = *context; find_frame(&w, UNW_FLAG_EHANDLER); w.context = w.caller)
        if (ask_frame(&w, record, context))
            return true;
    return call_unhandled(&pointers) == EXCEPTION_CONTINUE_EXECUTION;
}

/* --- From the kernel. --- */

/* The kernel enters here to deliver an exception: a CONTEXT at RSP, an EXCEPTION_RECORD at 4F0h,
 * an interrupt's frame at 590h. Through that frame unwinding reaches the program. */
asm(".text\n"
    ".globl KiUserExceptionDispatcher\n"
    ".seh_proc KiUserExceptionDispatcher\n"
    "KiUserExceptionDispatcher:\n"
    "    .seh_pushframe\n"
    "    .seh_stackalloc 0x590\n"
    "    sub $0x20, %rsp\n"
    "    .seh_stackalloc 0x20\n" SAVED_IN_CONTEXT "    .seh_endprologue\n"
    "    cld\n"
    "    lea 0x510(%rsp), %rcx\n"
    "    lea 0x20(%rsp), %rdx\n"
    "    call take_exception\n"
    "    int3\n"
    "    .seh_endproc\n");
C_ASSERT(offsetof(CONTEXT, Rbx) == 0x90 && offsetof(CONTEXT, R15) == 0xf0);
C_ASSERT(offsetof(CONTEXT, Xmm6) == 0x200);

/* Whom the message of an end blames, if not the instruction: who called NULL, or who called the
 * routine that touches the pages of a large frame, below RSP, with two registers saved: mingw-w64's
 * ___chkstk_ms, Microsoft's __chkstk. */
static PVOID place_of(const EXCEPTION_RECORD *record, const CONTEXT *context)
{
    const struct stack s = current_stack();
    const PVOID *at = (const PVOID *)context->Rsp;
    DWORD64 base;
    if (context->Rsp < s.low || context->Rsp + 3 * sizeof *at > s.high)
        return record->ExceptionAddress;
    if (!context->Rip)
        return at[0];
    const bool probe = record->ExceptionCode == (DWORD)STATUS_STACK_OVERFLOW &&
                       record->ExceptionInformation[1] < context->Rsp - sizeof *at &&
                       RtlLookupFunctionEntry((DWORD64)at[2], &base, NULL);
    return probe ? at[2] : record->ExceptionAddress;
}

DECLSPEC_NORETURN void take_exception(PEXCEPTION_RECORD record, PCONTEXT context);
void take_exception(PEXCEPTION_RECORD record, PCONTEXT context)
{
    if (dispatch_exception(record, context))
        NtContinue(context, FALSE);
    record->ExceptionAddress = place_of(record, context);
    NtRaiseException(record, context, FALSE);
    __builtin_unreachable();
}

/* RtlCaptureContext, for which mingw-w64 12 says that it returns twice. Here it does not: what it
 * captures is unwound to a caller before anybody restores it. */
VOID NTAPI capture_here(PCONTEXT context) asm("RtlCaptureContext");

/* --- Raising. --- */

/* Returns only if a handler continues the program. */
VOID NTAPI RtlRaiseException(PEXCEPTION_RECORD ExceptionRecord)
{
    CONTEXT context;
    capture_here(&context);
    /* As the caller sees it. */
    DWORD64 base, frame;
    PVOID data;
    PRUNTIME_FUNCTION me = RtlLookupFunctionEntry(context.Rip, &base, NULL);
    RtlVirtualUnwind(0, base, context.Rip, me, &context, &data, &frame, NULL);
    ExceptionRecord->ExceptionAddress = (PVOID)context.Rip;
    if (dispatch_exception(ExceptionRecord, &context))
        RtlRestoreContext(&context, NULL);
    NtRaiseException(ExceptionRecord, &context, FALSE);
    __builtin_unreachable();
}

/* --- Unwinding. --- */

/* Calls the handlers of one frame. */
static void unwind_frame(struct walk *w, PEXCEPTION_RECORD record, PVOID target, PVOID target_ip,
                         PVOID value)
{
    DISPATCHER_CONTEXT *d = &w->dispatcher;
    for (bool again = d->LanguageHandler; again;) {
        again = false;
        d->TargetIp = (DWORD64)target_ip;
        if ((PVOID)d->EstablisherFrame == target)
            record->ExceptionFlags |= EXCEPTION_TARGET_UNWIND;
        w->context.Rax = (DWORD64)value;
        switch (call_unwind_handler(record, (PVOID)d->EstablisherFrame, &w->context, d)) {
        case ExceptionContinueSearch: break;
        case ExceptionCollidedUnwind:
            collide(w);
            record->ExceptionFlags |= EXCEPTION_COLLIDED_UNWIND;
            again = true;
            break;
        default: raise_status(STATUS_INVALID_DISPOSITION, record);
        }
        record->ExceptionFlags &= ~(DWORD)(EXCEPTION_COLLIDED_UNWIND | EXCEPTION_TARGET_UNWIND);
    }
}

VOID NTAPI RtlUnwindEx(PVOID TargetFrame, PVOID TargetIp, PEXCEPTION_RECORD ExceptionRecord,
                       PVOID ReturnValue, PCONTEXT ContextRecord,
                       PUNWIND_HISTORY_TABLE HistoryTable)
{
    EXCEPTION_RECORD own = { .ExceptionCode = (DWORD)STATUS_UNWIND };
    PEXCEPTION_RECORD record = ExceptionRecord ? ExceptionRecord : &own;
    struct walk w;
    capture_here(&w.context);
    own.ExceptionAddress = (PVOID)w.context.Rip;
    record->ExceptionFlags |= EXCEPTION_UNWINDING;
    if (!TargetFrame)
        record->ExceptionFlags |= EXCEPTION_EXIT_UNWIND;
    while (find_frame(&w, UNW_FLAG_UHANDLER)) {
        unwind_frame(&w, record, TargetFrame, TargetIp, ReturnValue);
        if ((PVOID)w.dispatcher.EstablisherFrame == TargetFrame)
            break;
        if (TargetFrame && (PVOID)w.dispatcher.EstablisherFrame > TargetFrame)
            raise_status(STATUS_INVALID_UNWIND_TARGET, record);
        w.context = w.caller;
    }
    w.context.Rax = (DWORD64)ReturnValue;
    w.context.Rip = (DWORD64)TargetIp;
    RtlRestoreContext(&w.context, record);
}

VOID NTAPI RtlUnwind(PVOID TargetFrame, PVOID TargetIp, PEXCEPTION_RECORD ExceptionRecord,
                     PVOID ReturnValue)
{
    RtlUnwindEx(TargetFrame, TargetIp, ExceptionRecord, ReturnValue, NULL, NULL);
}
