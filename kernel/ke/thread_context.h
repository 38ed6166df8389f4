/* SPDX-License-Identifier: MIT */
/* Registers of threads of ring 3. For ring-3 threads through the service table, and for drivers.
 * PASSIVE_LEVEL. Sources: the Win32 documentation of GetThreadContext; phnt's headers. NT: nobody
 * sets those of another thread. */
#pragma once
#include "kernel/nt/nt_context.h"

/* Fills the parts that ThreadContext->ContextFlags ask for; THREAD_GET_CONTEXT. A thread that is
 * not suspended is stopped for as long as it takes. One inside a service shows the registers that
 * it called with. NT: so does the current thread.
 *
 * STATUS_DATATYPE_MISALIGNMENT: not 16-aligned; STATUS_ACCESS_VIOLATION; STATUS_INVALID_PARAMETER:
 * ContextFlags without CONTEXT_AMD64; STATUS_INVALID_HANDLE, STATUS_OBJECT_TYPE_MISMATCH,
 * STATUS_ACCESS_DENIED; STATUS_INVALID_HANDLE: not a thread of ring 3; STATUS_UNSUCCESSFUL: it has
 * ended, or is to; STATUS_THREAD_IS_TERMINATING: the caller is to end, and never sees it. */
NTSTATUS NtGetContextThread(HANDLE ThreadHandle, PCONTEXT ThreadContext);
