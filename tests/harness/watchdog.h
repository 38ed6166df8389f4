/* SPDX-License-Identifier: MIT */
/* How long a test may take. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

struct thread;

/* Measures this machine: one may be a thousand times slower than we think, and its tests get more
 * time. The milliseconds of the loop that decides if it is such a one, else 0. */
uint64_t watchdog_calibrate(void);
struct watchdog_took {
    uint64_t ns; /* by the kernel's clock */
    unsigned wall_seconds;
};
/* Waits for the thread; calls each_second about once a second. False: it is stuck; *took says for
 * how long. Time that goes into printing does not count: a serial line takes 9 ms. */
bool watchdog_wait(struct thread *thread, void (*each_second)(void), struct watchdog_took *took);
