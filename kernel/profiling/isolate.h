/* SPDX-License-Identifier: MIT */
/* Who counts under the policy `isolate`. */
#pragma once
#include "kernel/counting/thread_profiling.h"

/* A thread with a mask enables (PASSIVE_LEVEL), or has disabled. The first one takes every counter
 * that is not configured, so that ring 3's RDPMC, which opens all, shows nobody else's:
 * STATUS_INSUFFICIENT_RESOURCES if another owner has one. */
NTSTATUS isolate_join(struct thread_profiling *p);
void isolate_leave(void);
