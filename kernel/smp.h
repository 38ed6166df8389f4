/* SPDX-License-Identifier: MIT */
/* Other CPUs: starting them, running something on them. */
#pragma once
#include <stdint.h>

struct acpi_info;

#define SMP_ALL (~0ul)

/* Starts every CPU of the MADT, one by one; a CPU that does not come is named and left out. */
void smp_start(const struct acpi_info *info);
/* Runs function(argument) at IPI_LEVEL on each CPU in cpu_mask (absent ones are ignored), this one included,
 * and returns when all have. IRQL < DISPATCH_LEVEL, interrupts on. */
void smp_call(uint64_t cpu_mask, void (*function)(void *), void *argument);
void smp_call_interrupt(void);
/* Makes that CPU look at its run queue. Any IRQL. */
void smp_reschedule(unsigned cpu);
