/* SPDX-License-Identifier: MIT */
/* Profile objects with buffers of several pages, and the intervals of all sources. Sources as in
 * profile_input.c. */
#include "tests/ring3/helpers.h"

#define REGION ((PVOID)0x400000)
#define PAGES 3u
#define ROUNDS 64u
#define SPARE (32 * RING3_PAGE) /* what others may take meanwhile; two pages a round are 128 */
#define SOURCES 256u

static NTSTATUS create_on_pages(HANDLE *profile, void *pages)
{
    return ZwCreateProfileEx(profile, NtCurrentProcess(), REGION, RING3_PAGE, 2, pages,
                             PAGES * RING3_PAGE, ProfileTime, 0, NULL);
}

TEST_USER(profile_buffers, middle, "each page of a buffer must be there and writable [PO-14]")
{
    HANDLE profile;
    uint8_t *pages = ring3_pages(PAGES);
    REQUIRE(pages != NULL);
    for (unsigned i = 0; i < PAGES; i++) {
        ring3_protect(pages + i * RING3_PAGE, PAGE_READONLY);
        CHECK_STATUS(create_on_pages(&profile, pages), STATUS_ACCESS_VIOLATION);
        ring3_protect(pages + i * RING3_PAGE, PAGE_READWRITE);
    }
    CHECK_STATUS(create_on_pages(&profile, pages), STATUS_SUCCESS);
    CHECK_STATUS(ZwClose(profile), STATUS_SUCCESS);
}

static uint64_t available(void)
{
    MEMORYSTATUSEX status = { .dwLength = sizeof status };
    CHECK(GlobalMemoryStatusEx(&status));
    return status.ullAvailPhys;
}

TEST_USER(profile_buffers, unlocked, "the close of a started profile gives back all pages [PO-48]")
{
    uint64_t before = 0;
    for (unsigned i = 0; i <= ROUNDS; i++) {
        HANDLE profile;
        uint8_t *pages = ring3_pages(PAGES);
        REQUIRE(pages != NULL);
        CHECK_STATUS(create_on_pages(&profile, pages), STATUS_SUCCESS);
        CHECK_STATUS(ZwStartProfile(profile), STATUS_SUCCESS);
        CHECK_STATUS(ZwClose(profile), STATUS_SUCCESS);
        ring3_free(pages);
        if (i == 0) /* from here on there are page tables */
            before = available();
    }
    CHECK(available() + SPARE > before);
}

TEST_USER(profile_buffers, intervals, "the interval of each source is the one that was set [PO-69]")
{
    BOOLEAN was;
    ULONG before[SOURCES], now;
    CHECK_OK(RtlAdjustPrivilege(SE_SYSTEM_PROFILE_PRIVILEGE, TRUE, FALSE, &was));
    for (unsigned s = 0; s < SOURCES; s++) {
        CHECK_STATUS(ZwQueryIntervalProfile((KPROFILE_SOURCE)s, &before[s]), STATUS_SUCCESS);
        if (before[s])
            CHECK_STATUS(ZwSetIntervalProfile(100000 + s, (KPROFILE_SOURCE)s), STATUS_SUCCESS);
    }
    CHECK_EQ(before[ProfileTime], 10000);
    for (unsigned s = 0; s < SOURCES; s++) {
        CHECK_STATUS(ZwQueryIntervalProfile((KPROFILE_SOURCE)s, &now), STATUS_SUCCESS);
        CHECK_EQ(now, before[s] ? 100000 + s : 0);
        if (before[s])
            CHECK_STATUS(ZwSetIntervalProfile(before[s], (KPROFILE_SOURCE)s), STATUS_SUCCESS);
    }
}
