/* SPDX-License-Identifier: MIT */
/* Tests that counters count, and names the defect. Every access may fault: a machine whose CPUID
 * reports a PMU may have none, ignore writes, or count nothing. A count of zero never passes.
 *
 * Sources: Intel SDM vol. 3 "Performance monitoring"; AMD APM vol. 2 "Performance monitoring
 * counters". */
#include "pmu/selftest.h"
#include "kernel/base/bits.h"
#include "kernel/base/x86.h"

#define PATTERN 0x12345678u /* bit 31 is clear: a 32-bit write does not sign-extend it */
#define SHORT_LOOP 100u     /* iterations of two instructions */
#define LONG_LOOP 1100u
#define LOOP_DIFFERENCE (2 * (LONG_LOOP - SHORT_LOOP))
#define OVERFLOW_AFTER 50u
#define FEW_EXITS 3u /* iterations of five instructions, one of which exits */
#define MORE_EXITS 10u
#define EXITS_DIFFERENCE (5 * MORE_EXITS)
#define TRIES 3
#define VECTOR_UD 6      /* RDPMC raises this or #GP */
#define FIXED_KERNEL 1ul /* in the fixed control register */
#define FIXED_INTERRUPT 8ul

const char *pmu_verdict_text(enum pmu_verdict v)
{
    static const char *const text[PMU_VERDICT_COUNT] = {
        [PMU_OK] = "every counter counts",
        [PMU_NOT_REPORTED] = "RDPMC does not fault, but CPUID reports no PMU that we know",
        [PMU_NO_COUNTERS] = "CPUID reports a PMU with no counter in it",
        [PMU_ABSENT_UD] = "RDPMC raises #UD and counters keep no value: there is no PMU",
        [PMU_ABSENT_GP] = "RDPMC raises #GP and counters keep no value: there is no PMU",
        [PMU_MSR_FAULTS] = "RDMSR, WRMSR or RDPMC faults on a counter that CPUID reports",
        [PMU_WRITES_SWALLOWED] = "RDMSR of a counter or its select is not what WRMSR wrote",
        [PMU_RDPMC_DISABLED] = "RDPMC faults in ring 0 on a counter that RDMSR reads",
        [PMU_RDPMC_DIFFERS] = "RDPMC and RDMSR of the same stopped counter differ",
        [PMU_WIDTH_LIES] = "the counter is not as wide as CPUID (AMD: the manual) says",
        [PMU_FIRMWARE_OWNS] = "firmware owns it: the select stays enabled after a write of 0",
        [PMU_COUNTERS_DEAD] = "the counter takes every write, but counts nothing",
        [PMU_WRONG_RATE] = "the count of a loop of known length is out of all bounds",
        [PMU_OVERFLOW_LOST] = "the counter wraps, but its overflow status bit stays 0",
        [PMU_PMI_LOST] = "the counter overflows, but no interrupt comes",
        [PMU_EXITS_MISCOUNTED] =
            "instructions that exit to a hypervisor are not counted once: counts depend on exits",
        [PMU_TOO_MANY_KINDS] = "there are more kinds of CPUs than we can describe",
    };
    return v < PMU_VERDICT_COUNT ? text[v] : "?";
}

/* --- Access to the processor's own PMU. --- */

static unsigned read_msr(uint32_t msr, uint64_t *value) { return rdmsr_fault(msr, value); }
static unsigned write_msr(uint32_t msr, uint64_t value) { return wrmsr_fault(msr, value); }
static unsigned read_pmc(uint32_t selector, uint64_t *value)
{
    return rdpmc_fault(selector, value);
}

static unsigned run_loops(const struct pmu_gate *gate, uint64_t loops)
{
    uint32_t low = (uint32_t)gate->on, high = (uint32_t)(gate->on >> 32), ok;
    asm volatile(
        "xor %[ok],%[ok]\n"
        "1: wrmsr\n"
        "2: dec %[loops]\njnz 2b\n"
        "mov %[low],%%eax\nmov %[high],%%edx\n"
        "3: wrmsr\n"
        "inc %[ok]\n4:\n" FIXUP("1b", "4b") FIXUP("3b", "4b")
        : "+&a"(low), "+&d"(high), [ok] "=&r"(ok), [loops] "+&r"(loops)
        : "c"(gate->msr), [low] "r"((uint32_t)gate->off), [high] "r"((uint32_t)(gate->off >> 32))
        : "memory", "cc");
    return ok ? 0 : low;
}

static unsigned run_exits(const struct pmu_gate *gate, uint64_t loops)
{
    uint32_t low = (uint32_t)gate->on, high = (uint32_t)(gate->on >> 32), msr = gate->msr, ok;
    asm volatile("xor %[ok],%[ok]\n"
                 "1: wrmsr\n"
                 "2: xor %%eax,%%eax\nxor %%ecx,%%ecx\ncpuid\ndec %[loops]\njnz 2b\n"
                 "mov %[msr],%%ecx\nmov %[low],%%eax\nmov %[high],%%edx\n"
                 "3: wrmsr\n"
                 "inc %[ok]\n4:\n" FIXUP("1b", "4b") FIXUP("3b", "4b")
                 : "+&a"(low), "+&d"(high), "+&c"(msr), [ok] "=&r"(ok), [loops] "+&r"(loops)
                 : [msr] "r"(gate->msr), [low] "r"((uint32_t)gate->off),
                   [high] "r"((uint32_t)(gate->off >> 32))
                 : "rbx", "memory", "cc");
    return ok ? 0 : low;
}

const struct pmu_access pmu_hardware = { read_msr, write_msr, read_pmc, run_loops, run_exits };

/* --- The self-test. --- */

struct proof {
    const struct pmu_kind *pmu;
    const struct pmu_access *to;
    bool exact; /* this counter */
    int offset;
};

/* The event to test a counter with: if possible instructions, because their number is known. */
static enum pmu_event event_to_prove(const struct pmu_kind *pmu, unsigned ctr)
{
    static const enum pmu_event events[] = { PMU_INSTRUCTIONS, PMU_CYCLES, PMU_REF_CYCLES,
                                             PMU_SLOTS };
    for_each_in(e, events)
        if (pmu_counters_for(pmu, *e) >> ctr & 1)
            return *e;
    return PMU_EVENT_COUNT;
}

static unsigned fixed_shift(unsigned ctr) { return 4 * (ctr - PMU_FIXED); }

static enum pmu_verdict prove_registers(const struct proof *p, unsigned ctr)
{
    uint64_t value = 0, by_rdpmc = 0, mask = pmu_mask(p->pmu, ctr);
    uint32_t read = pmu_counter_msr(p->pmu, ctr), write = pmu_write_msr(p->pmu, ctr);
    unsigned fault = p->to->wrmsr(write, PATTERN);
    if (!fault)
        fault = p->to->rdmsr(read, &value);
    unsigned rdpmc_vector = p->to->rdpmc(pmu_rdpmc_index(ctr), &by_rdpmc);

    if (fault || value != PATTERN) {
        if (rdpmc_vector)
            return rdpmc_vector == VECTOR_UD ? PMU_ABSENT_UD : PMU_ABSENT_GP;
        return fault ? PMU_MSR_FAULTS : PMU_WRITES_SWALLOWED;
    }
    if (rdpmc_vector)
        return PMU_RDPMC_DISABLED;
    if (by_rdpmc != value)
        return PMU_RDPMC_DIFFERS;
    /* A value with all bits set: a 32-bit write makes it too, by sign extension of bit 31. */
    if (mask < UINT32_MAX || p->to->wrmsr(write, mask) || p->to->rdmsr(read, &value) ||
        value != mask)
        return PMU_WIDTH_LIES;
    return p->to->wrmsr(write, 0) ? PMU_MSR_FAULTS : PMU_OK;
}

/* Writes a select without the enable bit, so the counter does not run. */
static enum pmu_verdict prove_select(const struct proof *p, unsigned ctr)
{
    uint32_t msr = pmu_select_msr(p->pmu, ctr);
    uint64_t value = 0, select = pmu_select(p->pmu, PMU_INSTRUCTIONS, PMU_KERNEL | PMU_INTERRUPT);
    if (p->to->rdmsr(msr, &value))
        return PMU_MSR_FAULTS;
    if (value & PMU_ENABLE)
        return PMU_FIRMWARE_OWNS;
    if (p->to->wrmsr(msr, select) || p->to->rdmsr(msr, &value))
        return PMU_MSR_FAULTS;
    if (value != select)
        return PMU_WRITES_SWALLOWED;
    return p->to->wrmsr(msr, 0) ? PMU_MSR_FAULTS : PMU_OK;
}

/* Fixed counters share a control register; only the counter's own bits of it are compared. Nothing
 * counts while the global control is 0. */
static enum pmu_verdict prove_fixed_control(const struct proof *p, unsigned ctr)
{
    uint32_t msr = pmu_select_msr(p->pmu, ctr);
    unsigned shift = fixed_shift(ctr);
    uint64_t value = 0, bits = FIXED_KERNEL | FIXED_INTERRUPT;
    if (p->to->rdmsr(msr, &value))
        return PMU_MSR_FAULTS;
    if (value >> shift & 3)
        return PMU_FIRMWARE_OWNS;
    if (p->to->wrmsr(msr, bits << shift) || p->to->rdmsr(msr, &value) || p->to->wrmsr(msr, 0))
        return PMU_MSR_FAULTS;
    return (value >> shift & 0xf) == bits ? PMU_OK : PMU_WRITES_SWALLOWED;
}

static enum pmu_verdict prove_global(const struct proof *p, unsigned ctr)
{
    const struct pmu_msrs *msr = &p->pmu->msr;
    uint64_t value;
    if (msr->global_control &&
        (p->to->wrmsr(msr->global_control, PMU_BIT(ctr)) || p->to->wrmsr(msr->global_control, 0) ||
         p->to->rdmsr(msr->global_status, &value) || p->to->wrmsr(msr->global_clear, PMU_BIT(ctr))))
        return PMU_MSR_FAULTS;
    return PMU_OK;
}

static enum pmu_verdict prove_all_registers(const struct proof *p, unsigned ctr)
{
    enum pmu_verdict v = prove_registers(p, ctr);
    if (v == PMU_OK)
        v = ctr >= PMU_FIXED ? prove_fixed_control(p, ctr) : prove_select(p, ctr);
    return v == PMU_OK ? prove_global(p, ctr) : v;
}

/* Programs the counter so that the enabling WRMSR alone starts it; true: an access faulted. */
static bool program_counter(const struct proof *p, unsigned ctr, enum pmu_event event,
                            uint64_t start, struct pmu_gate *gate)
{
    const struct pmu_msrs *msr = &p->pmu->msr;
    uint32_t control = pmu_select_msr(p->pmu, ctr);
    bool fixed = ctr >= PMU_FIXED;
    uint64_t select =
        fixed ? FIXED_KERNEL << fixed_shift(ctr) : pmu_select(p->pmu, event, PMU_KERNEL);
    uint64_t enabled = fixed ? select : select | PMU_ENABLE;
    *gate = msr->global_control ? (struct pmu_gate){ msr->global_control, PMU_BIT(ctr), 0 }
                                : (struct pmu_gate){ control, enabled, select };
    return pmu_forget_event(p->pmu, ctr, 0, p->to->wrmsr) ||
           p->to->wrmsr(pmu_write_msr(p->pmu, ctr), start) ||
           p->to->wrmsr(control, msr->global_control ? enabled : select) ||
           (msr->global_clear && p->to->wrmsr(msr->global_clear, PMU_BIT(ctr)));
}

/* What the counter shows after the loops, beginning at `start`; true: an access faulted. */
static bool count_loops(const struct proof *p, unsigned ctr, enum pmu_event event, uint64_t start,
                        uint64_t loops, uint64_t *value)
{
    struct pmu_gate gate;
    return program_counter(p, ctr, event, start, &gate) || p->to->run(&gate, loops) ||
           p->to->rdpmc(pmu_rdpmc_index(ctr), value);
}

static bool count_exits(const struct proof *p, unsigned ctr, uint64_t loops, uint64_t *value)
{
    struct pmu_gate gate;
    return program_counter(p, ctr, PMU_INSTRUCTIONS, 0, &gate) || p->to->run_exits(&gate, loops) ||
           p->to->rdpmc(pmu_rdpmc_index(ctr), value);
}

/* Each exit must add exactly the instructions of its iteration, with the one that exits. A counter
 * that fails this is used, but reported as not exact. */
static enum pmu_verdict prove_exits(struct proof *p, unsigned ctr)
{
    uint64_t few = 0, more = 0;
    for (unsigned i = 0; i < TRIES && more - few != EXITS_DIFFERENCE; i++)
        if (count_exits(p, ctr, FEW_EXITS, &few) ||
            count_exits(p, ctr, FEW_EXITS + MORE_EXITS, &more))
            return PMU_MSR_FAULTS;
    p->exact &= more - few == EXITS_DIFFERENCE;
    /* Off by one or two is noise; an instruction lost or counted twice at each exit is not. */
    bool each = more - few < EXITS_DIFFERENCE - MORE_EXITS / 2 ||
                more - few > EXITS_DIFFERENCE + MORE_EXITS / 2;
    return each ? PMU_EXITS_MISCOUNTED : PMU_OK;
}

/* Two loops differ only in length, so their counts differ by a known number of instructions. A
 * constant offset does not show in the difference. It is reported, because every count contains
 * it. */
static enum pmu_verdict prove_instructions(struct proof *p, unsigned ctr)
{
    uint64_t shorter = 0, longer = 0, difference = 0;
    for (unsigned i = 0; i < TRIES && difference != LOOP_DIFFERENCE; i++) {
        if (count_loops(p, ctr, PMU_INSTRUCTIONS, 0, SHORT_LOOP, &shorter) ||
            count_loops(p, ctr, PMU_INSTRUCTIONS, 0, LONG_LOOP, &longer))
            return PMU_MSR_FAULTS;
        if (!shorter || !longer)
            return PMU_COUNTERS_DEAD;
        difference = longer - shorter;
    }
    int offset = (int)(int64_t)(shorter - (2 * SHORT_LOOP + PMU_RUN_AROUND));
    p->exact = difference == LOOP_DIFFERENCE;
    p->offset = difference == LOOP_DIFFERENCE ? offset : 0;
    /* The tolerance is an eighth, because some processors and hypervisors count extra events at
     * each exit to the host. */
    if (difference < LOOP_DIFFERENCE - LOOP_DIFFERENCE / 8 ||
        difference > LOOP_DIFFERENCE + LOOP_DIFFERENCE / 8)
        return PMU_WRONG_RATE;
    return prove_exits(p, ctr);
}

static enum pmu_verdict prove_overflow(const struct proof *p, unsigned ctr, enum pmu_event event)
{
    uint64_t value = 0, status = 0, mask = pmu_mask(p->pmu, ctr);
    if (count_loops(p, ctr, event, mask - OVERFLOW_AFTER + 1, LONG_LOOP, &value) ||
        p->to->rdmsr(p->pmu->msr.global_status, &status) ||
        p->to->wrmsr(p->pmu->msr.global_clear, PMU_BIT(ctr)))
        return PMU_MSR_FAULTS;
    if (value > mask / 2)
        return PMU_WIDTH_LIES;
    return status >> ctr & 1 ? PMU_OK : PMU_OVERFLOW_LOST;
}

static enum pmu_verdict prove_counting(struct proof *p, unsigned ctr)
{
    enum pmu_event event = event_to_prove(p->pmu, ctr);
    uint64_t n = 0;
    if (event == PMU_EVENT_COUNT)
        return PMU_OK; /* the event need not occur, so only the registers can be tested */
    /* Nehalem's erratum AAK100: counters may stand still when first started. */
    for (unsigned i = 0; i < TRIES && !n; i++)
        if (count_loops(p, ctr, event, 0, LONG_LOOP, &n))
            return PMU_MSR_FAULTS;
    if (!n)
        return PMU_COUNTERS_DEAD;
    /* The lower bound allows a taken branch in each cycle and a TSC at a seventh of the clock: a
     * small core's turbo is almost five times it. No machine is as slow as the upper bound. */
    bool by_tsc = event == PMU_REF_CYCLES;
    if (n < LONG_LOOP / (by_tsc ? 7 : 4) || n > LONG_LOOP * 10000)
        return PMU_WRONG_RATE;
    enum pmu_verdict v = p->pmu->msr.global_status ? prove_overflow(p, ctr, event) : PMU_OK;
    return v == PMU_OK && event == PMU_INSTRUCTIONS ? prove_instructions(p, ctr) : v;
}

static enum pmu_verdict prove_counter(struct proof *p, unsigned ctr)
{
    enum pmu_verdict v = prove_all_registers(p, ctr);
    if (v == PMU_OK)
        v = prove_counting(p, ctr);
    p->to->wrmsr(pmu_select_msr(p->pmu, ctr), 0);
    p->to->wrmsr(pmu_write_msr(p->pmu, ctr), 0);
    return v;
}

/* Whether the counter can be used. */
static bool is_good(enum pmu_verdict v) { return v == PMU_OK || v == PMU_EXITS_MISCOUNTED; }

static enum pmu_verdict prove_all(struct proof *p, struct pmu_finding *found)
{
    uint64_t ignored, reported = p->pmu->reported;
    unsigned vector = p->to->rdpmc(0, &ignored);
    if (!p->pmu->driver)
        return !vector ? PMU_NOT_REPORTED : vector == VECTOR_UD ? PMU_ABSENT_UD : PMU_ABSENT_GP;
    if (!reported)
        return PMU_NO_COUNTERS;

    enum pmu_verdict first = PMU_OK;
    found->exact = true;
    for_each_bit(ctr, reported) {
        p->exact = true;
        p->offset = 0;
        enum pmu_verdict v = prove_counter(p, (unsigned)ctr);
        if (is_good(first) && v != PMU_OK)
            first = v;
        if (!is_good(v)) {
            found->bad |= PMU_BIT(ctr);
            continue;
        }
        found->exact &= p->exact;
        if (p->offset)
            found->offset = p->offset;
    }
    bool absent = first == PMU_ABSENT_UD || first == PMU_ABSENT_GP;
    return absent && found->bad != reported ? PMU_MSR_FAULTS : first; /* only some are absent */
}

struct pmu_finding pmu_diagnose(const struct pmu_kind *pmu, const struct pmu_access *access)
{
    struct pmu_kind all = *pmu;
    struct proof p = { .pmu = &all, .to = access };
    struct pmu_finding found = { .bad = 0 };
    all.counters = all.reported; /* the test finds which of them work */
    found.verdict = prove_all(&p, &found);
    return found;
}

bool pmu_answers(const struct pmu_kind *pmu, const struct pmu_access *access, uint64_t counters)
{
    const struct proof p = { .pmu = pmu, .to = access };
    for_each_bit(ctr, counters)
        if (prove_all_registers(&p, (unsigned)ctr) != PMU_OK)
            return false;
    return true;
}
