/* SPDX-License-Identifier: MIT */
/* Exceptions of ring 3: what Windows calls them, and their way to ring 3's own dispatcher. */
#pragma once
#include "kernel/nt/nt_context.h"

struct trap_frame;

/* exception_record.c: what Windows makes of a processor's exception. `status`: of a page fault.
 * ExceptionAddress is the frame's RIP; of a breakpoint the frame's too, which is moved back to it.
 * Current thread, PASSIVE_LEVEL, interrupts on. */
void exception_record(struct trap_frame *frame, uint64_t fault_address, NTSTATUS status,
                      EXCEPTION_RECORD *record);

/* Goes on in ring 3 at the process's exception_entry, with a struct exception_frame at RSP. Ends
 * the thread, or the process if faults end it, with the record's code where there is no entry, no
 * space on the stack, or, as in Windows, a __fastfail, which no handler sees. */
void exception_deliver(struct trap_frame *frame, const EXCEPTION_RECORD *record);

/* Ring 3 raises an exception itself, in the state of the context. FirstChance FALSE: nobody handled
 * it; ends the thread or the process, and the context is not looked at. Does not return on success.
 * STATUS_DATATYPE_MISALIGNMENT: ContextRecord is not 16-aligned; STATUS_ACCESS_VIOLATION;
 * STATUS_INVALID_PARAMETER: NumberParameters is above 15; as NtContinue. */
NTSTATUS NtRaiseException(PEXCEPTION_RECORD ExceptionRecord, PCONTEXT ContextRecord,
                          BOOLEAN FirstChance);
/* Goes on in ring 3 with the registers of the context, as far as ContextFlags choose them. Does not
 * return on success. STATUS_DATATYPE_MISALIGNMENT, STATUS_ACCESS_VIOLATION: also for an Rip that is
 * not canonical (NT: faults there in ring 3). */
NTSTATUS NtContinue(PCONTEXT ContextRecord, BOOLEAN TestAlert);
