/* SPDX-License-Identifier: MIT */
/* Other CPUs: starting them, running something on them. */
#pragma once
#include <stdint.h>

struct acpi_info;
struct cpu;

/* What a CPU that starts needs of others. */
struct smp_plan {
    uint64_t (*idle_stack)(
        struct cpu *cpu); /* its idle thread's: the end, which the CPU begins on */
    void (*init)(void);   /* on it, interrupts off: it can take exceptions */
    void (*run)(void);    /* the same, interrupts on; does not return */
};

#define SMP_ALL (~0ul)

/* Starts, one by one, those CPUs of the MADT that are entry `first` to `last` of its list, until
 * MAX_CPUS run. A CPU that does not come is named and left out; how many stay parked is said. */
void smp_start(const struct acpi_info *info, unsigned first, unsigned last,
               const struct smp_plan *plan);
/* Runs function(argument) at IPI_LEVEL on each CPU in cpu_mask (absent ones are ignored), this one
 * included, and returns when all have. IRQL < DISPATCH_LEVEL, interrupts on. */
void smp_call(uint64_t cpu_mask, void (*function)(void *), void *argument);
void smp_call_interrupt(void);
/* At boot: who is told, on each other CPU, of a function that ran; `entered` is the TSC before it.
 */
void smp_call_ended(void (*notify)(uint64_t entered, void (*function)(void *)));
