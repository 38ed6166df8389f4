/* SPDX-License-Identifier: MIT */
#include "tests/harness/measured.h"
#include "tests/harness/lab.h"

#define DEBUGCTL 0x1d9u
#define FREEZE (1u << 12)
#define MISC_ENABLE 0x1a0u
#define MISC_COUNTS (1u << 7)
#define MISC_ABSENT (3u << 11) /* BTS and PEBS */
#define UNCORE_CONTROL 0x391u
#define RESERVED (UINT64_C(1) << 40)
#define PERIOD 200u
#define TRIES 4u
#define ITERATIONS 4000u
#define OVERFLOWS 16u
#define ACCESSES 16u
#define SLOW_ACCESS_NS 2500u
#define SLOW_THOUSAND_NS 20000u
#define BURST_NS 2000000u /* two ticks of a host that counts overflows in each */

static struct test_measured all[PMU_KINDS_MAX];
static unsigned the_ctr;

const struct test_measured *measured_here(void) { return &all[pmu_kind_number(pmu_here())]; }

static uint64_t count_from(uint64_t start, uint32_t flags, uint64_t n)
{
    return lab_count(the_ctr, lab_select(the_ctr, PMU_KERNEL | flags),
                     start & pmu_mask(pmu_here(), the_ctr), lab_loop, n);
}

/* In the next tick a host that stopped the counter starts it again. */
static void resume_measure(const struct test_measured *m)
{
    for (uint64_t end = clock_ns() + BURST_NS; m->throttled && clock_ns() < end;)
        pause();
}

/* The host's limit is one of a tick: as many overflows as fit in two. One that does not even count
 * to the first does not count on from what is written. */
static void measure_throttle(struct test_measured *m)
{
    uint64_t end = clock_ns() + BURST_NS, mask = pmu_mask(pmu_here(), the_ctr);
    unsigned n = 0;
    pmu_program(the_ctr, lab_select(the_ctr, PMU_KERNEL), 0);
    pmu_start(PMU_BIT(the_ctr));
    for (bool stopped = false; clock_ns() < end && !stopped; n++) {
        pmu_write(the_ctr, -(uint64_t)PERIOD & mask);
        lab_loop(PERIOD);
        stopped = pmu_read(the_ctr) > mask / 2;
        m->throttled = stopped && n;
        m->held = stopped && !n;
    }
    pmu_stop(PMU_BIT(the_ctr));
}

static void measure_zero(struct test_measured *m)
{
    uint64_t whole = count_from(0, 0, PERIOD);
    for (unsigned i = 0; i < TRIES; i++) {
        resume_measure(m);
        bool zero = count_from(-whole, 0, PERIOD) == 0;
        m->late_at_zero |= !pmu_take_overflow() && zero;
    }
}

/* What is counted after the overflow, and is not because the PMI is late, comes from a late freeze.
 */
static void measure_pmi(struct test_measured *m)
{
    int64_t late = pmu_here()->measured.skid.high;
    lab_catch();
    bool freezes = lab_is_intel() && pmu_here()->version >= 2 && !wrmsr_fault(DEBUGCTL, FREEZE) &&
                   rdmsr(DEBUGCTL) & FREEZE;
    for (unsigned i = 0; i < TRIES; i++) {
        resume_measure(m);
        apic_write_pmi_lvt(VECTOR_PMI);
        int64_t end =
            (int64_t)count_from(-(uint64_t)PERIOD, PMU_INTERRUPT, ITERATIONS + lab_late(1));
        lab_wait_quietly();
        m->masks |= (lab_caught.lvt & APIC_LVT_MASKED) != 0;
        if (freezes && lab_caught.pmis && end - late > m->lag)
            m->lag = end - late;
        pmu_take_overflow(); /* and what froze */
    }
    if (freezes)
        wrmsr_fault(DEBUGCTL, 0);
    if (!lab_caught.pmis)
        m->masks = lab_is_intel();
    lab_release();
}

static uint64_t count_branches(void (*work)(uint64_t), uint64_t n)
{
    uint64_t able = pmu_counters_for(pmu_here(), PMU_BRANCHES) & ~pmu_here()->left_running;
    uint64_t select = pmu_select(pmu_here(), PMU_BRANCHES, PMU_KERNEL);
    uint64_t least = 0; /* SMIs and NMIs add */
    for (unsigned i = 0; able && i < TRIES; i++) {
        uint64_t count = lab_count(bit_lowest(able), select, 0, work, n);
        least = i && least < count ? least : count;
    }
    return least;
}

/* Hypervisors may count each entry as a branch (KVM on AMD); of Core 2's time there is an erratum,
 * "Performance Monitoring Event BR_INST_RETIRED May Count CPUID Instructions as Branches". */
static void measure_branches(struct test_measured *m)
{
    enum { EXITS = 10 };
    uint64_t exits = count_branches(lab_exits, EXITS), none = count_branches(lab_ops->code, 0);
    if (!exits) /* no branch counts */
        return;
    m->exit_branches =
        (int64_t)(exits - lab_expected(&lab_exits_work, LAB_BRANCHES, EXITS)) / EXITS;
    m->far = (int64_t)(count_branches(lab_op_iret, 0) - none - 1);
}

static void measure_lost(struct test_measured *m)
{
    uint64_t two = pmu_here()->counters & ~pmu_here()->left_running & ~PMU_BIT(the_ctr);
    two = PMU_BIT(the_ctr) | (two & -two);
    lab_catch();
    for (unsigned i = 0; i < OVERFLOWS; i++) {
        unsigned before = lab_caught.pmis;
        resume_measure(m);
        apic_write_pmi_lvt(VECTOR_PMI);
        for_each_bit(ctr, two) {
            pmu_program((unsigned)ctr, lab_select((unsigned)ctr, PMU_KERNEL | PMU_INTERRUPT), 0);
        }
        pmu_write(the_ctr, -(uint64_t)PERIOD & pmu_mask(pmu_here(), the_ctr));
        pmu_start(two);
        lab_loop(PERIOD + lab_late(1));
        pmu_stop(two);
        pmu_take_overflow();
        m->lost += lab_caught.pmis == before;
    }
    lab_release();
}

static void measure_reserved(struct test_measured *m)
{
    const struct pmu_kind *pmu = pmu_here();
    uint32_t select = pmu_select_msr(pmu, the_ctr), global = pmu->msr.global_status;
    uint64_t found = 0;
    for (unsigned bit = 19; bit < 64; bit++) {
        bool reserved = bit == 19   ? !lab_is_intel()
                        : bit == 21 ? !(pmu->select_flags & PMU_ANY_THREAD)
                                    : bit > 31 && !rules_may_have_a_use(bit);
        if (reserved && !wrmsr_fault(select, PMU_BIT(bit)) && !rdmsr_fault(select, &found))
            m->select_kept |= found & PMU_BIT(bit);
        wrmsr_fault(select, 0);
    }
    if (lab_is_intel())
        m->uncore = pmu->version < 4 && !rdmsr_fault(UNCORE_CONTROL, &found);
    for (uint32_t msr = global; global && !lab_is_intel() && msr < global + 3; msr++) {
        m->global_used |=
            wrmsr_fault(msr, RESERVED) || rdmsr_fault(msr, &found) || found & RESERVED;
        wrmsr_fault(msr, 0);
    }
    bool debug_store = cpuid(1, 0).edx & 1u << 21;
    if (lab_is_intel() && !rdmsr_fault(MISC_ENABLE, &found) &&
        (!(found & MISC_COUNTS) || (!debug_store && (found & MISC_ABSENT) != MISC_ABSENT)))
        m->misc = found;
}

static void measure_times(struct test_measured *m)
{
    uint64_t value, start = clock_ns();
    for (unsigned i = 0; i < ACCESSES; i++)
        rdmsr_fault(pmu_select_msr(pmu_here(), the_ctr), &value);
    m->access_ns = (clock_ns() - start) / ACCESSES;
    start = clock_ns();
    count_from(0, 0, ITERATIONS); /* some count by single steps */
    m->thousand_ns = (clock_ns() - start) * 1000 / (2 * ITERATIONS);
}

static void measure_here(void)
{
    const struct pmu_kind *pmu = pmu_here();
    struct test_measured *m = &all[pmu_kind_number(pmu)];
    uint64_t able = pmu_counters_for(pmu, PMU_INSTRUCTIONS) & ~pmu->left_running;
    *m = (struct test_measured){ .known = able != 0, .masks = !able && lab_is_intel() };
    if (!able)
        return;
    the_ctr = bit_lowest(able);
    KIRQL old = irql_raise(IPI_LEVEL);
    measure_times(m);
    measure_reserved(m);
    measure_throttle(m);
    measure_zero(m);
    measure_pmi(m);
    measure_lost(m);
    measure_branches(m);
    pmu_reset();
    irql_lower(old);
}

void measured_init(void)
{
    HANDLE handle;
    if (!hal_counter_count() || HalAllocateHardwareCounters(NULL, 0, NULL, &handle))
        return;
    EACH_KIND(cpu) {
        test_run_on(cpu);
        measure_here();
        measured_print(cpu);
    }
    test_run_anywhere();
    HalFreeHardwareCounters(handle);
}

void measured_print(unsigned cpu)
{
    const struct pmu_kind *pmu = pmu_of(cpu);
    const struct test_measured *m = &all[pmu_kind_number(pmu)];
    bool masks_otherwise = m->known && m->masks != lab_is_intel();
    const struct {
        bool is;
        const char *text;
    } unusual[] = {
        { m->late_at_zero, "a counter at 0 has not overflowed yet" },
        { masks_otherwise, m->masks ? "a PMI masks its LVT entry" : "a PMI masks no LVT entry" },
        { m->throttled, "a counter that overflows often stops" },
        { m->held, "a counter that is written while it counts stands still" },
        { m->global_used, "a reserved bit of a global register is kept, or faults" },
        { m->uncore, "MSR 391h is there below version 4" },
    };
    for (unsigned i = 0; i < ARRAY_SIZE(unusual); i++)
        if (unusual[i].is)
            print("# measured too: %s\n", unusual[i].text);
    if (m->select_kept)
        print("# measured too: an event select keeps the reserved bits %lx\n", m->select_kept);
    if (m->lost)
        print("# measured too: of %u PMIs while two counters counted %u were lost\n", OVERFLOWS,
              m->lost);
    if (m->exit_branches)
        print("# measured too: a CPUID counts as %ld branches\n", m->exit_branches);
    if (m->far)
        print("# measured too: an IRET counts %ld branches more\n", m->far);
    if (m->misc)
        print("# measured too: MISC_ENABLE reads %lx\n", m->misc);
    if (m->lag)
        print("# measured too: counters freeze %ld instructions after a PMI\n", m->lag);
    if (m->access_ns > SLOW_ACCESS_NS)
        print("# measured too: an access to the PMU takes %lu ns\n", m->access_ns);
    if (m->thousand_ns > SLOW_THOUSAND_NS)
        print("# measured too: 1,000 instructions take %lu ns\n", m->thousand_ns);
}
