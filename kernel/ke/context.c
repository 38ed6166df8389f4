/* SPDX-License-Identifier: MIT */
/* Between a trap frame and a CONTEXT. */
#include "kernel/ke/context.h"
#include "kernel/base/string.h"
#include "kernel/base/vectors.h"
#include "kernel/base/x86.h"
#include "kernel/ke/caller.h"
#include "kernel/ke/fpu.h"
#include "kernel/ke/thread.h"
#include "kernel/mm/vm.h"

#define FSW_EXCEPTIONS 0x80ffu /* and the busy bit */

static bool wants(const CONTEXT *c, ULONG part) { return (c->ContextFlags & part) == part; }

static void get_integer(const struct trap_frame *f, CONTEXT *c)
{
    c->Rax = f->rax, c->Rcx = f->rcx, c->Rdx = f->rdx, c->Rbx = f->rbx;
    c->Rbp = f->rbp, c->Rsi = f->rsi, c->Rdi = f->rdi;
    c->R8 = f->r8, c->R9 = f->r9, c->R10 = f->r10, c->R11 = f->r11;
    c->R12 = f->r12, c->R13 = f->r13, c->R14 = f->r14, c->R15 = f->r15;
}

static void set_integer(struct trap_frame *f, const CONTEXT *c)
{
    f->rax = c->Rax, f->rcx = c->Rcx, f->rdx = c->Rdx, f->rbx = c->Rbx;
    f->rbp = c->Rbp, f->rsi = c->Rsi, f->rdi = c->Rdi;
    f->r8 = c->R8, f->r9 = c->R9, f->r10 = c->R10, f->r11 = c->R11;
    f->r12 = c->R12, f->r13 = c->R13, f->r14 = c->R14, f->r15 = c->R15;
}

static void clear_debug_registers(CONTEXT *c)
{
    c->Dr0 = c->Dr1 = c->Dr2 = c->Dr3 = c->Dr6 = c->Dr7 = 0;
    memset(&c->DebugControl, 0, sizeof *c - offsetof(CONTEXT, DebugControl));
}

static void get_general(const struct trap_frame *frame, CONTEXT *context)
{
    if (wants(context, CONTEXT_CONTROL)) {
        context->Rip = frame->rip;
        context->Rsp = frame->rsp;
        context->EFlags = (ULONG)frame->rflags;
        context->SegCs = SEL_USER_CS;
        context->SegSs = SEL_USER_SS;
    }
    if (wants(context, CONTEXT_INTEGER))
        get_integer(frame, context);
    if (wants(context, CONTEXT_SEGMENTS))
        context->SegDs = context->SegEs = context->SegFs = context->SegGs = SEL_USER_SS;
    if (wants(context, CONTEXT_DEBUG_REGISTERS))
        clear_debug_registers(context);
}

void context_get(const struct trap_frame *frame, CONTEXT *context)
{
    get_general(frame, context);
    if (!wants(context, CONTEXT_FLOATING_POINT))
        return;
    fxsave(&context->FltSave);
    context->MxCsr = context->FltSave.MxCsr;
}

void context_get_stopped(const struct thread *thread, CONTEXT *context)
{
    get_general(context_frame(thread), context);
    if (!wants(context, CONTEXT_FLOATING_POINT))
        return;
    fpu_get_legacy(thread->fpu, &context->FltSave);
    context->MxCsr = context->FltSave.MxCsr;
}

void context_clear_x87(const CONTEXT *context)
{
    XSAVE_FORMAT next __attribute__((aligned(16)));
    memcpy(&next, &context->FltSave, sizeof next);
    next.StatusWord &= (USHORT)~FSW_EXCEPTIONS;
    fxrstor(&next);
}

void context_set(struct trap_frame *frame, const CONTEXT *context)
{
    XSAVE_FORMAT next __attribute__((aligned(16)));
    if (wants(context, CONTEXT_CONTROL)) {
        frame->rip = context->Rip;
        frame->rsp = context->Rsp;
        frame->rflags = (context->EFlags & RFLAGS_USER) | RFLAGS_IF | 2;
        frame->cs = SEL_USER_CS;
        frame->ss = SEL_USER_SS;
    }
    if (wants(context, CONTEXT_INTEGER))
        set_integer(frame, context);
    frame->vector = TRAP_RESTORE;
    if (!wants(context, CONTEXT_FLOATING_POINT))
        return;
    memcpy(&next, &context->FltSave, sizeof next);
    next.MxCsr &= fpu_mxcsr_mask(); /* a bit that the CPU does not have is #GP */
    fxrstor(&next);
}

struct trap_frame *context_frame(const struct thread *thread)
{
    return (struct trap_frame *)(thread->stack + KERNEL_STACK_SIZE) - 1;
}

NTSTATUS context_copy_in(CONTEXT *context, const CONTEXT *user)
{
    if ((uint64_t)user % 16)
        return STATUS_DATATYPE_MISALIGNMENT;
    return caller_get(context, user, sizeof *context);
}

NTSTATUS context_check(const CONTEXT *context)
{
    const CONTEXT *c = context;
    if (wants(c, CONTEXT_CONTROL) && !context_canonical(c->Rip))
        return STATUS_ACCESS_VIOLATION;
    if (wants(c, CONTEXT_DEBUG_REGISTERS) && c->Dr0 | c->Dr1 | c->Dr2 | c->Dr3 | c->Dr7)
        return STATUS_NOT_SUPPORTED;
    return STATUS_SUCCESS;
}
