/* SPDX-License-Identifier: MIT */
#pragma once
#include <stddef.h>
#include "kernel/nt/nt.h"

/* The only way to ring-3 memory. STATUS_ACCESS_VIOLATION if any byte is not the caller's to
 * touch: outside user space, unmapped, or read-only for copy_out. May have copied a part. IRQL <
 * DISPATCH_LEVEL. */
NTSTATUS copy_in(void *to, const void *user, size_t size);
NTSTATUS copy_out(void *user, const void *from, size_t size);
/* Whether copy_out can write there later: reads and writes each byte, as Windows' ProbeForWrite, so
 * that a call which is refused for another reason leaves what stands there. */
NTSTATUS copy_probe(void *user, size_t size);
