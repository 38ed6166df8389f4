/* SPDX-License-Identifier: MIT */
/* The page that ring 3 and drivers read at fixed addresses: times, version, processor features. */
#pragma once
#include <stdbool.h>

struct process;

/* Once, before there are processes and after the processors' features are known. */
void shared_data_init(void);
/* Read-only into a new process. False: no memory. */
bool shared_data_map(struct process *process);
/* By each tick of the timer: the first CPU writes the times. */
void shared_data_tick(void);
