/* SPDX-License-Identifier: MIT */
/* Other CPUs: starting them, running something on them. */
#pragma once
#include <stddef.h>
#include <stdint.h>
#include "kernel/base/cpu_set.h"

struct acpi_info;
struct boot_info;
struct cpu;

/* What others provide for a CPU that starts. */
struct smp_plan {
    /* The top of its idle thread's stack, on which it begins. */
    uint64_t (*idle_stack)(struct cpu *cpu);
    void (*init)(void); /* runs on it, interrupts off, exceptions allowed */
    void (*run)(void);  /* runs on it, interrupts on; does not return */
    unsigned most;      /* so many run, the boot CPU among them; at most MAX_CPUS */
};

#define SMP_ALL cpu_all()

/* Starts, one by one, the CPUs that are entries `first` to `last` of the MADT's list, until
 * plan->most run. Prints which CPUs did not start, and are left out, and how many stay parked. */
void smp_start(const struct acpi_info *info, unsigned first, unsigned last,
               const struct smp_plan *plan);
/* For it, and for tests: the physical address of a page below 640 KB that is memory by the loader's
 * map, without a module: 8000h if that is one; 0: none. */
uint32_t smp_free_page(const struct boot_info *info);
/* Runs function(argument) at IPI_LEVEL on the CPUs of `among`, which all run, and of which this one
 * may be. Returns when all have run it. IRQL < DISPATCH_LEVEL, interrupts on. */
void smp_call(struct cpu_set among, void (*function)(void *), void *argument);
/* Whether this CPU is in smp_call. Its IRQL was below DISPATCH_LEVEL before. Any IRQL. */
bool smp_waits(void);
void smp_call_interrupt(void);
/* "; CPU 1 owes CPU 0 an answer to FUNCTION" for each call that runs now; "": none does. */
void smp_owed(char *text, size_t size);
/* At boot: sets what each other CPU calls after a function of smp_call; `entered`: the TSC
 * before. */
void smp_call_ended(void (*notify)(uint64_t entered, void (*function)(void *)));
