/* SPDX-License-Identifier: MIT */
/* SMIs are counted by MSR_SMI_COUNT, of Intel processors since Nehalem. Where it is 0 on all CPUs
 * after start, an emulator has it for show, and it is not read again. AMD's count is an event, 02Bh
 * (LsSmiRx in the PPRs of families 17h to 1Ah, "SMIs received" in the BKDG of 10h), which takes a
 * counter that a test may want: it counts after a failure. */
#include "tests/harness/causes.h"
#include "tests/harness/kernel.h"

#define MSR_SMI_COUNT 0x34u
#define EVENT_SMIS 0x2bu
#define NO_COUNTER 64u
#define WATCH_NS 20000000u
#define LOOP 50000u
#define SLOW_TIMES 16 /* uncached memory is a hundred times as slow */

static bool counted; /* on some CPU */
static uint64_t load_ticks[MAX_CPUS];

/* When the test began, and now; smis: each written by its CPU. */
static struct moment {
    uint64_t smis[MAX_CPUS], strays[MAX_CPUS], lost[MAX_CPUS];
} begun, now;

static void read_here(void *counts)
{
    uint64_t value = 0;
    if (rdmsr_fault(MSR_SMI_COUNT, &value))
        value = 0;
    ((uint64_t *)counts)[cpu_number()] = value;
}

static void take_moment(struct moment *m)
{
    if (counted)
        smp_call(SMP_ALL, read_here, m->smis);
    for (unsigned cpu = 0; cpu < cpu_count; cpu++)
        m->strays[cpu] = cpus[cpu]->stray_nmis, m->lost[cpu] = hal_profile_lost[cpu];
}

/* Loads of one place, the best of some tries. */
static void time_loads(void *ticks)
{
    enum { TRIES = 32, LOADS = 64 };
    uint64_t *best = (uint64_t *)ticks + cpu_number();
    *best = UINT64_MAX;
    for (unsigned i = 0; i < TRIES; i++) {
        uint64_t start = rdtsc();
        for (unsigned n = 0; n < LOADS; n++)
            (void)__atomic_load_n(best, __ATOMIC_RELAXED);
        uint64_t took = rdtsc() - start;
        *best = took < *best ? took : *best;
    }
}

bool causes_slow_memory(unsigned cpu)
{
    ASSERT(load_ticks[0] && load_ticks[cpu]); /* else nothing was measured */
    return load_ticks[cpu] > SLOW_TIMES * load_ticks[0];
}

void causes_init(void)
{
    smp_call(SMP_ALL, time_loads, load_ticks);
    smp_call(SMP_ALL, read_here, now.smis);
    for (unsigned cpu = 0; cpu < cpu_count; cpu++)
        counted |= now.smis[cpu] != 0;
}

/* By the event, while WATCH_NS passed after failures; until some came. */
static struct {
    uint64_t smis, us;
} watched;

static unsigned smi_counter(void)
{
    const struct pmu_kind *pmu = pmu_here();
    uint64_t able = pmu->counters & ~pmu->left_running;
    if (!pmu->driver || strcmp(pmu->driver, "amd") != 0 || pmu->family < 0x10)
        able = 0;
    able &= able ? pmu_raw_counters(pmu, EVENT_SMIS, 0) : 0;
    return able ? bit_lowest(able) : NO_COUNTER;
}

static void start_smis(void *)
{
    unsigned ctr = smi_counter();
    if (ctr == NO_COUNTER)
        return;
    pmu_program(ctr, pmu_raw_select(EVENT_SMIS, 0, PMU_KERNEL | PMU_USER), 0);
    pmu_start(PMU_BIT(ctr));
}

static void end_smis(void *sum)
{
    unsigned ctr = smi_counter();
    if (ctr == NO_COUNTER)
        return;
    pmu_stop(PMU_BIT(ctr));
    __atomic_fetch_add((uint64_t *)sum, pmu_read(ctr), __ATOMIC_RELAXED);
    pmu_clear(PMU_BIT(ctr));
}

static void watch_smis(void)
{
    HANDLE handle;
    if (!watched.smis && smi_counter() != NO_COUNTER &&
        HalAllocateHardwareCounters(NULL, 0, NULL, &handle) == STATUS_SUCCESS) {
        uint64_t start = clock_ns();
        smp_call(SMP_ALL, start_smis, NULL);
        while (clock_ns() < start + WATCH_NS)
            pause();
        smp_call(SMP_ALL, end_smis, &watched.smis);
        watched.us += (clock_ns() - start) / 1000;
        HalFreeHardwareCounters(handle);
    }
    if (watched.smis)
        print("# %lu SMIs came in %lu us after a failed test\n", watched.smis, watched.us);
}

static uint64_t count_loop(unsigned ctr)
{
    pmu_program(ctr, pmu_select(pmu_here(), PMU_INSTRUCTIONS, PMU_KERNEL), 0);
    pmu_start(PMU_BIT(ctr));
    for (unsigned i = 0; i < LOOP; i++)
        asm volatile("");
    pmu_stop(PMU_BIT(ctr));
    return pmu_read(ctr);
}

/* With interrupts off a loop always has as many instructions. What makes them more comes from
 * outside: SMIs that nothing counts, NMIs, a host that counts work of its own (VMware, Xen). */
static void watch_loops(void)
{
    HANDLE handle;
    uint64_t able = pmu_counters_for(pmu_here(), PMU_INSTRUCTIONS) & ~pmu_here()->left_running;
    if (!able || HalAllocateHardwareCounters(NULL, 0, NULL, &handle) != STATUS_SUCCESS)
        return;
    KIRQL old = irql_raise(IPI_LEVEL);
    unsigned ctr = bit_lowest(able);
    uint64_t least = UINT64_MAX, most = 0;
    for (uint64_t start = clock_ns(); clock_ns() < start + WATCH_NS;) {
        uint64_t n = count_loop(ctr);
        least = n < least ? n : least;
        most = n > most ? n : most;
    }
    pmu_clear(PMU_BIT(ctr));
    irql_lower(old);
    HalFreeHardwareCounters(handle);
    if (most > least)
        print("# a loop counts %lu to %lu instructions: something outside adds to the counters\n",
              least, most);
}

void causes_begin(void) { take_moment(&begun); }

static bool differs(const struct pmu_spread *s, int64_t from)
{
    return s->tries && (s->low != from || s->high != from);
}

/* What a kind of CPU does that its manual does not say. */
static bool is_unusual(const struct pmu_kind *pmu)
{
    const struct pmu_measured *m = &pmu->measured;
    bool traps = false;
    for (unsigned t = 0; t < PMU_TRAPS; t++)
        for (unsigned e = 0; e < PMU_RETIRED; e++)
            traps |= differs(&m->trap[t][e], 0);
    return traps || pmu_ring3_inexact(pmu) || differs(&m->skid, 0) || differs(&m->pmis, 1) ||
           differs(&m->enabling, 1) || differs(&m->exit, 1) || differs(&m->exit_at_255, 0) ||
           m->at_once < m->wanted || m->lost || m->stood[PMU_RETIRED_INSTRUCTIONS] ||
           m->stood[PMU_RETIRED_BRANCHES];
}

static void print_kind(const struct pmu_kind *pmu)
{
    if (pmu->reported & ~pmu->counters)
        print("# counters %lx of %lx are left out: %s\n", pmu->reported & ~pmu->counters,
              pmu->reported, pmu_verdict_text(pmu->verdict));
    if (pmu->left_running)
        print("# firmware had left counters %lx enabled\n", pmu->left_running);
    if (is_unusual(pmu))
        pmu_report_measured(pmu);
    pmu_report_errata(pmu);
}

/* Only its name tells of a quirk that a failed test alone found. */
static void print_name(const char *quirk)
{
    if (vpmu_present() && vpmu_quirk(quirk))
        print("# the virtual PMU has the quirk %s\n", quirk);
}

void causes_print(void)
{
    take_moment(&now);
    for (unsigned cpu = 0; cpu < cpu_count; cpu++) {
        if (now.smis[cpu] != begun.smis[cpu])
            print("# %lu SMIs came on CPU %u meanwhile: firmware's instructions may be in the "
                  "counts\n",
                  now.smis[cpu] - begun.smis[cpu], cpu);
        if (now.lost[cpu] > begun.lost[cpu])
            print("# CPU %u: interrupts of %lu overflows were lost\n", cpu,
                  now.lost[cpu] - begun.lost[cpu]);
        if (causes_slow_memory(cpu))
            print("# CPU %u: memory is %lu times as slow as on CPU 0: do its MTRRs differ?\n", cpu,
                  load_ticks[cpu] / load_ticks[0]);
        if (cpus[cpu]->tsc_behind)
            print("# CPU %u: its TSC is not CPU 0's, and cannot be set\n", cpu);
        if (now.strays[cpu] > begun.strays[cpu])
            print("# CPU %u: %lu NMIs came that nobody claims\n", cpu,
                  now.strays[cpu] - begun.strays[cpu]);
    }
    EACH_KIND(cpu) {
        print_kind(pmu_of(cpu));
        measured_print(cpu);
    }
    watch_smis();
    watch_loops();
    print_name("bug");
    print_name("uncounted");
    print_name("pebs");
}
