/* SPDX-License-Identifier: MIT */
/* Requests for counters at random, against the simplest model of ownership. */
#include "tests/harness/kernel.h"

struct held {
    HANDLE handle;
    struct cpu_set cpus;
    uint64_t counters;
};

static bool model_allows(const struct held *held, unsigned n, const struct held *wanted)
{
    for (unsigned i = 0; i < n; i++)
        if (held[i].handle && cpu_set_meet(held[i].cpus, wanted->cpus) &&
            (held[i].counters & wanted->counters))
            return false;
    return true;
}

/* On each processor there is what no owner has, and there are no other owners. */
static void check_model(const struct held *held, unsigned n)
{
    unsigned owned = 0;
    for (unsigned i = 0; i < n; i++)
        owned += held[i].handle != NULL;
    CHECK_EQ(hal_counters_owned(), owned);
    for (unsigned cpu = 0; cpu < cpu_count; cpu++) {
        uint64_t left = pmu_of(cpu)->counters;
        for (unsigned i = 0; i < n; i++)
            if (held[i].handle && cpu_set_has(&held[i].cpus, cpu))
                left &= ~held[i].counters;
        CHECK_EQ(hal_counters_available(cpu_set_one(cpu)), left);
    }
}

/* Neighbours as a range, or each by itself. */
static struct list list_of(uint64_t counters, bool ranges)
{
    struct list list = { 0, { { 0 } } };
    for (uint64_t rest = counters; rest && list.Count < LIST_MAX;) {
        unsigned begin = bit_lowest(rest), end = begin;
        while (ranges && end < 63 && rest >> (end + 1) & 1)
            end++;
        list.Descriptors[list.Count++] =
            begin == end && begin % 2 ? single(begin) : range(begin, end);
        rest &= ~((UINT64_C(2) << end) - 1);
    }
    return list;
}

static void random_step(struct held *held, unsigned n, uint64_t *state)
{
    struct held *h = &held[test_random(state) % n];
    if (h->handle) {
        free_and_check(h->handle);
        h->handle = NULL;
        return;
    }
    bool everywhere = test_random(state) % 4 == 0, exclusive = test_random(state) % 8 == 0;
    for (unsigned i = 0; i < CPU_GROUPS_MAX; i++)
        h->cpus.bits[i] = test_random(state) & cpu_all().bits[i];
    h->cpus = everywhere ? cpu_all() : h->cpus;
    h->counters = test_random(state) & test_random(state) & common_counters();
    if (cpu_set_empty(h->cpus) || !h->counters)
        return;
    struct list list = list_of(h->counters, test_random(state) % 2);
    h->counters = exclusive ? ~UINT64_C(0) : h->counters;
    NTSTATUS wanted = model_allows(held, n, h) ? STATUS_SUCCESS : STATUS_INSUFFICIENT_RESOURCES;
    h->handle = NO_HANDLE;
    CHECK_STATUS(take_on(everywhere ? BY_NULL : h->cpus, exclusive ? NULL : &list, &h->handle),
                 wanted);
    CHECK((h->handle != NULL) == (wanted == STATUS_SUCCESS));
}

TEST(hal_counters, random,
     "500 random requests, for counters alone, ranges and everything, and frees: each owner has on "
     "its processors what it asked for, alone, and a refusal takes nothing [HC-01 HC-02 HC-03 "
     "HC-04 HC-16 HC-17 HC-18 HC-19 HC-20 HC-21 HC-22 HC-23 HC-24]")
{
    SKIP_WITHOUT_PMU();
    struct held held[6] = { { .handle = NULL } };
    uint64_t state = 0x9e3779b97f4a7c15;
    for (unsigned i = 0; i < (test_long() ? 5000 : 500); i++) {
        random_step(held, 6, &state);
        check_model(held, 6);
    }
    for (unsigned i = 0; i < 6; i++)
        if (held[i].handle)
            free_and_check(held[i].handle);
}
