/* SPDX-License-Identifier: MIT */
/* The driver's part of thread profiling: allocating, programming and configuring counters, as
 * the API requires of a driver. */
#include "tests/harness/counting.h"
#include "tests/harness/kernel.h"

struct programming {
    unsigned n;
    unsigned ctrs[MAX_HW_COUNTERS];
    enum pmu_event events[MAX_HW_COUNTERS];
    uint32_t flags;
};

static HANDLE owner; /* of what counting_start took; NULL: nothing */

static uint64_t mask_of(const unsigned *ctrs, unsigned n)
{
    uint64_t mask = 0;
    for (unsigned i = 0; i < n; i++)
        mask |= PMU_BIT(ctrs[i]);
    return mask;
}

/* Finds unused counters, the same on every CPU, for events[i] and all after it. Tries every
 * choice, because a fixed counter counts one event only. */
static bool choose_counters(const enum pmu_event *events, unsigned n, uint64_t available,
                            unsigned *ctrs)
{
    if (!n)
        return true;
    for (uint64_t rest = available & common_counters_for(SMP_ALL, events[0]); rest;
         rest &= rest - 1) {
        ctrs[0] = bit_lowest(rest);
        if (choose_counters(events + 1, n - 1, available & ~PMU_BIT(ctrs[0]), ctrs + 1))
            return true;
    }
    return false;
}

bool counting_possible(const enum pmu_event *events, unsigned n)
{
    unsigned ctrs[MAX_HW_COUNTERS];
    return n <= MAX_HW_COUNTERS &&
           choose_counters(events, n, hal_counters_available(SMP_ALL), ctrs);
}

/* The following three run on each CPU, at IPI_LEVEL or above. */
static void program_counters(void *argument)
{
    const struct programming *p = argument;
    KIRQL old = irql_raise(PROFILE_LEVEL);
    for (unsigned i = 0; i < p->n; i++)
        pmu_program(p->ctrs[i], pmu_select(pmu_here(), p->events[i], p->flags), 0);
    pmu_start(mask_of(p->ctrs, p->n));
    irql_lower(old);
}

static void stop_counters(void *counters)
{
    KIRQL old = irql_raise(PROFILE_LEVEL);
    pmu_stop(*(const uint64_t *)counters);
    irql_lower(old);
}

static void start_counters(void *counters)
{
    KIRQL old = irql_raise(PROFILE_LEVEL);
    pmu_start(*(const uint64_t *)counters);
    irql_lower(old);
}

void counting_pause(uint64_t counters) { smp_call(SMP_ALL, stop_counters, &counters); }
void counting_resume(uint64_t counters) { smp_call(SMP_ALL, start_counters, &counters); }

bool counting_configure(const unsigned *ctrs, unsigned n)
{
    HARDWARE_COUNTER array[MAX_HW_COUNTERS] = { { PMCCounter, 0, 0 } };
    for (unsigned i = 0; i < n && i < MAX_HW_COUNTERS; i++)
        array[i].Index = pmu_rdpmc_index(ctrs[i]);
    return CHECK_OK(KeSetHardwareCounterConfiguration(array, n));
}

static bool take_counters(const unsigned *ctrs, unsigned n)
{
    struct list list = { .Count = n };
    for (unsigned i = 0; i < n; i++)
        list.Descriptors[i] = single(ctrs[i]);
    return CHECK_OK(take_on(BY_NULL, &list, &owner));
}

bool counting_start_many(const enum pmu_event *events, unsigned n, uint32_t flags, unsigned *ctrs)
{
    struct programming p = { .n = n, .flags = flags };
    if (n > MAX_HW_COUNTERS || !choose_counters(events, n, hal_counters_available(SMP_ALL), ctrs) ||
        !CHECK(owner == NULL) || !take_counters(ctrs, n))
        return false;
    for (unsigned i = 0; i < n; i++) {
        p.ctrs[i] = ctrs[i];
        p.events[i] = events[i];
    }
    smp_call(SMP_ALL, program_counters, &p);
    if (counting_configure(ctrs, n))
        return true;
    counting_stop();
    return false;
}

bool counting_start(enum pmu_event event, uint32_t flags, unsigned *ctr)
{
    return CHECK(counting_possible(&event, 1)) && counting_start_many(&event, 1, flags, ctr);
}

void counting_stop(void)
{
    CHECK_OK(KeSetHardwareCounterConfiguration(NULL, 0));
    if (owner)
        CHECK_OK(HalFreeHardwareCounters(owner));
    owner = NULL;
}

void counting_forget(void) { owner = NULL; }

void counting_lose(void *)
{
    const struct pmu_kind *pmu = pmu_here();
    KIRQL old = irql_raise(PROFILE_LEVEL);
    if (pmu->msr.global_control)
        wrmsr(pmu->msr.global_control, 0);
    for_each_bit(ctr, pmu->counters) {
        wrmsr(pmu_select_msr(pmu, (unsigned)ctr), 0);
        wrmsr(pmu_write_msr(pmu, (unsigned)ctr), 0);
    }
    irql_lower(old);
}
