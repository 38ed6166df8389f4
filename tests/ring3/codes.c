/* SPDX-License-Identifier: MIT */
/* Statuses as Win32 functions return them. Source: ntstatus.h, winerror.h. */
#include "tests/ring3/helpers.h"

static const struct {
    NTSTATUS status;
    DWORD win32;
} statuses[] = {
    { STATUS_SUCCESS, 0 },
    { STATUS_DATATYPE_MISALIGNMENT, 998 },
    { STATUS_BUFFER_OVERFLOW, 234 },
    { STATUS_DEVICE_BUSY, 170 },
    { STATUS_UNSUCCESSFUL, 31 },
    { STATUS_NOT_IMPLEMENTED, 1 },
    { STATUS_INVALID_INFO_CLASS, 87 },
    { STATUS_INFO_LENGTH_MISMATCH, 24 },
    { STATUS_ACCESS_VIOLATION, 998 },
    { STATUS_INVALID_HANDLE, 6 },
    { STATUS_INVALID_PARAMETER, 87 },
    { STATUS_NO_MEMORY, 8 },
    { STATUS_ACCESS_DENIED, 5 },
    { STATUS_BUFFER_TOO_SMALL, 122 },
    { STATUS_OBJECT_TYPE_MISMATCH, 6 },
    { STATUS_OBJECT_NAME_COLLISION, 183 },
    { STATUS_DATA_ERROR, 23 },
    { STATUS_PRIVILEGE_NOT_HELD, 1314 },
    { STATUS_INSUFFICIENT_RESOURCES, 1450 },
    { STATUS_NOT_SUPPORTED, 50 },
    { STATUS_INVALID_PARAMETER_2, 87 },
    { STATUS_INVALID_PARAMETER_3, 87 },
    { STATUS_INVALID_PARAMETER_7, 87 },
    { STATUS_INVALID_BUFFER_SIZE, 1784 },
    { STATUS_WMI_INSTANCE_NOT_FOUND, 4201 },
    { STATUS_WMI_ALREADY_DISABLED, 4212 },
    { STATUS_WMI_ALREADY_ENABLED, 4206 },
};

TEST_USER(codes, statuses,
          "statuses have the Win32 codes that Windows makes of them [TP-35 TP-36 TP-37 TP-39 TP-47 "
          "TP-49 TP-54]")
{
    for (unsigned i = 0; i < ARRAY_SIZE(statuses); i++)
        CHECK_EQ(RtlNtStatusToDosError(statuses[i].status), statuses[i].win32);
}
