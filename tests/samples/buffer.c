/* SPDX-License-Identifier: MIT */
/* A driver with an event buffer, for Intel processors that write records (PEBS): ten samples of a
 * loop, each with the registers that the processor had right after the instruction. */
#include <ntddk.h>
#include <intrin.h>

/* As ntddk.h has them since Windows 10 1903; mingw-w64's are those of Windows 7. */
typedef VOID NTAPI BUFFER_HANDLER(PVOID EventBuffer, ULONGLONG EntrySize, ULONGLONG NumberOfEntries,
                                  HANDLE OwningHandle);
typedef struct {
    ULONG Type, Flags; /* Type 0: a counter; 4: the buffer */
    union {
        ULONG CounterIndex;
        struct {
            BUFFER_HANDLER *OverflowHandler;
            ULONG CustomEventBufferEntrySize, EventThreshold;
        } EventBuffer;
    } u;
} COUNTER_RESOURCE;
typedef struct {
    ULONG Count;
    COUNTER_RESOURCE Descriptors[2];
} COUNTER_RESOURCES;

#define SAMPLES 10u
#define PERIOD 1000ull /* then the next instruction is recorded */
#define ITERATIONS (PERIOD * (SAMPLES + 2) / 4)
#define SELECT 0x5200c0u /* retired instructions, of ring 0, with an interrupt, enabled */
#define ADAPTIVE (1ull << 34)
#define IPI_LEVEL 14 /* the counters' interrupt alone comes through */

typedef struct {
    ULONG64 address, flags, rax, rcx, rdx;
} SAMPLE;

static BOOLEAN adaptive;
static HANDLE counter_set;
static SAMPLE samples[SAMPLES];
static ULONG records, calls, wrong;
extern const UCHAR loop[];

/* Older records begin with RFLAGS, RIP, RAX, RBX, RCX, RDX and have the instruction's address at
 * 176; adaptive ones have it at 8, and at 32 RFLAGS, RIP, RAX, RCX, RDX. */
static SAMPLE sample_of(const ULONG64 *word)
{
    SAMPLE old = { word[22], word[0], word[2], word[4], word[5] },
           new = { word[1], word[4], word[6], word[7], word[8] };
    return adaptive ? new : old;
}

/* At PROFILE_LEVEL, on the processor that wrote them; its counters are paused. */
static VOID NTAPI filled(PVOID EventBuffer, ULONGLONG EntrySize, ULONGLONG NumberOfEntries,
                         HANDLE OwningHandle)
{
    if (OwningHandle != counter_set || KeGetCurrentIrql() != PROFILE_LEVEL)
        wrong++;
    for (ULONGLONG i = 0; i < NumberOfEntries && records < SAMPLES; i++, records++)
        samples[records] = sample_of((const ULONG64 *)((UCHAR *)EventBuffer + i * EntrySize));
    calls++;
}

/* The counter is set back to what the debug store area has for it, which this processor writes. */
static VOID enable(BOOLEAN On)
{
    const ULONG64 start = (ULONG64)(LONG64)(LONG)(0 - PERIOD);
    __writemsr(0x186, 0);
    if (On) {
        ((ULONG64 *)__readmsr(0x600))[8] = start;
        __writemsr(0xc1, start);
        if (adaptive)
            __writemsr(0x3f2, 2); /* with registers */
        __writemsr(0x186, SELECT | (adaptive ? ADAPTIVE : 0));
    }
    __writemsr(0x3f1, On);
    if (On)
        __writemsr(0x38f, __readmsr(0x38f) | 1);
}

static VOID work(VOID)
{
    ULONG64 left = ITERATIONS, sum = 0, last = 0;
    __asm__ volatile(".globl loop\n"
                     "loop:\n\t"
                     "add %0, %1\n\t"
                     "mov %1, %2\n\t"
                     "sub $1, %0\n\t"
                     "jnz loop"
                     : "+c"(left), "+a"(sum), "+d"(last)
                     :
                     : "cc");
}

/* On one processor: the counter is that one's. */
static VOID sample(VOID)
{
    GROUP_AFFINITY one = { 1, 0, { 0 } }, before;
    KIRQL irql;
    KeSetSystemGroupAffinityThread(&one, &before);
    KeRaiseIrql(IPI_LEVEL, &irql);
    enable(TRUE);
    work();
    enable(FALSE);
    KeLowerIrql(irql);
    KeRevertToUserGroupAffinityThread(&before);
}

static VOID NTAPI unload(PDRIVER_OBJECT DriverObject)
{
    UNREFERENCED_PARAMETER(DriverObject);
    HalFreeHardwareCounters(counter_set);
    DbgPrint("%u calls, %u wrong\n", calls, wrong);
}

static VOID print_samples(VOID)
{
    DbgPrint("%u samples, one in %I64u instructions:\n", records, PERIOD + 1);
    for (ULONG i = 0; i < records; i++)
        DbgPrint("loop+%I64u: rax %I64u, rcx %I64u, rdx %I64u, flags 0x%I64x\n",
                 samples[i].address - (ULONG64)loop, samples[i].rax, samples[i].rcx, samples[i].rdx,
                 samples[i].flags);
}

/* PERF_CAPABILITIES has the format, where CPUID says that it is there. */
static BOOLEAN has_adaptive_records(VOID)
{
    int leaf[4];
    __cpuid(leaf, 1);
    return (leaf[2] & 1 << 15) && (__readmsr(0x345) >> 8 & 15) >= 4;
}

DRIVER_INITIALIZE DriverEntry;

NTSTATUS NTAPI DriverEntry(PDRIVER_OBJECT DriverObject, PUNICODE_STRING RegistryPath)
{
    COUNTER_RESOURCES resources = { 2, { { 0, 0, { 0 } }, { 4, 0, { 0 } } } };
    NTSTATUS status;
    UNREFERENCED_PARAMETER(RegistryPath);
    adaptive = has_adaptive_records();
    resources.Descriptors[1].u.EventBuffer.OverflowHandler = filled;
    resources.Descriptors[1].u.EventBuffer.CustomEventBufferEntrySize = adaptive ? 32 + 144 : 0;
    resources.Descriptors[1].u.EventBuffer.EventThreshold = SAMPLES;
    status = HalAllocateHardwareCounters(NULL, 0, (PPHYSICAL_COUNTER_RESOURCE_LIST)&resources,
                                         &counter_set);
    if (!NT_SUCCESS(status)) {
        DbgPrint("HalAllocateHardwareCounters: 0x%08lx\n", status);
        return status;
    }
    DriverObject->DriverUnload = unload;
    sample();
    print_samples();
    return STATUS_SUCCESS;
}
