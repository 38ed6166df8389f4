/* SPDX-License-Identifier: MIT */
/* Exceptions on their way to ring 3's dispatcher and back. PASSIVE_LEVEL. */
#include "kernel/ke/copy.h"
#include "kernel/ke/exception.h"
#include "kernel/base/print.h"
#include "kernel/base/string.h"
#include "kernel/base/vectors.h"
#include "kernel/base/x86.h"
#include "kernel/ke/context.h"
#include "kernel/ke/process.h"
#include "kernel/ke/thread.h"

__attribute__((noreturn)) static void end_thread(const EXCEPTION_RECORD *record)
{
    struct thread *me = thread_current();
    struct process *process = me->process;
    ULONG parameters = record->NumberParameters; /* __fastfail has only its code */
    me->fault_rip = (uint64_t)record->ExceptionAddress;
    me->fault_address = parameters ? record->ExceptionInformation[parameters >= 2] : 0;
    if (!process->fault_ends_all)
        thread_exit(record->ExceptionCode);
    process->faulted = true;
    process->fault_rip = me->fault_rip;
    process->fault_address = me->fault_address;
    process_end(record->ExceptionCode);
}

__attribute__((noreturn)) static void end_undelivered(const struct trap_frame *frame,
                                                      const EXCEPTION_RECORD *record)
{
    if (thread_current()->process->fault_ends_all) {
        print_fresh_line();
        print("# exception 0x%08x at 0x%lx cannot be handled: no space for it on the stack, RSP "
              "0x%lx\n",
              (unsigned)record->ExceptionCode, frame->rip, frame->rsp);
    }
    end_thread(record);
}

/* What is between the record's fields is 0. */
static void fill_frame(struct exception_frame *e, const struct trap_frame *f,
                       const EXCEPTION_RECORD *r)
{
    memset(e, 0, sizeof *e);
    e->context.ContextFlags = CONTEXT_ALL;
    context_get(f, &e->context);
    e->context_ex.All = (CONTEXT_CHUNK){ -(LONG)sizeof(CONTEXT), sizeof(CONTEXT) + 24 };
    e->context_ex.Legacy = (CONTEXT_CHUNK){ -(LONG)sizeof(CONTEXT), sizeof(CONTEXT) };
    e->context_ex.XState = (CONTEXT_CHUNK){ 25, 0 };
    memcpy(&e->record, r,
           offsetof(EXCEPTION_RECORD, NumberParameters) + sizeof r->NumberParameters);
    memcpy(e->record.ExceptionInformation, r->ExceptionInformation, sizeof r->ExceptionInformation);
    e->rip = f->rip, e->cs = f->cs, e->eflags = f->rflags, e->rsp = f->rsp, e->ss = f->ss;
}

/* Tried twice, because the first fault may be the stack's overflow, for whose handler a page is
 * reserved. */
static bool put_frame(struct exception_frame *e, uint64_t to)
{
    if (NT_SUCCESS(copy_out((void *)to, e, sizeof *e)))
        return true;
    e->record.ExceptionCode = STATUS_STACK_OVERFLOW;
    return NT_SUCCESS(copy_out((void *)to, e, sizeof *e));
}

void exception_deliver(struct trap_frame *frame, const EXCEPTION_RECORD *record)
{
    struct exception_frame e __attribute__((aligned(16)));
    uint64_t entry = thread_current()->process->exception_entry;
    uint64_t rsp = (frame->rsp & ~15ul) - sizeof e;
    bool fast_fail = frame->vector == EXC_GENERAL_PROTECTION && /* not raised under its name */
                     record->ExceptionCode == STATUS_STACK_BUFFER_OVERRUN;
    if (!entry || fast_fail)
        end_thread(record);
    fill_frame(&e, frame, record);
    if (!put_frame(&e, rsp))
        end_undelivered(frame, record);
    if (frame->vector == EXC_X87)
        context_clear_x87(&e.context);
    frame->rip = entry;
    frame->rsp = rsp;
    frame->rflags = RFLAGS_IF | 2;
    frame->vector = TRAP_RESTORE;
}

/* A context of ring 3's, with which ring 3 can continue. */
static NTSTATUS get_context(CONTEXT *context, const CONTEXT *user)
{
    NTSTATUS status = context_copy_in(context, user);
    return NT_SUCCESS(status) ? context_check(context) : status;
}

NTSTATUS NtContinue(PCONTEXT ContextRecord, BOOLEAN)
{
    CONTEXT context;
    NTSTATUS status = get_context(&context, ContextRecord);
    if (NT_SUCCESS(status))
        context_set(context_frame(thread_current()), &context);
    return status;
}

NTSTATUS NtRaiseException(PEXCEPTION_RECORD ExceptionRecord, PCONTEXT ContextRecord,
                          BOOLEAN FirstChance)
{
    CONTEXT context;
    EXCEPTION_RECORD record;
    struct trap_frame *frame = context_frame(thread_current());
    NTSTATUS status = FirstChance ? get_context(&context, ContextRecord) : STATUS_SUCCESS;
    if (NT_SUCCESS(status))
        status = copy_in(&record, ExceptionRecord, sizeof record);
    if (!NT_SUCCESS(status))
        return status;
    if (record.NumberParameters > EXCEPTION_MAXIMUM_PARAMETERS)
        return STATUS_INVALID_PARAMETER;
    if (!FirstChance)
        end_thread(&record);
    context_set(frame, &context);
    exception_deliver(frame, &record);
    return STATUS_SUCCESS;
}
