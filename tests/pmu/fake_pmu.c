/* SPDX-License-Identifier: MIT */
#include "tests/harness/kernel.h"
#include "tests/pmu/fake_pmu.h"

#define GP_MSRS 18u
#define SELECT 0x186u
#define COUNTER 0xc1u
#define FIXED_COUNTER 0x309u
#define FIXED_CONTROL 0x38du
#define CONTROL 0x38fu
#define STATUS 0x38eu
#define CLEAR 0x390u
#define WIDTH 48
#define MASK (PMU_BIT(WIDTH) - 1)
#define VECTOR_UD 6
#define VECTOR_GP 13

static struct {
    enum defect defect;
    uint64_t broken; /* counters that have it */
    bool global;     /* there is a global control register */
    uint64_t select[GP_MSRS], value[64], fixed_control, control, status;
    uint64_t late;    /* of the status, what the next read but one shows */
    uint64_t started; /* counters that have counted before */
    unsigned runs, accesses, fault_at;
} fake;

const struct pmu_kind fake_facts = {
    .driver = "intel",
    .version = 4,
    .reported = FAKE_ALL,
    .counters = FAKE_ALL,
    .gp_reported = FAKE_GP,
    .gp_width = WIDTH,
    .fixed_width = WIDTH,
    .gp_write_width = WIDTH,
    .events = ~0u,
    .table = &intel_architectural,
    .msr = { .select = SELECT,
             .counter = COUNTER,
             .write = COUNTER,
             .stride = 1,
             .fixed_counter = FIXED_COUNTER,
             .fixed_stride = 1,
             .fixed_control = FIXED_CONTROL,
             .global_control = CONTROL,
             .global_status = STATUS,
             .global_clear = CLEAR },
};

void fake_make(const struct pmu_kind *facts, enum defect defect, uint64_t broken)
{
    memset(&fake, 0, sizeof fake);
    fake.defect = defect;
    fake.broken = broken;
    fake.global = facts->msr.global_control;
    fake.fault_at = FAKE_NEVER;
}

void fake_fault_at(unsigned access) { fake.fault_at = access; }
unsigned fake_accesses(void) { return fake.accesses; }

static bool has_defect(enum defect defect, unsigned ctr)
{
    return fake.defect == defect && fake.broken >> ctr & 1;
}
static bool access_faults(void) { return fake.accesses++ == fake.fault_at; }

/* The counter that an MSR is; 64: none. */
static unsigned counter_at(uint32_t msr)
{
    return msr >= COUNTER && msr < COUNTER + GP_MSRS ? msr - COUNTER
           : msr >= FIXED_COUNTER && msr < FIXED_COUNTER + PMU_FIXED_MAX
               ? PMU_FIXED + msr - FIXED_COUNTER
               : 64;
}

/* The four bits of each broken fixed counter in the register that they share. */
static uint64_t broken_nibbles(uint64_t nibble)
{
    uint64_t bits = 0;
    for (unsigned n = 0; n < PMU_FIXED_MAX; n++)
        bits |= fake.broken >> (PMU_FIXED + n) & 1 ? nibble << 4 * n : 0;
    return bits;
}

static unsigned fake_rdmsr(uint32_t msr, uint64_t *value)
{
    unsigned ctr = counter_at(msr);
    if (access_faults() || (ctr < 64 && has_defect(MSR_FAULT, ctr)))
        return VECTOR_GP;
    if (ctr < 64)
        *value = has_defect(SWALLOWED, ctr) || fake.defect == RDPMC_UD || fake.defect == RDPMC_GP
                     ? 0
                     : fake.value[ctr];
    else if (msr >= SELECT && msr < SELECT + GP_MSRS)
        *value = fake.select[msr - SELECT] | (has_defect(FIRMWARE, msr - SELECT) ? PMU_ENABLE : 0);
    else if (msr == FIXED_CONTROL)
        *value = fake.fixed_control | (fake.defect == FIRMWARE ? broken_nibbles(1) : 0);
    else
        *value = msr == CONTROL ? fake.control : msr == STATUS ? fake.status : 0;
    if (msr == STATUS) {
        fake.status |= fake.late;
        fake.late = 0;
    }
    return 0;
}

static unsigned fake_wrmsr(uint32_t msr, uint64_t value)
{
    unsigned ctr = counter_at(msr);
    if (access_faults())
        return VECTOR_GP;
    if (ctr < 64)
        fake.value[ctr] = value & (has_defect(NARROW, ctr) ? MASK >> 8 : MASK);
    else if (msr >= SELECT && msr < SELECT + GP_MSRS)
        fake.select[msr - SELECT] = has_defect(SELECT_STUCK, msr - SELECT) ? 0 : value;
    else if (msr == FIXED_CONTROL)
        fake.fixed_control = value & ~(fake.defect == SELECT_STUCK ? broken_nibbles(0xf) : 0);
    else if (msr == CONTROL)
        fake.control = value;
    else if (msr == CLEAR)
        fake.status &= ~value;
    return 0;
}

static unsigned fake_rdpmc(uint32_t selector, uint64_t *value)
{
    unsigned ctr = selector >> 30 ? PMU_FIXED + (selector & 0xff) : selector;
    if (fake.defect == RDPMC_UD)
        return VECTOR_UD;
    if (access_faults() || fake.defect == RDPMC_GP || ctr >= 64 || has_defect(PCE_LIKE, ctr))
        return VECTOR_GP;
    *value = fake.value[ctr] + has_defect(RDPMC_OTHER, ctr);
    return 0;
}

static bool is_enabled(unsigned ctr)
{
    unsigned fixed = ctr - PMU_FIXED;
    bool own = ctr >= PMU_FIXED ? fixed < PMU_FIXED_MAX && fake.fixed_control >> 4 * fixed & 1
                                : ctr < GP_MSRS && (fake.select[ctr] & PMU_ENABLE) &&
                                      (fake.select[ctr] & PMU_KERNEL);
    return own && (!fake.global || fake.control >> ctr & 1);
}

/* What is counted where n instructions are executed. */
static uint64_t counted_by(unsigned ctr, uint64_t n)
{
    bool first = !(fake.started >> ctr & 1);
    fake.started |= PMU_BIT(ctr);
    if (has_defect(DEAD, ctr) || (has_defect(DEAD_AT_FIRST, ctr) && first))
        return 0;
    n = has_defect(SLOW, ctr) ? n / 16 : has_defect(FAST, ctr) ? n * 2 : n;
    return n + has_defect(ONE_MORE, ctr) - has_defect(ONE_LESS, ctr);
}

static void add_events(unsigned ctr, uint64_t n)
{
    uint64_t sum = fake.value[ctr] + n;
    if (sum > MASK && !has_defect(NO_STATUS, ctr))
        *(has_defect(LATE_STATUS, ctr) ? &fake.late : &fake.status) |= PMU_BIT(ctr);
    fake.value[ctr] = has_defect(WIDE, ctr) ? sum : sum & MASK;
}

static unsigned between(const struct pmu_gate *gate, uint64_t n, uint64_t exits)
{
    if (fake_wrmsr(gate->msr, gate->on))
        return VECTOR_GP;
    for (unsigned ctr = 0; ctr < 64; ctr++)
        if (is_enabled(ctr))
            add_events(ctr, counted_by(ctr, n) + (has_defect(EXITS_TWICE, ctr) ? exits : 0) -
                                (has_defect(EXITS_LOST, ctr) ? exits : 0) +
                                (has_defect(JITTER, ctr) && !exits ? fake.runs++ % 3 : 0));
    return fake_wrmsr(gate->msr, gate->off);
}

static unsigned fake_run(const struct pmu_gate *gate, uint64_t loops)
{
    return between(gate, 2 * loops + PMU_RUN_AROUND, 0);
}

static unsigned fake_run_exits(const struct pmu_gate *gate, uint64_t loops)
{
    return between(gate, 5 * loops + PMU_RUN_EXITS_AROUND, loops);
}

const struct pmu_access fake_access = { fake_rdmsr, fake_wrmsr, fake_rdpmc, fake_run,
                                        fake_run_exits };
