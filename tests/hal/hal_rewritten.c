/* SPDX-License-Identifier: MIT */
/* Registers of owned counters are written by code that does not own them: each counter concerned
 * is reported, and a free prints a message. */
#include "tests/harness/lab.h"
#include "tests/harness/printed.h"

/* Counters of a processor that run for an owner. */
struct victim {
    HANDLE handle;
    unsigned cpu;
    uint64_t counters;
};

static void run_all(void *argument)
{
    const struct victim *v = argument;
    KIRQL old = irql_raise(PROFILE_LEVEL);
    for_each_bit(ctr, v->counters) {
        pmu_program(ctr, lab_select(ctr, PMU_KERNEL | PMU_USER), 0);
    }
    pmu_start(v->counters);
    irql_lower(old);
}

static bool begin_victim(struct victim *v, unsigned cpu)
{
    *v = (struct victim){ NULL, cpu, pmu_of(cpu)->counters };
    if (!CHECK_STATUS(hal_counters_claim("victim", cpu_set_one(cpu), v->counters, NULL, &v->handle),
                      STATUS_SUCCESS))
        return false;
    smp_call(cpu_set_one(cpu), run_all, v);
    return CHECK_EQ(hal_counters_rewritten(cpu), 0);
}

/* Inverts bits of one register; a second call restores it. */
struct flip {
    uint32_t msr;
    uint64_t bits;
};

static void flip_here(void *argument)
{
    const struct flip *flip = argument;
    KIRQL old = irql_raise(PROFILE_LEVEL);
    wrmsr(flip->msr, rdmsr(flip->msr) ^ flip->bits);
    irql_lower(old);
}

static void check_flip(const struct victim *v, struct flip flip, uint64_t wanted)
{
    smp_call(cpu_set_one(v->cpu), flip_here, &flip);
    for (unsigned cpu = 0; cpu < cpu_count; cpu++)
        CHECK_EQ(hal_counters_rewritten(cpu), cpu == v->cpu ? wanted : 0);
    smp_call(cpu_set_one(v->cpu), flip_here, &flip);
    CHECK_EQ(hal_counters_rewritten(v->cpu), 0);
}

/* Ring 3 no longer, or another unit mask. */
static void check_each(const struct victim *v)
{
    const struct pmu_kind *pmu = pmu_of(v->cpu);
    for_each_bit(ctr, v->counters) {
        unsigned field = lab_is_fixed(ctr) ? 4 * (ctr - PMU_FIXED) : 16;
        uint32_t msr = pmu_select_msr(pmu, ctr);
        check_flip(v, (struct flip){ msr, UINT64_C(2) << field }, PMU_BIT(ctr));
        if (!lab_is_fixed(ctr))
            check_flip(v, (struct flip){ msr, 0x100 }, PMU_BIT(ctr));
        if (pmu->msr.global_control)
            check_flip(v, (struct flip){ pmu->msr.global_control, PMU_BIT(ctr) }, PMU_BIT(ctr));
    }
}

/* The output of a free: a line if counters were changed, else nothing. */
static void free_and_read(const struct victim *v, uint64_t changed)
{
    char line[100] = "";
    if (changed)
        print_to(line, sizeof line,
                 "# counters: victim: somebody else has changed its counters %lx\n", changed);
    struct printed before = printed_now();
    CHECK_STATUS(HalFreeHardwareCounters(v->handle), STATUS_SUCCESS);
    check_printed(before, line);
}

TEST(hal_rewritten, each,
     "a select, a fixed counter's bits or an enable bit that somebody else has changed is found, "
     "with its counter [ET-58 slow]")
{
    struct victim v;
    SKIP_WITHOUT_PMU();
    for (unsigned cpu = 0; cpu < cpu_count; cpu++) {
        if (begin_victim(&v, cpu))
            check_each(&v);
        free_and_read(&v, 0);
    }
}

TEST(hal_rewritten, printed,
     "a free of counters that somebody else has changed prints the owner and the counters [ET-58]")
{
    struct victim v;
    SKIP_WITHOUT_PMU();
    for (unsigned cpu = 0; cpu < cpu_count; cpu++) {
        REQUIRE(begin_victim(&v, cpu));
        unsigned last = 63 - (unsigned)__builtin_clzll(v.counters);
        struct flip flip = { pmu_select_msr(pmu_of(cpu), last),
                             UINT64_C(2) << (lab_is_fixed(last) ? 4 * (last - PMU_FIXED) : 16) };
        smp_call(cpu_set_one(cpu), flip_here, &flip);
        free_and_read(&v, PMU_BIT(last));
    }
}

TEST(hal_rewritten, stopped, "so does the end of sampling by such a counter [ET-58]")
{
    SKIP_WITHOUT_SOURCE();
    for (unsigned cpu = 0; cpu < cpu_count; cpu++) {
        char line[100];
        unsigned ctr = 0;
        REQUIRE_STATUS(hal_profile_reserve(SOURCE, cpu_set_one(cpu)), STATUS_SUCCESS);
        hal_profile_start(SOURCE, cpu_set_one(cpu));
        while (ctr < 64 && hal_counter_source(ctr, cpu) != SOURCE)
            ctr++;
        struct flip flip = { pmu_select_msr(pmu_of(cpu), ctr),
                             UINT64_C(2) << (lab_is_fixed(ctr) ? 4 * (ctr - PMU_FIXED) : 16) };
        smp_call(cpu_set_one(cpu), flip_here, &flip);
        print_to(line, sizeof line,
                 "# counters: profile: somebody else has changed its counters %lx\n", PMU_BIT(ctr));
        struct printed before = printed_now();
        hal_profile_stop(SOURCE, cpu_set_one(cpu));
        check_printed(before, line);
    }
}
