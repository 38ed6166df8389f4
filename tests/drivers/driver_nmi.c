/* SPDX-License-Identifier: MIT */
/* NMI callbacks: registers and IRQL, several of them, and one that runs while it is removed. */
#include "check_driver.h"

#define APIC_BASE 0xfee00000
#define APIC_ICR 0x300
#define APIC_ICR_HIGH 0x310
#define NMI_TO_SELF 0x40400 /* delivery mode NMI, shorthand self */
#define NMI 0x4400          /* to the one in ICR_HIGH */
#define MOST 8

static volatile ULONG *apic;

static volatile LONG nmis, nmi_level;

static BOOLEAN NTAPI on_nmi(PVOID Context, BOOLEAN Handled)
{
    nmi_level = KeGetCurrentIrql();
    InterlockedIncrement(Context);
    __asm__ volatile("pcmpeqd %%xmm3, %%xmm3" : : : "xmm3");
    return Handled;
}

static VOID order(ULONG Register, ULONG Value) { apic[Register / 4] = Value; }

/* One at a time is sent, and waited for while only PAUSEs go by. */
static BOOLEAN send(LONG Want)
{
    order(APIC_ICR, NMI_TO_SELF);
    for (ULONG i = 0; i < 1000000 && nmis != Want; i++)
        YieldProcessor();
    return nmis == Want;
}

static VOID check_one(VOID)
{
    KIRQL irql;
    ULONG64 mine = 0x1122334455667788, found = 0;
    PVOID handle = KeRegisterNmiCallback(on_nmi, (PVOID)(ULONG_PTR)&nmis);
    CHECK(handle != NULL);
    CHECK(send(1) && nmi_level == HIGH_LEVEL);
    KeRaiseIrql(HIGH_LEVEL, &irql); /* which does not hold it up */
    CHECK(send(2) && KeGetCurrentIrql() == HIGH_LEVEL);
    KeLowerIrql(irql);
    __asm__ volatile("movq %0, %%xmm3" : : "r"(mine) : "xmm3");
    order(APIC_ICR, NMI_TO_SELF);
    while (nmis != 3)
        YieldProcessor();
    __asm__ volatile("movq %%xmm3, %0" : "=r"(found) : : "xmm3");
    CHECK(found == mine);
    SUCCEEDS(KeDeregisterNmiCallback(handle));
    CHECK(KeDeregisterNmiCallback(handle) == STATUS_INVALID_HANDLE);
    order(APIC_ICR, NMI_TO_SELF);
    KeStallExecutionProcessor(1000);
    CHECK(nmis == 3);
}

/* Each learns whether one before it has handled the NMI. */
static volatile LONG handled_before;

static BOOLEAN NTAPI handles(PVOID Context, BOOLEAN Handled)
{
    InterlockedIncrement(Context);
    handled_before += Handled;
    return TRUE;
}

static VOID check_many(VOID)
{
    PVOID handles_of[MOST];
    for (int i = 0; i < MOST; i++) {
        handles_of[i] = KeRegisterNmiCallback(handles, (PVOID)(ULONG_PTR)&nmis);
        CHECK(handles_of[i] && (!i || handles_of[i] != handles_of[i - 1]));
    }
    CHECK(!KeRegisterNmiCallback(handles, NULL));
    nmis = 0;
    CHECK(send(MOST) && handled_before == MOST - 1);
    for (int i = 0; i < MOST; i++)
        SUCCEEDS(KeDeregisterNmiCallback(handles_of[i]));
}

static volatile LONG entered, left;

static BOOLEAN NTAPI takes_long(PVOID Context, BOOLEAN Handled)
{
    entered = 1;
    for (ULONG i = 0; i < 2000; i++)
        YieldProcessor();
    left = 1;
    return Handled;
}

/* It runs on another processor, and is not removed before it returns. */
static VOID check_removal(VOID)
{
    if (KeQueryActiveProcessorCount(NULL) < 2)
        return;
    KeSetSystemAffinityThread(1);
    PVOID handle = KeRegisterNmiCallback(takes_long, NULL);
    order(APIC_ICR_HIGH, 1 << 24);
    order(APIC_ICR, NMI);
    for (ULONG i = 0; i < 100000000 && !entered; i++)
        YieldProcessor();
    CHECK(entered && !left);
    SUCCEEDS(KeDeregisterNmiCallback(handle));
    CHECK(left == 1);
    KeRevertToUserAffinityThread();
}

NTSTATUS NTAPI DriverEntry(PDRIVER_OBJECT DriverObject, PUNICODE_STRING RegistryPath)
{
    PHYSICAL_ADDRESS at;
    DriverObject->DriverUnload = unload;
    at.QuadPart = APIC_BASE;
    apic = MmMapIoSpace(at, 4096, MmNonCached);
    CHECK(apic != NULL);
    check_one();
    check_many();
    check_removal();
    MmUnmapIoSpace((PVOID)(ULONG_PTR)apic, 4096);
    return check_result();
}
