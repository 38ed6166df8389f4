/* SPDX-License-Identifier: MIT */
/* What real drivers of counters import besides: strings, PCI, contiguous memory, times. */
#include "check_driver.h"

typedef ULONGLONG NTAPI QUERY_TIME(PULONG64 QpcTimeStamp);

/* --- Strings. --- */

static VOID check_strings(VOID)
{
    WCHAR space[8];
    UNICODE_STRING text = RTL_CONSTANT_STRING(L"count"), copy = { 0, 6, space },
                   more = RTL_CONSTANT_STRING(L"er"), whole = RTL_CONSTANT_STRING(L"counter");
    RtlCopyUnicodeString(&copy, &text); /* as much as fits */
    CHECK(copy.Length == 6 && space[0] == 'c' && space[2] == 'u');
    copy.MaximumLength = 12;
    RtlCopyUnicodeString(&copy, &text);
    CHECK(RtlAppendUnicodeStringToString(&copy, &more) == STATUS_BUFFER_TOO_SMALL);
    CHECK(copy.Length == 10);
    copy.MaximumLength = 14;
    CHECK(RtlAppendUnicodeStringToString(&copy, &more) == STATUS_SUCCESS);
    CHECK(RtlEqualUnicodeString(&copy, &whole, FALSE));
    RtlCopyUnicodeString(&copy, NULL);
    CHECK(copy.Length == 0);
}

/* --- PCI: QEMU's host bridge is the first device, and there is no bus 255. --- */

static VOID check_pci(VOID)
{
    ULONG id = 0, whole[64];
    USHORT half = 0, device_id = 0;
    UCHAR line, other, bytes[8], were[8];
    CHECK(HalGetBusDataByOffset(PCIConfiguration, 0, 0, &id, 0, 4) == 4 && (USHORT)id == 0x8086);
    CHECK(HalGetBusDataByOffset(PCIConfiguration, 0, 0, &device_id, 2, 2) == 2 &&
          device_id == id >> 16);
    CHECK(HalGetBusDataByOffset(PCIConfiguration, 0, 0, whole, 0, 256) == 256 && whole[0] == id);
    CHECK(HalGetBusDataByOffset(PCIConfiguration, 0, 0, whole, 252, 8) == 4);
    CHECK(HalGetBusDataByOffset(PCIConfiguration, 255, 31, &half, 0, 4) == 2 && half == 0xffff);
    CHECK(HalGetBusDataByOffset(PCIConfiguration, 256, 0, whole, 0, 4) == 0);
    CHECK(HalSetBusDataByOffset(PCIConfiguration, 256, 0, whole, 0, 4) == 0);
    CHECK(HalSetBusDataByOffset(PCIConfiguration, 255, 31, &half, 0, 2) == 0);
    CHECK(HalGetBusDataByOffset(Cmos, 0, 0, &id, 0, 4) == 0);
    /* The latency timer's neighbours, of which one may be written. */
    CHECK(HalGetBusDataByOffset(PCIConfiguration, 0, 0, &line, 0x3c, 1) == 1);
    other = (UCHAR)~line;
    CHECK(HalSetBusDataByOffset(PCIConfiguration, 0, 0, &other, 0x3c, 1) == 1);
    CHECK(HalGetBusDataByOffset(PCIConfiguration, 0, 0, whole, 0x3c, 4) == 4);
    CHECK(((UCHAR *)whole)[0] == other && ((UCHAR *)whole)[1] == 0);
    CHECK(HalSetBusDataByOffset(PCIConfiguration, 0, 0, &line, 0x3c, 1) == 1);
    /* Registers that QEMU keeps and does not use: what is beside the bytes stays. */
    CHECK(HalGetBusDataByOffset(PCIConfiguration, 0, 0, were, 0x40, 8) == 8);
    CHECK(HalSetBusDataByOffset(PCIConfiguration, 0, 0, "abcdefgh", 0x40, 8) == 8);
    CHECK(HalSetBusDataByOffset(PCIConfiguration, 0, 0, "12345", 0x41, 5) == 5);
    CHECK(HalGetBusDataByOffset(PCIConfiguration, 0, 0, bytes, 0x40, 8) == 8);
    CHECK(RtlCompareMemory(bytes, "a12345gh", 8) == 8);
    CHECK(HalSetBusDataByOffset(PCIConfiguration, 0, 0, "67", 0x42, 2) == 2);
    CHECK(HalGetBusDataByOffset(PCIConfiguration, 0, 0, bytes, 0x41, 5) == 5);
    CHECK(RtlCompareMemory(bytes, "16745", 5) == 5);
    CHECK(HalSetBusDataByOffset(PCIConfiguration, 0, 0, were, 0x40, 8) == 8);
}

/* --- Memory, times. --- */

static VOID check_memory(VOID)
{
    PHYSICAL_ADDRESS any, low;
    UCHAR *p;
    any.QuadPart = MAXLONGLONG;
    low.QuadPart = 0xffff;
    p = MmAllocateContiguousMemory(3 * 4096, any);
    CHECK(p && !((ULONG_PTR)p & 4095));
    CHECK(MmGetPhysicalAddress(p + 8192).QuadPart == MmGetPhysicalAddress(p).QuadPart + 8192);
    MmFreeContiguousMemory(p);
    CHECK(!MmAllocateContiguousMemory(4096, low));
    p = MmAllocateContiguousMemory(100, any);
    CHECK(p && !((ULONG_PTR)p & 4095));
    MmFreeContiguousMemory(p);
}

static VOID check_system(VOID)
{
    RTL_OSVERSIONINFOW version = { sizeof version, 0, 0, 0, 0, { 0 } };
    LARGE_INTEGER before = KeQueryPerformanceCounter(NULL), after;
    UNICODE_STRING name = RTL_CONSTANT_STRING(L"KeQueryInterruptTimePrecise");
    QUERY_TIME *query = (QUERY_TIME *)(ULONG_PTR)MmGetSystemRoutineAddress(&name);
    ULONG64 counter = 0, time = query ? query(&counter) : 0;
    after = KeQueryPerformanceCounter(NULL);
    CHECK(counter >= (ULONG64)before.QuadPart && counter <= (ULONG64)after.QuadPart);
    CHECK(time >= (ULONG64)before.QuadPart && KeQueryUnbiasedInterruptTime() >= time);
    time = KeQueryUnbiasedInterruptTime();
    CHECK(time <= (ULONG64)KeQueryPerformanceCounter(NULL).QuadPart);
    CHECK(ExGetPreviousMode() == KernelMode);
    CHECK(RtlGetVersion(&version) == STATUS_SUCCESS && version.dwMajorVersion == 10);
    CHECK(version.dwBuildNumber == 19045 && version.dwPlatformId == 2);
    version.dwOSVersionInfoSize--;
    CHECK(RtlGetVersion(&version) == STATUS_INVALID_PARAMETER);
}

NTSTATUS NTAPI DriverEntry(PDRIVER_OBJECT DriverObject, PUNICODE_STRING RegistryPath)
{
    DriverObject->DriverUnload = unload;
    check_strings();
    check_pci();
    check_memory();
    check_system();
    return check_result();
}
