/* SPDX-License-Identifier: MIT */
/* What can be asked of objects to wait for, as in phnt's headers. Include nt.h or winternl.h first.
 */
#pragma once

typedef enum _EVENT_TYPE { NotificationEvent, SynchronizationEvent } EVENT_TYPE;
typedef enum _WAIT_TYPE { WaitAll, WaitAny } WAIT_TYPE;

typedef enum _EVENT_INFORMATION_CLASS { EventBasicInformation } EVENT_INFORMATION_CLASS;
typedef struct _EVENT_BASIC_INFORMATION {
    EVENT_TYPE EventType;
    LONG EventState;
} EVENT_BASIC_INFORMATION;
ABI_SIZE(EVENT_BASIC_INFORMATION, 8);

typedef enum _SEMAPHORE_INFORMATION_CLASS { SemaphoreBasicInformation } SEMAPHORE_INFORMATION_CLASS;
typedef struct _SEMAPHORE_BASIC_INFORMATION {
    LONG CurrentCount, MaximumCount;
} SEMAPHORE_BASIC_INFORMATION;
ABI_SIZE(SEMAPHORE_BASIC_INFORMATION, 8);

typedef enum _TIMER_INFORMATION_CLASS { TimerBasicInformation } TIMER_INFORMATION_CLASS;
typedef struct _TIMER_BASIC_INFORMATION {
    LARGE_INTEGER RemainingTime; /* 100 ns; negative: it has come */
    BOOLEAN TimerState;
} TIMER_BASIC_INFORMATION;
ABI_SIZE(TIMER_BASIC_INFORMATION, 0x10);

typedef enum _MUTANT_INFORMATION_CLASS {
    MutantBasicInformation,
    MutantOwnerInformation
} MUTANT_INFORMATION_CLASS;
typedef struct _MUTANT_BASIC_INFORMATION {
    LONG CurrentCount;
    BOOLEAN OwnedByCaller, AbandonedState;
} MUTANT_BASIC_INFORMATION;
ABI_SIZE(MUTANT_BASIC_INFORMATION, 8);
typedef struct _MUTANT_OWNER_INFORMATION {
    CLIENT_ID ClientId;
} MUTANT_OWNER_INFORMATION;
ABI_SIZE(MUTANT_OWNER_INFORMATION, 0x10);
