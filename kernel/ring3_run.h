/* SPDX-License-Identifier: MIT */
#pragma once
#include "kernel/base/vectors.h"
#include "kernel/base/x86.h"

/* Each CPU when it starts, after hal_pmi_init_cpu, interrupts off: if its kind is new, measures
 * what ring 3's counters do there (hal_measure). Without memory nothing is measured. */
void ring3_measure_cpu(void);
/* Makes an IDT of 256 gates for a run from the kernel's. */
void ring3_set_gates(struct gate *gates, const struct table_register *kernel);
