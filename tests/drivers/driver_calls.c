/* SPDX-License-Identifier: MIT */
/* What else a driver may rely on: the order of DPCs and timers, registers under an interrupt,
 * pool, addresses, what DbgPrint prints. */
#define __USE_MINGW_ANSI_STDIO 0
#include "check_driver.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>
#pragma GCC diagnostic ignored "-Wformat"
#pragma GCC diagnostic ignored "-Wformat-extra-args"
#pragma GCC diagnostic ignored "-Wstringop-truncation"

/* --- DPCs. --- */

static volatile LONG order, on_cpu, calls;

static VOID NTAPI note(PKDPC Dpc, PVOID Context, PVOID Argument1, PVOID Argument2)
{
    order = order * 10 + (LONG)(LONG_PTR)Context;
    on_cpu = (LONG)KeGetCurrentProcessorNumberEx(NULL);
    InterlockedIncrement(&calls);
}

/* XMM0 is free for any function, but not for one that interrupts. */
static VOID NTAPI use_registers(PKDPC Dpc, PVOID Context, PVOID Argument1, PVOID Argument2)
{
    __asm__ volatile("pcmpeqd %%xmm0, %%xmm0\n\tpcmpeqd %%xmm5, %%xmm5" : : : "xmm0", "xmm5");
    InterlockedIncrement(&calls);
}

static VOID check_dpcs(VOID)
{
    KDPC first, second, urgent;
    KIRQL irql;
    LONG cpu, last = (LONG)KeQueryActiveProcessorCountEx(ALL_PROCESSOR_GROUPS) - 1;
    last = last > 63 ? 63 : last;
    KeInitializeDpc(&first, note, (PVOID)1);
    KeInitializeDpc(&second, note, (PVOID)2);
    KeInitializeDpc(&urgent, note, (PVOID)3);
    KeSetImportanceDpc(&urgent, HighImportance);
    KeRaiseIrql(DISPATCH_LEVEL, &irql);
    cpu = (LONG)KeGetCurrentProcessorNumberEx(NULL);
    KeInsertQueueDpc(&first, NULL, NULL);
    KeInsertQueueDpc(&second, NULL, NULL);
    KeInsertQueueDpc(&urgent, NULL, NULL);
    CHECK(!order && cpu == (LONG)KeGetCurrentProcessorNumberEx(NULL));
    KeLowerIrql(irql);
    CHECK(order == 312 && on_cpu == cpu);
    KeRaiseIrql(DISPATCH_LEVEL, &irql);
    KeInsertQueueDpc(&first, NULL, NULL);
    CHECK(KeRemoveQueueDpc(&first) && !KeRemoveQueueDpc(&first));
    KeLowerIrql(irql);
    KeFlushQueuedDpcs();
    CHECK(order == 312);
    KeSetTargetProcessorDpc(&second, (CCHAR)last);
    KeInsertQueueDpc(&second, NULL, NULL);
    KeFlushQueuedDpcs();
    while (calls < 4)
        YieldProcessor();
    CHECK(order == 3122 && on_cpu == last);
}

/* --- Timers. --- */

static LARGE_INTEGER after_ms(LONG Ms)
{
    LARGE_INTEGER time;
    time.QuadPart = -10000ll * Ms;
    return time;
}

static NTSTATUS wait_for(PVOID Object, PLARGE_INTEGER Timeout)
{
    return KeWaitForSingleObject(Object, Executive, KernelMode, FALSE, Timeout);
}

static VOID check_timers(VOID)
{
    KTIMER early, late;
    KDPC of_early, of_late;
    LARGE_INTEGER now = after_ms(0);
    KeInitializeDpc(&of_early, note, (PVOID)1);
    KeInitializeDpc(&of_late, note, (PVOID)2);
    KeInitializeTimer(&early);
    KeInitializeTimerEx(&late, SynchronizationTimer);
    order = 0;
    KeSetTimer(&late, after_ms(60), &of_late);
    KeSetTimer(&early, after_ms(3), &of_early);
    CHECK(wait_for(&late, NULL) == STATUS_SUCCESS);
    KeFlushQueuedDpcs();
    CHECK(order == 12);
    CHECK(KeReadStateTimer(&early) && !KeReadStateTimer(&late)); /* one waiter takes it */
    CHECK(!KeSetTimer(&early, after_ms(3600000), &of_early));    /* and it is not signalled */
    CHECK(wait_for(&early, &now) == STATUS_TIMEOUT);
    CHECK(KeSetTimer(&early, after_ms(30), &of_early)); /* it was set; that time has gone */
    CHECK(KeCancelTimer(&early) && !KeCancelTimer(&early));
    KeSetTimer(&late, after_ms(40), NULL);
    CHECK(wait_for(&late, NULL) == STATUS_SUCCESS);
    CHECK(order == 12 && !KeReadStateTimer(&early)); /* what is cancelled does not come */
    calls = 0;
    KeSetTimerEx(&late, after_ms(1), 2, &of_late);
    for (int i = 0; i < 3; i++)
        CHECK(wait_for(&late, NULL) == STATUS_SUCCESS);
    CHECK(KeCancelTimer(&late));
    KeFlushQueuedDpcs();
    CHECK(calls >= 3);
}

static VOID check_registers(VOID)
{
    KTIMER timer;
    KDPC dpc;
    ULONG64 low = 0x1122334455667788, found = 0, found5 = 0;
    calls = 0;
    KeInitializeDpc(&dpc, use_registers, NULL);
    KeInitializeTimer(&timer);
    KeSetTargetProcessorDpc(&dpc, (CCHAR)0);
    KeSetSystemAffinityThread(1);
    KeSetTimer(&timer, after_ms(2), &dpc);
    __asm__ volatile("movq %3, %%xmm0\n\t"
                     "movq %3, %%xmm5\n"
                     "1:  pause\n\t"
                     "cmpl $0, %2\n\t"
                     "je 1b\n\t"
                     "movq %%xmm0, %0\n\t"
                     "movq %%xmm5, %1"
                     : "=&r"(found), "=&r"(found5)
                     : "m"(calls), "r"(low)
                     : "xmm0", "xmm5", "memory", "cc");
    KeRevertToUserAffinityThread();
    CHECK(found == low && found5 == low);
}

/* --- Memory. --- */

static VOID check_pool(VOID)
{
    UCHAR *blocks[40];
    ULONG i, j, bad = 0;
    for (i = 0; i < 40; i++) { /* sizes on both sides of each of the pool's own */
        blocks[i] = ExAllocatePoolWithTag(NonPagedPool, 16 + i * 61, 'klaC');
        for (j = 0; j < 16 + i * 61; j++)
            blocks[i][j] = (UCHAR)(i + 1);
    }
    for (i = 0; i < 40; i++) {
        for (j = 0; j < 16 + i * 61; j++)
            bad += blocks[i][j] != i + 1;
        ExFreePoolWithTag(blocks[i], 'klaC');
    }
    CHECK(bad == 0);
    blocks[0] = ExAllocatePoolWithTag(NonPagedPool, 100, 'klaC'); /* of the freed ones */
    for (j = 0; j < 100; j++)
        bad += blocks[0][j];
    CHECK(bad == 0);
    ExFreePool(blocks[0]);
}

static VOID check_addresses(VOID)
{
    static volatile ULONG here = 0x12345678;
    ULONG *in_pool = ExAllocatePoolWithTag(NonPagedPool, 64, 'klaC');
    volatile ULONG *again =
        MmMapIoSpace(MmGetPhysicalAddress((PVOID)(ULONG_PTR)&here), sizeof here, MmNonCached);
    CHECK(again && again != &here && *again == here);
    *in_pool = 99;
    again = MmMapIoSpace(MmGetPhysicalAddress(in_pool), sizeof *in_pool, MmNonCached);
    CHECK(again && *again == 99);
    CHECK(MmGetPhysicalAddress((PVOID)(ULONG_PTR)0x10).QuadPart == 0);
    ExFreePoolWithTag(in_pool, 'klaC');
    CHECK(RtlCompareMemory("abcd", "abXd", 4) == 2 && RtlCompareMemory("abcd", "abcX", 3) == 3);
}

/* --- The C library: printf and wide strings. text.c compares the others with the host. --- */

static int list_print(char *to, size_t size, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int n = _vsnprintf(to, size, format, args);
    va_end(args);
    return n;
}

static VOID check_library(VOID)
{
    char text[40] = "xxxxxxxxxx";
    WCHAR wide[40] = L"xxxxxxxxxx";
    UNICODE_STRING counted = RTL_CONSTANT_STRING(L"counted");
    CHECK(_snprintf(text, 4, "abcd") == 4 && text[4] == 'x');
    CHECK(_snprintf(text, 4, "%d", 12345) == -1 && !strncmp(text, "1234x", 5));
    CHECK(_snprintf(text, 5, "%s%c", "abc", 'd') == 4 && !strcmp(text, "abcd"));
    CHECK(list_print(text, 40, "%-*d|% d|%+ld|%.*s", 4, 7, 7, 7L, 2, "abc") == 13);
    CHECK(!strcmp(text, "7   | 7|+7|ab"));
    CHECK(sprintf(text, "%ws %S %hs %wZ %C", L"one", L"two", "three", &counted, L'4') == 23);
    CHECK(!strcmp(text, "one two three counted 4"));
    CHECK(sprintf(text, "%hS %lS %hC%lC", "small", L"wide", 's', L'w') == 13);
    CHECK(!strcmp(text, "small wide sw"));
    CHECK(_snwprintf(wide, 10, L"%s %S %I64x", L"one", "two", 0x123456789ull) == -1);
    CHECK(!wcsncmp(wide, L"one two 12", 10) && wide[10] == 0);
    CHECK(_snwprintf(wide, 40, L"%hs %ls %wZ %p", "a", L"b", &counted, (PVOID)16) == 28);
    CHECK(!wcscmp(wide, L"a b counted 0000000000000010"));
    CHECK(!wcscmp(wcscat(wcscpy(wide, L"wide"), L"r"), L"wider") && wcslen(wide) == 5);
    CHECK(!_wcsicmp(wide, L"WIDER") && wcsstr(wide, L"der") == wide + 2 && wcschr(wide, 'd'));
}

static KDPC of_end;

static VOID NTAPI outlive(PKDPC Dpc, PVOID Context, PVOID Argument1, PVOID Argument2)
{
    KeStallExecutionProcessor(2000);
    DbgPrint("a DPC outlives DriverUnload\n");
}

/* The driver stays until the DPC on the other processor has ended. */
static VOID NTAPI unload_calls(PDRIVER_OBJECT DriverObject)
{
    KeInitializeDpc(&of_end, outlive, NULL);
    KeSetTargetProcessorDpc(&of_end, (CCHAR)!KeGetCurrentProcessorNumberEx(NULL));
    KeInsertQueueDpc(&of_end, NULL, NULL);
}

NTSTATUS NTAPI DriverEntry(PDRIVER_OBJECT DriverObject, PUNICODE_STRING RegistryPath)
{
    UNICODE_STRING counted = RTL_CONSTANT_STRING(L"counted");
    DriverObject->DriverUnload = unload_calls;
    check_dpcs();
    check_timers();
    check_registers();
    check_pool();
    check_addresses();
    check_library();
    DbgPrint("[%5d|%-5d|%05d|%+d|%.3d|%05.3d] [%x|%#X|%08lx] [%I64x|%I64d|%llu]\n", -42, 42, -42, 7,
             5, 5, 0xbeef, 0xbeef, 0xbeefL, 0x123456789abcdefll, -5000000000ll, 5000000000ull);
    DbgPrint("[%s|%.2s|%5s|%-5s|%05s] [%S|%ws|%wZ] [%c|%C|%%] [%p]\n", "text", "text", "ab", "ab",
             "ab", L"wide", L"also", &counted, 'c', 'C', (PVOID)(ULONG_PTR)0xfeed);
    return check_result();
}
