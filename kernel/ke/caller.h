/* SPDX-License-Identifier: MIT */
/* Arguments of services by pointer: ring 3's are not trusted, a kernel thread's are.
 * STATUS_ACCESS_VIOLATION as of copy_in and copy_out. IRQL < DISPATCH_LEVEL. */
#pragma once
#include "kernel/base/string.h"
#include "kernel/ke/copy.h"
#include "kernel/ke/thread.h"

static inline NTSTATUS caller_get(void *to, const void *from, size_t size)
{
    if (thread_current()->process)
        return copy_in(to, from, size);
    memcpy(to, from, size);
    return STATUS_SUCCESS;
}

static inline NTSTATUS caller_put(void *to, const void *from, size_t size)
{
    if (thread_current()->process)
        return copy_out(to, from, size);
    memcpy(to, from, size);
    return STATUS_SUCCESS;
}

/* caller_put to an address that may be NULL: then nothing is written. */
static inline NTSTATUS caller_put_optional(void *to, const void *from, size_t size)
{
    return to ? caller_put(to, from, size) : STATUS_SUCCESS;
}

/* Writes a result, and its size if the caller asks for that. */
static inline NTSTATUS caller_answer(void *to, const void *info, ULONG size, PULONG returned)
{
    NTSTATUS status = caller_put(to, info, size);
    return NT_SUCCESS(status) ? caller_put_optional(returned, &size, sizeof size) : status;
}

/* Whether caller_put can write there later. */
static inline NTSTATUS caller_probe(void *to, size_t size)
{
    return thread_current()->process ? copy_probe(to, size) : STATUS_SUCCESS;
}

static inline NTSTATUS caller_probe_optional(void *to, size_t size)
{
    return to ? caller_probe(to, size) : STATUS_SUCCESS;
}
