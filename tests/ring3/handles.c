/* SPDX-License-Identifier: MIT */
/* The table of handles: how many there are, and what happens when threads open, use and close the
 * same one. */
#include "tests/ring3/helpers.h"

#define LIMIT 4096 /* HANDLES_MAX of kernel/ke/object.h */
#define ITERATIONS 3000

static uint64_t shared; /* atomic; a handle, perhaps closed already */
static uint64_t done;   /* atomic */

static DWORD WINAPI note_run(LPVOID run)
{
    *(volatile BOOL *)run = TRUE;
    return 0;
}

TEST_USER(handles, limit,
          "a process has 4096 handles, numbered 4 to 16384 in steps of 4; a further one is "
          "refused, and the number after the last is none; a thread without one does not run")
{
    volatile BOOL run = FALSE;
    HANDLE first = CreateEvent(NULL, TRUE, TRUE, NULL), made = NULL, last = first;
    LARGE_INTEGER now = { .QuadPart = 0 };
    NTSTATUS status = STATUS_SUCCESS;
    unsigned count = 0;
    REQUIRE(first != NULL);
    while (count <= LIMIT &&
           NT_SUCCESS(status = ZwDuplicateObject(NtCurrentProcess(), first, NtCurrentProcess(),
                                                 &made, EVENT_ALL_ACCESS, 0, 0))) {
        CHECK(made > last);
        last = made;
        count++;
    }
    CHECK_STATUS(status, STATUS_INSUFFICIENT_RESOURCES);
    CHECK_EQ((uint64_t)first, 4);
    CHECK_EQ((uint64_t)last, LIMIT * 4);
    CHECK_EQ(count, LIMIT - 1);
    CHECK_STATUS(ZwWaitForSingleObject(last, FALSE, &now), STATUS_SUCCESS);
    for (uint64_t wrong = 1; wrong < 8; wrong++)
        CHECK_STATUS(ZwWaitForSingleObject((HANDLE)((uint64_t)last + wrong), FALSE, &now),
                     STATUS_INVALID_HANDLE);
    CHECK(CreateEvent(NULL, TRUE, TRUE, NULL) == NULL);
    CHECK_EQ(GetLastError(), ERROR_NO_SYSTEM_RESOURCES);
    CHECK(CreateThread(NULL, 0, note_run, (LPVOID)&run, 0, NULL) == NULL);
    CHECK_EQ(GetLastError(), ERROR_NO_SYSTEM_RESOURCES);
    Sleep(5);
    CHECK(!run);
    CHECK(CloseHandle((HANDLE)2400));
    CHECK_EQ((uint64_t)ring3_limited(first, EVENT_ALL_ACCESS), 2400);
}

static uint32_t successful; /* atomic; threads that found an object once at least */

static DWORD use(PVOID unused)
{
    DWORD good = 0;
    (void)unused;
    while (!__atomic_load_n(&done, __ATOMIC_ACQUIRE)) {
        NTSTATUS status = ZwSetEvent((HANDLE)__atomic_load_n(&shared, __ATOMIC_ACQUIRE), NULL);
        if (status != STATUS_SUCCESS && status != STATUS_INVALID_HANDLE)
            return 0;
        if (status == STATUS_SUCCESS && good++ == 0)
            __atomic_fetch_add(&successful, 1, __ATOMIC_RELEASE);
    }
    return good;
}

TEST_USER(handles, race,
          "threads that use a handle while another one closes it find the object or no handle, "
          "never what is freed [slow]")
{
    HANDLE users[3];
    for (unsigned i = 0; i < 3; i++)
        users[i] = ring3_start(use, NULL);
    unsigned iterations = test_long() ? ITERATIONS : ITERATIONS / 8;
    /* More iterations until each thread had its chance: a host may run it late. */
    for (unsigned i = 0; i < iterations || (i < 100 * iterations &&
                                            __atomic_load_n(&successful, __ATOMIC_ACQUIRE) < 3);
         i++) {
        EVENT_BASIC_INFORMATION info = { 9, 9 };
        HANDLE handle = CreateEvent(NULL, TRUE, FALSE, NULL);
        __atomic_store_n(&shared, (uint64_t)handle, __ATOMIC_RELEASE);
        if (i % 64 == 0)
            Sleep(1);
        CHECK_OK(ZwQueryEvent(handle, EventBasicInformation, &info, sizeof info, NULL));
        CHECK_EQ(info.EventType, NotificationEvent);
        CHECK(CloseHandle(handle));
    }
    __atomic_store_n(&done, 1, __ATOMIC_RELEASE);
    for (unsigned i = 0; i < 3; i++)
        CHECK(ring3_end(users[i]) > 0);
}
