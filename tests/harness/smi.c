/* SPDX-License-Identifier: MIT */
/* By MSR_SMI_COUNT, of Intel processors since Nehalem. Where it is 0 on all CPUs after start, an
 * emulator has it for show, and it is not read again. */
#include "tests/harness/kernel.h"
#include "tests/harness/smi.h"
#include "kernel/base/print.h"

#define MSR_SMI_COUNT 0x34u

static bool counted;                               /* on some CPU */
static uint64_t at_begin[MAX_CPUS], now[MAX_CPUS]; /* each written by its CPU */

static void read_here(void *counts)
{
    uint64_t value = 0;
    if (rdmsr_fault(MSR_SMI_COUNT, &value))
        value = 0;
    ((uint64_t *)counts)[cpu_number()] = value;
}

void smi_init(void)
{
    smp_call(SMP_ALL, read_here, now);
    for (unsigned cpu = 0; cpu < cpu_count; cpu++)
        counted |= now[cpu] != 0;
}

void smi_begin(void)
{
    if (counted)
        smp_call(SMP_ALL, read_here, at_begin);
}

void smi_tell(void)
{
    if (!counted)
        return;
    smp_call(SMP_ALL, read_here, now);
    for (unsigned cpu = 0; cpu < cpu_count; cpu++)
        if (now[cpu] != at_begin[cpu])
            print("# %lu SMIs came on CPU %u meanwhile: firmware's instructions may be in the "
                  "counts\n",
                  now[cpu] - at_begin[cpu], cpu);
}
