/* SPDX-License-Identifier: MIT */
/* As tests/harness/selfcheck_leaves.c, in ring 3. */
#include "tests/ring3/helpers.h"

static DWORD spin(PVOID unused)
{
    ring3_work(~0ull);
    return 0;
}

static DWORD sleep(PVOID unused)
{
    Sleep(INFINITE);
    return 0;
}

TEST_USER(selfcheck_leaves, ring3_hang, "hangs in ring 3")
{
    CHECK(true);
    spin(NULL);
}

TEST_USER(selfcheck_leaves, ring3_threads,
          "ends while another thread of the process runs and one sleeps")
{
    CHECK(CreateThread(NULL, 0, spin, NULL, 0, NULL) != NULL);
    CHECK(CreateThread(NULL, 0, sleep, NULL, 0, NULL) != NULL);
}

TEST_USER(selfcheck_leaves, ring3_wait, "waits for ever in ring 3, profiling")
{
    static THREAD_PERFORMANCE_DATA block;
    CHECK_STATUS(ring3_set(0, 1, 1, &block), STATUS_SUCCESS);
    sleep(NULL);
}

TEST_USER(selfcheck_leaves, ring3_flood,
          "fails a hundred times in ring 3, and prints few lines of it")
{
    for (unsigned i = 0; i < 100; i++)
        CHECK_EQ(i, 1000);
}
