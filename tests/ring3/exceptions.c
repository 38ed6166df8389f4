/* SPDX-License-Identifier: MIT */
/* Dying of an exception in ring 3, seen by the creator in the same process, and for
 * tests/kernel/exceptions.c. */
#include "tests/ring3/exceptions.h"
#include "tests/ring3/helpers.h"

uint64_t user_exception_count; /* how often an instruction that must fault did not; data, not to be
                                  executed */

#define FUNCTION(name, code, status, address)                                                      \
    static void exception_##name(void)                                                             \
    {                                                                                              \
        asm volatile(code : : : "rax", "rcx", "rdx", "rsi", "rdi", "memory", "cc");                \
        user_exception_count++;                                                                    \
    }
EXCEPTIONS(FUNCTION)
EMULATED(FUNCTION)
CACHES(FUNCTION)

#define ROW(name, code, status, address) { #name, exception_##name, status },
static const struct {
    const char *name;
    void (*function)(void);
    NTSTATUS status;
} rows[] = { EXCEPTIONS(ROW){ NULL, NULL, 0 }, EMULATED(ROW) CACHES(ROW) };

void user_exception(uint64_t kind) { rows[kind].function(); }

static DWORD run_row(PVOID kind)
{
    rows[(uint64_t)kind].function();
    return STATUS_SUCCESS;
}

static uint64_t iterations, stop; /* atomic */

static DWORD bystander(PVOID unused)
{
    (void)unused;
    while (!__atomic_load_n(&stop, __ATOMIC_ACQUIRE)) {
        ring3_work(100);
        ZwYieldExecution();
        _mm_pause(); /* else other CPUs of an emulator run once in several ticks */
        __atomic_fetch_add(&iterations, 1, __ATOMIC_RELAXED);
    }
    return 1234;
}

TEST_USER(exceptions, creator_sees,
          "a thread that ends by an exception passes its status to its creator, and the process "
          "goes on [slow]")
{
    HANDLE other = ring3_start(bystander, NULL);
    for (uint64_t kind = 0; kind < KIND_COUNT; kind++) {
        NTSTATUS status = ring3_run(run_row, (PVOID)kind);
        if (!CHECK_STATUS(status, rows[kind].status))
            test_note("exception %s", rows[kind].name);
    }
    CHECK_EQ(user_exception_count, 0);
    uint64_t before = __atomic_load_n(&iterations, __ATOMIC_RELAXED);
    for (unsigned i = 0; i < 2000 && __atomic_load_n(&iterations, __ATOMIC_RELAXED) == before; i++)
        Sleep(1);
    CHECK(__atomic_load_n(&iterations, __ATOMIC_RELAXED) > before);
    __atomic_store_n(&stop, 1, __ATOMIC_RELEASE);
    CHECK_EQ(ring3_end(other), 1234);
}
