/* SPDX-License-Identifier: MIT */
/* Records of what only ring 0 can cause. */
#include "kernel/driver/nt_driver.h"
#include "tests/harness/etw.h"
#include "tests/harness/lab.h"

#define CALLS 10

extern const uint8_t trap_stubs[256][16];

static uint64_t called[MAX_CPUS]; /* when, the last time */

static void call_me(void *) { called[cpu_number()] = rdtsc(); }

TEST(etw_hooks, ipis,
     "a call on another processor is recorded there with its routine and its start time, and so is "
     "its interrupt, which began before its handler ran, and the timer's")
{
    struct session s;
    uint8_t *bytes;
    ULONG seen[MAX_CPUS] = { 0 }, around[MAX_CPUS] = { 0 }, ticks = 0;
    SKIP_BELOW_CPUS(2);
    REQUIRE(session_begin(&s, &bytes));
    CHECK_STATUS(session_mask(&s, PERF_IPI, PERF_INTERRUPT), STATUS_SUCCESS);
    for (unsigned i = 0; i < CALLS; i++)
        smp_call(SMP_ALL, call_me, NULL);
    uint64_t times[MAX_CPUS];
    memcpy(times, called, sizeof times);
    sched_wait(NULL, clock_ns() + sched_tick_ns(), DelayExecution); /* ends with a tick */
    smp_call(SMP_ALL, call_me, NULL); /* the interrupts before have ended, with their records */
    struct records all = session_drain(&s, bytes);
    for (struct record r; (r = next_record(&all)).header;) {
        const unsigned cpu = r.buffer->ClientContext.ProcessorIndex;
        const PERFINFO_DPC_INFORMATION *ipi = r.payload;
        const PERFINFO_INTERRUPT_INFORMATION *i = r.payload;
        if (r.header->HookId == PERFINFO_LOG_TYPE_INTERRUPT) {
            CHECK_EQ(r.size, sizeof *i);
            CHECK_EQ((uint64_t)i->ServiceRoutine, (uint64_t)trap_stubs[i->Vector & 0xff]);
            ticks += i->Vector == VECTOR_TIMER;
            around[cpu] += i->Vector == VECTOR_CALL && i->InitialTime < times[cpu] &&
                           times[cpu] < r.header->TimeStamp;
            continue;
        }
        CHECK_EQ(r.header->HookId, PERFINFO_LOG_TYPE_IPI);
        CHECK_EQ(r.size, sizeof *ipi);
        CHECK(ipi->InitialTime < r.header->TimeStamp);
        seen[cpu] += ipi->DpcRoutine == (PVOID)(uint64_t)call_me;
    }
    CHECK(ticks > 0);
    CHECK_EQ(seen[0], 0); /* no IPI to itself */
    for (unsigned cpu = 1; cpu < cpu_count; cpu++) {
        CHECK_EQ(seen[cpu], CALLS + 1);
        CHECK_EQ(around[cpu], 1);
    }
    session_end(&s, bytes);
}

/* --- DPCs, as drivers have them. --- */

VOID KeInitializeDpc(PRKDPC Dpc, PKDEFERRED_ROUTINE DeferredRoutine, PVOID DeferredContext);
BOOLEAN KeInsertQueueDpc(PRKDPC Dpc, PVOID SystemArgument1, PVOID SystemArgument2);
VOID KeFlushQueuedDpcs(void);
VOID KeInitializeTimer(PKTIMER Timer);
BOOLEAN KeSetTimer(PKTIMER Timer, LARGE_INTEGER DueTime, PKDPC Dpc);

static uint64_t dpc_began, dpc_ended; /* atomic; times */
static unsigned dpc_cpu;              /* atomic; a timer goes off on any */

/* Until the timer has sampled it twice. */
static NTAPI VOID spin_in_dpc(PKDPC, PVOID ticks, PVOID, PVOID)
{
    const volatile uint64_t *now = &cpu_current()->ticks;
    uint64_t until = *now + (uint64_t)ticks;
    __atomic_store_n(&dpc_cpu, cpu_number(), __ATOMIC_RELAXED);
    __atomic_store_n(&dpc_began, rdtsc(), __ATOMIC_RELEASE);
    while (*now < until)
        lab_loop(100);
    __atomic_store_n(&dpc_ended, rdtsc(), __ATOMIC_RELEASE);
}

static void wait_for_dpc(void)
{
    while (!__atomic_load_n(&dpc_ended, __ATOMIC_ACQUIRE))
        sched_wait(NULL, clock_ns() + sched_tick_ns(), DelayExecution);
    KeFlushQueuedDpcs(); /* its record is written, too */
}

/* The one record of the DPC that has just run, by that hook. */
static struct record find_dpc(struct records all, USHORT hook)
{
    struct record found = { 0 };
    for (struct record r; (r = next_record(&all)).header;) {
        const PERFINFO_DPC_INFORMATION *dpc = r.payload;
        if (r.header->HookId == PERFINFO_LOG_TYPE_SAMPLED_PROFILE)
            continue;
        CHECK(found.header == NULL);
        found = r;
        CHECK_EQ(r.header->HookId, hook);
        CHECK_EQ(r.size, sizeof *dpc);
        CHECK_EQ(r.buffer->ClientContext.ProcessorIndex, dpc_cpu);
        CHECK_EQ((uint64_t)dpc->DpcRoutine, (uint64_t)spin_in_dpc);
        CHECK(dpc->InitialTime < dpc_began && dpc_ended < r.header->TimeStamp);
    }
    return found;
}

/* The DPC's record; and samples while it ran have the bit, those before and after have not. */
static void check_dpc(struct session *s, uint8_t *bytes, USHORT hook)
{
    unsigned inside = 0;
    struct records all = session_drain(s, bytes);
    struct record dpc = find_dpc(all, hook);
    if (!CHECK(dpc.header != NULL))
        return;
    uint64_t first = ((const PERFINFO_DPC_INFORMATION *)dpc.payload)->InitialTime;
    for (struct record r; (r = next_record(&all)).header;) {
        const PERFINFO_SAMPLED_PROFILE_INFORMATION *sample = r.payload;
        uint64_t time = r.header->TimeStamp;
        if (r.header->HookId != PERFINFO_LOG_TYPE_SAMPLED_PROFILE)
            continue;
        if (r.buffer->ClientContext.ProcessorIndex != dpc_cpu || time < first ||
            time > dpc.header->TimeStamp) {
            CHECK_EQ(sample->Flags & PROFILE_IN_DPC, 0);
        } else if (dpc_began < time && time < dpc_ended) {
            CHECK_EQ(sample->Flags & PROFILE_IN_DPC, PROFILE_IN_DPC);
            inside++;
        }
    }
    CHECK(inside >= 2);
}

TEST(etw_hooks, dpcs,
     "a DPC's record has its routine and the time at which it began, and another number if a timer "
     "queued it; samples in it say so, and others do not [ET-68]")
{
    struct session s;
    uint8_t *bytes;
    KDPC dpc;
    KTIMER timer;
    uint64_t interval_ns = hal_source_interval(ProfileTime) * 100ul, tick_ns = sched_tick_ns();
    uint64_t ticks = 2 * (interval_ns > tick_ns ? interval_ns / tick_ns : 1) + 1;
    REQUIRE(session_begin(&s, &bytes));
    KeInitializeDpc(&dpc, spin_in_dpc, (PVOID)ticks);
    KeInitializeTimer(&timer);
    CHECK_STATUS(session_mask(&s, PERF_DPC | PERF_PROFILE, 0), STATUS_SUCCESS);
    dpc_ended = 0;
    CHECK(KeInsertQueueDpc(&dpc, NULL, NULL));
    wait_for_dpc();
    check_dpc(&s, bytes, PERFINFO_LOG_TYPE_DPC);
    CHECK_STATUS(session_mask(&s, EVENT_TRACE_FLAG_DPC | EVENT_TRACE_FLAG_PROFILE, 0),
                 STATUS_SUCCESS);
    dpc_ended = 0;
    CHECK(!KeSetTimer(&timer, (LARGE_INTEGER){ .QuadPart = -10000 }, &dpc));
    wait_for_dpc();
    check_dpc(&s, bytes, PERFINFO_LOG_TYPE_TIMERDPC);
    session_end(&s, bytes);
}
