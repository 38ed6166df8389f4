/* SPDX-License-Identifier: MIT */
/* Kernel threads of a test, started together. */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include "kernel/base/cpu_set.h"

struct thread;

#define TEAM_MAX 16

/* Runs function((void *)0), function((void *)1), ... each in a thread of its own, number i on CPU i
 * % cpu_count, and waits for all. They begin when all are there. */
void team_run(void (*function)(void *), unsigned count);
/* Starts one that may run on the CPUs of `affinity`, at a priority; it is let go of. NULL: a check
 * failed. */
struct thread *team_start(void (*function)(void *), void *argument, struct cpu_set affinity,
                          int priority);
/* Waits for its end, and lets go of it; NULL: a check failed. */
void team_end(struct thread *thread);
/* Waits until the thread waits (true), or has ended (false). */
bool team_until_waits(const struct thread *thread);
/* What a wait takes, begun and checked on one CPU: at least wanted_ns, and at most LATE ticks more.
 * A CPU that a host stops gets one tick for all that it misses, so it may take any time. */
struct lasting {
    uint64_t ns, ticks;
};
struct lasting lasting_begin(void);
void lasting_check(struct lasting begun, uint64_t wanted_ns);
/* Waits until *where has at least the value; false and a failed check after some seconds. */
bool team_until(const uint64_t *where, uint64_t value);
