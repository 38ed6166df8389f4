/* SPDX-License-Identifier: MIT */
/* Work items: routines of drivers that a system thread calls at PASSIVE_LEVEL. */
#pragma once
#include <stdbool.h>

/* Starts the thread, if it does not run. False: no memory. PASSIVE_LEVEL. */
bool work_start(void);
/* Waits until nothing is queued and nothing runs. PASSIVE_LEVEL. */
void work_wait(void);
