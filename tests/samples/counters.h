/* SPDX-License-Identifier: MIT */
/* What counters.c, a driver, and client.cpp, its program, say to each other. */
#pragma once

#define COUNTERS_MAX 4
#define IOCTL_COUNTERS_LIST CTL_CODE(FILE_DEVICE_UNKNOWN, 0x800, METHOD_BUFFERED, FILE_READ_ACCESS)
#define IOCTL_COUNTERS_READ                                                                        \
    CTL_CODE(FILE_DEVICE_UNKNOWN, 0x801, METHOD_OUT_DIRECT, FILE_READ_ACCESS)

typedef struct _COUNTERS_LIST {
    ULONG Count;
    struct {
        ULONG Selector; /* of RDPMC */
        CHAR Name[28];
    } Counters[COUNTERS_MAX];
} COUNTERS_LIST;

/* What the counters of one processor show. */
typedef struct _COUNTERS_VALUES {
    ULONG Processor, Count;
    ULONGLONG Values[COUNTERS_MAX];
} COUNTERS_VALUES;
