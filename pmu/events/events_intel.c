/* SPDX-License-Identifier: MIT */
/* What Intel's cores count, and which models they are in. Where hyper-threading leaves a thread four counters the tables
 * count on four; the architectural events count on all.
 *
 * Sources: Intel SDM vol. 3 "Pre-defined architectural performance events", "Fixed-function performance counters"; Intel's
 * event files (github.com/intel/perfmon; Linux has them in tools/perf/pmu-events/arch/x86), named at each family. */
#include "kernel/base/bits.h"
#include "pmu/events/events.h"

/* Every processor since Core may have these; CPUID 0Ah.EBX says which are missing. */
const struct pmu_table intel_architectural = {
    .name = "architectural",
    ROWS(
        { PMU_CYCLES,         0x3c, 0x00, 0, PMU_ANY_GP | PMU_FIX(1), EXACT, "UNHALTED_CORE_CYCLES" },
        { PMU_INSTRUCTIONS,   0xc0, 0x00, 0, PMU_ANY_GP | PMU_FIX(0), EXACT, "INSTRUCTION_RETIRED" },
        { PMU_BUS_CYCLES,     0x3c, 0x01, 0, PMU_ANY_GP, EXACT, "CPU_CLK_UNHALTED.REF_P" },
        { PMU_LLC_REFERENCES, 0x2e, 0x4f, 0, PMU_ANY_GP, EXACT, "LONGEST_LAT_CACHE.REFERENCE" },
        { PMU_LLC_MISSES,     0x2e, 0x41, 0, PMU_ANY_GP, EXACT, "LONGEST_LAT_CACHE.MISS" },
        { PMU_BRANCHES,       0xc4, 0x00, 0, PMU_ANY_GP, EXACT, "BR_INST_RETIRED.ALL_BRANCHES" },
        { PMU_BRANCH_MISSES,  0xc5, 0x00, 0, PMU_ANY_GP, EXACT, "BR_MISP_RETIRED.ALL_BRANCHES" },
        { PMU_SLOTS,          0xa4, 0x01, 0, PMU_ANY_GP | PMU_FIX(3), EXACT, "TOPDOWN.SLOTS_P" },
        /* 00/03 is no code of a general-purpose counter: fixed counter 2 only. */
        { PMU_REF_CYCLES,     0x00, 0x03, 0, PMU_FIX(2), EXACT, "UNHALTED_REFERENCE_CYCLES" })
};

/* --- Large cores. --- */

/* Core Duo and Solo: nothing but the architectural events */
static const struct pmu_table core_duo = {
    .name = "Core", .base = &intel_architectural, .rows = (const struct pmu_event_row[]){ { .event = PMU_EVENT_COUNT } },
};

/* Bonnell and Saltwell, Knights Landing and Mill: the same */
static const struct pmu_table bonnell = {
    .name = "Bonnell", .base = &intel_architectural, .rows = (const struct pmu_event_row[]){ { .event = PMU_EVENT_COUNT } },
};
static const struct pmu_table knights = {
    .name = "Knights", .base = &intel_architectural, .rows = (const struct pmu_event_row[]){ { .event = PMU_EVENT_COUNT } },
};

/* libpfm4's lib/events/intel_core_events.h: Merom, Penryn, Dunnington */
static const struct pmu_table core2 = {
    .name = "Core 2", .base = &intel_architectural, .counters = PMU_FIRST(2),
    ROWS(
        { PMU_LOADS,      0xc0, 0x01, 0, 0, EXACT, "INST_RETIRED:LOADS" },
        { PMU_STORES,     0xc0, 0x02, 0, 0, EXACT, "INST_RETIRED:STORES" },
        { PMU_L1I_READS,  0x80, 0x00, 0, 0, EXACT, "L1I_READS" },
        { PMU_L1I_MISSES, 0x81, 0x00, 0, 0, EXACT, "L1I_MISSES" },
        { PMU_INTERRUPTS, 0xc8, 0x00, 0, 0, EXACT, "HW_INT_RCV" })
};

/* nehalemep. Erratum AAJ80: Nehalem miscounts retired mispredictions, and clears
 * their bit in CPUID, so they are absent; 89/7F, which counts executed ones too, is no replacement. */
static const struct pmu_table nehalem = {
    .name = "Nehalem", .stale = true, .base = &intel_architectural, .counters = PMU_FIRST(4),
    ROWS(
        { PMU_LOADS,           0x0b, 0x01, 0, 0, EXACT, "MEM_INST_RETIRED.LOADS" },
        { PMU_STORES,          0x0b, 0x02, 0, 0, EXACT, "MEM_INST_RETIRED.STORES" },
        { PMU_PIPELINE_DRY,    0x80, 0x04, 0, 0, NEAR, "L1I.CYCLES_STALLED" },
        { PMU_PIPELINE_FROZEN, 0xa2, 0x01, 0, 0, NEAR, "RESOURCE_STALLS.ANY" },
        { PMU_NONISSUES,       0x0e, 0x01, NONE, 0, EXACT, "UOPS_ISSUED.ANY" },
        AT_LEAST(2, 0x0e, 0x01, "UOPS_ISSUED.ANY"),
        AT_LEAST(3, 0x0e, 0x01, "UOPS_ISSUED.ANY"),
        AT_LEAST(4, 0x0e, 0x01, "UOPS_ISSUED.ANY"),
        { PMU_L1D_ACCESSES,    0x43, 0x01, 0, PMU_FIRST(2), NEAR, "L1D_ALL_REF.ANY" },
        { PMU_L1D_MISSES,      0x51, 0x01, 0, PMU_FIRST(2), NEAR, "L1D.REPL" },
        { PMU_L1I_READS,       0x80, 0x03, 0, 0, EXACT, "L1I.READS" },
        { PMU_L1I_MISSES,      0x80, 0x02, 0, 0, NEAR, "L1I.MISSES" },
        { PMU_CONDITIONAL_BRANCHES, 0xc4, 0x01, 0, 0, EXACT, "BR_INST_RETIRED.CONDITIONAL" })
};

/* westmereep-dp */
static const struct pmu_table westmere = {
    .name = "Westmere", .stale = true, .base = &nehalem, .counters = PMU_FIRST(4),
    ROWS(LACKS(PMU_L1D_ACCESSES))
};

/* sandybridge, ivybridge, haswell */
static const struct pmu_table sandy_bridge = {
    .name = "Sandy Bridge", .base = &nehalem, .counters = PMU_FIRST(4),
    ROWS(
        { PMU_LOADS,        0xd0, 0x81, 0, PMU_FIRST(4), NEAR, "MEM_UOPS_RETIRED.ALL_LOADS" },
        { PMU_STORES,       0xd0, 0x82, 0, PMU_FIRST(4), NEAR, "MEM_UOPS_RETIRED.ALL_STORES" },
        { PMU_PIPELINE_DRY, 0x9c, 0x01, PMU_THRESHOLD(4), 0, NEAR, "IDQ_UOPS_NOT_DELIVERED.CYCLES_0_UOPS_DELIV.CORE" },
        { PMU_L1D_ACCESSES, 0xd0, 0x83, 0, PMU_FIRST(4), NEAR, "MEM_UOPS_RETIRED.ALL_LOADS|ALL_STORES" },
        { PMU_L1D_MISSES,   0x51, 0x01, 0, PMU_FIRST(4), NEAR, "L1D.REPLACEMENT" },
        { PMU_L1I_READS,    0x80, 0x03, 0, 0, NEAR, "ICACHE.HIT|MISSES" },
        { PMU_LOCKED,       0xd0, 0x21, 0, PMU_FIRST(4), NEAR, "MEM_UOPS_RETIRED.LOCK_LOADS" },
        { PMU_BRANCH_RECORDS, 0xcc, 0x20, 0, 0, EXACT, "ROB_MISC_EVENTS.LBR_INSERTS" })
};

/* broadwell */
static const struct pmu_table broadwell = {
    .name = "Broadwell", .base = &sandy_bridge, .counters = PMU_FIRST(4),
    ROWS({ PMU_FP_INSTRUCTIONS, 0xc7, 0x3f, 0, 0, NEAR,
          "FP_ARITH_INST_RETIRED.SCALAR_*|128B_*|256B_*" })
};

/* skylake */
static const struct pmu_table skylake = {
    .name = "Skylake", .base = &broadwell, .counters = PMU_FIRST(4),
    ROWS(
        { PMU_LOADS,      0xd0, 0x81, 0, PMU_FIRST(4), EXACT, "MEM_INST_RETIRED.ALL_LOADS" },
        { PMU_STORES,     0xd0, 0x82, 0, PMU_FIRST(4), EXACT, "MEM_INST_RETIRED.ALL_STORES" },
        { PMU_L1I_READS,  0x83, 0x03, 0, PMU_FIRST(4), NEAR, "ICACHE_64B.IFTAG_HIT|IFTAG_MISS" },
        { PMU_L1I_MISSES, 0x83, 0x02, 0, PMU_FIRST(4), NEAR, "ICACHE_64B.IFTAG_MISS" },
        { PMU_INTERRUPTS, 0xcb, 0x01, 0, 0, EXACT, "HW_INTERRUPTS.RECEIVED" })
};

/* skylakex, cascadelakex: AVX-512 */
static const struct pmu_table skylake_server = {
    .name = "Skylake server", .base = &skylake, .counters = PMU_FIRST(4),
    ROWS({ PMU_FP_INSTRUCTIONS, 0xc7, 0xff, 0, 0, NEAR,
          "FP_ARITH_INST_RETIRED.SCALAR_*|128B_*|256B_*|512B_*" })
};

/* icelake, icelakex */
static const struct pmu_table ice_lake = {
    .name = "Ice Lake", .base = &skylake_server, .counters = PMU_FIRST(8),
    ROWS(
        { PMU_PIPELINE_DRY,    0x9c, 0x01, PMU_THRESHOLD(5), 0, NEAR, "IDQ_UOPS_NOT_DELIVERED.CYCLES_0_UOPS_DELIV.CORE" },
        { PMU_PIPELINE_FROZEN, 0xa3, 0x04, PMU_THRESHOLD(4), PMU_FIRST(4), NEAR,
          "CYCLE_ACTIVITY.STALLS_TOTAL" },
        { PMU_CONDITIONAL_BRANCHES, 0xc4, 0x11, 0, 0, EXACT, "BR_INST_RETIRED.COND" },
        LACKS(PMU_INTERRUPTS))
};

/* alderlake (Golden Cove), meteorlake (Redwood Cove) */
static const struct pmu_table golden_cove = {
    .name = "Golden Cove", .base = &ice_lake, .counters = PMU_FIRST(8),
    ROWS(
        { PMU_PIPELINE_DRY,    0x9c, 0x01, PMU_THRESHOLD(6), 0, NEAR, "IDQ_UOPS_NOT_DELIVERED.CYCLES_0_UOPS_DELIV.CORE" },
        { PMU_PIPELINE_FROZEN, 0xa3, 0x04, PMU_THRESHOLD(4), 0, NEAR, "CYCLE_ACTIVITY.STALLS_TOTAL" },
        { PMU_NONISSUES,       0xae, 0x01, NONE, 0, NEAR, "UOPS_ISSUED.ANY" },
        AT_LEAST(2, 0xae, 0x01, "UOPS_ISSUED.ANY"),
        AT_LEAST(3, 0xae, 0x01, "UOPS_ISSUED.ANY"),
        AT_LEAST(4, 0xae, 0x01, "UOPS_ISSUED.ANY"),
        LACKS(PMU_L1I_READS),
        { PMU_L1I_MISSES,      0x24, 0xe4, 0, PMU_FIRST(4), NEAR, "L2_RQSTS.ALL_CODE_RD" },
        { PMU_FP_INSTRUCTIONS, 0xc7, 0x3f, 0, 0, NEAR,
          "FP_ARITH_INST_RETIRED.SCALAR_*|128B_*|256B_*" })
};

/* sapphirerapids, emeraldrapids, graniterapids: Golden and Redwood Cove with AVX-512 */
static const struct pmu_table sapphire_rapids = {
    .name = "Sapphire Rapids", .base = &golden_cove, .counters = PMU_FIRST(8),
    ROWS(
        { PMU_FP_INSTRUCTIONS, 0xc7, 0xff, 0, 0, NEAR,
          "FP_ARITH_INST_RETIRED.SCALAR_*|128B_*|256B_*|512B_*" },
        { PMU_INTERRUPTS,      0xcb, 0x01, 0, 0, EXACT, "HW_INTERRUPTS.RECEIVED" })
};

/* lunarlake, arrowlake (Lion Cove). Its conditional branches take a second unit mask, which pmu_select does not have. */
static const struct pmu_table lion_cove = {
    .name = "Lion Cove", .base = &golden_cove, .counters = PMU_FIRST(10),
    ROWS(
        { PMU_PIPELINE_DRY, 0x9c, 0x01, PMU_THRESHOLD(8), 0, NEAR, "IDQ_BUBBLES.CYCLES_0_UOPS_DELIV.CORE" },
        { PMU_L1D_ACCESSES, 0xd0, 0x87, 0, 0, NEAR, "MEM_INST_RETIRED.ANY" },
        { PMU_L1D_MISSES,   0x51, 0x05, 0, 0, NEAR, "L1D.REPLACEMENT" },
        { PMU_L1I_MISSES,   0x24, 0xe4, 0, 0, NEAR, "L2_RQSTS.ALL_CODE_RD" },
        { PMU_BRANCH_RECORDS, 0xe4, 0x01, 0, 0, EXACT, "MISC_RETIRED.LBR_INSERTS" },
        LACKS(PMU_CONDITIONAL_BRANCHES))
};

/* --- Small cores. --- */

/* silvermont */
static const struct pmu_table silvermont = {
    .name = "Silvermont", .base = &intel_architectural, .counters = PMU_FIRST(2),
    ROWS(
        { PMU_LOADS,           0x04, 0x40, 0, 0, NEAR, "MEM_UOPS_RETIRED.ALL_LOADS" },
        { PMU_STORES,          0x04, 0x80, 0, 0, NEAR, "MEM_UOPS_RETIRED.ALL_STORES" },
        { PMU_PIPELINE_DRY,    0xca, 0x50, 0, 0, NEAR, "NO_ALLOC_CYCLES.NOT_DELIVERED" },
        { PMU_PIPELINE_FROZEN, 0xca, 0x3f, 0, 0, NEAR, "NO_ALLOC_CYCLES.ALL" },
        { PMU_NONISSUES,       0xca, 0x3f, 0, 0, NEAR, "NO_ALLOC_CYCLES.ALL" },
        { PMU_L1D_ACCESSES,    0x04, 0xc0, 0, 0, NEAR, "MEM_UOPS_RETIRED.ALL_LOADS|ALL_STORES" },
        { PMU_L1I_READS,       0x80, 0x03, 0, 0, EXACT, "ICACHE.ACCESSES" },
        { PMU_L1I_MISSES,      0x80, 0x02, 0, 0, NEAR, "ICACHE.MISSES" },
        { PMU_CONDITIONAL_BRANCHES, 0xc4, 0x7e, 0, 0, EXACT, "BR_INST_RETIRED.JCC" })
};

/* goldmont, goldmontplus */
static const struct pmu_table goldmont = {
    .name = "Goldmont", .base = &silvermont, .counters = PMU_FIRST(4),
    ROWS(
        { PMU_LOADS,        0xd0, 0x81, 0, 0, NEAR, "MEM_UOPS_RETIRED.ALL_LOADS" },
        { PMU_STORES,       0xd0, 0x82, 0, 0, NEAR, "MEM_UOPS_RETIRED.ALL_STORES" },
        { PMU_PIPELINE_DRY, 0x9c, 0x00, 0, 0, NEAR, "UOPS_NOT_DELIVERED.ANY" },
        LACKS(PMU_PIPELINE_FROZEN),
        { PMU_NONISSUES,    0x0e, 0x00, NONE, 0, NEAR, "UOPS_ISSUED.ANY" },
        AT_LEAST(2, 0x0e, 0x00, "UOPS_ISSUED.ANY"),
        AT_LEAST(3, 0x0e, 0x00, "UOPS_ISSUED.ANY"),
        AT_LEAST(4, 0x0e, 0x00, "UOPS_ISSUED.ANY"),
        { PMU_L1D_ACCESSES, 0xd0, 0x83, 0, 0, NEAR, "MEM_UOPS_RETIRED.ALL_LOADS|ALL_STORES" },
        { PMU_L1D_MISSES,   0xd1, 0x08, 0, 0, NEAR, "MEM_LOAD_UOPS_RETIRED.L1_MISS" },
        { PMU_LOCKED,       0xd0, 0x21, 0, 0, NEAR, "MEM_UOPS_RETIRED.LOCK_LOADS" },
        { PMU_INTERRUPTS,   0xcb, 0x01, 0, 0, EXACT, "HW_INTERRUPTS.RECEIVED" })
};

/* elkhartlake, snowridgex */
static const struct pmu_table tremont = {
    .name = "Tremont", .base = &goldmont, .counters = PMU_FIRST(4),
    ROWS(
        { PMU_PIPELINE_DRY,    0x71, 0x00, 0, 0, NEAR, "TOPDOWN_FE_BOUND.ALL" },
        { PMU_PIPELINE_FROZEN, 0x74, 0x00, 0, 0, NEAR, "TOPDOWN_BE_BOUND.ALL" },
        LACKS(PMU_LOCKED),
        LACKS(PMU_INTERRUPTS))
};

/* alderlake (Gracemont), alderlaken */
static const struct pmu_table gracemont = {
    .name = "Gracemont", .base = &goldmont, .counters = PMU_FIRST(6),
    ROWS(
        { PMU_PIPELINE_DRY,    0x71, 0x00, 0, 0, NEAR, "TOPDOWN_FE_BOUND.ALL" },
        { PMU_PIPELINE_FROZEN, 0x74, 0x00, 0, 0, NEAR, "TOPDOWN_BE_BOUND.ALL" },
        { PMU_BRANCH_RECORDS,  0xe4, 0x01, 0, 0, EXACT, "MISC_RETIRED.LBR_INSERTS" },
        LACKS(PMU_INTERRUPTS))
};

/* sierraforest, grandridge, meteorlake (Crestmont) */
static const struct pmu_table crestmont = {
    .name = "Crestmont", .base = &gracemont, .counters = PMU_FIRST(8),
    ROWS(
        { PMU_L1D_MISSES,      0xd1, 0x40, 0, 0, NEAR, "MEM_LOAD_UOPS_RETIRED.L1_MISS" },
        { PMU_FP_INSTRUCTIONS, 0xc7, 0x2f, 0, 0, NEAR, "FP_INST_RETIRED.*" })
};

/* lunarlake, arrowlake (Skymont) */
static const struct pmu_table skymont = {
    .name = "Skymont", .base = &crestmont, .counters = PMU_FIRST(8),
    ROWS(
        { PMU_PIPELINE_DRY,    0x9c, 0x01, 0, 0, NEAR, "TOPDOWN_FE_BOUND.ALL_P" },
        { PMU_PIPELINE_FROZEN, 0xa4, 0x02, 0, 0, NEAR, "TOPDOWN_BE_BOUND.ALL_P" },
        { PMU_FP_INSTRUCTIONS, 0xc7, 0x3f, 0, 0, EXACT, "FP_INST_RETIRED.ALL" })
};

/* Models of family 6: tables of their large, small and tiny cores. */
static const struct {
    const struct pmu_table *cores[3];
    uint8_t models[10]; /* ends with 0, or is full */
} processors[] = {
    { { &core_duo }, { 0x0e } },
    { { &core2 }, { 0x0f, 0x16, 0x17, 0x1d } },
    { { &nehalem }, { 0x1a, 0x1e, 0x1f, 0x2e } },
    { { &westmere }, { 0x25, 0x2c, 0x2f } },
    { { &sandy_bridge }, { 0x2a, 0x2d, 0x3a, 0x3e, 0x3c, 0x3f, 0x45, 0x46 } },
    { { &broadwell }, { 0x3d, 0x47, 0x4f, 0x56 } },
    { { &skylake }, { 0x4e, 0x5e, 0x66, 0x8e, 0x9e, 0xa5, 0xa6 } },
    { { &skylake_server }, { 0x55 } },
    { { &ice_lake }, { 0x7d, 0x7e, 0x9d, 0x8c, 0x8d, 0xa7, 0x6a, 0x6c } },
    { { &ice_lake, &tremont }, { 0x8a } },
    { { &sapphire_rapids }, { 0x8f, 0xcf, 0xad, 0xae } },
    { { &golden_cove, &gracemont }, { 0x97, 0x9a, 0xb7, 0xba, 0xbf, 0xd7 } },
    { { &golden_cove, &crestmont }, { 0xaa, 0xac, 0xb5 } },
    { { &lion_cove, &skymont }, { 0xbd, 0xc6, 0xcc, 0xd5 } },
    { { &lion_cove, &skymont, &crestmont }, { 0xc5 } },
    { { &gracemont, &gracemont }, { 0xbe } },
    { { &crestmont, &crestmont }, { 0xaf, 0xb6 } },
    { { &tremont, &tremont }, { 0x86, 0x96, 0x9c } },
    { { &goldmont, &goldmont }, { 0x5c, 0x5f, 0x7a } },
    { { &silvermont, &silvermont }, { 0x37, 0x4a, 0x4c, 0x4d, 0x5a, 0x5d, 0x75 } },
    { { &knights }, { 0x57, 0x85 } },
    { { &bonnell }, { 0x1c, 0x26, 0x27, 0x35, 0x36 } },
};

/* A core of a kind that the model is not known to have. */
static const struct pmu_table *of_core(const struct pmu_table *table) { return table ? table : &intel_architectural; }

const struct pmu_table *intel_table(unsigned family, unsigned model, enum intel_core core)
{
    for (unsigned i = 0; family == 6 && i < ARRAY_SIZE(processors); i++)
        for (unsigned m = 0; m < sizeof processors->models && processors[i].models[m]; m++)
            if (processors[i].models[m] == model)
                return of_core(processors[i].cores[core]);
    return &intel_architectural;
}
