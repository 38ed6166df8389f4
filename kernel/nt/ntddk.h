/* SPDX-License-Identifier: MIT */
/* The part of ntddk.h that only drivers get in Windows. It is not in nt.h, because some known
 * programs that include windows.h declare these types themselves. */
#pragma once
#include "kernel/nt/nt.h"

typedef struct _HARDWARE_COUNTER {
    HARDWARE_COUNTER_TYPE Type;
    ULONG Reserved;
    ULONG64 Index; /* RDPMC selector; for an exact count LFENCE stands before each RDPMC */
} HARDWARE_COUNTER, *PHARDWARE_COUNTER;
ABI_SIZE(HARDWARE_COUNTER, 0x10);
ABI_FIELD(HARDWARE_COUNTER, Index, 8);
