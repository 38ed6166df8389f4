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
    CHECK(lock && second);
    IS(KeGetCurrentIrql(), DISPATCH_LEVEL);
    release(&second);
    CHECK(lock && !second);
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
    IS(KeGetProcessorNumberFromIndex(count, &last), STATUS_INVALID_PARAMETER);
    SUCCEEDS(KeGetProcessorNumberFromIndex(count - 1, &last));
    IS(KeGetProcessorIndexFromNumber(&last), count - 1);
    IS(KeGetProcessorIndexFromNumber(&none), INVALID_PROCESSOR_INDEX);
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
    LONGLONG before = KeQueryPerformanceCounter(NULL).QuadPart;
    ULONGLONG interrupt = CALL(ULONGLONG, KeQueryInterruptTime, VOID)();
    LARGE_INTEGER first, second;
    CALL(VOID, KeQuerySystemTimePrecise, PLARGE_INTEGER)(&first);
    LONGLONG after = KeQueryPerformanceCounter(NULL).QuadPart;
    CHECK((LONGLONG)interrupt >= before && (LONGLONG)interrupt <= after);
    KeStallExecutionProcessor(1000);
    CALL(VOID, KeQuerySystemTimePrecise, PLARGE_INTEGER)(&second);
    CHECK(second.QuadPart - first.QuadPart >= 10000);
    CHECK(second.QuadPart - first.QuadPart <= KeQueryPerformanceCounter(NULL).QuadPart - before);
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

/* What vDbgPrintEx, and the functions of lists, get of these arguments. */
static ULONG print_list(PCSTR Prefix, PCSTR Format, ...)
{
    va_list list;
    va_start(list, Format);
    ULONG status =
        Prefix ? CALL(ULONG, vDbgPrintExWithPrefix, PCSTR, ULONG, ULONG, PCSTR,
                      va_list)(Prefix, 77, 0, Format, list)
               : CALL(ULONG, vDbgPrintEx, ULONG, ULONG, PCSTR, va_list)(77, 0, Format, list);
    va_end(list);
    return status;
}

typedef int PRINT_SAFELY(WCHAR *, SIZE_T, SIZE_T, const WCHAR *, va_list);
static int list_safely(PRINT_SAFELY *Function, PVOID Text, SIZE_T Size, SIZE_T Count,
                       const VOID *Format, ...)
{
    va_list list;
    va_start(list, Format);
    int n = Function(Text, Size, Count, Format, list);
    va_end(list);
    return n;
}

static int list_sized(const WCHAR *Name, PVOID Text, SIZE_T Size, const VOID *Format, ...)
{
    int (*print)(PVOID, SIZE_T, const VOID *, va_list) = routine(Name);
    va_list list;
    va_start(list, Format);
    int n = print(Text, Size, Format, list);
    va_end(list);
    return n;
}

static VOID check_text(VOID)
{
    WCHAR wide[8] = { 0 };
    CHAR text[8] = "abcdefg";
    int (*safely)(WCHAR *, SIZE_T, SIZE_T, const WCHAR *, ...) = routine(L"_snwprintf_s");
    int (*plain)(WCHAR *, const WCHAR *, ...) = routine(L"_swprintf");
    SUCCEEDS(CALL(ULONG, DbgPrintEx, ULONG, ULONG, PCSTR, ...)(77, 0, "printed %d ", 1));
    SUCCEEDS(print_list(NULL, "of a list %s ", "two"));
    SUCCEEDS(print_list("with a prefix ", "%x\n", 0xab));
    IS(safely(wide, 8, 7, L"%d-%s", 12, L"ab"), 5);
    IS(wcscmp(wide, L"12-ab"), 0);
    IS(safely(wide, 8, 3, L"%d", 12345), -1); /* three of five, and a NUL */
    IS(wcscmp(wide, L"123"), 0);
    IS(safely(wide, 4, (SIZE_T)-1, L"%d", 67890), -1); /* _TRUNCATE: what fits */
    IS(wcscmp(wide, L"678"), 0);
    IS(safely(wide, 4, 4, L"%d", 12345), -1); /* four do not fit: nothing */
    IS(wide[0], 0);
    IS(list_safely(routine(L"_vsnwprintf_s"), wide, 8, 7, L"%u", 7), 1);
    IS(list_safely(routine(L"_vsnprintf_s"), text, 8, 2, "%u", 789), -1);
    IS(strcmp(text, "78"), 0);
    IS(list_sized(L"vswprintf_s", wide, 8, L"<%c>", 'x'), 3);
    IS(wcscmp(wide, L"<x>"), 0);
    IS(list_sized(L"vswprintf_s", wide, 3, L"<%c>", 'x'), -1);
    IS(wide[0], 0);
    IS(plain(wide, L"%04x", 0xbe), 4);
    IS(wcscmp(wide, L"00be"), 0);
    CALL(VOID, RtlMoveMemory, PVOID, const VOID *, SIZE_T)(text + 1, "123456", 3);
    CALL(VOID, RtlMoveMemory, PVOID, const VOID *, SIZE_T)(text + 2, text + 1, 3);
    IS(memcmp(text, "71123", 5), 0);
    IS(list_sized(L"vsprintf_s", text, 8, "%d-%s", 12, "ab"), 5);
    IS(strcmp(text, "12-ab"), 0);
    IS(list_sized(L"vsprintf_s", text, 3, "%d", 123), -1);
    IS(text[0], 0);
}

typedef errno_t PUT_WIDE(WCHAR *, SIZE_T, const WCHAR *);
typedef errno_t PUT_SOME_WIDE(WCHAR *, SIZE_T, const WCHAR *, SIZE_T);

/* STRUNCATE, ERANGE and EINVAL are 80, 34 and 22. */
static VOID check_strings(VOID)
{
    WCHAR wide[8] = L"#######", *(*part)(WCHAR *, const WCHAR *, SIZE_T) = routine(L"wcsncpy");
    CHAR text[8] = "ab";
    PUT_WIDE *put = routine(L"wcscpy_s");
    PUT_SOME_WIDE *some = routine(L"wcsncpy_s"), *more = routine(L"wcsncat_s");
    IS(part(wide, L"ab", 4) == wide && !wide[2] && !wide[3] && wide[4] == '#', 1);
    part = routine(L"wcsncat");
    IS(wcscmp(part(wide, L"cdef", 2), L"abcd"), 0);
    IS(CALL(SIZE_T, wcsnlen, const WCHAR *, SIZE_T)(wide, 3), 3);
    IS(CALL(SIZE_T, wcsspn, const WCHAR *, const WCHAR *)(wide, L"bac"), 3);
    IS(CALL(SIZE_T, wcscspn, const WCHAR *, const WCHAR *)(wide, L"dc"), 2);
    IS(CALL(USHORT, towupper, USHORT)('z'), 'Z');
    IS(CALL(USHORT, towlower, USHORT)('Z'), 'z');
    IS(put(wide, 5, L"four") | wcscmp(wide, L"four"), 0);
    IS(put(wide, 4, L"four"), 34);
    IS(wide[0], 0);
    IS(some(wide, 8, L"xyz", 2) | wcscmp(wide, L"xy"), 0);
    IS(some(NULL, 8, L"x", 1), 22);
    IS(more(wide, 5, L"cdef", (SIZE_T)-1), 80);
    IS(wcscmp(wide, L"xycd"), 0);
    IS(CALL(errno_t, strncat_s, CHAR *, SIZE_T, const CHAR *, SIZE_T)(text, 8, "cdef", 2), 0);
    IS(strcmp(text, "abcd"), 0);
    IS(CALL(errno_t, strncat_s, CHAR *, SIZE_T, const CHAR *, SIZE_T)(text, 8, "efgh", 4), 34);
    IS(text[0], 0);
}

static VOID NTAPI unload(PDRIVER_OBJECT DriverObject) {}

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
