/* SPDX-License-Identifier: MIT */
/* What a benchmark for Windows commonly uses: threads, locks, timers, large stacks, counters around
 * a piece of code. */
#define WIN32_LEAN_AND_MEAN
#include <windows.h>
#include <assert.h>
#include <intrin.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define WORKERS 8
#define ITERATIONS 1000

typedef struct {
    int id;
    double sum;
    CRITICAL_SECTION *lock;
    volatile LONG *hits;
    volatile LONG64 *total;
    int *plain;
} JOB;

static DWORD WINAPI worker(LPVOID argument)
{
    JOB *job = (JOB *)argument;
    char stack[700 * 1024];
    memset(stack, job->id, sizeof stack);
    for (int i = 0; i < ITERATIONS; i++) {
        job->sum += sqrt((double)i) * cos(i * 0.01);
        InterlockedIncrement(job->hits);
        InterlockedExchangeAdd64(job->total, i);
        EnterCriticalSection(job->lock);
        EnterCriticalSection(job->lock);
        ++*job->plain;
        LeaveCriticalSection(job->lock);
        LeaveCriticalSection(job->lock);
    }
    return (DWORD)stack[(size_t)rand() % sizeof stack];
}

int main(int argc, char *argv[])
{
    LARGE_INTEGER frequency, start, end;
    CRITICAL_SECTION lock;
    volatile LONG hits = 0;
    volatile LONG64 total = 0;
    int plain = 0, registers[4];
    HANDLE threads[WORKERS];
    JOB jobs[WORKERS];
    SYSTEM_INFO system;
    char stack[900 * 1024];

    assert(argc == 1 && argv[0] && !argv[1]);
    memset(stack, 1, sizeof stack);
    GetSystemInfo(&system);
    printf("%lu processors, pages of %lu\n", system.dwNumberOfProcessors, system.dwPageSize);
    QueryPerformanceFrequency(&frequency);
    QueryPerformanceCounter(&start);
    uint64_t tsc = __rdtsc();
    InitializeCriticalSection(&lock);
    for (int i = 0; i < WORKERS; i++) {
        jobs[i] = (JOB){ i, 0, &lock, &hits, &total, &plain };
        threads[i] = CreateThread(NULL, 0, worker, &jobs[i], 0, NULL);
        if (!threads[i]) {
            fprintf(stderr, "CreateThread: error %lu\n", GetLastError());
            return EXIT_FAILURE;
        }
    }
    printf("waited: %lu\n", WaitForMultipleObjects(WORKERS, threads, TRUE, INFINITE));
    for (int i = 0; i < WORKERS; i++) {
        DWORD code = 99;
        GetExitCodeThread(threads[i], &code);
        if (code != (DWORD)i)
            printf("thread %d ended with %lu\n", i, code);
        CloseHandle(threads[i]);
    }
    DeleteCriticalSection(&lock);
    QueryPerformanceCounter(&end);
    double ms = 1000.0 * (double)(end.QuadPart - start.QuadPart) / (double)frequency.QuadPart;
    printf("%ld hits, total %" PRId64 ", plain %d, sum %.9f\n", hits, (int64_t)total, plain,
           jobs[3].sum);
    printf("time passed: %d, %d, %d\n", ms > 0.0, __rdtsc() > tsc, clock() < INT_MAX);
    LONG old = InterlockedExchange(&hits, 5), compared = InterlockedCompareExchange(&hits, 6, 5);
    printf("exchanged %ld, compared %ld, value %ld\n", old, compared, hits);
    __cpuid(registers, 0);
    printf("leaves: %d\n", registers[0] > 0);
    return 0;
}
