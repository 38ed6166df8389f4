/* SPDX-License-Identifier: MIT */
/* Routines that wdm.h has inline or under another name, and drivers of other headers import; and
 * those of processors, identities and memory that no other driver here calls. */
#include "check_driver.h"
#include "routine.h"

#define CALL(result, name, ...) ((result(NTAPI *)(__VA_ARGS__))routine(L## #name))

static VOID check_irql(VOID)
{
    KIRQL(NTAPI * raise)(KIRQL) = routine(L"KfRaiseIrql");
    VOID(NTAPI * lower)(KIRQL) = routine(L"KeLowerIrql");
    KIRQL(NTAPI * level)(VOID) = routine(L"KeGetCurrentIrql");
    KIRQL(NTAPI * to_dpc)(VOID) = routine(L"KeRaiseIrqlToDpcLevel");
    IS(level(), PASSIVE_LEVEL);
    IS(raise(PASSIVE_LEVEL), PASSIVE_LEVEL);
    IS(raise(APC_LEVEL), PASSIVE_LEVEL);
    IS(level(), APC_LEVEL);
    IS(to_dpc(), APC_LEVEL);
    IS(level(), DISPATCH_LEVEL);
    IS(raise(HIGH_LEVEL), DISPATCH_LEVEL);
    IS(level(), HIGH_LEVEL);
    lower(HIGH_LEVEL);
    IS(level(), HIGH_LEVEL);
    lower(PASSIVE_LEVEL);
    IS(level(), PASSIVE_LEVEL);
}

static VOID check_spin_locks(VOID)
{
    VOID(NTAPI * initialize)(PKSPIN_LOCK) = routine(L"KeInitializeSpinLock");
    KIRQL(NTAPI * raise)(PKSPIN_LOCK) = routine(L"KeAcquireSpinLockRaiseToDpc");
    VOID(NTAPI * acquire)(PKSPIN_LOCK) = routine(L"KeAcquireSpinLockAtDpcLevel");
    VOID(NTAPI * release)(PKSPIN_LOCK) = routine(L"KeReleaseSpinLockFromDpcLevel");
    KSPIN_LOCK lock = 99, second = 0;
    KIRQL irql;
    initialize(&lock);
    IS(lock, 0);
    IS(raise(&lock), PASSIVE_LEVEL);
    acquire(&second);
    CHECK(!KeTestSpinLock(&lock) && !KeTryToAcquireSpinLockAtDpcLevel(&second));
    IS(KeGetCurrentIrql(), DISPATCH_LEVEL);
    release(&second);
    CHECK(!KeTestSpinLock(&lock) && KeTestSpinLock(&second));
    IS(KeGetCurrentIrql(), DISPATCH_LEVEL);
    KeReleaseSpinLock(&lock, PASSIVE_LEVEL);
    IS(lock, 0);
    IS(KeGetCurrentIrql(), PASSIVE_LEVEL);
}

static VOID NTAPI note_processor(PKDPC Dpc, PVOID Context, PVOID Argument1, PVOID Argument2)
{
    *(volatile LONG *)Context = (LONG)KeGetCurrentProcessorNumberEx(NULL);
}

static VOID check_processors(VOID)
{
    KAFFINITY active = 0;
    ULONG count = KeQueryActiveProcessorCount(&active);
    PROCESSOR_NUMBER none = { 0, (UCHAR)count, 0 }, last;
    volatile LONG at = -1;
    KDPC dpc;
    IS(KeQueryMaximumProcessorCountEx(ALL_PROCESSOR_GROUPS), count);
    IS(KeQueryMaximumProcessorCountEx(0), count);
    IS(KeQueryMaximumProcessorCountEx(KeQueryMaximumGroupCount()), 0);
    IS(KeQueryMaximumGroupCount(), 1);
    IS(active, (1u << count) - 1);
    IS(KeQueryActiveProcessors(), active);
    SUCCEEDS(KeGetProcessorNumberFromIndex(count - 1, &last));
    KeInitializeDpc(&dpc, note_processor, (PVOID)&at);
    IS(KeSetTargetProcessorDpcEx(&dpc, &none), STATUS_INVALID_PARAMETER);
    SUCCEEDS(KeSetTargetProcessorDpcEx(&dpc, &last));
    KeInsertQueueDpc(&dpc, NULL, NULL);
    KeFlushQueuedDpcs();
    IS(at, count - 1);
    KAFFINITY before = KeSetSystemAffinityThreadEx(1);
    IS(KeGetCurrentProcessorNumberEx(NULL), 0);
    KeSetSystemAffinityThreadEx((KAFFINITY)1 << (count - 1));
    IS(KeGetCurrentProcessorNumberEx(NULL), count - 1);
    KeRevertToUserAffinityThreadEx(1);
    IS(KeGetCurrentProcessorNumberEx(NULL), 0);
    KeRevertToUserAffinityThreadEx(before);
    IS(KeSetSystemAffinityThreadEx(active), 0);
    KeRevertToUserAffinityThreadEx(0);
}

/* Times are of one clock, in units of 100 ns. */
static VOID check_times(VOID)
{
    LARGE_INTEGER frequency;
    LONGLONG before = KeQueryPerformanceCounter(&frequency).QuadPart;
    ULONGLONG interrupt = CALL(ULONGLONG, KeQueryInterruptTime, VOID)();
    LARGE_INTEGER first, second;
    CALL(VOID, KeQuerySystemTimePrecise, PLARGE_INTEGER)(&first);
    LONGLONG after = KeQueryPerformanceCounter(NULL).QuadPart;
    CHECK((LONGLONG)interrupt >= before && (LONGLONG)interrupt <= after);
    KeStallExecutionProcessor(1000);
    CALL(VOID, KeQuerySystemTimePrecise, PLARGE_INTEGER)(&second);
    CHECK(second.QuadPart - first.QuadPart >= 10000);
    CHECK(second.QuadPart - first.QuadPart <= KeQueryPerformanceCounter(NULL).QuadPart - before);
    IS(frequency.QuadPart, 10000000);
    IS(first.QuadPart / 864000000000ll, 153036); /* days from 1601 to 2020 */
    IS(KeQueryTimeIncrement(), 10000);           /* a tick is 1 ms */
}

static VOID check_identities(VOID)
{
    CLIENT_ID *none = NULL;
    PVOID thread = KeGetCurrentThread();
    CHECK(thread == CALL(PVOID, PsGetCurrentThread, VOID)());
    IS(PsGetCurrentProcessId(), PsGetThreadProcessId(thread));
    IS(PsGetCurrentThreadId(), PsGetThreadId(thread));
    IS(PsGetProcessId((PEPROCESS)none), 0);
    CHECK(!IoGetCurrentProcess() && !CALL(PVOID, PsGetCurrentProcess, VOID)());
    IS(ObfReferenceObject(thread) - ObfDereferenceObject(thread), 1);
    UNICODE_STRING none_such = RTL_CONSTANT_STRING(L"\\??\\NoneSuch");
    PVOID object = NULL;
    IS(IoDeleteSymbolicLink(&none_such), STATUS_OBJECT_NAME_NOT_FOUND);
    IS(ObReferenceObjectByHandle((HANDLE)0x7ffc, 0, NULL, KernelMode, &object, NULL),
       STATUS_INVALID_HANDLE);
    CHECK(!object);
    KeEnterCriticalRegion();
    IS(KeGetCurrentIrql(), PASSIVE_LEVEL);
    KeLeaveCriticalRegion();
}

static VOID check_memory(VOID)
{
    PHYSICAL_ADDRESS apic;
    ULONG word = 1;
    MDL mdl = { 0 };
    ULONG *p = CALL(PVOID, ExAllocatePool, ULONG, SIZE_T)(NonPagedPool, 100);
    CHECK(p && !((ULONG_PTR)p & 15));
    p[24] = 1;
    CALL(VOID, ExFreePool2, PVOID, ULONG, PVOID, ULONG)(p, 'enoN', NULL, 0);
    apic.QuadPart = 0xfee00000;
    volatile ULONG *version =
        CALL(PVOID, MmMapIoSpaceEx, PHYSICAL_ADDRESS, SIZE_T, ULONG)(apic, 0x1000, PAGE_READWRITE);
    CHECK(version && (version[0x30 / 4] & 0xff) >= 0x10); /* SDM 11.4.8: 1xh, an integrated APIC */
    MmUnmapIoSpace((PVOID)version, 0x1000);
    CHECK(!CALL(PVOID, MmMapIoSpaceEx, PHYSICAL_ADDRESS, SIZE_T, ULONG)(apic, 0, PAGE_READWRITE));
    mdl.MappedSystemVa = &word;
    CHECK(MmMapLockedPagesSpecifyCache(&mdl, KernelMode, MmCached, NULL, FALSE,
                                       NormalPagePriority) == &word);
    MmUnmapLockedPages(&word, &mdl);
}

static VOID check_text(VOID)
{
    WCHAR wide[8] = { 0 };
    CHAR text[8] = "abcdefg";
    int (*plain)(WCHAR *, const WCHAR *, ...) = routine(L"_swprintf");
    SUCCEEDS(CALL(ULONG, DbgPrintEx, ULONG, ULONG, PCSTR, ...)(77, 0, "printed %d\n", 1));
    IS(plain(wide, L"%04x", 0xbe), 4);
    IS(wcscmp(wide, L"00be"), 0);
    CALL(VOID, RtlMoveMemory, PVOID, const VOID *, SIZE_T)(text + 1, "123456", 3);
    CALL(VOID, RtlMoveMemory, PVOID, const VOID *, SIZE_T)(text + 2, text + 1, 3);
    IS(memcmp(text, "a1123", 5), 0);
}

static VOID check_strings(VOID)
{
    WCHAR wide[8] = L"#######", *(*part)(WCHAR *, const WCHAR *, SIZE_T) = routine(L"wcsncpy");
    IS(part(wide, L"ab", 4) == wide && !wide[2] && !wide[3] && wide[4] == '#', 1);
    part = routine(L"wcsncat");
    IS(wcscmp(part(wide, L"cdef", 2), L"abcd"), 0);
    IS(CALL(SIZE_T, wcsnlen, const WCHAR *, SIZE_T)(wide, 3), 3);
    IS(CALL(USHORT, towupper, USHORT)('z'), 'Z');
    IS(CALL(USHORT, towlower, USHORT)('Z'), 'z');
}

NTSTATUS NTAPI DriverEntry(PDRIVER_OBJECT DriverObject, PUNICODE_STRING RegistryPath)
{
    DriverObject->DriverUnload = unload;
    check_irql();
    check_spin_locks();
    check_processors();
    check_times();
    check_identities();
    check_memory();
    check_text();
    check_strings();
    return check_result();
}
