/* SPDX-License-Identifier: MIT */
/* The TSCs of all CPUs count from the same moment. */
#pragma once

struct cpu;

/* Called by the boot CPU for each CPU that starts, which meanwhile is in tsc_answer: measures how
 * far its TSC is ahead, and sets it; what is left is in cpu->tsc_behind. */
void tsc_compare(struct cpu *cpu);
void tsc_answer(void);
/* Prints a line if some TSC disagreed. */
void tsc_report(void);
