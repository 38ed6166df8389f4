/* SPDX-License-Identifier: MIT */
/* Records of what only ring 0 can cause. */
#include "kernel/base/vectors.h"
#include "tests/harness/etw.h"
#include "tests/harness/kernel.h"

#define CALLS 10

static uint32_t called; /* atomic */

static void call_me(void *unused)
{
    (void)unused;
    __atomic_fetch_add(&called, 1, __ATOMIC_RELAXED);
}

TEST(etw_hooks, ipis,
     "a call on another processor is recorded there with its routine and its start time")
{
    struct session s;
    ULONG seen[MAX_CPUS] = { 0 };
    SKIP_BELOW_CPUS(2);
    uint8_t *bytes = phys_alloc(SESSION_PAGES);
    REQUIRE(bytes && session_start(&s, 64, 16));
    test_run_on(0);
    called = 0;
    CHECK_STATUS(session_mask(&s, PERF_IPI, 0), STATUS_SUCCESS);
    for (unsigned i = 0; i < CALLS; i++)
        smp_call(SMP_ALL, call_me, NULL);
    struct records all = session_drain(&s, bytes);
    for (struct record r; (r = next_record(&all)).header;) {
        const PERFINFO_DPC_INFORMATION *ipi = r.payload;
        CHECK_EQ(r.header->HookId, PERFINFO_LOG_TYPE_IPI);
        CHECK_EQ(r.size, sizeof *ipi);
        CHECK(ipi->InitialTime < r.header->TimeStamp);
        if (ipi->DpcRoutine == (PVOID)(uint64_t)call_me)
            seen[r.buffer->ClientContext.ProcessorIndex]++;
    }
    CHECK_EQ(called, CALLS * cpu_count);
    CHECK_EQ(seen[0], 0); /* no IPI to itself */
    for (unsigned cpu = 1; cpu < cpu_count; cpu++)
        CHECK_EQ(seen[cpu], CALLS);
    CHECK_EQ(session_stop(&s), 0);
    session_close(&s);
    test_run_anywhere();
    phys_free(bytes, SESSION_PAGES);
}

static void note_time(void *tsc) { *(uint64_t *)tsc = rdtsc(); }

TEST(etw_hooks, interrupt_begins,
     "the record of an interrupt has the time at which it began, before its handler ran")
{
    struct session s;
    uint64_t inside = 0;
    unsigned found = 0;
    SKIP_BELOW_CPUS(2);
    uint8_t *bytes = phys_alloc(SESSION_PAGES);
    REQUIRE(bytes && session_start(&s, 64, 16));
    test_run_on(0);
    CHECK_STATUS(session_mask(&s, PERF_INTERRUPT, 0), STATUS_SUCCESS);
    smp_call(cpu_set_one(1), note_time, &inside);
    struct records all = session_drain(&s, bytes);
    for (struct record r; (r = next_record(&all)).header;) {
        const PERFINFO_INTERRUPT_INFORMATION *i = r.payload;
        if (r.buffer->ClientContext.ProcessorIndex == 1 && i->Vector == VECTOR_CALL)
            found += i->InitialTime < inside && inside < r.header->TimeStamp;
    }
    CHECK_EQ(found, 1);
    CHECK_EQ(session_stop(&s), 0);
    session_close(&s);
    test_run_anywhere();
    phys_free(bytes, SESSION_PAGES);
}
