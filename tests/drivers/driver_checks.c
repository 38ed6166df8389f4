/* SPDX-License-Identifier: MIT */
/* What a driver may rely on: statuses of each routine's refusals, waits, timers, DPCs, affinity,
 * services. */
#include "check_driver.h"
#include <wdmsec.h>

static VOID NTAPI overflowed(ULONGLONG OverflowBits, HANDLE OwningHandle) {}

/* A counter, or another resource, or both. */
static NTSTATUS allocate(PPHYSICAL_COUNTER_RESOURCE_DESCRIPTOR Resource, HANDLE *Handle)
{
    struct {
        PHYSICAL_COUNTER_RESOURCE_LIST List;
        PHYSICAL_COUNTER_RESOURCE_DESCRIPTOR Another;
    } resources = { { 1, { { ResourceTypeSingle, 0, { 0 } } } }, { ResourceTypeSingle, 0, { 0 } } };
    if (Resource) {
        resources.List.Count = 2;
        resources.Another = *Resource;
    }
    return HalAllocateHardwareCounters(NULL, 0, &resources.List, Handle);
}

static VOID check_counters(VOID)
{
    PHYSICAL_COUNTER_RESOURCE_DESCRIPTOR handler = { ResourceTypeOverflow,
                                                     0,
                                                     { .OverflowHandler = overflowed } };
    HARDWARE_COUNTER counter = { PMCCounter, 0, 0 }, got[16];
    HANDLE handle, second;
    ULONG count, rounds = KeQueryActiveGroupCount() > 1 ? 1 : 600; /* each asks every processor */
    for (count = 0; count < rounds; count++) /* more often than there are owners */
        if (allocate(&handler, &handle) || HalFreeHardwareCounters(handle))
            break;
    CHECK(count == rounds);
    CHECK(allocate(NULL, &handle) == STATUS_SUCCESS);
    CHECK(allocate(NULL, &second) == STATUS_INSUFFICIENT_RESOURCES && !second);
    CHECK(KeSetHardwareCounterConfiguration(&counter, 1) == STATUS_SUCCESS);
    CHECK(KeQueryHardwareCounterConfiguration(got, 16, &count) == STATUS_SUCCESS && count == 1 &&
          got[0].Index == 0);
    SUCCEEDS(KeSetHardwareCounterConfiguration(NULL, 0));
    SUCCEEDS(HalFreeHardwareCounters(handle));
    CHECK(HalFreeHardwareCounters(handle) == STATUS_INVALID_PARAMETER);
}

static VOID check_hal(VOID)
{
    struct {
        ULONG Source;
        BOOLEAN Supported;
        ULONG Interval;
    } information = { 2, 0, 0 };
    ULONG returned;
    CHECK(HalQuerySystemInformation(1, sizeof information, &information, &returned) ==
          STATUS_SUCCESS);
    CHECK(information.Supported && information.Interval);
    CHECK(HalQuerySystemInformation(1, 1, &information, &returned) == STATUS_INFO_LENGTH_MISMATCH);
    CHECK(HalQuerySystemInformation(99, 1, &information, &returned) == STATUS_INVALID_INFO_CLASS);
    CHECK(HalSetSystemInformation(99, 1, &information) == STATUS_INVALID_INFO_CLASS);
}

__declspec(dllimport) extern struct {
    ULONG Version;
    PVOID Others[71];
    NTSTATUS(NTAPI *HalAllocatePmcCounterSet)(ULONG, ULONG *, ULONG, PVOID *);
    VOID(NTAPI *HalCollectPmcCounters)(PVOID, ULONG64 *);
    VOID(NTAPI *HalFreePmcCounterSet)(PVOID);
} HalPrivateDispatchTable;

/* Sources that the counters of processor 0 count between two readings. */
static VOID check_counter_set(VOID)
{
    GROUP_AFFINITY one = { 1, 0, { 0 } }, before;
    ULONG sources[] = { 2, 19 }; /* instructions, cycles */
    ULONG64 first[2], second[3] = { 0, 0, 42 };
    PVOID set = NULL;
    CHECK(HalPrivateDispatchTable.Version >= 17);
    SUCCEEDS(HalPrivateDispatchTable.HalAllocatePmcCounterSet(0, sources, 2, &set));
    KeSetSystemGroupAffinityThread(&one, &before);
    HalPrivateDispatchTable.HalCollectPmcCounters(set, first);
    HalPrivateDispatchTable.HalCollectPmcCounters(set, second);
    KeRevertToUserGroupAffinityThread(&before);
    CHECK(second[0] > first[0] && second[1] > first[1] && second[2] == 42);
    HalPrivateDispatchTable.HalFreePmcCounterSet(set);
}

typedef NTSTATUS NTAPI CREATE_SECURE(PDRIVER_OBJECT, ULONG, PUNICODE_STRING, DEVICE_TYPE, ULONG,
                                     BOOLEAN, PUNICODE_STRING, const GUID *, PDEVICE_OBJECT *);

static VOID check_names(PDRIVER_OBJECT DriverObject)
{
    UNICODE_STRING name = RTL_CONSTANT_STRING(L"\\Device\\Checks"),
                   upper = RTL_CONSTANT_STRING(L"\\DEVICE\\checks"),
                   link = RTL_CONSTANT_STRING(L"\\DosDevices\\Checks"),
                   same = RTL_CONSTANT_STRING(L"\\??\\CHECKS"), empty = { 0, 0, NULL };
    PDEVICE_OBJECT device, other; /* DO_DEVICE_INITIALIZING: nobody opens it yet */
    OBJECT_ATTRIBUTES attributes;
    IO_STATUS_BLOCK block;
    HANDLE handle;
    UNICODE_STRING secure = RTL_CONSTANT_STRING(L"IoCreateDeviceSecure");
    CREATE_SECURE *create_secure = (CREATE_SECURE *)(ULONG_PTR)MmGetSystemRoutineAddress(&secure);
    SUCCEEDS(
        create_secure(DriverObject, 16, &name, FILE_DEVICE_UNKNOWN, 0, FALSE, NULL, NULL, &device));
    IS(IoCreateDevice(DriverObject, 16, &upper, FILE_DEVICE_UNKNOWN, 0, FALSE, &other),
       STATUS_OBJECT_NAME_COLLISION);
    SUCCEEDS(IoCreateSymbolicLink(&link, &name));
    IS(IoCreateSymbolicLink(&same, &name), STATUS_OBJECT_NAME_COLLISION);
    SUCCEEDS(IoDeleteSymbolicLink(&same));
    InitializeObjectAttributes(&attributes, &name, 0, NULL, NULL);
    IS(ZwCreateFile(&handle, GENERIC_READ, &attributes, &block, NULL, 0, 0, FILE_OPEN, 0, NULL, 0),
       STATUS_NO_SUCH_DEVICE);
    IoDeleteDevice(device);
    SUCCEEDS(IoCreateDevice(DriverObject, 16, &empty, FILE_DEVICE_UNKNOWN, 0, FALSE, &device));
    CHECK(device->DeviceExtension && DriverObject->DeviceObject == device);
    CHECK((ULONG_PTR)DriverObject->DriverInit - (ULONG_PTR)DriverObject->DriverStart <
          DriverObject->DriverSize);
    CHECK(DriverObject->DriverExtension->DriverObject == DriverObject);
    IoDeleteDevice(device);
    CHECK(!DriverObject->DeviceObject);
}

static volatile LONG begun, ended;

static VOID NTAPI on_thread(HANDLE ProcessId, HANDLE ThreadId, BOOLEAN Create)
{
    if (!ProcessId && ThreadId)
        InterlockedIncrement(Create ? &begun : &ended);
}

static VOID NTAPI on_process(HANDLE ParentId, HANDLE ProcessId, BOOLEAN Create) {}

NTKERNELAPI NTSTATUS NTAPI PsLookupThreadByThreadId(HANDLE ThreadId, PVOID *Thread);

static volatile LONG went_on;

static VOID NTAPI set_and_end(PVOID Context)
{
    KeSetEvent(Context, IO_NO_INCREMENT, FALSE);
    PsTerminateSystemThread(STATUS_SUCCESS);
    went_on = 1;
}

static VOID check_threads(VOID)
{
    KEVENT event;
    HANDLE handle;
    PVOID thread, same = NULL;
    KeInitializeEvent(&event, NotificationEvent, FALSE);
    SUCCEEDS(PsSetCreateThreadNotifyRoutine(on_thread));
    CHECK(PsCreateSystemThread(&handle, THREAD_ALL_ACCESS, NULL, NULL, NULL, set_and_end, &event) ==
          STATUS_SUCCESS);
    IS(ObReferenceObjectByHandle(handle, 0x1000000, NULL, UserMode, &thread, NULL),
       STATUS_ACCESS_DENIED);
    CHECK(ObReferenceObjectByHandle(handle, SYNCHRONIZE, NULL, KernelMode, &thread, NULL) ==
          STATUS_SUCCESS);
    SUCCEEDS(KeWaitForSingleObject(thread, Executive, KernelMode, FALSE, NULL));
    CHECK(KeReadStateEvent(&event) == 1 && begun == 1 && ended == 1 && !went_on);
    CHECK(PsGetThreadId(thread) && thread != KeGetCurrentThread() &&
          PsGetCurrentThreadId() != PsGetThreadId(thread));
    LONG_PTR references = ObReferenceObject(thread);
    CHECK(ObDereferenceObject(thread) == references - 1 && ObReferenceObject(thread) == references);
    ObDereferenceObject(thread);
    ObDereferenceObject(thread);
    SUCCEEDS(ZwClose(handle));
    CHECK(PsLookupThreadByThreadId(PsGetCurrentThreadId(), &same) == STATUS_SUCCESS &&
          same == (PVOID)KeGetCurrentThread());
    ObDereferenceObject(same);
    IS(PsLookupThreadByThreadId((HANDLE)(ULONG_PTR)1, &same), STATUS_INVALID_PARAMETER);
    SUCCEEDS(PsRemoveCreateThreadNotifyRoutine(on_thread));
    CHECK(PsRemoveCreateThreadNotifyRoutine(on_thread) == STATUS_PROCEDURE_NOT_FOUND);
    SUCCEEDS(PsSetCreateProcessNotifyRoutine(on_process, FALSE));
    CHECK(PsSetCreateProcessNotifyRoutine(on_process, FALSE) == STATUS_INVALID_PARAMETER);
    SUCCEEDS(PsSetCreateProcessNotifyRoutine(on_process, TRUE));
    CHECK(PsSetCreateProcessNotifyRoutine(on_process, TRUE) == STATUS_INVALID_PARAMETER);
}

static VOID check_processors(VOID)
{
    GROUP_AFFINITY last = { 0, 0, { 0 } }, none = { 0, 0, { 0 } }, before, system;
    PROCESSOR_NUMBER number;
    ULONG count = KeQueryActiveProcessorCountEx(ALL_PROCESSOR_GROUPS);
    USHORT group = (USHORT)(KeQueryActiveGroupCount() - 1);
    UCHAR in_group = (UCHAR)(KeQueryActiveProcessorCountEx(group) - 1);
    CHECK(group == (count - 1) / 64 && in_group == (count - 1) % 64);
    CHECK(KeQueryActiveProcessorCount(NULL) == KeQueryActiveProcessorCountEx(0));
    CHECK(KeQueryActiveProcessorCountEx(0) == (count < 64 ? count : 64));
    CHECK(KeQueryActiveProcessorCountEx((USHORT)(group + 1)) == 0);
    CHECK(KeQueryGroupAffinity(group) == ~(KAFFINITY)0 >> (63 - in_group));
    CHECK(KeQueryGroupAffinity((USHORT)(group + 1)) == 0);
    last.Mask = (KAFFINITY)1 << in_group;
    last.Group = group;
    KeSetSystemGroupAffinityThread(&last, &before);
    CHECK(before.Mask == 0);
    CHECK(KeGetCurrentProcessorNumberEx(&number) == count - 1);
    CHECK(number.Group == group && number.Number == in_group);
    CHECK(KeGetProcessorIndexFromNumber(&number) == count - 1);
    CHECK(KeGetCurrentProcessorNumber() == in_group);
    CHECK(KeGetProcessorNumberFromIndex(count, &number) == STATUS_INVALID_PARAMETER);
    CHECK(KeSetSystemAffinityThreadEx(1) == last.Mask);
    CHECK(KeGetCurrentProcessorNumberEx(NULL) == 0); /* group 0 */
    KeSetSystemGroupAffinityThread(&last, &system);
    CHECK(system.Mask == 1 && system.Group == 0);
    last.Group++;
    KeSetSystemGroupAffinityThread(&last, &system);
    CHECK(system.Mask == 0 && KeGetCurrentProcessorNumberEx(NULL) == count - 1);
    number.Group = (USHORT)(group + 1);
    CHECK(KeGetProcessorIndexFromNumber(&number) == INVALID_PROCESSOR_INDEX);
    KeRevertToUserGroupAffinityThread(&before);
    KeSetSystemGroupAffinityThread(&none, &before);
    CHECK(before.Mask == 0);
}

typedef PVOID NTAPI ALLOCATE_POOL2(ULONG64 Flags, SIZE_T NumberOfBytes, ULONG Tag);

static VOID check_memory(VOID)
{
    UNICODE_STRING pool2 = RTL_CONSTANT_STRING(L"ExAllocatePool2"),
                   none = RTL_CONSTANT_STRING(L"ExNothing");
    ALLOCATE_POOL2 *allocate_pool = (ALLOCATE_POOL2 *)(ULONG_PTR)MmGetSystemRoutineAddress(&pool2);
    UCHAR *p;
    CHECK(!MmGetSystemRoutineAddress(&none) && allocate_pool);
    CHECK(!allocate_pool(0x40, 10, 0) && !allocate_pool(0, 10, 'kehC') &&
          !allocate_pool(0xc0, 10, 'kehC'));
    p = allocate_pool(0x40, 3000, 'kehC');
    CHECK(p && !((ULONG_PTR)p & 4095) && !p[0] && !p[2999] && MmIsAddressValid(p));
    ExFreePoolWithTag(p, 'kehC');
    CHECK(!MmIsAddressValid((PVOID)(ULONG_PTR)0x10));
}

/* The shared page, as MSVC's drivers read it. */
static VOID check_shared(VOID)
{
    const volatile ULONG64 *ticks = (const volatile ULONG64 *)0xfffff78000000320;
    const ULONG64 first = *ticks;
    LARGE_INTEGER soon;
    soon.QuadPart = -300000;
    KeDelayExecutionThread(KernelMode, FALSE, &soon);
    CHECK(*ticks > first && *ticks - first < 10000);
    CHECK(*(const volatile ULONG *)0xfffff7800000026c == 10);
    CHECK(KeQueryInterruptTime() >= *(const volatile ULONG64 *)0xfffff78000000008);
}

NTSTATUS NTAPI DriverEntry(PDRIVER_OBJECT DriverObject, PUNICODE_STRING RegistryPath)
{
    DriverObject->DriverUnload = unload;
    check_counters();
    check_hal();
    check_counter_set();
    check_names(DriverObject);
    check_threads();
    check_processors();
    check_memory();
    check_shared();
    return check_result();
}
