/* SPDX-License-Identifier: MIT */
/* For the tests in ring 3 only. */
#pragma once
#include "kernel/base/bits.h"
#include "kernel/base/string.h"
#include "tests/harness/test.h"
#include "tests/ring3/ring3.h"
#include "tests/ring3/services.h"

#define FILL 0xa5
#define KERNEL_ADDRESS ((PVOID)0xffffffff81000000) /* of the image */
#define UNMAPPED ((PVOID)0x12345678)
#define RING3_PAGE 4096u
#define RING3_BAD_ADDRESSES 21

/* Not ring 3's to read or write: NULL and near it, a hole, the end of user space, non-canonical,
 * the kernel's direct map, windows, image; ranges that wrap around. Multiples of 4. */
extern const uint64_t ring3_bad_addresses[RING3_BAD_ADDRESSES];

/* At least 2 instructions an iteration, which no compiler removes. */
static inline void ring3_work(uint64_t iterations)
{
    for (; iterations; iterations--)
        asm volatile("" : "+r"(iterations));
}

/* The bases of fs and gs, where the kernel allows it. Who changes gs's calls nothing that needs the
 * TEB. */
#define RING3_READ_BASE(of)                                                                        \
    ({                                                                                             \
        uint64_t base;                                                                             \
        asm volatile("rd" #of "base %0" : "=r"(base));                                             \
        base;                                                                                      \
    })
#define RING3_WRITE_BASE(of, base) asm volatile("wr" #of "base %0" : : "r"((uint64_t)(base)))

/* Starts the function in a new thread; waits for its end, closes the handle, returns its exit
 * status. */
HANDLE ring3_start(LPTHREAD_START_ROUTINE function, void *argument);
DWORD ring3_end(HANDLE thread);
/* Both. */
NTSTATUS ring3_run(LPTHREAD_START_ROUTINE function, void *argument);
/* Waits until *where has the value; false (and a failed check) if it does not within 2,000 sleeps
 * of 1 ms. */
bool ring3_wait(const uint64_t *where, uint64_t value);
/* Fresh pages, read-write, an unmapped one after them; never given back. NULL: a check failed. */
uint8_t *ring3_pages(unsigned n);
void ring3_protect(void *page, ULONG protect);
void ring3_free(void *pages);
uint64_t ring3_random(uint64_t *state);
/* Processors of this group. */
unsigned ring3_cpus(void);
/* Another handle, which has these rights only; of the calling thread. */
HANDLE ring3_limited(HANDLE of, ACCESS_MASK access);
HANDLE ring3_handle(ACCESS_MASK access);
/* The calling thread is profiled, and not any more. */
HANDLE ring3_enable(ULONG flags, ULONG64 mask);
void ring3_disable(HANDLE profile);
/* Whether it is. */
bool ring3_profiled(void);
/* QueryThreadProfiling says so of that thread. */
void ring3_query(HANDLE thread, BOOLEAN wanted);
/* Size and Version set, all else FILL. */
void ring3_data(PERFORMANCE_DATA *data);
/* ReadThreadProfilingData into the same. */
bool ring3_read(HANDLE profile, DWORD flags, PERFORMANCE_DATA *data);
/* The calling thread's wait reasons since the last reading, a bit each. */
uint64_t ring3_reasons(HANDLE profile);
/* NtSetInformationThread, class 32, for the calling thread. */
NTSTATUS ring3_set(ULONG64 mask, ULONG flags, ULONG enable, void *block);
/* Whether all these bytes are `value`. */
bool ring3_all(const void *bytes, size_t size, uint8_t value);
