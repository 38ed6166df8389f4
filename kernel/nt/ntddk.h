/* SPDX-License-Identifier: MIT */
/* What in Windows only drivers get, from ntddk.h. Apart from nt.h, because a program that includes
 * windows.h may declare these for itself, and known ones do. */
#pragma once
#include "kernel/nt/nt.h"

typedef struct _HARDWARE_COUNTER {
    HARDWARE_COUNTER_TYPE Type;
    ULONG Reserved;
    ULONG64 Index; /* RDPMC selector */
} HARDWARE_COUNTER, *PHARDWARE_COUNTER;
ABI_SIZE(HARDWARE_COUNTER, 0x10);
ABI_FIELD(HARDWARE_COUNTER, Index, 8);
