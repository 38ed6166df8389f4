/* SPDX-License-Identifier: MIT */
#pragma once

/* Each CPU when it starts, after hal_pmi_init_cpu, interrupts off: if its kind is new, measures
 * what ring 3's counters do there (hal_measure). Without memory nothing is measured. */
void ring3_measure_cpu(void);
