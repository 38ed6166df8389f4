/* SPDX-License-Identifier: MIT */
/* The table of handles: how many there are. */
#include "tests/ring3/helpers.h"

#define LIMIT 4096 /* HANDLES_MAX of kernel/ke/object.h */

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
