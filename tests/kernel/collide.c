/* SPDX-License-Identifier: MIT */
/* Processors that do the same at the same moment: for a machine whose CPUs run at once
 * (ICOUNT=off), where they collide in the middle of what takes a few instructions. Threads begin
 * together, each on a processor of its own. */
#include "tests/harness/kernel.h"
#include "tests/ring3/exact.h"

#define COLLIDING 4u
#define BASE 0x5000ul /* no code is there */

static unsigned iterations(unsigned many) { return test_long() ? many : many / 10; }

/* --- One bucket. --- */

static void sample_often(void *)
{
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
