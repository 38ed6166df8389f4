/* SPDX-License-Identifier: MIT */
/* IRQL, spin locks, processors, time. Sources: the Windows driver documentation. */
#include "hal/machine/clock.h"
#include "hal/machine/smp.h"
#include "kernel/base/irql.h"
#include "kernel/base/print.h"
#include "kernel/base/x86.h"
#include "kernel/driver/bugcheck.h"
#include "kernel/driver/driver.h"
#include "kernel/ke/dispatcher.h"
#include "kernel/ke/sched.h"
#include "kernel/ke/thread.h"
#include "kernel/nt/nt_time.h"

#define SPIN_LIMIT 400000000u /* PAUSEs: seconds */
#define ALL_PROCESSOR_GROUPS 0xffff

/* --- IRQL. NT: in wdm.h these are inline; drivers of other headers import them. --- */

KIRQL KeGetCurrentIrql(void) { return irql_current(); }

KIRQL KfRaiseIrql(KIRQL NewIrql)
{
    uint64_t irql = irql_current();
    if (NewIrql < irql || NewIrql > HIGH_LEVEL)
        bug_check(IRQL_NOT_LESS_OR_EQUAL, (uint64_t[]){ NewIrql, irql, 0, driver_caller() },
                  "KeRaiseIrql to a lower IRQL");
    return irql_raise(NewIrql);
}

VOID KeLowerIrql(KIRQL NewIrql)
{
    uint64_t irql = irql_current();
    if (NewIrql > irql)
        bug_check(IRQL_NOT_LESS_OR_EQUAL, (uint64_t[]){ NewIrql, irql, 0, driver_caller() },
                  "KeLowerIrql to a higher IRQL");
    irql_lower(NewIrql);
}

KIRQL KeRaiseIrqlToDpcLevel(void) { return irql_raise(DISPATCH_LEVEL); }

/* --- Spin locks: 0, or the processor that has it + 1. --- */

VOID KeInitializeSpinLock(PKSPIN_LOCK SpinLock) { *SpinLock = 0; }

static bool take_spin_lock(PKSPIN_LOCK lock)
{
    KSPIN_LOCK free = 0;
    return __atomic_compare_exchange_n(lock, &free, cpu_number() + 1, false, __ATOMIC_ACQUIRE,
                                       __ATOMIC_RELAXED);
}

VOID KeAcquireSpinLockAtDpcLevel(PKSPIN_LOCK SpinLock)
{
    uint64_t irql = irql_current(), me = cpu_number() + 1;
    if (irql < DISPATCH_LEVEL)
        bug_check(IRQL_NOT_LESS_OR_EQUAL,
                  (uint64_t[]){ (uint64_t)SpinLock, irql, 1, driver_caller() },
                  "KeAcquireSpinLockAtDpcLevel below DISPATCH_LEVEL");
    for (unsigned pauses = 0; !take_spin_lock(SpinLock); pauses++) {
        if (__atomic_load_n(SpinLock, __ATOMIC_RELAXED) == me)
            bug_check(SPIN_LOCK_ALREADY_OWNED, (uint64_t[]){ (uint64_t)SpinLock, 0, 0, 0 },
                      "this processor has the lock already");
        if (pauses == SPIN_LIMIT)
            bug_check(CLOCK_WATCHDOG_TIMEOUT,
                      (uint64_t[]){ (uint64_t)SpinLock, *SpinLock - 1, 0, 0 },
                      "another processor has held this spin lock for seconds");
        pause();
    }
}

VOID KeReleaseSpinLockFromDpcLevel(PKSPIN_LOCK SpinLock)
{
    if (__atomic_load_n(SpinLock, __ATOMIC_RELAXED) != cpu_number() + 1)
        bug_check(SPIN_LOCK_NOT_OWNED, (uint64_t[]){ (uint64_t)SpinLock, 0, 0, 0 },
                  "this processor does not have the lock that it releases");
    __atomic_store_n(SpinLock, 0, __ATOMIC_RELEASE);
}

KIRQL KeAcquireSpinLockRaiseToDpc(PKSPIN_LOCK SpinLock)
{
    KIRQL old = irql_raise(DISPATCH_LEVEL);
    KeAcquireSpinLockAtDpcLevel(SpinLock);
    return old;
}

VOID KeReleaseSpinLock(PKSPIN_LOCK SpinLock, KIRQL NewIrql)
{
    KeReleaseSpinLockFromDpcLevel(SpinLock);
    KeLowerIrql(NewIrql);
}

BOOLEAN KeTryToAcquireSpinLockAtDpcLevel(PKSPIN_LOCK SpinLock) { return take_spin_lock(SpinLock); }

BOOLEAN KeTestSpinLock(PKSPIN_LOCK SpinLock)
{
    return __atomic_load_n(SpinLock, __ATOMIC_RELAXED) == 0;
}

/* --- Processors. Routines without a group are about group 0. --- */

/* The processors of a group; 0: there is none of that number. */
static KAFFINITY group_mask(USHORT number)
{
    return number < CPU_GROUPS_MAX ? cpu_all().bits[number] : 0;
}

ULONG KeQueryActiveProcessorCountEx(USHORT GroupNumber)
{
    unsigned before = GroupNumber * CPU_GROUP_SIZE,
             rest = cpu_count > before ? cpu_count - before : 0;
    if (GroupNumber == ALL_PROCESSOR_GROUPS)
        return cpu_count;
    return rest < CPU_GROUP_SIZE ? rest : CPU_GROUP_SIZE;
}

ULONG KeQueryMaximumProcessorCountEx(USHORT GroupNumber)
{
    return KeQueryActiveProcessorCountEx(GroupNumber);
}

ULONG KeQueryActiveProcessorCount(PKAFFINITY ActiveProcessors)
{
    if (ActiveProcessors)
        *ActiveProcessors = group_mask(0);
    return KeQueryActiveProcessorCountEx(0);
}

USHORT KeQueryActiveGroupCount(void) { return cpu_groups(); }

USHORT KeQueryMaximumGroupCount(void) { return cpu_groups(); }

KAFFINITY KeQueryActiveProcessors(void) { return group_mask(0); }

KAFFINITY KeQueryGroupAffinity(USHORT GroupNumber) { return group_mask(GroupNumber); }

ULONG KeGetCurrentProcessorNumberEx(PPROCESSOR_NUMBER ProcNumber)
{
    unsigned number = cpu_number();
    if (ProcNumber)
        *ProcNumber = cpu_group_number(number);
    return number;
}

/* STATUS_INVALID_PARAMETER: there is none of that index. */
NTSTATUS KeGetProcessorNumberFromIndex(ULONG ProcIndex, PPROCESSOR_NUMBER ProcNumber)
{
    if (ProcIndex >= cpu_count)
        return STATUS_INVALID_PARAMETER;
    *ProcNumber = cpu_group_number(ProcIndex);
    return STATUS_SUCCESS;
}

ULONG KeGetProcessorIndexFromNumber(PPROCESSOR_NUMBER ProcNumber)
{
    unsigned cpu = cpu_of_number(*ProcNumber);
    return cpu < MAX_CPUS ? cpu : ~0u;
}

/* Moves the current thread to these processors, of which those that do not exist are ignored,
 * before it returns. False: there is none, and nothing changed. */
static bool move_thread(struct cpu_set to)
{
    if (!NT_SUCCESS(sched_set_affinity(thread_current(), to)))
        return false;
    while (!cpu_set_has(&to, cpu_number()))
        sched_switch(WrYieldExecution);
    return true;
}

/* The first of these calls saves the thread's own affinity, to which a call with 0 reverts.
 * Returns what an earlier one of these calls has set; Mask 0: none has. */
static GROUP_AFFINITY set_system_affinity(struct cpu_set to)
{
    struct thread *me = thread_current();
    struct cpu_set was = me->affinity;
    bool own = cpu_set_empty(me->user_affinity);
    if (move_thread(to) && own)
        me->user_affinity = was;
    const GROUP_AFFINITY none = { .Mask = 0 };
    return own ? none : cpu_set_primary(was);
}

static void revert_affinity(struct cpu_set to)
{
    struct thread *me = thread_current();
    bool to_own = cpu_set_empty(to);
    if (cpu_set_empty(me->user_affinity))
        return;
    move_thread(to_own ? me->user_affinity : to);
    if (to_own)
        me->user_affinity = cpu_set_none();
}

KAFFINITY KeSetSystemAffinityThreadEx(KAFFINITY Affinity)
{
    return set_system_affinity(cpu_set_group(0, Affinity)).Mask;
}

VOID KeSetSystemAffinityThread(KAFFINITY Affinity) { KeSetSystemAffinityThreadEx(Affinity); }

VOID KeRevertToUserAffinityThreadEx(KAFFINITY Affinity)
{
    revert_affinity(cpu_set_group(0, Affinity));
}

VOID KeRevertToUserAffinityThread(void) { KeRevertToUserAffinityThreadEx(0); }

static struct cpu_set cpus_of_affinity(const GROUP_AFFINITY *a)
{
    bool valid = a->Group < CPU_GROUPS_MAX && !a->Reserved[0] && !a->Reserved[1] && !a->Reserved[2];
    return valid ? cpu_set_group(a->Group, a->Mask) : cpu_set_none();
}

/* No such group or processor, or reserved fields not 0: nothing happens, as documented, and
 * *PreviousAffinity is 0. */
VOID KeSetSystemGroupAffinityThread(PGROUP_AFFINITY Affinity, PGROUP_AFFINITY PreviousAffinity)
{
    const struct cpu_set to = cpu_set_and(cpus_of_affinity(Affinity), cpu_all());
    GROUP_AFFINITY old = { .Mask = 0 };
    if (!cpu_set_empty(to))
        old = set_system_affinity(to);
    if (PreviousAffinity)
        *PreviousAffinity = old;
}

VOID KeRevertToUserGroupAffinityThread(PGROUP_AFFINITY PreviousAffinity)
{
    revert_affinity(cpus_of_affinity(PreviousAffinity));
}

struct broadcast {
    ULONG_PTR(NTAPI *function)(ULONG_PTR);
    ULONG_PTR argument, result;
    const struct thread *caller;
    uint32_t arrived; /* atomic */
};

/* As documented, no processor begins before all are there. */
static void run_broadcast(void *argument)
{
    struct broadcast *b = argument;
    struct driver_call call;
    __atomic_fetch_add(&b->arrived, 1, __ATOMIC_ACQ_REL);
    for (unsigned pauses = 0; __atomic_load_n(&b->arrived, __ATOMIC_ACQUIRE) < cpu_count;
         pauses++) {
        if (pauses == SPIN_LIMIT)
            bug_check_at((uint64_t)b->function, CLOCK_WATCHDOG_TIMEOUT, (uint64_t[]){ 0, 0, 0, 0 },
                         "a processor has not taken the interrupt of KeIpiGenericCall for seconds");
        pause();
    }
    driver_enter(&call, b->function);
    ULONG_PTR result = b->function(b->argument);
    if (thread_current() == b->caller)
        b->result = result;
    driver_leave(&call);
}

/* NT: IRQL <= APC_LEVEL; there up to IPI_LEVEL - 1. */
ULONG_PTR KeIpiGenericCall(PVOID BroadcastFunction, ULONG_PTR Context)
{
    struct broadcast b = { .function = BroadcastFunction,
                           .argument = Context,
                           .caller = thread_current() };
    smp_call(SMP_ALL, run_broadcast, &b);
    return b.result;
}

/* --- Time. --- */

LARGE_INTEGER KeQueryPerformanceCounter(PLARGE_INTEGER PerformanceFrequency)
{
    if (PerformanceFrequency)
        PerformanceFrequency->QuadPart = 10000000;
    return (LARGE_INTEGER){ .QuadPart = (LONGLONG)(clock_ns() / 100) };
}

ULONGLONG KeQueryInterruptTime(void) { return clock_ns() / 100; }

/* NT: the machine's clock is not read: time begins on a fixed day of 2020. */
VOID KeQuerySystemTimePrecise(PLARGE_INTEGER CurrentTime)
{
    CurrentTime->QuadPart = (LONGLONG)(SYSTEM_TIME_AT_BOOT + clock_ns() / 100);
}

ULONG KeQueryTimeIncrement(void) { return (ULONG)(sched_tick_ns() / 100); }

VOID KeStallExecutionProcessor(ULONG MicroSeconds)
{
    uint64_t end = clock_ns() + MicroSeconds * 1000ul;
    while (clock_ns() < end)
        pause();
}

/* --- Waits. --- */

static void check_wait(const char *name, const LARGE_INTEGER *timeout)
{
    uint64_t irql = irql_current();
    if (irql >= DISPATCH_LEVEL && (!timeout || timeout->QuadPart))
        bug_check(IRQL_NOT_LESS_OR_EQUAL, (uint64_t[]){ driver_caller(), irql, 0, driver_caller() },
                  name);
}

NTSTATUS driver_KeWaitForSingleObject(PVOID Object, KWAIT_REASON WaitReason,
                                      KPROCESSOR_MODE WaitMode, BOOLEAN Alertable,
                                      PLARGE_INTEGER Timeout)
{
    check_wait("KeWaitForSingleObject waits at DISPATCH_LEVEL", Timeout);
    return KeWaitForSingleObject(Object, WaitReason, WaitMode, Alertable, Timeout);
}

NTSTATUS driver_KeWaitForMultipleObjects(ULONG Count, PVOID Object[], WAIT_TYPE WaitType,
                                         KWAIT_REASON WaitReason, KPROCESSOR_MODE WaitMode,
                                         BOOLEAN Alertable, PLARGE_INTEGER Timeout,
                                         PKWAIT_BLOCK WaitBlockArray)
{
    check_wait("KeWaitForMultipleObjects waits at DISPATCH_LEVEL", Timeout);
    return KeWaitForMultipleObjects(Count, Object, WaitType, WaitReason, WaitMode, Alertable,
                                    Timeout, WaitBlockArray);
}

/* --- Releases. NT: Windows raises exceptions; these are bug checks that name the driver. --- */

static void check_release(NTSTATUS status, const char *words)
{
    if (!NT_SUCCESS(status))
        bug_check(KMODE_EXCEPTION_NOT_HANDLED,
                  (uint64_t[]){ (uint32_t)status, driver_caller(), 0, 0 }, words);
}

LONG driver_KeReleaseSemaphore(PRKSEMAPHORE Semaphore, KPRIORITY, LONG Adjustment, BOOLEAN)
{
    LONG before;
    check_release(semaphore_release(Semaphore, Adjustment, &before),
                  "KeReleaseSemaphore exceeds the limit, STATUS_SEMAPHORE_LIMIT_EXCEEDED");
    return before;
}

LONG driver_KeReleaseMutex(PRKMUTEX Mutex, BOOLEAN)
{
    LONG before;
    check_release(mutant_release(Mutex, &before),
                  "KeReleaseMutex by a thread that does not own it, STATUS_MUTANT_NOT_OWNED");
    return before;
}

/* There are no APCs to hold back. */
VOID KeEnterCriticalRegion(void) {}
VOID KeLeaveCriticalRegion(void) {}

VOID KeBugCheckEx(ULONG BugCheckCode, ULONG_PTR P1, ULONG_PTR P2, ULONG_PTR P3, ULONG_PTR P4)
{
    bug_check(BugCheckCode, (uint64_t[]){ P1, P2, P3, P4 }, "KeBugCheckEx");
}

VOID KeBugCheck(ULONG BugCheckCode)
{
    bug_check(BugCheckCode, (uint64_t[]){ 0, 0, 0, 0 }, "KeBugCheck");
}
