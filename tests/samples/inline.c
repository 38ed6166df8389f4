/* SPDX-License-Identifier: MIT */
/* Counts the instructions of a few lines: read the counter, work, read again, subtract what the two
 * readings cost. No call, no system call in between, so one instruction more is one more in the
 * result. */
#include <stdio.h>
#include <windows.h>
#include <winternl.h>

#define TRIES 100

/* ntddk.h's, which a program cannot include together with windows.h. */
typedef struct {
    HARDWARE_COUNTER_TYPE Type;
    ULONG Reserved;
    ULONG64 Index;
} HARDWARE_COUNTER;
typedef NTSTATUS NTAPI SET(HARDWARE_COUNTER *CounterArray, ULONG Count);
typedef NTSTATUS NTAPI QUERY(HARDWARE_COUNTER *CounterArray, ULONG MaximumCount, ULONG *Count);

/* The routine of the kernel by its name. */
static void *kernel(const char *name)
{
    return (void *)GetProcAddress(LoadLibraryA("ntoskrnl.exe"), name);
}

static inline ULONG64 read_counter(ULONG selector)
{
    ULONG64 low, high;
    __asm__ volatile("rdpmc" : "=a"(low), "=d"(high) : "c"(selector) : "memory");
    return high << 32 | low;
}

/* The least of some tries: a switch in between reads another CPU's counter. */
#define COUNT(least, work)                                                                         \
    do {                                                                                           \
        (least) = ~0ull;                                                                           \
        for (int try = 0; try < TRIES; try++) {                                                    \
            ULONG64 before = read_counter(selector);                                               \
            work;                                                                                  \
            ULONG64 count = read_counter(selector) - before;                                       \
            (least) = count < (least) ? count : (least);                                           \
        }                                                                                          \
    } while (0)

int main(void)
{
    HARDWARE_COUNTER counter = { PMCCounter, 0, 2 }; /* ProfileTotalIssues: instructions */
    ULONG count;
    ULONG64 empty, one, ten, loop;
    HANDLE profile;

    SET *set = (SET *)kernel("KeSetHardwareCounterConfiguration");
    QUERY *query = (QUERY *)kernel("KeQueryHardwareCounterConfiguration");
    NTSTATUS status = set && query ? set(&counter, 1) : -1;
    if (status == 0)
        status = query(&counter, 1, &count);
    if (status || EnableThreadProfiling(GetCurrentThread(), 0, 1, &profile)) {
        fprintf(stderr, "no counter: status 0x%08lx\n", status);
        return 1;
    }
    ULONG selector = (ULONG)counter.Index; /* now RDPMC works in this thread */
    COUNT(empty, );
    COUNT(one, __asm__ volatile("nop"));
    COUNT(ten, __asm__ volatile(".rept 10\nnop\n.endr"));
    COUNT(loop, __asm__ volatile("mov $1000, %%r8d\n1: dec %%r8d\njnz 1b" : : : "r8", "cc"));
    printf("two readings cost %llu\n", empty);
    printf("one instruction: %llu\n", one - empty);
    printf("ten instructions: %llu\n", ten - empty);
    printf("a loop of 1000 iterations: %llu\n", loop - empty);
    return (int)DisableThreadProfiling(profile);
}
