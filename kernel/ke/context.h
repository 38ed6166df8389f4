/* SPDX-License-Identifier: MIT */
/* A thread's ring-3 registers as a CONTEXT. Selectors are always ring 3's.
 * NT: no XSTATE follows a context: the upper halves of YMM stay as they are. */
#pragma once
#include "kernel/nt/nt_context.h"

struct thread;
struct trap_frame;

/* Whether a return to ring 3 can have this RSP and RIP. */
static inline bool context_canonical(uint64_t address)
{
    return (uint64_t)((int64_t)(address << 16) >> 16) == address;
}

/* Fills what context->ContextFlags ask for, of the current thread. */
void context_get(const struct trap_frame *frame, CONTEXT *context);
/* The way back, made harmless: flags that ring 3 may not set, and MXCSR's reserved bits, are
 * dropped. The next return to ring 3 restores every register. */
void context_set(struct trap_frame *frame, const CONTEXT *context);

/* context_get of a thread that runs nowhere. L: dispatcher lock. */
void context_get_stopped(const struct thread *thread, CONTEXT *context);
/* Whether the parts that ContextFlags ask for can become a thread's. STATUS_ACCESS_VIOLATION: Rip
 * is not canonical (NT: made so). STATUS_NOT_SUPPORTED: an address in a debug register, or a bit of
 * Dr7. NT: threads have debug registers. Here they are 0, the last branch and Dr6 after a step too:
 * no counter needs them, and each switch of threads would look at them. */
NTSTATUS context_check(const CONTEXT *context);

/* x87 without the exceptions that this context of the current thread has pending: else the next
 * x87 instruction would raise them again. Not FNCLEX, which an emulated ring 0 was seen not to
 * know. */
void context_clear_x87(const CONTEXT *context);

/* The trap frame at the top of a thread's kernel stack, from which the return to ring 3 loads its
 * registers. Only for a thread that has been in ring 3. */
struct trap_frame *context_frame(const struct thread *thread);
/* A CONTEXT of ring 3's, which must be 16-aligned. STATUS_DATATYPE_MISALIGNMENT,
 * STATUS_ACCESS_VIOLATION. */
NTSTATUS context_copy_in(CONTEXT *context, const CONTEXT *user);
