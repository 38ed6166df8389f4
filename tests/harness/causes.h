/* SPDX-License-Identifier: MIT */
/* What is known of the machine that may be the cause of a failed test, and is no fault of the
 * kernel: system management interrupts (firmware's code that no one else sees, whose instructions
 * some processors count), and what was measured to differ from the manuals. */
#pragma once
#include <stdbool.h>

/* Before the first test, on the runner's thread: whether there is a count of SMIs that moves. */
void causes_init(void);
/* Whether loads take many times as long as on CPU 0. */
bool causes_slow_memory(unsigned cpu);
/* Before each test. */
void causes_begin(void);
/* After a failed test: prints each; nothing where nothing differs. */
void causes_print(void);
