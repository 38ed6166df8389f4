/* SPDX-License-Identifier: MIT */
/* Requests for counters at random, against the simplest model of ownership. */
#include "tests/harness/counter_list.h"
#include "tests/harness/kernel.h"

struct held {
    HANDLE handle;
    struct cpu_set cpus;
    uint64_t counters;
};

static uint64_t next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static bool model_allows(const struct held *held, unsigned n, const struct held *wanted)
{
    for (unsigned i = 0; i < n; i++)
        if (held[i].handle && cpu_set_meet(held[i].cpus, wanted->cpus) &&
            (held[i].counters & wanted->counters))
            return false;
    return true;
}

static void random_step(struct held *held, unsigned n, uint64_t *state)
{
    struct held *h = &held[next_random(state) % n];
    if (h->handle) {
        free_and_check(h->handle);
        h->handle = NULL;
        return;
    }
    for (unsigned i = 0; i < CPU_GROUPS_MAX; i++)
        h->cpus.bits[i] = cpu_all().bits[i] ? next_random(state) & cpu_all().bits[i] : 0;
    h->counters = next_random(state) & next_random(state) & common_counters();
    struct list list = { 0, { { 0 } } };
    for (uint64_t rest = h->counters; rest && list.Count < LIST_MAX; rest &= rest - 1)
        list.Descriptors[list.Count++] = single((ULONG)__builtin_ctzll(rest));
    if (cpu_set_empty(h->cpus) || !list.Count)
        return;
    bool exclusive = next_random(state) % 8 == 0;
    if (exclusive)
        h->counters = ~UINT64_C(0);
    bool allowed = model_allows(held, n, h);
    CHECK_STATUS(take_on(h->cpus, exclusive ? NULL : &list, &h->handle),
                 allowed ? STATUS_SUCCESS : STATUS_INSUFFICIENT_RESOURCES);
}

TEST(hal_counters, random,
     "1,000 random requests and frees agree with a model [HC-17 HC-18 HC-20 slow]")
{
    SKIP_WITHOUT_PMU();
    struct held held[6] = { { .handle = NULL } };
    uint64_t state = 0x9e3779b97f4a7c15;
    for (unsigned i = 0; i < 1000; i++)
        random_step(held, 6, &state);
    for (unsigned i = 0; i < 6; i++)
        if (held[i].handle)
            free_and_check(held[i].handle);
    CHECK_EQ(hal_counters_available(EVERYWHERE), common_counters());
}
