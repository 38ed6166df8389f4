/* SPDX-License-Identifier: MIT */
/* Objects to wait for: structures, rights and information classes, spelled and laid out as in
 * wdm.h and winternl.h. Shared by the kernel and ring 3. KOBJECTS is from phnt's headers. */
#pragma once
#include "kernel/nt/nt.h"
#include "kernel/nt/nt_waits.h"

#define STATUS_WAIT_0 ((NTSTATUS)0x00000000)
#define STATUS_ABANDONED ((NTSTATUS)0x00000080)
#define STATUS_ABANDONED_WAIT_0 ((NTSTATUS)0x00000080)
#define STATUS_KERNEL_APC ((NTSTATUS)0x00000100)
#define STATUS_TIMER_RESUME_IGNORED ((NTSTATUS)0x40000025)
#define STATUS_INVALID_PARAMETER_MIX ((NTSTATUS)0xC0000030)
#define STATUS_OBJECT_NAME_INVALID ((NTSTATUS)0xC0000033)
#define STATUS_OBJECT_NAME_NOT_FOUND ((NTSTATUS)0xC0000034)
#define STATUS_OBJECT_NAME_COLLISION ((NTSTATUS)0xC0000035)
#define STATUS_OBJECT_PATH_NOT_FOUND ((NTSTATUS)0xC000003A)
#define STATUS_OBJECT_PATH_SYNTAX_BAD ((NTSTATUS)0xC000003B)
#define STATUS_MUTANT_NOT_OWNED ((NTSTATUS)0xC0000046)
#define STATUS_SEMAPHORE_LIMIT_EXCEEDED ((NTSTATUS)0xC0000047)
#define STATUS_SUSPEND_COUNT_EXCEEDED ((NTSTATUS)0xC000004A)
#define STATUS_MUTANT_LIMIT_EXCEEDED ((NTSTATUS)0xC0000191)

#define MAXIMUM_WAIT_OBJECTS 64

#define GENERIC_READ 0x80000000u
#define GENERIC_WRITE 0x40000000u
#define GENERIC_EXECUTE 0x20000000u
#define GENERIC_ALL 0x10000000u
#define MAXIMUM_ALLOWED 0x02000000u
#define STANDARD_RIGHTS_READ 0x00020000
#define STANDARD_RIGHTS_REQUIRED 0x000F0000
#define EVENT_QUERY_STATE 0x0001
#define EVENT_MODIFY_STATE 0x0002
#define EVENT_ALL_ACCESS 0x001F0003
#define SEMAPHORE_QUERY_STATE 0x0001
#define SEMAPHORE_MODIFY_STATE 0x0002
#define SEMAPHORE_ALL_ACCESS 0x001F0003
#define TIMER_QUERY_STATE 0x0001
#define TIMER_MODIFY_STATE 0x0002
#define TIMER_ALL_ACCESS 0x001F0003
#define MUTANT_QUERY_STATE 0x0001
#define MUTANT_ALL_ACCESS 0x001F0001

typedef struct _LIST_ENTRY {
    struct _LIST_ENTRY *Flink, *Blink;
} LIST_ENTRY, *PLIST_ENTRY;

typedef LONG KPRIORITY;
typedef CHAR KPROCESSOR_MODE;
typedef enum _MODE { KernelMode, UserMode, MaximumMode } MODE;
typedef enum _TIMER_TYPE { NotificationTimer, SynchronizationTimer } TIMER_TYPE;
typedef enum _KOBJECTS {
    EventNotificationObject = 0,
    EventSynchronizationObject = 1,
    MutantObject = 2,
    ProcessObject = 3,
    SemaphoreObject = 5,
    ThreadObject = 6,
    TimerNotificationObject = 8,
    TimerSynchronizationObject = 9
} KOBJECTS;

/* SignalState above 0: signaled. */
typedef struct _DISPATCHER_HEADER {
    UCHAR Type; /* a KOBJECTS */
    UCHAR Signalling;
    UCHAR Size; /* in ULONGs */
    UCHAR Reserved1;
    LONG SignalState;
    LIST_ENTRY WaitListHead; /* of KWAIT_BLOCK.WaitListEntry, oldest first */
} DISPATCHER_HEADER;
ABI_SIZE(DISPATCHER_HEADER, 0x18);
ABI_FIELD(DISPATCHER_HEADER, SignalState, 4);
ABI_FIELD(DISPATCHER_HEADER, WaitListHead, 8);

typedef struct _KEVENT {
    DISPATCHER_HEADER Header;
} KEVENT, *PKEVENT, *PRKEVENT;
ABI_SIZE(KEVENT, 0x18);

typedef struct _KSEMAPHORE {
    DISPATCHER_HEADER Header;
    LONG Limit;
} KSEMAPHORE, *PKSEMAPHORE, *PRKSEMAPHORE;
ABI_SIZE(KSEMAPHORE, 0x20);

/* SignalState is 1 while nobody owns it, otherwise 0 or less. */
typedef struct _KMUTANT {
    DISPATCHER_HEADER Header;
    LIST_ENTRY MutantListEntry; /* in the owner's list */
    struct thread *OwnerThread;
    BOOLEAN Abandoned;
    UCHAR ApcDisable; /* 1: a kernel mutex, whose owner may not end */
} KMUTANT, *PKMUTANT, *PRKMUTANT, KMUTEX, *PKMUTEX, *PRKMUTEX;
ABI_SIZE(KMUTANT, 0x38);
ABI_FIELD(KMUTANT, OwnerThread, 0x28);
ABI_FIELD(KMUTANT, Abandoned, 0x30);

typedef struct _KTIMER {
    DISPATCHER_HEADER Header;
    ULONGLONG DueTime; /* here: by clock_ns */
    LIST_ENTRY TimerListEntry;
    struct _KDPC *Dpc;
    ULONG Processor, Period; /* ms; 0: once */
} KTIMER, *PKTIMER;

/* One of a wait's objects; the caller of KeWaitForMultipleObjects supplies them. */
typedef struct _KWAIT_BLOCK {
    LIST_ENTRY WaitListEntry;
    UCHAR WaitType;
    UCHAR BlockState;
    USHORT WaitKey;
    ULONG SpareLong;
    struct thread *Thread;
    PVOID Object;
    PVOID SparePtr;
} KWAIT_BLOCK, *PKWAIT_BLOCK;
ABI_SIZE(KWAIT_BLOCK, 0x30);
ABI_FIELD(KWAIT_BLOCK, Object, 0x20);

typedef struct _OBJECT_ATTRIBUTES {
    ULONG Length;
    HANDLE RootDirectory;
    PUNICODE_STRING ObjectName;
    ULONG Attributes;
    PVOID SecurityDescriptor, SecurityQualityOfService;
} OBJECT_ATTRIBUTES, *POBJECT_ATTRIBUTES;
ABI_SIZE(OBJECT_ATTRIBUTES, 0x30);
