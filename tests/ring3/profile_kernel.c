/* SPDX-License-Identifier: MIT */
/* Ring 3 of tests/profiling/profile_kernel.c: a profile whose buffer goes away. */
#include "tests/ring3/helpers.h"

/* Says where it is, and stays there until the test lets it go on. */
static void stage(uint64_t n)
{
    __atomic_store_n(&user_state, n, __ATOMIC_RELEASE);
    while (__atomic_load_n(&user_reads, __ATOMIC_ACQUIRE) < n)
        ZwYieldExecution();
}

void user_profile_buffer(uint64_t base)
{
    uint8_t *page = ring3_pages(1);
    HANDLE profile = NULL;
    CHECK_OK(ZwCreateProfileEx(&profile, NtCurrentProcess(), (PVOID)base, 16, 4,
                               (PULONG)(void *)page, 4, ProfileTime, 0, NULL));
    CHECK_STATUS(ZwStartProfile(profile), STATUS_SUCCESS);
    user_reads = 0; /* the page with it becomes this process's own */
    stage(1);
    ring3_free(page);
    stage(2);
    CHECK_STATUS(ZwStopProfile(profile), STATUS_SUCCESS);
    stage(3);
}
