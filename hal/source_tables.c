/* SPDX-License-Identifier: MIT */
/* KPROFILE_SOURCE on Intel's processors, and which set of sources a processor has. Numbers and
 * names are those of Windows' HALs. No lock: constants only. Any IRQL.
 *
 * NT: of the general sources Windows has those that were architectural in 2003 and calls the
 * others unsupported. Here they are what the family's event table has; Intel's data and
 * instruction caches and floating point stay unsupported, as there. LbrInserts (20h) counts while
 * a list of branches is on, which the source does not turn on: a trace session does. Of TimerFixed
 * (24h) only the limits are known: it is unsupported.
 *
 * Source: numbers as studied in Windows 10; Intel SDM vol. 3 "Pre-defined architectural
 * performance events". */
#include "hal/source.h"
#include "pmu/pmu.h"

static const struct source_row intel[] = {
    GENERAL_SOURCES,
    { .id = 0x02, .name = "TotalIssues", .event = PMU_INSTRUCTIONS },
    { .id = 0x06, .name = "BranchInstructions", .event = PMU_BRANCHES },
    { .id = 0x0b, .name = "BranchMispredictions", .event = PMU_BRANCH_MISSES },
    { .id = 0x19, .name = "UnhaltedCoreCycles", .event = PMU_CYCLES },
    { .id = 0x1a, .name = "InstructionRetired", .event = PMU_INSTRUCTIONS },
    { .id = 0x1b, .name = "UnhaltedReferenceCycles", .event = PMU_BUS_CYCLES },
    { .id = 0x1c, .name = "LLCReference", .event = PMU_LLC_REFERENCES },
    { .id = 0x1d, .name = "LLCMisses", .event = PMU_LLC_MISSES },
    { .id = 0x1e, .name = "BranchInstructionRetired", .event = PMU_BRANCHES },
    { .id = 0x1f, .name = "BranchMispredictsRetired", .event = PMU_BRANCH_MISSES },
    { .id = 0x20, .name = "LbrInserts", .event = PMU_BRANCH_RECORDS },
    { .id = 0x21,
      .name = "InstructionsRetiredFixed",
      .event = PMU_INSTRUCTIONS,
      .fixed = PMU_FIX(0) },
    { .id = 0x22, .name = "UnhaltedCoreCyclesFixed", .event = PMU_CYCLES, .fixed = PMU_FIX(1) },
    { .id = 0x23,
      .name = "UnhaltedReferenceCyclesFixed",
      .event = PMU_REF_CYCLES,
      .fixed = PMU_FIX(2) },
    { .name = NULL },
};

/* Windows' HAL uses no event of an Intel processor if CPUID says that it lacks the first one. */
const struct source_set source_sets[] = {
    { "intel", intel, PMU_BIT(PMU_CYCLES), 0x25 },
    { "amd", amd_sources, 0, 0xc0 },
    { 0 },
};
