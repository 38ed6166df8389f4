/* SPDX-License-Identifier: MIT */
/* What several ring-3 tests need. */
#include "tests/ring3/helpers.h"

const uint64_t ring3_bad_addresses[RING3_BAD_ADDRESSES] = {
    0x0000000000000000, 0x0000000000000004, 0x0000000000000008, 0x0000000000000ffc,
    0x0000000000001000, 0x0000000f00000000, 0x00007ffffffeff00, 0x00007fffffff0000,
    0x00007ffffffffffc, 0x0000800000000000, 0x0123456789abcdec, 0x8000000000000000,
    0xffff7ffffffffffc, 0xffff800000000000, 0xffff800000100000, 0xffffff0000000000,
    0xffffffff80000000, 0xffffffff81000000, 0xfffffffffffffe40, 0xfffffffffffffff8,
    0xfffffffffffffffc
};

HANDLE ring3_start(LPTHREAD_START_ROUTINE function, void *argument)
{
    HANDLE thread = CreateThread(NULL, 0, function, argument, 0, NULL);
    CHECK(thread != NULL);
    return thread;
}

DWORD ring3_end(HANDLE thread)
{
    DWORD status = (DWORD)STATUS_UNSUCCESSFUL;
    CHECK_EQ(WaitForSingleObject(thread, INFINITE), WAIT_OBJECT_0);
    CHECK(GetExitCodeThread(thread, &status));
    CHECK(CloseHandle(thread));
    return status;
}

NTSTATUS ring3_run(LPTHREAD_START_ROUTINE function, void *argument)
{
    return (NTSTATUS)ring3_end(ring3_start(function, argument));
}

bool ring3_wait(const uint64_t *where, uint64_t value)
{
    for (unsigned i = 0; i < 2000; i++) {
        if (__atomic_load_n(where, __ATOMIC_ACQUIRE) == value)
            return true;
        Sleep(1);
    }
    return CHECK_EQ(__atomic_load_n(where, __ATOMIC_ACQUIRE), value);
}

uint8_t *ring3_pages(unsigned n)
{
    PVOID base = NULL;
    SIZE_T size = n * RING3_PAGE;
    return CHECK_STATUS(NtAllocateVirtualMemory(NtCurrentProcess(), &base, 0, &size,
                                                MEM_COMMIT | MEM_RESERVE, PAGE_READWRITE),
                        STATUS_SUCCESS)
               ? base
               : NULL;
}

void ring3_protect(void *page, ULONG protect)
{
    PVOID base = page;
    SIZE_T size = 1;
    ULONG old;
    CHECK_OK(NtProtectVirtualMemory(NtCurrentProcess(), &base, &size, protect, &old));
}

void ring3_free(void *pages)
{
    PVOID base = pages;
    SIZE_T size = 0;
    CHECK_OK(NtFreeVirtualMemory(NtCurrentProcess(), &base, &size, MEM_RELEASE));
}

uint64_t ring3_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

unsigned ring3_cpus(void)
{
    SYSTEM_INFO system;
    GetSystemInfo(&system);
    return system.dwNumberOfProcessors;
}

HANDLE ring3_limited(HANDLE of, ACCESS_MASK access)
{
    HANDLE handle = NULL;
    CHECK_OK(NtDuplicateObject(NtCurrentProcess(), of, NtCurrentProcess(), &handle, access, 0, 0));
    return handle;
}

HANDLE ring3_handle(ACCESS_MASK access) { return ring3_limited(NtCurrentThread(), access); }

HANDLE ring3_enable(ULONG flags, ULONG64 mask)
{
    HANDLE profile = NULL;
    CHECK_EQ(EnableThreadProfiling(GetCurrentThread(), flags, mask, &profile), ERROR_SUCCESS);
    return profile;
}

void ring3_disable(HANDLE profile) { CHECK_EQ(DisableThreadProfiling(profile), ERROR_SUCCESS); }

void ring3_query(HANDLE thread, BOOLEAN wanted)
{
    BOOLEAN on = FILL;
    CHECK_EQ(QueryThreadProfiling(thread, &on), ERROR_SUCCESS);
    CHECK_EQ(on, wanted);
}

bool ring3_profiled(void)
{
    BOOLEAN enabled = FILL;
    CHECK_STATUS(RtlQueryThreadProfiling(NtCurrentThread(), &enabled), STATUS_SUCCESS);
    CHECK(enabled == TRUE || enabled == FALSE);
    return enabled == TRUE;
}

void ring3_data(PERFORMANCE_DATA *data)
{
    memset(data, FILL, sizeof *data);
    data->Size = sizeof *data;
    data->Version = PERFORMANCE_DATA_VERSION;
}

bool ring3_read(HANDLE profile, DWORD flags, PERFORMANCE_DATA *data)
{
    ring3_data(data);
    return CHECK_EQ(ReadThreadProfilingData(profile, flags, data), ERROR_SUCCESS);
}

uint64_t ring3_reasons(HANDLE profile)
{
    PERFORMANCE_DATA data;
    ring3_read(profile, READ_THREAD_PROFILING_FLAG_DISPATCHING, &data);
    return data.WaitReasonBitMap;
}

NTSTATUS ring3_set(ULONG64 mask, ULONG flags, ULONG enable, void *block)
{
    THREAD_PROFILING_INFORMATION info = { mask, flags, enable, block };
    return NtSetInformationThread(NtCurrentThread(), ThreadCounterProfiling, &info, sizeof info);
}

bool ring3_all(const void *bytes, size_t size, uint8_t value)
{
    const uint8_t *p = bytes;
    for (size_t i = 0; i < size; i++)
        if (p[i] != value)
            return false;
    return true;
}
