/* SPDX-License-Identifier: MIT */
/* Buffers and groups of profile objects at the ends of memory. */
#include "tests/ring3/helpers.h"

#define LAST ((PVOID)0x00007ffffffe0000) /* the last 64 KB of ring 3 */
#define LAST_SIZE 0x10000u
#define ME NtCurrentProcess()

static NTSTATUS create_profile(PHANDLE handle, void *buffer, USHORT groups, void *affinity)
{
    return ZwCreateProfileEx(handle, ME, (PVOID)0x400000, 64, 4, buffer, 16, ProfileTime, groups,
                             affinity);
}

TEST_USER(profile_edges, buffer, "a buffer may end where its last page does")
{
    HANDLE handle = NULL;
    uint8_t *pages = ring3_pages(1);
    REQUIRE(pages != NULL);
    CHECK_STATUS(create_profile(&handle, pages + RING3_PAGE - 16, 0, NULL), STATUS_SUCCESS);
    CHECK_STATUS(ZwStartProfile(handle), STATUS_SUCCESS);
    CHECK_STATUS(ZwStopProfile(handle), STATUS_SUCCESS);
}

TEST_USER(profile_edges, groups,
          "an array of groups that leaves ring 3 is refused as such, whatever its first group is")
{
    HANDLE handle = NULL;
    PVOID base = LAST;
    SIZE_T size = LAST_SIZE;
    REQUIRE(NT_SUCCESS(
        ZwAllocateVirtualMemory(ME, &base, 0, &size, MEM_COMMIT | MEM_RESERVE, PAGE_READWRITE)));
    GROUP_AFFINITY *last = (GROUP_AFFINITY *)((uint8_t *)base + size) - 1;
    static uint32_t buffer[4];
    *last = (GROUP_AFFINITY){ .Mask = 1 };
    CHECK_STATUS(create_profile(&handle, buffer, 1, last), STATUS_SUCCESS);
    CHECK_STATUS(create_profile(&handle, buffer, 2, last), STATUS_ACCESS_VIOLATION);
    *last = (GROUP_AFFINITY){ .Mask = 0 };
    CHECK_STATUS(create_profile(&handle, buffer, 1, last), STATUS_INVALID_PARAMETER);
    CHECK_STATUS(create_profile(&handle, buffer, 2, last), STATUS_ACCESS_VIOLATION);
}
