/* SPDX-License-Identifier: MIT */
/* A driver that does one thing wrong, which its file's name says: tests/drivers/drivers.t builds it
 * under each of them. */
#include "routine.h"

static KSPIN_LOCK lock;
static KEVENT never;
static KTIMER timer;
static KDPC dpc;

static VOID NTAPI nothing(VOID) {}
static VOID NTAPI unload(PDRIVER_OBJECT DriverObject) {}

static VOID NTAPI on_thread(HANDLE ProcessId, HANDLE ThreadId, BOOLEAN Create) {}

static VOID NTAPI wait_for_ever(PVOID Context)
{
    KeWaitForSingleObject(&never, Executive, KernelMode, FALSE, NULL);
}

static VOID bad_wait(VOID)
{
    KIRQL irql;
    KeRaiseIrql(DISPATCH_LEVEL, &irql);
    KeWaitForSingleObject(&never, Executive, KernelMode, FALSE, NULL);
}

static VOID bad_loop(VOID)
{
    KIRQL irql;
    KeRaiseIrql(DISPATCH_LEVEL, &irql);
    for (;;)
        YieldProcessor();
}

static VOID bad_hang(VOID)
{
    for (;;)
        YieldProcessor();
}

static VOID bad_stuck(VOID) { KeWaitForSingleObject(&never, Executive, KernelMode, FALSE, NULL); }

static VOID bad_null(VOID)
{
    VOID (*volatile function)(VOID) = NULL;
    function();
}

static LONG bad_depth(volatile LONG *up)
{
    volatile LONG here[256];
    here[0] = up ? up[0] + 1 : 0;
    return bad_depth(here) + here[0];
}

static VOID bad_stack(VOID) { DbgPrint("%d\n", bad_depth(NULL)); }

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

static VOID bad_tag(VOID)
{
    PVOID p = ExAllocatePoolWithTag(NonPagedPool, 100, 'dneT');
    ExFreePoolWithTag(p, 'tneT');
}

/* Whatever was there before the first, one of both changes it. */
static VOID bad_overrun(VOID)
{
    for (unsigned i = 0; i < 2; i++) {
        UCHAR *p = ExAllocatePoolWithTag(NonPagedPool, 100, 'revO');
        p[100] |= 1;
        ExFreePoolWithTag(p, 'revO');
    }
}

static VOID bad_header(VOID)
{
    UCHAR *high = ExAllocatePoolWithTag(NonPagedPool, 1500, 'revO');
    UCHAR *low = ExAllocatePoolWithTag(NonPagedPool, 1500, 'revO');
    if (low < high)
        RtlZeroMemory(low, (SIZE_T)(high - low) - 40); /* 8 bytes of the other's header */
    ExFreePoolWithTag(high, 'revO');
}

static VOID bad_irql(VOID)
{
    KIRQL irql;
    KeRaiseIrql(DISPATCH_LEVEL, &irql);
}

static VOID bad_raise(VOID) { ExRaiseStatus((NTSTATUS)0xc0000123); }
static VOID bad_ud2(VOID) { asm volatile("ud2"); }
static VOID bad_write(VOID) { *(volatile UCHAR *)(ULONG_PTR)nothing = 0xc3; }

/* --- Requests, which it sends to itself. --- */

enum { FORGET, COMPLETE_TWICE, COMPLETE_PENDING, KEEP, STAY_RAISED };
static PDRIVER_OBJECT self;
static ULONG what;

static NTSTATUS NTAPI dispatch(PDEVICE_OBJECT DeviceObject, PIRP Irp)
{
    BOOLEAN control = IoGetCurrentIrpStackLocation(Irp)->MajorFunction == IRP_MJ_DEVICE_CONTROL;
    KIRQL irql;
    Irp->IoStatus.Information = 0;
    Irp->IoStatus.Status = control && what == COMPLETE_PENDING ? STATUS_PENDING : STATUS_SUCCESS;
    if (control && what == FORGET)
        return STATUS_SUCCESS;
    if (control && what == KEEP) {
        IoMarkIrpPending(Irp);
        return STATUS_PENDING;
    }
    IoCompleteRequest(Irp, IO_NO_INCREMENT);
    if (control && what == STAY_RAISED)
        KeRaiseIrql(DISPATCH_LEVEL, &irql);
    else if (control)
        IoCompleteRequest(Irp, IO_NO_INCREMENT);
    return STATUS_SUCCESS;
}

static VOID make_device(VOID)
{
    UNICODE_STRING name = RTL_CONSTANT_STRING(L"\\Device\\Bad"),
                   link = RTL_CONSTANT_STRING(L"\\??\\Bad");
    PDEVICE_OBJECT device;
    for (ULONG i = 0; i <= IRP_MJ_MAXIMUM_FUNCTION; i++)
        self->MajorFunction[i] = dispatch;
    IoCreateDevice(self, 0, &name, FILE_DEVICE_UNKNOWN, 0, FALSE, &device);
    IoCreateSymbolicLink(&link, &name);
    device->Flags &= ~DO_DEVICE_INITIALIZING;
}

static VOID send_request(ULONG What)
{
    UNICODE_STRING name = RTL_CONSTANT_STRING(L"\\Device\\Bad");
    OBJECT_ATTRIBUTES attributes;
    IO_STATUS_BLOCK block;
    HANDLE handle;
    what = What;
    make_device();
    InitializeObjectAttributes(&attributes, &name, 0, NULL, NULL);
    ZwCreateFile(&handle, GENERIC_READ, &attributes, &block, NULL, 0, 0, FILE_OPEN, 0, NULL, 0);
    ZwDeviceIoControlFile(handle, NULL, NULL, NULL, &block, 0, NULL, 0, NULL, 0);
}

static VOID bad_forget(VOID) { send_request(FORGET); }
static VOID bad_twice(VOID) { send_request(COMPLETE_TWICE); }
static VOID bad_status(VOID) { send_request(COMPLETE_PENDING); }
static VOID bad_raised(VOID) { send_request(STAY_RAISED); }

/* For a program that waits for it. */
static VOID bad_keep(VOID)
{
    what = KEEP;
    make_device();
}

/* What a compiler's check of the stack does: __fastfail(FAST_FAIL_STACK_COOKIE_CHECK_FAILURE). */
static VOID bad_check(VOID) { __asm__ volatile("int $0x29" : : "c"(2)); }

static VOID bad_stop(VOID) { KeBugCheckEx(MANUALLY_INITIATED_CRASH, 1, 2, 3, 4); }
static VOID bad_stopped(VOID) { KeBugCheck(MANUALLY_INITIATED_CRASH); }
static VOID bad_tagless(VOID) { ExAllocatePoolWithTag(NonPagedPool, 16, 0); }

static VOID bad_lower(VOID)
{
    KIRQL(NTAPI * raise)(KIRQL) = routine(L"KfRaiseIrql");
    raise(DISPATCH_LEVEL);
    raise(APC_LEVEL);
}

static VOID bad_early(VOID)
{
    KSPIN_LOCK lock = 0;
    KeAcquireSpinLockAtDpcLevel(&lock);
}

static VOID bad_not_mine(VOID)
{
    KSPIN_LOCK lock = 2; /* processor 1 has it */
    KIRQL irql;
    KeRaiseIrql(DISPATCH_LEVEL, &irql);
    KeReleaseSpinLockFromDpcLevel(&lock);
}

/* On Windows these two raise exceptions. */
static VOID bad_beyond(VOID)
{
    KSEMAPHORE semaphore;
    KeInitializeSemaphore(&semaphore, 1, 2);
    KeReleaseSemaphore(&semaphore, IO_NO_INCREMENT, 2, FALSE);
}

static VOID bad_not_owner(VOID)
{
    KMUTEX kernel_mutex;
    KeInitializeMutex(&kernel_mutex, 0);
    KeReleaseMutex(&kernel_mutex, FALSE);
}

static VOID bad_unmade(VOID)
{
    memset(&dpc, 0, sizeof dpc);
    KeInsertQueueDpc(&dpc, NULL, NULL);
}

static BOOLEAN NTAPI on_nmi(PVOID Context, BOOLEAN Handled) { return Handled; }
static VOID NTAPI on_pmi(PVOID TrapFrame) {}

/* Leaves one of each kind. */
static VOID leave(PDRIVER_OBJECT DriverObject)
{
    UNICODE_STRING name = RTL_CONSTANT_STRING(L"\\Device\\Left"),
                   link = RTL_CONSTANT_STRING(L"\\??\\Left");
    PDEVICE_OBJECT device;
    LARGE_INTEGER hour;
    HANDLE counters, thread;
    PVOID handler = on_pmi, object;
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
    KeRegisterNmiCallback(on_nmi, NULL);
    IoCreateDevice(DriverObject, 0, &name, FILE_DEVICE_UNKNOWN, 0, FALSE, &device);
    IoCreateSymbolicLink(&link, &name);
    PsCreateSystemThread(&thread, THREAD_ALL_ACCESS, NULL, NULL, NULL, wait_for_ever, NULL);
    ObReferenceObjectByHandle(thread, 0, NULL, KernelMode, &object, NULL);
    DbgPrint("thread %u\n", (ULONG)(ULONG_PTR)PsGetThreadId(object));
    ObDereferenceObject(object);
    ZwClose(thread);
    HalAllocateHardwareCounters(NULL, 0, (PPHYSICAL_COUNTER_RESOURCE_LIST)&resources, &counters);
    HalSetSystemInformation(1, sizeof handler, &handler); /* of the counters' interrupt */
}

static VOID NTAPI on_records(PVOID Buffer, ULONGLONG Size, ULONGLONG Count, HANDLE Owner)
{
    KeBugCheck(0xe2);
}

/* Leaves a buffer that this processor goes on writing: the threshold comes after its driver. */
static VOID leave_buffer(VOID)
{
    struct {
        ULONG Count;
        struct {
            ULONG Type, Flags;
            PVOID HandlerOrIndex;
            ULONG Size, Threshold;
        } Descriptors[2];
    } resources = { 2, { { 0, 0, NULL, 0, 0 }, { 4, 0, on_records, 0, ~0u } } };
    HANDLE counters;
    if (HalAllocateHardwareCounters(NULL, 0, (PPHYSICAL_COUNTER_RESOURCE_LIST)&resources,
                                    &counters))
        return;
    ((LONG64 *)__readmsr(0x600))[8] = -1000;
    __writemsr(0xc1, (ULONG)-1000);
    __writemsr(0x186, 0x5200c0);
    __writemsr(0x3f1, 1);
    __writemsr(0x38f, __readmsr(0x38f) | 1);
}

static const struct {
    const WCHAR *Name;
    VOID (*Do)(VOID);
} cases[] = {
    { L"loop", bad_loop },         { L"hang", bad_hang },       { L"wait", bad_wait },
    { L"service", bad_service },   { L"read", bad_read },       { L"dpc", bad_dpc },
    { L"lock", bad_lock },         { L"free", bad_free },       { L"write", bad_write },
    { L"irql", bad_irql },         { L"forget", bad_forget },   { L"twice", bad_twice },
    { L"status", bad_status },     { L"keep", bad_keep },       { L"raise", bad_raise },
    { L"tag", bad_tag },           { L"check", bad_check },     { L"overrun", bad_overrun },
    { L"header", bad_header },     { L"stuck", bad_stuck },     { L"null", bad_null },
    { L"stack", bad_stack },       { L"raised", bad_raised },   { L"stop", bad_stop },
    { L"stopped", bad_stopped },   { L"tagless", bad_tagless }, { L"lower", bad_lower },
    { L"early", bad_early },       { L"beyond", bad_beyond },   { L"not_owner", bad_not_owner },
    { L"not_mine", bad_not_mine }, { L"unmade", bad_unmade },   { L"ud2", bad_ud2 },
    { L"written", leave_buffer },
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

NTSTATUS NTAPI DriverEntry(PDRIVER_OBJECT DriverObject, PUNICODE_STRING RegistryPath)
{
    UNICODE_STRING name = RTL_CONSTANT_STRING(L"no full name");
    PDEVICE_OBJECT device;
    DriverObject->DriverUnload = unload;
    self = DriverObject;
    KeInitializeEvent(&never, NotificationEvent, FALSE);
    if (ends_with(RegistryPath, L"leave"))
        leave(DriverObject);
    for (ULONG i = 0; i < sizeof cases / sizeof cases[0]; i++)
        if (ends_with(RegistryPath, cases[i].Name))
            return cases[i].Do(), STATUS_SUCCESS; /* at its IRQL */
    if (!ends_with(RegistryPath, L"refuse"))
        return STATUS_SUCCESS;
    IoCreateDevice(DriverObject, 0, &name, FILE_DEVICE_UNKNOWN, 0, FALSE, &device);
    return STATUS_DEVICE_BUSY;
}
