/* SPDX-License-Identifier: MIT */
/* NtCreateProfile and its kin as a ring-3 program calls them: each refusal and their order,
 * handles, intervals. Source of the statuses: PO-01 to PO-48 of tests/contract.md. */
#include "tests/ring3/helpers.h"

#define MARK ((HANDLE)0x1234567) /* what a failing call must leave alone */
#define KERNEL_HALF 0xffff800000000000
#define USER_END 0x00007fffffff0000
#define NO_SOURCE ((KPROFILE_SOURCE)ProfileMaximum)
#define BUCKETS 256
#define REGION ((PVOID)0x400000)
#define REGION_SIZE 4096u
#define ME NtCurrentProcess()

static ULONG buffer[BUCKETS + 1];

/* The arguments of NtCreateProfileEx, good ones. */
struct arguments {
    PHANDLE handle;
    HANDLE process;
    uint64_t base, size;
    ULONG log2;
    void *buffer;
    ULONG buffer_size;
    KPROFILE_SOURCE source;
    USHORT groups;
    void *affinity;
};
static HANDLE handle = MARK;
#define GOOD                                                                                       \
    .handle = &handle, .process = ME, .base = (uint64_t)REGION, .size = REGION_SIZE, .log2 = 4,    \
    .buffer = buffer, .buffer_size = 4 * BUCKETS, .source = ProfileTime
/* The call with good arguments but those named. */
#define CREATE(...) attempt((struct arguments){ GOOD, __VA_ARGS__ })
#pragma GCC diagnostic ignored "-Woverride-init"

/* A handle that was made is closed; a failing call leaves it alone. */
static NTSTATUS closed(NTSTATUS status)
{
    if (NT_SUCCESS(status))
        CHECK_STATUS(NtClose(handle), STATUS_SUCCESS);
    else
        CHECK(handle == MARK);
    handle = MARK;
    return status;
}

static NTSTATUS attempt(struct arguments a)
{
    return closed(ZwCreateProfileEx(a.handle, a.process, (PVOID)a.base, a.size, a.log2, a.buffer,
                                    a.buffer_size, a.source, a.groups, a.affinity));
}

/* Aligned, but not to be written. */
#define CODE ((uint64_t)attempt & ~7ull)

static NTSTATUS create_on(KAFFINITY affinity)
{
    return closed(ZwCreateProfile(&handle, ME, REGION, REGION_SIZE, 4, buffer, 4 * BUCKETS,
                                  ProfileTime, affinity));
}

static HANDLE made(void *where, ULONG size)
{
    HANDLE profile = NULL;
    CHECK_OK(ZwCreateProfileEx(&profile, ME, REGION, REGION_SIZE, 31, where, size, ProfileTime, 0,
                               NULL));
    return profile;
}

static bool privilege(bool on)
{
    BOOLEAN was = FILL;
    CHECK_STATUS(RtlAdjustPrivilege(SE_SYSTEM_PROFILE_PRIVILEGE, on, FALSE, &was), STATUS_SUCCESS);
    CHECK(was == TRUE || was == FALSE);
    return was;
}

/* ReactOS' API tests of NtCreateProfile, with Windows' statuses: no handle, no buffer. */
TEST_USER(
    profile_input, huge,
    "regions near 2^64, and those that wrap, have Windows' statuses, after the checks of sizes; "
    "none is sampled beyond its buffer [PO-08 PO-09 PO-33]")
{
    static const struct {
        uint64_t size;
        ULONG log2, buffer_size;
        NTSTATUS status;
    } of[] = {
        { UINT64_MAX / 2, 31, 0x80000000, STATUS_ACCESS_VIOLATION },
        { UINT64_MAX - 0x10000, 31, 0x80000000, STATUS_ACCESS_VIOLATION },
        { UINT64_MAX - 0xffff, 31, 0x80000000, STATUS_BUFFER_OVERFLOW },
        { UINT64_MAX, 31, 0x80000000, STATUS_BUFFER_OVERFLOW },
        { 0x80000000, 2, 1, STATUS_BUFFER_TOO_SMALL },
        { 0x80000000, 31, 3, STATUS_BUFFER_TOO_SMALL },
        { 0x80000000, 31, 4, STATUS_ACCESS_VIOLATION },
        { 0x80000001, 31, 4, STATUS_BUFFER_TOO_SMALL },
        { 0xa0000000, 31, 4, STATUS_BUFFER_TOO_SMALL },
        { 257, 8, 4, STATUS_BUFFER_TOO_SMALL },
        { 3, 2, 0x2000000, STATUS_ACCESS_VIOLATION },
    };
    for (unsigned i = 0; i < ARRAY_SIZE(of); i++)
        CHECK_STATUS(ZwCreateProfile(NULL, NULL, (PVOID)0x10000, of[i].size, of[i].log2, NULL,
                                     of[i].buffer_size, ProfileTime, 1),
                     of[i].status);
    CHECK_STATUS(CREATE(.base = 0xfffffffffffff000, .size = 0xfff, .log2 = 12), STATUS_SUCCESS);
    CHECK_STATUS(CREATE(.size = UINT64_MAX / 2, .log2 = 31, .base = 0x10000),
                 STATUS_BUFFER_TOO_SMALL);
    CHECK_STATUS(CREATE(.size = 0x10000000000ull, .log2 = 8), STATUS_BUFFER_TOO_SMALL);
}

TEST_USER(profile_input, source,
          "unsupported sources are refused, after the checks of sizes and wrap [PO-10 PO-11 KP-17 "
          "KP-18 KP-19]")
{
    /* source_tables.time has more of them. */
    static const uint32_t bad[] = { ProfileMaximum, ProfileAlignmentFixup, 0x100, 0xffffffff };
    for (unsigned i = 0; i < ARRAY_SIZE(bad); i++) {
        ULONG interval = 1;
        CHECK_STATUS(CREATE(.source = (KPROFILE_SOURCE)bad[i]), STATUS_NOT_SUPPORTED);
        CHECK_STATUS(ZwQueryIntervalProfile((KPROFILE_SOURCE)bad[i], &interval), STATUS_SUCCESS);
        CHECK_EQ(interval, 0);
    }
    CHECK_STATUS(CREATE(.source = NO_SOURCE, .buffer_size = 0), STATUS_INVALID_PARAMETER_7);
    CHECK_STATUS(CREATE(.source = NO_SOURCE, .log2 = 1), STATUS_INVALID_PARAMETER);
    CHECK_STATUS(CREATE(.source = NO_SOURCE, .buffer_size = 4), STATUS_BUFFER_TOO_SMALL);
    CHECK_STATUS(CREATE(.source = NO_SOURCE, .base = ~0ull), STATUS_BUFFER_OVERFLOW);
    CHECK_STATUS(CREATE(.source = NO_SOURCE, .buffer = NULL), STATUS_NOT_SUPPORTED);
    CHECK_STATUS(CREATE(.source = NO_SOURCE, .handle = NULL), STATUS_NOT_SUPPORTED);
}

TEST_USER(
    profile_input, pointers,
    "handle, buffer and affinity must lie in the caller's memory [PO-12 PO-13 PO-14 PO-15 PO-32]")
{
    uint8_t *pages = ring3_pages(3);
    REQUIRE(pages != NULL);
    for (unsigned i = 0; i < 3; i++) { /* each page of the buffer must be there and writable */
        ring3_protect(pages + i * RING3_PAGE, PAGE_READONLY);
        CHECK_STATUS(CREATE(.buffer = pages, .buffer_size = 3 * RING3_PAGE),
                     STATUS_ACCESS_VIOLATION);
        ring3_protect(pages + i * RING3_PAGE, PAGE_READWRITE);
    }
    pages += RING3_PAGE;
    CHECK_STATUS(CREATE(.handle = (PHANDLE)KERNEL_HALF), STATUS_ACCESS_VIOLATION);
    CHECK_STATUS(CREATE(.handle = NULL), STATUS_ACCESS_VIOLATION);
    CHECK_STATUS(CREATE(.handle = (PHANDLE)(USER_END - 4)), STATUS_ACCESS_VIOLATION);
    CHECK_STATUS(CREATE(.handle = (PHANDLE)CODE), STATUS_ACCESS_VIOLATION);
    for (unsigned i = 1; i < 4; i++)
        CHECK_STATUS(CREATE(.buffer = (uint8_t *)buffer + i), STATUS_DATATYPE_MISALIGNMENT);
    CHECK_STATUS(CREATE(.buffer = NULL), STATUS_ACCESS_VIOLATION);
    CHECK_STATUS(CREATE(.buffer = (void *)KERNEL_HALF), STATUS_ACCESS_VIOLATION);
    CHECK_STATUS(CREATE(.buffer = (void *)(USER_END - 512)), STATUS_ACCESS_VIOLATION);
    CHECK_STATUS(CREATE(.buffer = (void *)0xfffffffffffffff0), STATUS_ACCESS_VIOLATION);
    CHECK_STATUS(CREATE(.buffer_size = 0xfffffffc), STATUS_ACCESS_VIOLATION);
    CHECK_STATUS(CREATE(.buffer = pages + RING3_PAGE), STATUS_SUCCESS);
    CHECK_STATUS(CREATE(.buffer = pages + RING3_PAGE, .buffer_size = RING3_PAGE), STATUS_SUCCESS);
    CHECK_STATUS(CREATE(.buffer = pages + RING3_PAGE + 4, .buffer_size = RING3_PAGE),
                 STATUS_ACCESS_VIOLATION);
    CHECK_STATUS(CREATE(.buffer = pages + RING3_PAGE - 512), STATUS_SUCCESS);
    ring3_protect(pages + RING3_PAGE, PAGE_READONLY);
    CHECK_STATUS(CREATE(.buffer = pages + RING3_PAGE - 512), STATUS_ACCESS_VIOLATION);
    CHECK_STATUS(CREATE(.buffer = pages + RING3_PAGE - 1024), STATUS_SUCCESS);
    CHECK_STATUS(CREATE(.groups = 1, .affinity = NULL), STATUS_ACCESS_VIOLATION);
    CHECK_STATUS(CREATE(.groups = 1, .affinity = (void *)KERNEL_HALF), STATUS_ACCESS_VIOLATION);
    CHECK_STATUS(CREATE(.groups = 1, .affinity = (void *)0x1002), STATUS_DATATYPE_MISALIGNMENT);
    CHECK_STATUS(CREATE(.groups = 1, .affinity = pages + 2 * RING3_PAGE - 8),
                 STATUS_ACCESS_VIOLATION);
    CHECK_STATUS(CREATE(.groups = 0xffff, .affinity = (void *)(USER_END - 64)),
                 STATUS_ACCESS_VIOLATION);
}

static NTSTATUS with_group(GROUP_AFFINITY group) { return CREATE(.groups = 1, .affinity = &group); }

TEST_USER(profile_input, processors,
          "groups are those of hal_refusals.affinity_values; masks are checked [PO-16 PO-18 PO-21 "
          "PO-22 PO-23]")
{
    CHECK_STATUS(CREATE(.groups = 0, .affinity = (void *)KERNEL_HALF), STATUS_SUCCESS);
    CHECK_STATUS(CREATE(.groups = 0, .affinity = (void *)1), STATUS_SUCCESS);
    CHECK_STATUS(with_group((GROUP_AFFINITY){ .Mask = 1 }), STATUS_SUCCESS);
    GROUP_AFFINITY two[2] = { { .Mask = 1 }, { .Mask = 0 } };
    CHECK_STATUS(CREATE(.groups = 2, .affinity = two), STATUS_INVALID_PARAMETER);
    two[1].Mask = 1;
    CHECK_STATUS(CREATE(.groups = 2, .affinity = two), STATUS_SUCCESS);
    CHECK_STATUS(create_on(~0ull), STATUS_SUCCESS);
    CHECK_STATUS(create_on(1), STATUS_SUCCESS);
    CHECK_STATUS(create_on(0), STATUS_INVALID_PARAMETER);
    bool full = ring3_cpus() == 64; /* and perhaps not the only group */
    const KAFFINITY inactive[] = { ~0ull, ~0ull - 1, 1ull << 63, 1ull << 63 | 1 };
    for (unsigned i = 0; i < ARRAY_SIZE(inactive) && !full; i++) {
        CHECK_STATUS(with_group((GROUP_AFFINITY){ .Mask = inactive[i] }), STATUS_INVALID_PARAMETER);
        CHECK_STATUS(create_on(inactive[i]), i ? STATUS_INVALID_PARAMETER : STATUS_SUCCESS);
    }
    CHECK_STATUS(with_group((GROUP_AFFINITY){ .Mask = 1, .Group = full ? 4 : 1 }),
                 STATUS_INVALID_PARAMETER);
}

TEST_USER(profile_input, privilege,
          "to profile the user space of all processes needs SeSystemProfilePrivilege [PO-27 PO-28 "
          "PO-30]")
{
    BOOLEAN was = FILL;
    CHECK_EQ(privilege(false), FALSE);
    CHECK_STATUS(CREATE(.process = NULL), STATUS_PRIVILEGE_NOT_HELD);
    CHECK_STATUS(CREATE(.process = NULL, .base = KERNEL_HALF), STATUS_SUCCESS);
    CHECK_EQ(privilege(true), FALSE);
    CHECK_STATUS(CREATE(.process = NULL), STATUS_SUCCESS);
    CHECK_EQ(privilege(false), TRUE);
    CHECK_STATUS(CREATE(.process = NULL), STATUS_PRIVILEGE_NOT_HELD);
    CHECK_STATUS(RtlAdjustPrivilege(20, TRUE, FALSE, &was), STATUS_PRIVILEGE_NOT_HELD);
    CHECK_STATUS(RtlAdjustPrivilege(SE_SYSTEM_PROFILE_PRIVILEGE, TRUE, FALSE, NULL),
                 STATUS_ACCESS_VIOLATION);
    CHECK_STATUS(CREATE(.process = NULL), STATUS_PRIVILEGE_NOT_HELD);
}

void user_profile_restricted(uint64_t unused)
{
    BOOLEAN was;
    CHECK_STATUS(CREATE(.base = KERNEL_HALF), STATUS_ACCESS_DENIED);
    CHECK_STATUS(CREATE(.base = KERNEL_HALF, .process = NULL), STATUS_ACCESS_DENIED);
    CHECK_STATUS(CREATE(.base = USER_END - 1, .size = 2), STATUS_ACCESS_DENIED);
    CHECK_STATUS(CREATE(.base = USER_END - 1, .size = 1), STATUS_SUCCESS);
    CHECK_STATUS(CREATE(.log2 = 4), STATUS_SUCCESS);
    CHECK_STATUS(RtlAdjustPrivilege(SE_SYSTEM_PROFILE_PRIVILEGE, TRUE, FALSE, &was),
                 STATUS_PRIVILEGE_NOT_HELD);
}

void user_profile_left(uint64_t unused)
{
    CHECK_STATUS(ZwStartProfile(made(buffer, 4)), STATUS_SUCCESS);
}

TEST_USER(
    profile_input, start_stop,
    "start and stop in every order; only the last close stops the object [PO-35 PO-36 PO-37 PO-38 "
    "PO-48]")
{
    HANDLE profile = made(buffer, 4);
    CHECK_STATUS(ZwStopProfile(profile), STATUS_PROFILING_NOT_STARTED);
    for (unsigned i = 0; i < 3; i++) {
        CHECK_STATUS(ZwStartProfile(profile), STATUS_SUCCESS);
        CHECK_STATUS(ZwStartProfile(profile), STATUS_PROFILING_NOT_STOPPED);
        CHECK_STATUS(ZwStopProfile(profile), STATUS_SUCCESS);
        CHECK_STATUS(ZwStopProfile(profile), STATUS_PROFILING_NOT_STARTED);
    }
    HANDLE last = ring3_limited(profile, PROFILE_CONTROL);
    CHECK_STATUS(ZwStartProfile(profile), STATUS_SUCCESS);
    CHECK_STATUS(NtClose(profile), STATUS_SUCCESS);
    CHECK_STATUS(ZwStartProfile(profile), STATUS_INVALID_HANDLE);
    CHECK_STATUS(ZwStartProfile(last),
                 STATUS_PROFILING_NOT_STOPPED); /* it was not the last handle */
    CHECK_STATUS(ZwStopProfile(last), STATUS_SUCCESS);
    CHECK_STATUS(NtClose(last), STATUS_SUCCESS);
}

#define LIMIT 64 /* kernel/profiling/profile.h */

TEST_USER(
    profile_input, limit,
    "a start beyond the limit is refused until another object is stopped or closed [PO-41 PO-42 "
    "PO-48]")
{
    HANDLE profiles[LIMIT + 1];
    for (unsigned i = 0; i <= LIMIT; i++)
        profiles[i] = made(buffer, 4);
    for (unsigned i = 0; i < LIMIT; i++)
        CHECK_STATUS(ZwStartProfile(profiles[i]), STATUS_SUCCESS);
    CHECK_STATUS(ZwStartProfile(profiles[LIMIT]), STATUS_PROFILING_AT_LIMIT);
    CHECK_STATUS(ZwStopProfile(profiles[LIMIT]), STATUS_PROFILING_NOT_STARTED);
    CHECK_STATUS(ZwStopProfile(profiles[7]), STATUS_SUCCESS);
    CHECK_STATUS(ZwStartProfile(profiles[LIMIT]), STATUS_SUCCESS);
    CHECK_STATUS(ZwStartProfile(profiles[7]), STATUS_PROFILING_AT_LIMIT);
    CHECK_STATUS(NtClose(profiles[LIMIT / 2]), STATUS_SUCCESS);
    CHECK_STATUS(ZwStartProfile(profiles[7]), STATUS_SUCCESS);
}

TEST_USER(
    profile_input, buffer_gone,
    "a start is refused if the buffer is unmapped or read-only; a buffer unmapped later is still "
    "counted in [PO-43]")
{
    uint8_t *pages = ring3_pages(1);
    HANDLE profile = pages ? made(pages, 4) : NULL;
    REQUIRE(profile != NULL);
    ring3_protect(pages, PAGE_READONLY);
    CHECK_STATUS(ZwStartProfile(profile), STATUS_ACCESS_VIOLATION);
    CHECK_STATUS(ZwStopProfile(profile), STATUS_PROFILING_NOT_STARTED);
    ring3_protect(pages, PAGE_READWRITE);
    CHECK_STATUS(ZwStartProfile(profile), STATUS_SUCCESS);
    ring3_free(pages);
    CHECK_STATUS(ZwStopProfile(profile), STATUS_SUCCESS);
    CHECK_STATUS(ZwStartProfile(profile), STATUS_ACCESS_VIOLATION);
}

static ULONG interval_of(KPROFILE_SOURCE source)
{
    ULONG interval = 0xa5a5a5a5;
    CHECK_STATUS(ZwQueryIntervalProfile(source, &interval), STATUS_SUCCESS);
    return interval;
}

TEST_USER(
    profile_input, intervals,
    "intervals can be queried without the privilege and set with it; bad pointers are refused "
    "[PO-63 PO-64 PO-65 PO-66 PO-67 PO-68 PO-69 PO-70 KP-21 KP-25]")
{
    static const ULONG any[] = { 0, 1, 4096, 0xffffffff };
    CHECK_EQ(privilege(false), FALSE);
    CHECK_EQ(interval_of(ProfileTime), 10000);
    CHECK_EQ(interval_of(NO_SOURCE), 0);
    CHECK_EQ(interval_of(ProfileAlignmentFixup), 0);
    CHECK_STATUS(ZwQueryIntervalProfile(ProfileTime, NULL), STATUS_ACCESS_VIOLATION);
    CHECK_STATUS(ZwQueryIntervalProfile(ProfileTime, (PULONG)KERNEL_HALF), STATUS_ACCESS_VIOLATION);
    CHECK_STATUS(ZwQueryIntervalProfile(ProfileTime, (PULONG)CODE), STATUS_ACCESS_VIOLATION);
    CHECK_STATUS(ZwQueryIntervalProfile(ProfileTime, (PULONG)((uint64_t)buffer + 2)),
                 STATUS_DATATYPE_MISALIGNMENT);
    CHECK_STATUS(ZwSetIntervalProfile(20000, ProfileTime), STATUS_PRIVILEGE_NOT_HELD);
    CHECK_STATUS(ZwSetIntervalProfile(20000, ProfileAlignmentFixup), STATUS_PRIVILEGE_NOT_HELD);
    CHECK_EQ(interval_of(ProfileTime), 10000);
    CHECK_EQ(interval_of(ProfileAlignmentFixup), 0);
    privilege(true);
    for (unsigned i = 0; i < ARRAY_SIZE(any); i++) {
        CHECK_STATUS(ZwSetIntervalProfile(any[i], NO_SOURCE), STATUS_SUCCESS);
        CHECK_STATUS(ZwSetIntervalProfile(any[i], (KPROFILE_SOURCE)0xffffffff), STATUS_SUCCESS);
        CHECK_STATUS(ZwSetIntervalProfile(any[i], ProfileAlignmentFixup), STATUS_SUCCESS);
        CHECK_EQ(interval_of(ProfileAlignmentFixup), any[i]);
        CHECK_EQ(interval_of(NO_SOURCE), 0);
    }
    CHECK_STATUS(ZwSetIntervalProfile(0, ProfileAlignmentFixup), STATUS_SUCCESS);
    CHECK_STATUS(ZwSetIntervalProfile(1220, ProfileTime), STATUS_SUCCESS);
    CHECK_EQ(interval_of(ProfileTime), 1221);
    CHECK_STATUS(ZwSetIntervalProfile(10000, ProfileTime), STATUS_SUCCESS);
    CHECK_EQ(interval_of(ProfileTime), 10000);
}
