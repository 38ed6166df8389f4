/* SPDX-License-Identifier: MIT */
/* What the virtual PMU counts of its guest: its CPUID leaves 4000_0000h.. are for tests only; the kernel does not
 * know them. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

struct vpmu_accesses {
    uint32_t rdpmc, rdmsr, wrmsr, interrupts; /* RDPMCs, PMU MSRs read and written, PMIs; this CPU, since start */
};

bool vpmu_present(void);
struct vpmu_accesses vpmu_accesses(void);
/* Instructions that this CPU retired in ring 0 since start, whether or not a counter counts. */
uint64_t vpmu_retired(void);
#define SKIP_WITHOUT_VPMU()                                                                    \
    do {                                                                                       \
        if (!vpmu_present())                                                                   \
            SKIP("needs the virtual PMU, which counts accesses");                              \
    } while (0)
