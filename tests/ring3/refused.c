/* SPDX-License-Identifier: MIT */
/* Services that are refused, or whose answer has no place. */
#include "tests/ring3/helpers.h"
#include "tests/ring3/services.h"

NTSTATUS ZwCreateFile(PHANDLE, ACCESS_MASK, POBJECT_ATTRIBUTES, PVOID, PLARGE_INTEGER, ULONG, ULONG,
                      ULONG, ULONG, PVOID, ULONG);
NTSTATUS load_image(PCSTR, SIZE_T, PVOID *, SIZE_T *);

static const char absent[] = "absent.dll";

TEST_USER(ring3, refused_keeps, "a call that is refused does not write its answer")
{
    LARGE_INTEGER due = { .QuadPart = -1 };
    PVOID base = (PVOID)(uint64_t)ring3_run, image = base;
    SIZE_T size = 1;
    BOOLEAN state = FILL;
    ULONG count = FILL;
    CHECK_STATUS(ZwSetTimer(NULL, &due, NULL, NULL, FALSE, 0, &state), STATUS_INVALID_HANDLE);
    CHECK_EQ(state, FILL);
    CHECK_STATUS(ZwCancelTimer(NULL, &state), STATUS_INVALID_HANDLE);
    CHECK_EQ(state, FILL);
    CHECK_STATUS(ZwSuspendThread(NULL, &count), STATUS_INVALID_HANDLE);
    CHECK_EQ(count, FILL);
    CHECK_STATUS(ZwResumeThread(NULL, &count), STATUS_INVALID_HANDLE);
    CHECK_EQ(count, FILL);
    CHECK_STATUS(ZwProtectVirtualMemory(NtCurrentProcess(), &base, &size, 0, &count),
                 STATUS_INVALID_PAGE_PROTECTION);
    CHECK_EQ(count, FILL);
    CHECK_STATUS(load_image(absent, sizeof absent - 1, &image, &size), STATUS_DLL_NOT_FOUND);
    CHECK(image == base);
    CHECK_EQ(size, 1);
}

TEST_USER(ring3, refused_place,
          "a call whose answer cannot be written is refused for that reason before any other one")
{
    LARGE_INTEGER due = { .QuadPart = -1 };
    PVOID base = (PVOID)(uint64_t)ring3_run;
    SIZE_T size = 1;
    WCHAR text[] = u"\\Device\\Absent";
    UNICODE_STRING name = { sizeof text - sizeof text[0], sizeof text, text };
    OBJECT_ATTRIBUTES attributes = { .Length = sizeof attributes, .ObjectName = &name };
    for (unsigned i = 1; i < RING3_BAD_ADDRESSES; i++) { /* 0: some need no answer */
        PVOID bad = (PVOID)ring3_bad_addresses[i];
        CHECK_STATUS(ZwSetTimer(NULL, &due, NULL, NULL, FALSE, 0, bad), STATUS_ACCESS_VIOLATION);
        CHECK_STATUS(ZwCancelTimer(NULL, bad), STATUS_ACCESS_VIOLATION);
        CHECK_STATUS(ZwSuspendThread(NULL, bad), STATUS_ACCESS_VIOLATION);
        CHECK_STATUS(ZwResumeThread(NULL, bad), STATUS_ACCESS_VIOLATION);
        CHECK_STATUS(ZwProtectVirtualMemory(NtCurrentProcess(), &base, &size, 0, bad),
                     STATUS_ACCESS_VIOLATION);
        CHECK_STATUS(ZwCreateEvent(bad, 0, (POBJECT_ATTRIBUTES)absent, 0, FALSE),
                     STATUS_ACCESS_VIOLATION);
        CHECK_STATUS(ZwCreateFile(bad, 0, &attributes, NULL, NULL, 0, 0, 0, 0, NULL, 0),
                     STATUS_ACCESS_VIOLATION);
        CHECK_STATUS(load_image(absent, sizeof absent - 1, bad, &size), STATUS_ACCESS_VIOLATION);
    }
}
