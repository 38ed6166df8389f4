/* SPDX-License-Identifier: MIT */
/* Eight threads share the CPUs; each counts its own instructions, wherever it runs. Then the sum of
 * all against the running totals of the CPUs, which every profiled thread may read where it is
 * (policy accumulate). */
#include "counter.h"

#define THREADS 8
#define CPUS_MAX 64
#define TURN 2 /* instructions: DEC, JNZ */

struct job {
    ULONG64 iterations, counted;
    ULONG switches, retries;
};

static PERFORMANCE_DATA read(HANDLE profile)
{
    PERFORMANCE_DATA data = { .Size = sizeof data, .Version = PERFORMANCE_DATA_VERSION };
    DWORD error = ReadThreadProfilingData(profile,
                                          READ_THREAD_PROFILING_FLAG_DISPATCHING |
                                              READ_THREAD_PROFILING_FLAG_HARDWARE_COUNTERS,
                                          &data);
    if (error)
        fprintf(stderr, "ReadThreadProfilingData: error %lu\n", error);
    return data;
}

static DWORD WINAPI work(PVOID argument)
{
    struct job *job = argument;
    ULONG64 iterations = job->iterations;
    HANDLE profile;
    if (EnableThreadProfiling(GetCurrentThread(), THREAD_PROFILING_FLAG_DISPATCH, 1, &profile))
        return 1;
    __asm__ volatile("1: dec %0\njnz 1b" : "+r"(iterations) : : "cc");
    PERFORMANCE_DATA data = read(profile);
    job->counted = data.HwCounters[0].Value;
    job->switches = data.ContextSwitchCount;
    job->retries = data.RetryCount; /* switched while it was read: read again, which counts, too */
    return DisableThreadProfiling(profile);
}

/* The running totals of all CPUs, added up; their number in *cpus. */
static ULONG64 totals(ULONG selector, ULONG *cpus)
{
    ULONG64 sum = 0;
    for (*cpus = 0; *cpus < CPUS_MAX && SetThreadAffinityMask(GetCurrentThread(), 1ull << *cpus);
         ++*cpus)
        sum += read_counter(selector);
    SetThreadAffinityMask(GetCurrentThread(), ~0ull);
    return sum;
}

int main(void)
{
    struct job jobs[THREADS];
    HANDLE threads[THREADS], profile;
    ULONG selector, cpus;
    ULONG64 sum = 0;
    if (!enable(&selector, &profile))
        return 1;
    ULONG64 own = read(profile).HwCounters[0].Value, before = totals(selector, &cpus);
    for (int i = 0; i < THREADS; i++) {
        jobs[i] = (struct job){ .iterations = 500000ull * (i + 1) };
        threads[i] = CreateThread(NULL, 0, work, &jobs[i], 0, NULL);
    }
    WaitForMultipleObjects(THREADS, threads, TRUE, INFINITE);
    ULONG64 all = totals(selector, &cpus) - before;
    own = read(profile).HwCounters[0].Value - own;
    for (int i = 0; i < THREADS; i++) {
        printf("thread %d: %llu instructions, %llu beside its loop, %lu switches, %lu retries\n", i,
               jobs[i].counted, jobs[i].counted - jobs[i].iterations * TURN, jobs[i].switches,
               jobs[i].retries);
        sum += jobs[i].counted;
    }
    printf("%lu CPUs: %llu instructions; the threads %llu, this one %llu, outside of what was read "
           "%lld\n",
           cpus, all, sum, own, (LONGLONG)(all - sum - own));
    return (int)DisableThreadProfiling(profile);
}
