/* SPDX-License-Identifier: MIT */
/* Processors that do the same at the same moment: for a machine whose CPUs run at once
 * (ICOUNT=off), where they collide in the middle of what takes a few instructions. Threads begin
 * together, each on a processor of its own. */
#include "kernel/ke/process.h"
#include "kernel/ke/synchronization.h"
#include "kernel/services/services.h"
#include "tests/harness/etw.h"
#include "tests/harness/kernel.h"
#include "tests/harness/profile.h"
#include "tests/ring3/exact.h"
#include "tests/harness/threads.h"
#include "tests/harness/user.h"

#define COLLIDING 4u
#define BASE 0x5000ul /* no code is there */
#define SLOTS 3u

static unsigned iterations(unsigned many) { return test_long() ? many : many / 10; }

/* --- One bucket. --- */

static void sample_often(void *unused)
{
    (void)unused;
    for (unsigned i = 0; i < iterations(1000000) / COLLIDING; i++)
        sample_at(BASE, ProfileTime);
}

TEST(collide, bucket,
     "samples of all processors in one bucket: with 10^6 of them none is lost [PO-59]")
{
    ULONG bucket[2] = { 0 };
    SKIP_BELOW_CPUS(2);
    HANDLE profile = profile_made(BASE, 8, 2, bucket, sizeof bucket, ProfileTime, ~0ul);
    REQUIRE(profile != NULL);
    profile_start(profile);
    team_run(sample_often, COLLIDING);
    CHECK_STATUS(NtClose(profile), STATUS_SUCCESS);
    CHECK_EQ(bucket[0], iterations(1000000));
    CHECK_EQ(bucket[1], 0);
}

/* --- Handles that any thread may close while another duplicates them. --- */

static HANDLE slots[SLOTS]; /* atomic */
static uint64_t duplicated; /* atomic */

static void close_if(HANDLE handle)
{
    NTSTATUS status = handle ? NtClose(handle) : STATUS_SUCCESS;
    CHECK(status == STATUS_SUCCESS ||
          status == STATUS_INVALID_HANDLE); /* another has closed what it named before */
}

static void open_and_close(void *argument)
{
    uint64_t n = (uint64_t)argument;
    /* Until as many as one thread's iterations met a handle that was open: how many do is
     * chance, but not one in a hundred. */
    for (uint64_t i = 0; i < iterations(20000) ||
                         (i < 100 * iterations(20000) &&
                          __atomic_load_n(&duplicated, __ATOMIC_RELAXED) < iterations(20000));
         i++, n++) {
        HANDLE made = NULL, again = NULL;
        CHECK_OK(NtCreateEvent(&made, EVENT_ALL_ACCESS, NULL, NotificationEvent, FALSE));
        close_if(__atomic_exchange_n(&slots[n % SLOTS], made, __ATOMIC_ACQ_REL));
        HANDLE other = __atomic_load_n(&slots[(n + 1) % SLOTS], __ATOMIC_ACQUIRE);
        thread_current()->trusted++; /* its result goes to an address of the kernel */
        NTSTATUS status = NtDuplicateObject(NtCurrentProcess(), other, NtCurrentProcess(), &again,
                                            0, 0, DUPLICATE_SAME_ACCESS);
        thread_current()->trusted--;
        if (status == STATUS_SUCCESS) {
            __atomic_fetch_add(&duplicated, 1, __ATOMIC_RELAXED);
            CHECK_STATUS(NtClose(again), STATUS_SUCCESS);
        } else {
            CHECK_STATUS(status, STATUS_INVALID_HANDLE);
        }
    }
}

TEST(collide, handles,
     "four threads open, duplicate and close each other's handles: every one is closed once, none "
     "is left")
{
    SKIP_BELOW_CPUS(2);
    unsigned before = handle_count();
    duplicated = 0;
    team_run(open_and_close, COLLIDING);
    for (unsigned i = 0; i < SLOTS; i++)
        close_if(__atomic_exchange_n(&slots[i], NULL, __ATOMIC_ACQ_REL));
    CHECK_EQ(handle_count(), before);
    CHECK(duplicated >= iterations(20000)); /* the rest met a handle that was closed */
}

/* --- Sessions that come and go while others log. --- */

static uint64_t at_work; /* atomic: threads that start and stop sessions */

static void start_and_stop(unsigned number)
{
    char name[] = "colliding 0";
    name[sizeof name - 2] = (char)('0' + number);
    for (unsigned i = 0; i < iterations(60); i++) {
        struct session_info d;
        struct session s = { 0, NULL, 0 };
        session_describe(&d, name);
        d.info.BufferSize = 4;
        d.info.MaximumBuffers = 8;
        if (!CHECK_STATUS(session_control(EtwStartLoggerCode, &d), STATUS_SUCCESS))
            break;
        s.trace = d.info.Wnode.HistoricalContext;
        CHECK_STATUS(session_mask(&s, PERF_CONTEXT_SWITCH, PERF_THREAD), STATUS_SUCCESS);
        sched_switch(WrYieldExecution);
        session_stop(&s);
    }
    __atomic_fetch_sub(&at_work, 1, __ATOMIC_ACQ_REL);
}

static void start_or_log(void *argument)
{
    unsigned number = (unsigned)(uint64_t)argument;
    if (number < 2) {
        start_and_stop(number);
        return;
    }
    while (__atomic_load_n(&at_work, __ATOMIC_ACQUIRE)) /* each switch and each sleep is logged */
        sched_wait(NULL, clock_ns() + 1000, DelayExecution);
}

TEST(
    collide, sessions,
    "sessions start and stop on two processors while others log: none is left, and no page [ET-31]")
{
    SKIP_BELOW_CPUS(2);
    at_work = 2;
    team_run(start_or_log, COLLIDING);
}

/* --- Processes that die while they are profiled. --- */

static void live_and_die(void *argument)
{
    ULONG counts[2] = { 0 };
    for (unsigned i = 0; i < iterations(30); i++) {
        HANDLE handle = NULL, profile = NULL;
        struct process *process = user_process();
        if (!CHECK(process != NULL))
            return;
        struct thread *thread =
            user_thread("dying", process, (uint64_t)user_exact_spin, 0,
                        cpu_set_one((i + (unsigned)(uint64_t)argument) % cpu_count));
        CHECK_OK(handle_create(&process->object, PROCESS_QUERY_INFORMATION, &handle));
        CHECK_OK(NtCreateProfile(&profile, handle, (PVOID)BASE, 8, 2, counts, sizeof counts,
                                 ProfileTime, ~0ul));
        CHECK_STATUS(NtStartProfile(profile), STATUS_SUCCESS);
        if (CHECK(thread != NULL)) {
            thread_terminate(thread, STATUS_SUCCESS);
            team_end(thread);
        }
        object_release(&process->object);
        CHECK_STATUS(NtClose(handle), STATUS_SUCCESS);
        sample_at(BASE, ProfileTime);
        CHECK_STATUS(NtStopProfile(profile), STATUS_SUCCESS);
        CHECK_STATUS(NtClose(profile), STATUS_SUCCESS);
    }
    CHECK_EQ(counts[0], 0); /* a kernel thread's sample is not the process's */
}

TEST(collide, dying,
     "processes die on every processor while profile objects of theirs are started and sampled: "
     "nothing is left")
{
    SKIP_BELOW_CPUS(2);
    team_run(live_and_die, COLLIDING);
}
