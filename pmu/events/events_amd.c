/* SPDX-License-Identifier: MIT */
/* What AMD's families count. Sources: AMD BIOS and Kernel Developer's Guides, from Zen on Processor Programming References,
 * "performance counter events"; names as libpfm4 has them (lib/events/amd64_events_*.h), in lower case as Linux has them
 * (tools/perf/pmu-events/arch/x86/amdzen*). */
#include "pmu/events/events.h"

/* Family 0Fh */
static const struct pmu_table k8 = {
    .name = "K8", .family = AMD_K8,
    ROWS(
        { PMU_CYCLES,          0x76, 0x00, 0, 0, EXACT, "CPU_CLK_UNHALTED" },
        { PMU_INSTRUCTIONS,    0xc0, 0x00, 0, 0, EXACT, "RETIRED_INSTRUCTIONS" },
        /* Of both: code, data, page walks. 08 and up are probes and prefetchers, another set in each family. */
        { PMU_LLC_REFERENCES,  0x7d, 0x07, 0, 0, EXACT, "REQUESTS_TO_L2:INSTRUCTIONS|DATA|TLB_WALK" },
        { PMU_LLC_MISSES,      0x7e, 0x07, 0, 0, EXACT, "L2_CACHE_MISS:INSTRUCTIONS|DATA|TLB_WALK" },
        { PMU_BRANCHES,        0xc2, 0x00, 0, 0, EXACT, "RETIRED_BRANCH_INSTRUCTIONS" },
        { PMU_BRANCH_MISSES,   0xc3, 0x00, 0, 0, EXACT, "RETIRED_MISPREDICTED_BRANCH_INSTRUCTIONS" },
        { PMU_PIPELINE_DRY,    0xd0, 0x00, 0, 0, EXACT, "DECODER_EMPTY" },
        { PMU_PIPELINE_FROZEN, 0xd1, 0x00, 0, 0, EXACT, "DISPATCH_STALLS" },
        { PMU_NONISSUES,       0xc1, 0x00, NONE, 0, NEAR, "RETIRED_UOPS" },
        AT_LEAST(2, 0xc1, 0x00, "RETIRED_UOPS"),
        AT_LEAST(3, 0xc1, 0x00, "RETIRED_UOPS"),
        { PMU_L1D_ACCESSES,    0x40, 0x00, 0, 0, EXACT, "DATA_CACHE_ACCESSES" },
        { PMU_L1D_MISSES,      0x41, 0x00, 0, 0, EXACT, "DATA_CACHE_MISSES" },
        { PMU_L1I_READS,       0x80, 0x00, 0, 0, EXACT, "INSTRUCTION_CACHE_FETCHES" },
        { PMU_L1I_MISSES,      0x81, 0x00, 0, 0, EXACT, "INSTRUCTION_CACHE_MISSES" },
        { PMU_FP_INSTRUCTIONS, 0xcb, 0x0f, 0, 0, NEAR, "RETIRED_MMX_AND_FP_INSTRUCTIONS:ALL" },
        { PMU_LOCKED,          0x24, 0x01, 0, 0, NEAR, "LOCKED_OPS:EXECUTED" },
        { PMU_MISALIGNED,      0x47, 0x00, 0, 0, NEAR, "MISALIGNED_ACCESSES" },
        { PMU_INTERRUPTS,      0xcf, 0x00, 0, 0, EXACT, "INTERRUPTS_TAKEN" })
};

/* Family 11h: a K8 with two links, as far as the events here go */
static const struct pmu_table turion = {
    .name = "Turion", .family = AMD_11H, .base = &k8, NO_ROWS
};

/* Family 10h */
static const struct pmu_table k10 = {
    .name = "K10", .family = AMD_10H, .base = &k8,
    ROWS({ PMU_FP_INSTRUCTIONS, 0xcb, 0x07, 0, 0, NEAR, "RETIRED_MMX_AND_FP_INSTRUCTIONS:ALL" })
};

/* Family 12h */
static const struct pmu_table llano = {
    .name = "Llano", .family = AMD_12H, .base = &k10, NO_ROWS
};

/* Family 14h: two instructions a cycle */
static const struct pmu_table bobcat = {
    .name = "Bobcat", .family = AMD_14H, .base = &k8,
    ROWS(
        { PMU_LLC_REFERENCES, 0x7d, 0x03, 0, 0, EXACT, "REQUESTS_TO_L2:INSTRUCTIONS|DATA" },
        { PMU_LLC_MISSES,     0x7e, 0x03, 0, 0, EXACT, "L2_CACHE_MISS:ALL" },
        LACKS(PMU_PIPELINE_DRY),
        LACKS(PMU_PIPELINE_FROZEN),
        LACKS(PMU_ISSUE_3),
        { PMU_FP_INSTRUCTIONS, 0xcb, 0x03, 0, 0, NEAR, "RETIRED_FLOATING_POINT_INSTRUCTIONS:ALL" })
};

/* Family 16h: the L2 has counters of its own */
static const struct pmu_table jaguar = {
    .name = "Jaguar", .family = AMD_16H, .base = &bobcat,
    ROWS(
        LACKS(PMU_LLC_REFERENCES),
        LACKS(PMU_LLC_MISSES),
        { PMU_LOADS,           0x29, 0x05, 0, 0, NEAR, "LS_DISPATCH:LOADS|LOAD_OP_STORES" },
        { PMU_STORES,          0x29, 0x06, 0, 0, NEAR, "LS_DISPATCH:STORES|LOAD_OP_STORES" },
        { PMU_MISALIGNED,      0x47, 0x03, 0, 0, NEAR, "MISALIGNED_ACCESSES:ALL" })
};

/* Family 15h: units of the core reach some of the six counters only. Events E0h and up are the northbridge's, which has
 * counters of its own. The guides' restrictions, by code; as Linux has them (arch/x86/events/amd/core.c). */
static const struct pmu_constraint family_15h[] = {
    { 0xfff, 0x003, PMU_GP(3) }, { 0xfff, 0x00b, PMU_GP(3) }, { 0xfff, 0x00d, PMU_GP(3) },
    { 0xfff, 0x000, PMU_GP(3) }, { 0xfff, 0x004, PMU_GP(3) }, /* with some unit masks 4 and 5 too */
    { 0xfff, 0x023, PMU_FIRST(3) }, { 0xfff, 0x043, PMU_FIRST(3) }, { 0xfff, 0x045, PMU_FIRST(3) },
    { 0xfff, 0x046, PMU_FIRST(3) }, { 0xfff, 0x054, PMU_FIRST(3) }, { 0xfff, 0x055, PMU_FIRST(3) },
    { 0xfff, 0x02d, PMU_GP(3) }, { 0xfff, 0x02e, PMU_GP(3) | PMU_GP(0) }, { 0xfff, 0x031, PMU_FIRST(3) },
    { 0xfff, 0x1c0, PMU_GP(3) | PMU_GP(4) | PMU_GP(5) },
    { 0xfff, 0x08f, PMU_GP(0) }, { 0xfff, 0x187, PMU_GP(0) }, { 0xfff, 0x188, PMU_GP(0) },
    { 0xffc, 0x0dc, PMU_FIRST(6) }, { 0xfff, 0x0db, PMU_FIRST(6) },
    { 0xfff, 0x1d6, PMU_FIRST(6) }, { 0xfff, 0x1d8, PMU_FIRST(6) },
    { 0x0e0, 0x000, PMU_GP(3) | PMU_GP(4) | PMU_GP(5) },           /* floating point */
    { 0x0e0, 0x020, PMU_FIRST(6) }, { 0x0e0, 0x040, PMU_FIRST(6) }, /* load and store, data cache */
    { 0x0e0, 0x060, PMU_FIRST(3) }, { 0x0e0, 0x080, PMU_FIRST(3) }, /* L2, instruction cache and decoder */
    { 0x0f0, 0x0c0, PMU_FIRST(6) }, { 0x0f0, 0x0d0, PMU_FIRST(3) }, /* execution, decoder */
    { 0, 0, 0 },
};
static const struct pmu_table bulldozer = {
    .name = "Bulldozer", .family = AMD_15H, .base = &k10, .constraints = family_15h,
    ROWS(
        { PMU_LOADS,      0x29, 0x05, 0, 0, NEAR, "LS_DISPATCH:LOADS|LOAD_OP_STORES" },
        { PMU_STORES,     0x29, 0x06, 0, 0, NEAR, "LS_DISPATCH:STORES|LOAD_OP_STORES" },
        AT_LEAST(4, 0xc1, 0x00, "RETIRED_UOPS"),
        { PMU_L1D_MISSES, 0x41, 0x01, 0, 0, EXACT, "DATA_CACHE_MISSES:DC_MISS_STREAMING_STORE" })
};

/* Family 17h up to model 2Fh, 18h */
static const struct pmu_table zen1 = {
    .name = "Zen", .family = AMD_ZEN1, .base = &bulldozer,
    ROWS(
        { PMU_LLC_REFERENCES,  0x60, 0xff, 0, 0, EXACT, "REQUESTS_TO_L2_GROUP1:*" },
        { PMU_LLC_MISSES,      0x64, 0x09, 0, 0, EXACT, "CORE_TO_L2_CACHEABLE_REQUEST_ACCESS_STATUS:LS_RD_BLK_C|IC_FILL_MISS" },
        { PMU_PIPELINE_DRY,    0x87, 0x02, 0, 0, NEAR, "INSTRUCTION_PIPE_STALL:IC_STALL_DQ_EMPTY" },
        { PMU_PIPELINE_FROZEN, 0x87, 0x01, 0, 0, NEAR, "INSTRUCTION_PIPE_STALL:IC_STALL_BACK_PRESSURE" },
        { PMU_L1D_MISSES,      0x41, 0x03, 0, 0, NEAR, "MAB_ALLOCATION_BY_PIPE:ST_PIPE|DATA_PIPE" },
        { PMU_LOCKED,          0x25, 0x0f, 0, 0, NEAR, "LOCKS:SPEC_LOCK_MAP_COMMIT|SPEC_LOCK|NON_SPEC_LOCK|BUS_LOCK" },
        { PMU_CONDITIONAL_BRANCHES, 0xd1, 0x00, 0, 0, EXACT, "RETIRED_CONDITIONAL_BRANCH_INSTRUCTIONS" },
        LACKS(PMU_INTERRUPTS))
};

/* The rest of family 17h */
static const struct pmu_table zen2 = {
    .name = "Zen 2", .family = AMD_ZEN2, .base = &zen1,
    ROWS(
        { PMU_PIPELINE_DRY, 0xa9, 0x00, 0, 0, EXACT, "UOPS_QUEUE_EMPTY" },
        { PMU_INTERRUPTS,   0x2c, 0x00, 0, 0, EXACT, "INTERRUPT_TAKEN" })
};

/* Family 19h, models 00h to 0Fh and 20h to 5Fh */
static const struct pmu_table zen3 = {
    .name = "Zen 3", .family = AMD_ZEN3, .base = &zen2,
    ROWS(
        LACKS(PMU_PIPELINE_FROZEN),
        { PMU_L1D_MISSES, 0x41, 0x3f, 0, 0, NEAR, "MAB_ALLOCATION_BY_TYPE:LS" },
        { PMU_L1I_READS,  0x18e, 0x1f, 0, 0, EXACT, "IC_TAG_HIT_MISS:ALL_IC_ACCESS" },
        { PMU_L1I_MISSES, 0x18e, 0x18, 0, 0, EXACT, "IC_TAG_HIT_MISS:IC_MISS" },
        { PMU_MISALIGNED, 0x47, 0x03, 0, 0, NEAR, "MISALIGNED_LOADS:MA4K|MA64" })
};

/* The rest of family 19h */
static const struct pmu_table zen4 = {
    .name = "Zen 4", .family = AMD_ZEN4, .base = &zen3,
    ROWS(
        { PMU_REF_CYCLES,      0x120, 0x01, 0, 0, EXACT, "P0_FREQ_CYCLES_NOT_IN_HALT:P0_FREQ_CYCLES" },
        { PMU_PIPELINE_FROZEN, 0x1a0, 0x1e, 0, 0, NEAR, "DISPATCH_STALLS_1:BE_STALLS" },
        { PMU_L1D_ACCESSES,    0x29, 0x07, 0, 0, NEAR, "LS_DISPATCH:LD_ST_DISPATCH|STORE_DISPATCH|LD_DISPATCH" },
        LACKS(PMU_LOCKED))
};

/* Family 1Ah */
static const struct pmu_table zen5 = {
    .name = "Zen 5", .family = AMD_ZEN5, .base = &zen4,
    ROWS(
        { PMU_L1D_MISSES, 0x41, 0x07, 0, 0, NEAR, "MAB_ALLOCATION_BY_TYPE:LS" },
        { PMU_LOCKED,     0x25, 0x1f, 0, 0, NEAR, "RETIRED_LOCK_INSTRUCTIONS:ANY" })
};

/* Of family 1Ah models 50h to 5Fh, 80h to AFh and C0h to CFh are Zen 6, and others have no name yet:
 * they get Zen 5's table as the most similar. */
static bool is_zen5(unsigned model)
{
    unsigned high = model >> 4;
    return high <= 2 || high == 4 || high == 6 || high == 7;
}

bool amd_is_known(unsigned family, unsigned model)
{
    if (family == 0x1a)
        return is_zen5(model);
    return family == 0x0f || (family >= 0x10 && family <= 0x12) || (family >= 0x14 && family <= 0x19);
}

const struct pmu_table *amd_table(unsigned family, unsigned model)
{
    switch (family) {
    case 0x0f:
        return &k8;
    case 0x11:
        return &turion;
    case 0x12:
        return &llano;
    case 0x14:
        return &bobcat;
    case 0x15:
        return &bulldozer;
    case 0x16:
        return &jaguar;
    case 0x17:
    case 0x18: /* Hygon's Zen */
        return model < 0x30 ? &zen1 : &zen2;
    case 0x19:
        return model < 0x10 || (model >= 0x20 && model < 0x60) ? &zen3 : &zen4;
    }
    return family < 0x17 ? &k10 : &zen5;
}
