/* SPDX-License-Identifier: MIT */
/* A driver that does one thing wrong, which its file's name says: tests/programs.t builds it under each of them. */
#include <ntddk.h>

static KSPIN_LOCK lock;
static KEVENT never;
static KTIMER timer;
static KDPC dpc;

static VOID NTAPI nothing(VOID) {}
static VOID NTAPI unload(PDRIVER_OBJECT DriverObject) { UNREFERENCED_PARAMETER(DriverObject); }

static VOID NTAPI on_thread(HANDLE ProcessId, HANDLE ThreadId, BOOLEAN Create)
{
    UNREFERENCED_PARAMETER(ProcessId);
    UNREFERENCED_PARAMETER(ThreadId);
    UNREFERENCED_PARAMETER(Create);
}

static VOID NTAPI wait_for_ever(PVOID Context)
{
    UNREFERENCED_PARAMETER(Context);
    KeWaitForSingleObject(&never, Executive, KernelMode, FALSE, NULL);
}

static VOID bad_wait(VOID)
{
    KIRQL irql;
    KeRaiseIrql(DISPATCH_LEVEL, &irql);
    KeWaitForSingleObject(&never, Executive, KernelMode, FALSE, NULL);
}

static VOID bad_service(VOID)
{
    KIRQL irql;
    KeRaiseIrql(APC_LEVEL, &irql);
    ZwClose(NULL);
}

static VOID bad_read(VOID) { DbgPrint("%d\n", *(volatile LONG *)(ULONG_PTR)0x10); }

static VOID bad_dpc(VOID)
{
    KIRQL irql;
    KeRaiseIrql(DISPATCH_LEVEL, &irql);
    bad_read();
}

static VOID bad_lock(VOID)
{
    KIRQL irql;
    KeAcquireSpinLock(&lock, &irql);
    KeAcquireSpinLock(&lock, &irql);
}

static VOID bad_free(VOID)
{
    PVOID p = ExAllocatePoolWithTag(NonPagedPool, 100, 'dneT');
    ExFreePoolWithTag(p, 'dneT');
    ExFreePoolWithTag(p, 'dneT');
}

static VOID bad_irql(VOID)
{
    KIRQL irql;
    KeRaiseIrql(DISPATCH_LEVEL, &irql);
}

static VOID bad_write(VOID) { *(volatile UCHAR *)(ULONG_PTR)nothing = 0xc3; }

/* Leaves one of each kind. */
static VOID leave(PDRIVER_OBJECT DriverObject)
{
    UNICODE_STRING name = RTL_CONSTANT_STRING(L"\\Device\\Left"), link = RTL_CONSTANT_STRING(L"\\??\\Left");
    PDEVICE_OBJECT device;
    LARGE_INTEGER hour;
    HANDLE counters, thread;
    struct {
        ULONG Count;
        ULONG Type, Flags, Index, Unused[3];
    } resources = { 1, 0, 0, 0, { 0 } };
    hour.QuadPart = -36000000000ll;
    KeInitializeDpc(&dpc, (PKDEFERRED_ROUTINE)nothing, NULL);
    KeInitializeTimer(&timer);
    KeSetTimer(&timer, hour, &dpc);
    ExAllocatePoolWithTag(NonPagedPool, 5000, 'tfeL');
    PsSetCreateThreadNotifyRoutine(on_thread);
    IoCreateDevice(DriverObject, 0, &name, FILE_DEVICE_UNKNOWN, 0, FALSE, &device);
    IoCreateSymbolicLink(&link, &name);
    PsCreateSystemThread(&thread, THREAD_ALL_ACCESS, NULL, NULL, NULL, wait_for_ever, NULL);
    ZwClose(thread);
    HalAllocateHardwareCounters(NULL, 0, (PPHYSICAL_COUNTER_RESOURCE_LIST)&resources, &counters);
}

static const struct {
    const WCHAR *Name;
    VOID (*Do)(VOID);
} cases[] = {
    { L"wait", bad_wait }, { L"service", bad_service }, { L"read", bad_read }, { L"dpc", bad_dpc }, { L"lock", bad_lock },
    { L"free", bad_free }, { L"write", bad_write }, { L"irql", bad_irql },
};

static BOOLEAN ends_with(PUNICODE_STRING String, const WCHAR *End)
{
    UNICODE_STRING end, last;
    RtlInitUnicodeString(&end, End);
    last.Length = last.MaximumLength = end.Length;
    if (String->Length < end.Length)
        return FALSE;
    last.Buffer = String->Buffer + (String->Length - end.Length) / sizeof(WCHAR);
    return RtlEqualUnicodeString(&last, &end, FALSE);
}

DRIVER_INITIALIZE DriverEntry;

NTSTATUS NTAPI DriverEntry(PDRIVER_OBJECT DriverObject, PUNICODE_STRING RegistryPath)
{
    BOOLEAN refuses = ends_with(RegistryPath, L"refuse");
    DriverObject->DriverUnload = unload;
    KeInitializeEvent(&never, NotificationEvent, FALSE);
    if (ends_with(RegistryPath, L"leave"))
        leave(DriverObject);
    for (ULONG i = 0; i < sizeof cases / sizeof cases[0]; i++)
        if (ends_with(RegistryPath, cases[i].Name))
            cases[i].Do();
    return refuses ? STATUS_DEVICE_BUSY : STATUS_SUCCESS;
}
