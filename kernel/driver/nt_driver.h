/* SPDX-License-Identifier: MIT */
/* The structures that drivers see, spelled as in wdm.h and ntddk.h; layouts.h has their offsets.
 * Members that nothing here uses are gaps. */
#pragma once
#include "kernel/base/list.h"
#include "kernel/nt/nt_profile.h"
#include "kernel/nt/ntddk.h"

/* The calling convention of drivers; the kernel's own is System V's. */
#define NTAPI __attribute__((ms_abi))

#define STATUS_NO_SUCH_DEVICE ((NTSTATUS)0xC000000E)
#define STATUS_NO_SUCH_FILE ((NTSTATUS)0xC000000F)
#define STATUS_INVALID_DEVICE_REQUEST ((NTSTATUS)0xC0000010)
#define STATUS_MORE_PROCESSING_REQUIRED ((NTSTATUS)0xC0000016)
#define STATUS_REVISION_MISMATCH ((NTSTATUS)0xC0000059)
#define STATUS_DEVICE_NOT_READY ((NTSTATUS)0xC00000A3)
#define STATUS_DEVICE_DOES_NOT_EXIST ((NTSTATUS)0xC00000C0)
#define STATUS_INTERNAL_ERROR ((NTSTATUS)0xC00000E5)
#define STATUS_IMAGE_ALREADY_LOADED ((NTSTATUS)0xC000010E)
#define STATUS_CANCELLED ((NTSTATUS)0xC0000120)
#define STATUS_INVALID_DEVICE_STATE ((NTSTATUS)0xC0000184)
#define STATUS_NOT_FOUND ((NTSTATUS)0xC0000225)
#define STATUS_DRIVER_UNABLE_TO_LOAD ((NTSTATUS)0xC000026C)
#define STATUS_NOINTERFACE ((NTSTATUS)0xC00002B9)
#define STATUS_FAILED_DRIVER_ENTRY ((NTSTATUS)0xC0000365)

#define IRP_MJ_CREATE 0x00
#define IRP_MJ_CLOSE 0x02
#define IRP_MJ_DEVICE_CONTROL 0x0e
#define IRP_MJ_CLEANUP 0x12
#define IRP_MJ_MAXIMUM_FUNCTION 0x1b

#define IO_TYPE_DEVICE 3
#define IO_TYPE_FILE 5
#define IO_TYPE_IRP 6

#define DO_EXCLUSIVE 0x00000008
#define DO_DEVICE_INITIALIZING 0x00000080
#define MDL_MAPPED_TO_SYSTEM_VA 0x0001
#define MDL_PAGES_LOCKED 0x0002
enum { METHOD_BUFFERED, METHOD_IN_DIRECT, METHOD_OUT_DIRECT, METHOD_NEITHER };

typedef ULONG_PTR KSPIN_LOCK, *PKSPIN_LOCK;

typedef struct _OSVERSIONINFOW {
    ULONG dwOSVersionInfoSize, dwMajorVersion, dwMinorVersion, dwBuildNumber, dwPlatformId;
    WCHAR szCSDVersion[128];
} RTL_OSVERSIONINFOW, *PRTL_OSVERSIONINFOW;

typedef struct _MDL {
    struct _MDL *Next;
    USHORT Size, MdlFlags;
    PVOID Process, MappedSystemVa, StartVa;
    ULONG ByteCount, ByteOffset;
} MDL, *PMDL;

typedef struct _IO_STATUS_BLOCK {
    union {
        NTSTATUS Status;
        PVOID Pointer;
    };
    ULONG_PTR Information;
} IO_STATUS_BLOCK, *PIO_STATUS_BLOCK;

struct _DEVICE_OBJECT;
struct _DRIVER_OBJECT;
struct _FILE_OBJECT;
struct _IRP;
struct _KDPC;

typedef NTSTATUS(NTAPI *PDRIVER_INITIALIZE)(struct _DRIVER_OBJECT *, PUNICODE_STRING);
typedef VOID(NTAPI *PDRIVER_UNLOAD)(struct _DRIVER_OBJECT *);
typedef NTSTATUS(NTAPI *PDRIVER_DISPATCH)(struct _DEVICE_OBJECT *, struct _IRP *);
typedef VOID(NTAPI *PKDEFERRED_ROUTINE)(struct _KDPC *, PVOID, PVOID, PVOID);
typedef VOID(NTAPI *PKSTART_ROUTINE)(PVOID);

typedef struct _DRIVER_EXTENSION {
    struct _DRIVER_OBJECT *DriverObject;
    PVOID AddDevice;
    ULONG Count;
    UNICODE_STRING ServiceKeyName;
} DRIVER_EXTENSION;

typedef struct _DRIVER_OBJECT {
    USHORT Type, Size;
    struct _DEVICE_OBJECT *DeviceObject; /* the newest first */
    ULONG Flags;
    PVOID DriverStart;
    ULONG DriverSize;
    PVOID DriverSection;
    DRIVER_EXTENSION *DriverExtension;
    UNICODE_STRING DriverName;
    PVOID HardwareDatabase, FastIoDispatch;
    PDRIVER_INITIALIZE DriverInit;
    PVOID DriverStartIo;
    PDRIVER_UNLOAD DriverUnload;
    PDRIVER_DISPATCH MajorFunction[IRP_MJ_MAXIMUM_FUNCTION + 1];
} DRIVER_OBJECT, *PDRIVER_OBJECT;

typedef struct __attribute__((aligned(8))) _DEVICE_OBJECT {
    USHORT Type, Size;
    LONG ReferenceCount;
    struct _DRIVER_OBJECT *DriverObject;
    struct _DEVICE_OBJECT *NextDevice, *AttachedDevice;
    struct _IRP *CurrentIrp;
    PVOID Timer;
    ULONG Flags, Characteristics;
    PVOID Vpb, DeviceExtension;
    ULONG DeviceType;
    CHAR StackSize;
    UCHAR gap1[0x98 - 0x4d];
    ULONG AlignmentRequirement;
    UCHAR gap2[0x148 - 0x9c];
} DEVICE_OBJECT, *PDEVICE_OBJECT;

typedef struct _FILE_OBJECT {
    USHORT Type, Size;
    PDEVICE_OBJECT DeviceObject;
    PVOID Vpb, FsContext, FsContext2;
    UCHAR gap1[0x50 - 0x28];
    ULONG Flags;
    UNICODE_STRING FileName;
    LARGE_INTEGER CurrentByteOffset;
    UCHAR gap2[0xd8 - 0x70];
} FILE_OBJECT, *PFILE_OBJECT;

typedef struct _IO_STACK_LOCATION {
    UCHAR MajorFunction, MinorFunction, Flags, Control;
    union {
        struct {
            ULONG OutputBufferLength __attribute__((aligned(8)));
            ULONG InputBufferLength __attribute__((aligned(8)));
            ULONG IoControlCode __attribute__((aligned(8)));
            PVOID Type3InputBuffer;
        } DeviceIoControl;
    } Parameters;
    PDEVICE_OBJECT DeviceObject;
    PFILE_OBJECT FileObject;
    PVOID CompletionRoutine, Context;
} IO_STACK_LOCATION, *PIO_STACK_LOCATION;

typedef struct _IRP {
    USHORT Type;
    USHORT Size;
    PMDL MdlAddress;
    ULONG Flags;
    union {
        PVOID SystemBuffer;
    } AssociatedIrp;
    LIST_ENTRY ThreadListEntry;
    IO_STATUS_BLOCK IoStatus;
    CHAR RequestorMode;
    BOOLEAN PendingReturned;
    CHAR StackCount, CurrentLocation;
    BOOLEAN Cancel;
    KIRQL CancelIrql;
    CHAR ApcEnvironment;
    UCHAR AllocationFlags;
    PIO_STATUS_BLOCK UserIosb;
    PKEVENT UserEvent;
    UCHAR gap[0x68 - 0x58];
    PVOID CancelRoutine, UserBuffer;
    struct {
        struct {
            PVOID DriverContext[4];
            PVOID Thread;
            PVOID AuxiliaryBuffer;
            LIST_ENTRY ListEntry;
            PIO_STACK_LOCATION CurrentStackLocation;
            PFILE_OBJECT OriginalFileObject;
            PVOID reserved;
        } Overlay;
    } Tail;
} IRP, *PIRP;

typedef struct _KDPC {
    UCHAR Type, Importance;
    USHORT Number; /* MAXIMUM_PROC + processor, or 0: the one that queues it */
    LIST_ENTRY DpcListEntry;
    PKDEFERRED_ROUTINE DeferredRoutine;
    PVOID DeferredContext, SystemArgument1, SystemArgument2;
    PVOID DpcData; /* not NULL: it is queued */
} KDPC, *PKDPC, *PRKDPC;

typedef struct _HAL_DISPATCH {
    ULONG Version;
    PVOID HalQuerySystemInformation, HalSetSystemInformation;
    PVOID others[21];
} HAL_DISPATCH;

/* The members that counter drivers use. NT: of Windows 8 and later by Geoff Chappell's study; the
 * rest, up to the end of 1709's, is NULL. */
typedef struct _HAL_PRIVATE_DISPATCH {
    ULONG Version;
    PVOID before[71];
    PVOID HalAllocatePmcCounterSet, HalCollectPmcCounters, HalFreePmcCounterSet;
    PVOID after[59];
} HAL_PRIVATE_DISPATCH;
ABI_FIELD(HAL_PRIVATE_DISPATCH, HalAllocatePmcCounterSet, 0x240);
ABI_SIZE(HAL_PRIVATE_DISPATCH, 0x430);

#define SIZE(type, size) ABI_SIZE(type, size);
#define FIELD(type, field, offset) ABI_FIELD(type, field, offset);
#include "kernel/driver/layouts.h"
#undef SIZE
#undef FIELD
