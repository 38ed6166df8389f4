/* SPDX-License-Identifier: MIT */
/* ntddk.h for DRIVER=file.c: mingw-w64's, but with the hardware counter resources of Windows 10 in
 * place of those of Windows 7, and with what else counter drivers use of the newer kit. */
#ifndef NTPMU_NTDDK_H
#define NTPMU_NTDDK_H

#define _PHYSICAL_COUNTER_RESOURCE_DESCRIPTOR_TYPE _OLD_RESOURCE_TYPE
#define PHYSICAL_COUNTER_RESOURCE_DESCRIPTOR_TYPE OLD_RESOURCE_TYPE
#define ResourceTypeSingle OldTypeSingle
#define ResourceTypeRange OldTypeRange
#define ResourceTypeExtendedCounterConfiguration OldTypeExtended
#define ResourceTypeOverflow OldTypeOverflow
#define ResourceTypeMax OldTypeMax
#define _PHYSICAL_COUNTER_RESOURCE_DESCRIPTOR _OLD_RESOURCE
#define PHYSICAL_COUNTER_RESOURCE_DESCRIPTOR OLD_RESOURCE
#define PPHYSICAL_COUNTER_RESOURCE_DESCRIPTOR POLD_RESOURCE
#define _PHYSICAL_COUNTER_RESOURCE_LIST _OLD_RESOURCES
#define PHYSICAL_COUNTER_RESOURCE_LIST OLD_RESOURCES
#define PPHYSICAL_COUNTER_RESOURCE_LIST POLD_RESOURCES
#define HalAllocateHardwareCounters OldHalAllocateHardwareCounters
#include_next <ntddk.h>
#undef _PHYSICAL_COUNTER_RESOURCE_DESCRIPTOR_TYPE
#undef PHYSICAL_COUNTER_RESOURCE_DESCRIPTOR_TYPE
#undef ResourceTypeSingle
#undef ResourceTypeRange
#undef ResourceTypeExtendedCounterConfiguration
#undef ResourceTypeOverflow
#undef ResourceTypeMax
#undef _PHYSICAL_COUNTER_RESOURCE_DESCRIPTOR
#undef PHYSICAL_COUNTER_RESOURCE_DESCRIPTOR
#undef PPHYSICAL_COUNTER_RESOURCE_DESCRIPTOR
#undef _PHYSICAL_COUNTER_RESOURCE_LIST
#undef PHYSICAL_COUNTER_RESOURCE_LIST
#undef PPHYSICAL_COUNTER_RESOURCE_LIST
#undef HalAllocateHardwareCounters

#define COUNTER_CALLBACK NTAPI
#include "../../nt/nt_counter_resource.h"

#ifdef __cplusplus
extern "C"
#endif
    NTSTATUS NTAPI
    HalAllocateHardwareCounters(PGROUP_AFFINITY GroupAffinty, ULONG GroupCount,
                                PPHYSICAL_COUNTER_RESOURCE_LIST ResourceList,
                                PHANDLE CounterSetHandle);

/* MSVC's intrinsic for RDPMC. mingw-w64 only declares it. It does not wait for the instructions
 * before it: an exact count needs _mm_lfence() before each. */
static __inline__ unsigned __int64 ntpmu_readpmc(unsigned long Counter)
{
    unsigned long low, high;
    __asm__ volatile("rdpmc" : "=a"(low), "=d"(high) : "c"(Counter) : "memory");
    return (unsigned __int64)high << 32 | low;
}
#define __readpmc ntpmu_readpmc

#endif
