/* SPDX-License-Identifier: MIT */
/* Numbers that programs and Windows' headers have in common. The kernel and its tests share one
 * spelling of them, so only a list of numbers shows that the spelling means what it means on
 * Windows.
 *
 * Source: ntstatus.h, winerror.h, winnt.h, wdm.h. */
#include "tests/ring3/helpers.h"

static const struct {
    uint32_t status, number;
    DWORD win32; /* ~0: none of it comes out of a Win32 function here */
} statuses[] = {
    { (uint32_t)STATUS_SUCCESS, 0x00000000, 0 },
    { (uint32_t)STATUS_TIMEOUT, 0x00000102, ~0u },
    { (uint32_t)STATUS_DATATYPE_MISALIGNMENT, 0x80000002, 998 },
    { (uint32_t)STATUS_BUFFER_OVERFLOW, 0x80000005, 234 },
    { (uint32_t)STATUS_DEVICE_BUSY, 0x80000011, 170 },
    { (uint32_t)STATUS_UNSUCCESSFUL, 0xc0000001, 31 },
    { (uint32_t)STATUS_NOT_IMPLEMENTED, 0xc0000002, 1 },
    { (uint32_t)STATUS_INVALID_INFO_CLASS, 0xc0000003, 87 },
    { (uint32_t)STATUS_INFO_LENGTH_MISMATCH, 0xc0000004, 24 },
    { (uint32_t)STATUS_ACCESS_VIOLATION, 0xc0000005, 998 },
    { (uint32_t)STATUS_INVALID_HANDLE, 0xc0000008, 6 },
    { (uint32_t)STATUS_INVALID_PARAMETER, 0xc000000d, 87 },
    { (uint32_t)STATUS_NO_MEMORY, 0xc0000017, 8 },
    { (uint32_t)STATUS_ACCESS_DENIED, 0xc0000022, 5 },
    { (uint32_t)STATUS_BUFFER_TOO_SMALL, 0xc0000023, 122 },
    { (uint32_t)STATUS_OBJECT_TYPE_MISMATCH, 0xc0000024, 6 },
    { (uint32_t)STATUS_OBJECT_NAME_COLLISION, 0xc0000035, 183 },
    { (uint32_t)STATUS_DATA_ERROR, 0xc000003e, 23 },
    { (uint32_t)STATUS_PRIVILEGE_NOT_HELD, 0xc0000061, 1314 },
    { (uint32_t)STATUS_PRIVILEGED_INSTRUCTION, 0xc0000096, ~0u },
    { (uint32_t)STATUS_INSUFFICIENT_RESOURCES, 0xc000009a, 1450 },
    { (uint32_t)STATUS_PROFILING_NOT_STARTED, 0xc00000b7, ~0u },
    { (uint32_t)STATUS_PROFILING_NOT_STOPPED, 0xc00000b8, ~0u },
    { (uint32_t)STATUS_NOT_SUPPORTED, 0xc00000bb, 50 },
    { (uint32_t)STATUS_PROFILING_AT_LIMIT, 0xc00000d3, ~0u },
    { (uint32_t)STATUS_INVALID_PARAMETER_2, 0xc00000f0, 87 },
    { (uint32_t)STATUS_INVALID_PARAMETER_3, 0xc00000f1, 87 },
    { (uint32_t)STATUS_INVALID_PARAMETER_7, 0xc00000f5, 87 },
    { (uint32_t)STATUS_INVALID_BUFFER_SIZE, 0xc0000206, 1784 },
    { (uint32_t)STATUS_WMI_INSTANCE_NOT_FOUND, 0xc0000296, 4201 },
    { (uint32_t)STATUS_WMI_ALREADY_DISABLED, 0xc0000302, 4212 },
    { (uint32_t)STATUS_WMI_ALREADY_ENABLED, 0xc0000303, 4206 },
};

TEST_USER(codes, statuses,
          "statuses have Windows' numbers, and the Win32 codes that Windows makes of them "
          "[TP-35 TP-36 TP-37 TP-39 TP-47 TP-49 TP-54]")
{
    for (unsigned i = 0; i < ARRAY_SIZE(statuses); i++) {
        CHECK_EQ(statuses[i].status, statuses[i].number);
        if (statuses[i].win32 != ~0u)
            CHECK_EQ(RtlNtStatusToDosError((NTSTATUS)statuses[i].number), statuses[i].win32);
    }
    CHECK_EQ(ERROR_INVALID_PARAMETER, 87);
    CHECK_EQ(ERROR_NOT_SUPPORTED, 50);
    CHECK_EQ(ERROR_INVALID_HANDLE, 6);
    CHECK_EQ(ERROR_ACCESS_DENIED, 5);
    CHECK_EQ(ERROR_WMI_ALREADY_DISABLED, 4212);
    CHECK_EQ(ERROR_WMI_ALREADY_ENABLED, 4206);
    CHECK_EQ(ERROR_INVALID_USER_BUFFER, 1784);
}

TEST_USER(codes, profiling,
          "flags, versions, classes and wait reasons of thread profiling have Windows' numbers "
          "[TP-36 TP-55 TP-58 TP-64 TP-65 TP-86 TP-94]")
{
    CHECK_EQ(THREAD_PROFILING_FLAG_DISPATCH, 1);
    CHECK_EQ(THREAD_PROFILING_FLAG_HARDWARE_COUNTERS, 2);
    CHECK_EQ(READ_THREAD_PROFILING_FLAG_DISPATCHING, 1);
    CHECK_EQ(READ_THREAD_PROFILING_FLAG_HARDWARE_COUNTERS, 2);
    CHECK_EQ(PERFORMANCE_DATA_VERSION, 1);
    CHECK_EQ(THREAD_PERFORMANCE_DATA_VERSION, 1);
    CHECK_EQ(MAX_HW_COUNTERS, 16);
    CHECK_EQ(PMCCounter, 0);
    CHECK_EQ(ThreadCounterProfiling, 32);
    CHECK_EQ(Executive, 0);
    CHECK_EQ(DelayExecution, 4);
    CHECK_EQ(UserRequest, 6);
    CHECK_EQ(WrQuantumEnd, 30);
    CHECK_EQ(THREAD_SET_INFORMATION, 0x20);
    CHECK_EQ(THREAD_QUERY_INFORMATION, 0x40);
}
