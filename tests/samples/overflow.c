/* SPDX-License-Identifier: MIT */
/* A driver with an overflow handler, for Intel and AMD processors: a counter of ring 0's
 * instructions interrupts every 100,000; the handler starts it again and a DPC adds up. */
#include <ntddk.h>
#include <intrin.h>

/* As ntddk.h has them since Windows 10 1903; mingw-w64's are those of Windows 7. */
typedef VOID NTAPI OVERFLOW_HANDLER(ULONGLONG OverflowBits, HANDLE OwningHandle);
typedef struct {
    ULONG Type, Flags; /* Type 0: a counter; 3: the handler */
    union {
        ULONG CounterIndex;
        OVERFLOW_HANDLER *OverflowHandler;
        ULONG64 Room[2];
    } u;
} COUNTER_RESOURCE;
typedef struct {
    ULONG Count;
    COUNTER_RESOURCE Descriptors[2];
} COUNTER_RESOURCES;

#define PERIOD 100000ull
#define ITERATIONS 1000000ull /* of two instructions */
#define SELECT 0x5200c0u      /* retired instructions, of ring 0, with an interrupt, enabled */

static BOOLEAN amd;
static HANDLE counter_set;
static KDPC dpc;
static volatile LONG overflows, wrong_irql, dpcs;

static ULONG counter_msr(VOID) { return amd ? 0xc0010201 : 0xc1; }
static ULONG select_msr(VOID) { return amd ? 0xc0010200 : 0x186; }
static ULONG64 start_value(VOID)
{
    return amd ? (0 - PERIOD) & 0xffffffffffffull : (ULONG64)(LONG)(0 - PERIOD);
}

/* At PROFILE_LEVEL, on the processor that overflowed; its counters are paused. */
static VOID NTAPI overflowed(ULONGLONG OverflowBits, HANDLE OwningHandle)
{
    if (OverflowBits != 1 || OwningHandle != counter_set || KeGetCurrentIrql() != PROFILE_LEVEL)
        InterlockedIncrement(&wrong_irql);
    InterlockedIncrement(&overflows);
    __writemsr(counter_msr(), start_value());
    KeInsertQueueDpc(&dpc, NULL, NULL);
}

/* At DISPATCH_LEVEL, once for those that came before it ran. */
static VOID NTAPI count_dpc(PKDPC Dpc, PVOID Context, PVOID Argument1, PVOID Argument2)
{
    UNREFERENCED_PARAMETER(Dpc);
    UNREFERENCED_PARAMETER(Context);
    UNREFERENCED_PARAMETER(Argument1);
    UNREFERENCED_PARAMETER(Argument2);
    if (KeGetCurrentIrql() == DISPATCH_LEVEL)
        InterlockedIncrement(&dpcs);
}

static VOID enable(BOOLEAN On)
{
    int leaf[4];
    ULONG global = 0x38f;
    __writemsr(select_msr(), 0);
    if (On) {
        __writemsr(counter_msr(), start_value());
        __writemsr(select_msr(), SELECT);
    }
    if (amd) {
        __cpuid(leaf, 0x80000000);
        global = 0;
        if ((ULONG)leaf[0] >= 0x80000022) {
            __cpuid(leaf, 0x80000022);
            global = leaf[0] & 1 ? 0xc0000301 : 0;
        }
    }
    if (global && On)
        __writemsr(global, __readmsr(global) | 1);
}

/* On one processor: the counter is that one's. */
static VOID work(VOID)
{
    GROUP_AFFINITY one = { 1, 0, { 0 } }, before;
    ULONG64 left = ITERATIONS;
    KeSetSystemGroupAffinityThread(&one, &before);
    enable(TRUE);
    __asm__ volatile("1: sub $1, %0\n\tjnz 1b" : "+r"(left) : : "cc");
    enable(FALSE);
    KeRevertToUserGroupAffinityThread(&before);
}

static VOID NTAPI unload(PDRIVER_OBJECT DriverObject)
{
    UNREFERENCED_PARAMETER(DriverObject);
    HalFreeHardwareCounters(counter_set);
}

DRIVER_INITIALIZE DriverEntry;

NTSTATUS NTAPI DriverEntry(PDRIVER_OBJECT DriverObject, PUNICODE_STRING RegistryPath)
{
    COUNTER_RESOURCES resources = {
        2, { { 0, 0, { 0 } }, { 3, 0, { .OverflowHandler = overflowed } } }
    };
    int leaf[4];
    NTSTATUS status;
    UNREFERENCED_PARAMETER(RegistryPath);
    __cpuid(leaf, 0);
    amd = leaf[1] == 'htuA'; /* "Auth" of AuthenticAMD */
    KeInitializeDpc(&dpc, count_dpc, NULL);
    status = HalAllocateHardwareCounters(NULL, 0, (PPHYSICAL_COUNTER_RESOURCE_LIST)&resources,
                                         &counter_set);
    if (!NT_SUCCESS(status)) {
        DbgPrint("HalAllocateHardwareCounters: 0x%08lx\n", status);
        return status;
    }
    DriverObject->DriverUnload = unload;
    work();
    KeFlushQueuedDpcs();
    DbgPrint("%I64u instructions, %ld overflows, %s DPCs, %ld wrong\n", 2 * ITERATIONS, overflows,
             dpcs > 0 && dpcs <= overflows ? "some" : "no", wrong_irql);
    return status;
}
