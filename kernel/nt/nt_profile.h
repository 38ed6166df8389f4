/* SPDX-License-Identifier: MIT */
/* The part of nt.h that concerns profiling by interrupts: KPROFILE_SOURCE and the HAL's information
 * classes. Sources: the published enumerations; structures as known from ReactOS and Geoff
 * Chappell's studies. */
#pragma once
#include "kernel/nt/nt.h"

/* Sources of the profile interrupt. Numbers above ProfileMaximum are the vendor's. */
/* clang-format off */
typedef enum _KPROFILE_SOURCE {
    ProfileTime, ProfileAlignmentFixup, ProfileTotalIssues, ProfilePipelineDry, ProfileLoadInstructions,
    ProfilePipelineFrozen, ProfileBranchInstructions, ProfileTotalNonissues, ProfileDcacheMisses,
    ProfileIcacheMisses, ProfileCacheMisses, ProfileBranchMispredictions, ProfileStoreInstructions,
    ProfileFpInstructions, ProfileIntegerInstructions, Profile2Issue, Profile3Issue, Profile4Issue,
    ProfileSpecialInstructions, ProfileTotalCycles, ProfileIcacheIssues, ProfileDcacheAccesses,
    ProfileMemoryBarrierCycles, ProfileLoadLinkedIssues, ProfileMaximum
} KPROFILE_SOURCE, *PKPROFILE_SOURCE;
/* clang-format on */
ABI_SIZE(KPROFILE_SOURCE, 4);
_Static_assert(ProfileTotalCycles == 0x13 && ProfileMaximum == 0x18, "KPROFILE_SOURCE");

typedef struct trap_frame *PKTRAP_FRAME; /* NT: the layout of kernel/trap.h */

/* Ours, for sources whose counters events carry: with this bit they count ring 3 only, without it
 * both rings, as on Windows. */
#define PROFILE_SOURCE_RING3 0x80000000u
/* A driver's own handler of the counters' interrupt, as drivers call the type. */
typedef VOID (*PMIHANDLER)(PKTRAP_FRAME TrapFrame);

typedef struct _HAL_PMC_COUNTERS *PMC_HANDLE; /* opaque, on Windows too */

/* As in the newest kit; from 44 on it differs from Windows 10 1903. */
typedef enum _HAL_QUERY_INFORMATION_CLASS {
    HalProfileSourceInformation = 1,
    HalQueryProfileSourceList = 20,
    HalQueryProfileIsTimerBasedProfiling = 44,
    HalQueryProfileNumberOfCounters = 45,
    HalQueryProfileCorruptionStatus = 52,
    HalQueryProfileCounterOwnership = 53,
} HAL_QUERY_INFORMATION_CLASS;

typedef enum _HAL_SET_INFORMATION_CLASS {
    HalProfileSourceInterval = 0,
    HalProfileSourceInterruptHandler = 1,
    HalProfileSourceAdd = 20,
    HalProfileSourceRemove = 21,
} HAL_SET_INFORMATION_CLASS;

typedef struct _HAL_PROFILE_SOURCE_INFORMATION {
    KPROFILE_SOURCE Source;
    BOOLEAN Supported;
    ULONG Interval;
} HAL_PROFILE_SOURCE_INFORMATION, *PHAL_PROFILE_SOURCE_INFORMATION;
ABI_SIZE(HAL_PROFILE_SOURCE_INFORMATION, 0x0C);
ABI_FIELD(HAL_PROFILE_SOURCE_INFORMATION, Interval, 8);

typedef struct _HAL_PROFILE_SOURCE_INFORMATION_EX {
    KPROFILE_SOURCE Source;
    BOOLEAN Supported;
    ULONG_PTR Interval;
    ULONG_PTR DefInterval;
    ULONG_PTR MaxInterval;
    ULONG_PTR MinInterval;
} HAL_PROFILE_SOURCE_INFORMATION_EX, *PHAL_PROFILE_SOURCE_INFORMATION_EX;
ABI_SIZE(HAL_PROFILE_SOURCE_INFORMATION_EX, 0x28);
ABI_FIELD(HAL_PROFILE_SOURCE_INFORMATION_EX, MinInterval, 0x20);

typedef struct _HAL_PROFILE_SOURCE_INTERVAL {
    KPROFILE_SOURCE Source;
    ULONG_PTR Interval;
} HAL_PROFILE_SOURCE_INTERVAL, *PHAL_PROFILE_SOURCE_INTERVAL;
ABI_SIZE(HAL_PROFILE_SOURCE_INTERVAL, 0x10);

typedef struct _HAL_PROFILE_SOURCE_LIST {
    KPROFILE_SOURCE Source;
    PWSTR Description;
} HAL_PROFILE_SOURCE_LIST, *PHAL_PROFILE_SOURCE_LIST;
ABI_SIZE(HAL_PROFILE_SOURCE_LIST, 0x10);

/* NT: Windows has the class; its structure is not published, and this one is ours. */
typedef struct _HAL_PROFILE_SOURCE_ADD {
    KPROFILE_SOURCE Source; /* out */
    ULONG InitialInterval;
    USHORT EventSelect;
    UCHAR UnitSelect, CMask, CInv, AnyThread, EdgeDetect, Precise;
    WCHAR Description[33];
} HAL_PROFILE_SOURCE_ADD, *PHAL_PROFILE_SOURCE_ADD;

/* NT: as above. The counters of a processor that somebody else changed while they counted for us:
 * bit n, bit 32 + n for fixed ones. */
typedef struct _HAL_PROFILE_CORRUPTION_STATUS {
    ULONG ProcessorNumber; /* in */
    ULONG Reserved;
    ULONG64 Counters; /* out */
} HAL_PROFILE_CORRUPTION_STATUS, *PHAL_PROFILE_CORRUPTION_STATUS;

#include "kernel/nt/nt_pmc_owner.h"
