/* SPDX-License-Identifier: MIT */
/* IRQL, spin locks, processors, time. `where` is who called. Sources: the Windows driver
 * documentation. */
#include "hal/clock.h"
#include "hal/smp.h"
#include "kernel/base/assert.h"
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

KIRQL driver_KeGetCurrentIrql(uint64_t where)
{
    (void)where;
    return irql_current();
}

KIRQL driver_KfRaiseIrql(uint64_t where, KIRQL NewIrql)
{
    uint64_t irql = irql_current();
    if (NewIrql < irql || NewIrql > HIGH_LEVEL)
        bug_check(IRQL_NOT_LESS_OR_EQUAL, (uint64_t[]){ NewIrql, irql, 0, where }, where,
                  "KeRaiseIrql to a lower IRQL");
    return irql_raise(NewIrql);
}

VOID driver_KeLowerIrql(uint64_t where, KIRQL NewIrql)
{
    uint64_t irql = irql_current();
    if (NewIrql > irql)
        bug_check(IRQL_NOT_LESS_OR_EQUAL, (uint64_t[]){ NewIrql, irql, 0, where }, where,
                  "KeLowerIrql to a higher IRQL");
    irql_lower(NewIrql);
}

KIRQL driver_KeRaiseIrqlToDpcLevel(uint64_t where)
{
    (void)where;
    return irql_raise(DISPATCH_LEVEL);
}

/* --- Spin locks: 0, or the processor that has it + 1. --- */

VOID driver_KeInitializeSpinLock(uint64_t where, PKSPIN_LOCK SpinLock)
{
    (void)where;
    *SpinLock = 0;
}

static bool take(PKSPIN_LOCK lock)
{
    KSPIN_LOCK free = 0;
    return __atomic_compare_exchange_n(lock, &free, cpu_number() + 1, false, __ATOMIC_ACQUIRE,
                                       __ATOMIC_RELAXED);
}

VOID driver_KeAcquireSpinLockAtDpcLevel(uint64_t where, PKSPIN_LOCK SpinLock)
{
    uint64_t irql = irql_current(), me = cpu_number() + 1;
    if (irql < DISPATCH_LEVEL)
        bug_check(IRQL_NOT_LESS_OR_EQUAL, (uint64_t[]){ (uint64_t)SpinLock, irql, 1, where }, where,
                  "KeAcquireSpinLockAtDpcLevel below DISPATCH_LEVEL");
    for (unsigned pauses = 0; !take(SpinLock); pauses++) {
        if (__atomic_load_n(SpinLock, __ATOMIC_RELAXED) == me)
            bug_check(SPIN_LOCK_ALREADY_OWNED, (uint64_t[]){ (uint64_t)SpinLock, 0, 0, 0 }, where,
                      "");
        if (pauses == SPIN_LIMIT)
            bug_check(CLOCK_WATCHDOG_TIMEOUT,
                      (uint64_t[]){ (uint64_t)SpinLock, *SpinLock - 1, 0, 0 }, where,
                      "a spin lock is not released");
        pause();
    }
}

VOID driver_KeReleaseSpinLockFromDpcLevel(uint64_t where, PKSPIN_LOCK SpinLock)
{
    if (__atomic_load_n(SpinLock, __ATOMIC_RELAXED) != cpu_number() + 1)
        bug_check(SPIN_LOCK_NOT_OWNED, (uint64_t[]){ (uint64_t)SpinLock, 0, 0, 0 }, where, "");
    __atomic_store_n(SpinLock, 0, __ATOMIC_RELEASE);
}

KIRQL driver_KeAcquireSpinLockRaiseToDpc(uint64_t where, PKSPIN_LOCK SpinLock)
{
    KIRQL old = irql_raise(DISPATCH_LEVEL);
    driver_KeAcquireSpinLockAtDpcLevel(where, SpinLock);
    return old;
}

VOID driver_KeReleaseSpinLock(uint64_t where, PKSPIN_LOCK SpinLock, KIRQL NewIrql)
{
    driver_KeReleaseSpinLockFromDpcLevel(where, SpinLock);
    driver_KeLowerIrql(where, NewIrql);
}

BOOLEAN driver_KeTryToAcquireSpinLockAtDpcLevel(uint64_t where, PKSPIN_LOCK SpinLock)
{
    (void)where;
    return take(SpinLock);
}

BOOLEAN driver_KeTestSpinLock(uint64_t where, PKSPIN_LOCK SpinLock)
{
    (void)where;
    return __atomic_load_n(SpinLock, __ATOMIC_RELAXED) == 0;
}

/* --- Processors. What names no group is of group 0. --- */

/* The processors of a group; 0: there is none of that number. */
static KAFFINITY group(USHORT number)
{
    return number < CPU_GROUPS_MAX ? cpu_all().bits[number] : 0;
}

ULONG driver_KeQueryActiveProcessorCountEx(uint64_t where, USHORT GroupNumber)
{
    (void)where;
    unsigned before = GroupNumber * CPU_GROUP_SIZE,
             rest = cpu_count > before ? cpu_count - before : 0;
    if (GroupNumber == ALL_PROCESSOR_GROUPS)
        return cpu_count;
    return rest < CPU_GROUP_SIZE ? rest : CPU_GROUP_SIZE;
}

ULONG driver_KeQueryMaximumProcessorCountEx(uint64_t where, USHORT GroupNumber)
{
    return driver_KeQueryActiveProcessorCountEx(where, GroupNumber);
}

ULONG driver_KeQueryActiveProcessorCount(uint64_t where, PKAFFINITY ActiveProcessors)
{
    (void)where;
    if (ActiveProcessors)
        *ActiveProcessors = group(0);
    return driver_KeQueryActiveProcessorCountEx(where, 0);
}

USHORT driver_KeQueryActiveGroupCount(uint64_t where)
{
    (void)where;
    return cpu_groups();
}

USHORT driver_KeQueryMaximumGroupCount(uint64_t where)
{
    (void)where;
    return cpu_groups();
}

KAFFINITY driver_KeQueryActiveProcessors(uint64_t where)
{
    (void)where;
    return group(0);
}

KAFFINITY driver_KeQueryGroupAffinity(uint64_t where, USHORT GroupNumber)
{
    (void)where;
    return group(GroupNumber);
}

ULONG driver_KeGetCurrentProcessorNumberEx(uint64_t where, PPROCESSOR_NUMBER ProcNumber)
{
    unsigned number = cpu_number();
    (void)where;
    if (ProcNumber)
        *ProcNumber = cpu_group_number(number);
    return number;
}

/* STATUS_INVALID_PARAMETER: there is none of that index. */
NTSTATUS driver_KeGetProcessorNumberFromIndex(uint64_t where, ULONG ProcIndex,
                                              PPROCESSOR_NUMBER ProcNumber)
{
    (void)where;
    if (ProcIndex >= cpu_count)
        return STATUS_INVALID_PARAMETER;
    *ProcNumber = cpu_group_number(ProcIndex);
    return STATUS_SUCCESS;
}

ULONG driver_KeGetProcessorIndexFromNumber(uint64_t where, PPROCESSOR_NUMBER ProcNumber)
{
    (void)where;
    unsigned cpu = cpu_of_number(*ProcNumber);
    return cpu < MAX_CPUS ? cpu : ~0u;
}

/* Moves the current thread to these processors, of which those that do not exist are ignored,
 * before it returns. False: there is none, and nothing changed. */
static bool set_affinity(struct cpu_set to)
{
    if (!NT_SUCCESS(sched_set_affinity(thread_current(), to)))
        return false;
    while (!cpu_set_has(&to, cpu_number()))
        sched_switch(WrYieldExecution);
    return true;
}

/* The first of these calls saves the thread's own affinity, to which a call with 0 reverts.
 * Returns what an earlier one of these calls has set; Mask 0: none has. */
static GROUP_AFFINITY set_system(struct cpu_set to)
{
    struct thread *me = thread_current();
    struct cpu_set was = me->affinity;
    bool own = cpu_set_empty(me->user_affinity);
    if (set_affinity(to) && own)
        me->user_affinity = was;
    const GROUP_AFFINITY none = { .Mask = 0 };
    return own ? none : cpu_set_primary(was);
}

static void revert(struct cpu_set to)
{
    struct thread *me = thread_current();
    bool to_own = cpu_set_empty(to);
    if (cpu_set_empty(me->user_affinity))
        return;
    set_affinity(to_own ? me->user_affinity : to);
    if (to_own)
        me->user_affinity = cpu_set_none();
}

KAFFINITY driver_KeSetSystemAffinityThreadEx(uint64_t where, KAFFINITY Affinity)
{
    (void)where;
    return set_system(cpu_set_group(0, Affinity)).Mask;
}

VOID driver_KeSetSystemAffinityThread(uint64_t where, KAFFINITY Affinity)
{
    driver_KeSetSystemAffinityThreadEx(where, Affinity);
}

VOID driver_KeRevertToUserAffinityThreadEx(uint64_t where, KAFFINITY Affinity)
{
    (void)where;
    revert(cpu_set_group(0, Affinity));
}

VOID driver_KeRevertToUserAffinityThread(uint64_t where)
{
    driver_KeRevertToUserAffinityThreadEx(where, 0);
}

static struct cpu_set set_of(const GROUP_AFFINITY *a)
{
    bool valid = a->Group < CPU_GROUPS_MAX && !a->Reserved[0] && !a->Reserved[1] && !a->Reserved[2];
    return valid ? cpu_set_group(a->Group, a->Mask) : cpu_set_none();
}

/* No such group or processor, or reserved fields not 0: nothing happens, as documented, and
 * *PreviousAffinity is 0. */
VOID driver_KeSetSystemGroupAffinityThread(uint64_t where, PGROUP_AFFINITY Affinity,
                                           PGROUP_AFFINITY PreviousAffinity)
{
    const struct cpu_set to = cpu_set_and(set_of(Affinity), cpu_all());
    GROUP_AFFINITY old = { .Mask = 0 };
    (void)where;
    if (!cpu_set_empty(to))
        old = set_system(to);
    if (PreviousAffinity)
        *PreviousAffinity = old;
}

VOID driver_KeRevertToUserGroupAffinityThread(uint64_t where, PGROUP_AFFINITY PreviousAffinity)
{
    (void)where;
    revert(set_of(PreviousAffinity));
}

struct broadcast {
    ULONG_PTR(NTAPI *function)(ULONG_PTR);
    ULONG_PTR argument, result;
    const struct thread *caller;
    uint32_t arrived; /* atomic */
};

/* As documented, no processor begins before all are there. */
static void broadcast(void *argument)
{
    struct broadcast *b = argument;
    struct driver_visit visit;
    __atomic_fetch_add(&b->arrived, 1, __ATOMIC_ACQ_REL);
    for (unsigned pauses = 0; __atomic_load_n(&b->arrived, __ATOMIC_ACQUIRE) < cpu_count;
         pauses++) {
        if (pauses == SPIN_LIMIT)
            bug_check(CLOCK_WATCHDOG_TIMEOUT, (uint64_t[]){ 0, 0, 0, 0 }, (uint64_t)b->function,
                      "a processor does not come to KeIpiGenericCall");
        pause();
    }
    driver_enter(&visit, b->function);
    ULONG_PTR result = b->function(b->argument);
    if (thread_current() == b->caller)
        b->result = result;
    driver_leave(&visit);
}

/* NT: IRQL <= APC_LEVEL; there up to IPI_LEVEL - 1. */
ULONG_PTR driver_KeIpiGenericCall(uint64_t where, PVOID BroadcastFunction, ULONG_PTR Context)
{
    (void)where;
    struct broadcast b = { .function = BroadcastFunction,
                           .argument = Context,
                           .caller = thread_current() };
    smp_call(SMP_ALL, broadcast, &b);
    return b.result;
}

/* --- Time. --- */

LARGE_INTEGER driver_KeQueryPerformanceCounter(uint64_t where, PLARGE_INTEGER PerformanceFrequency)
{
    (void)where;
    if (PerformanceFrequency)
        PerformanceFrequency->QuadPart = 10000000;
    return (LARGE_INTEGER){ .QuadPart = (LONGLONG)(clock_ns() / 100) };
}

ULONGLONG driver_KeQueryInterruptTime(uint64_t where)
{
    (void)where;
    return clock_ns() / 100;
}

/* NT: the machine's clock is not read: it was started in 2020. */
VOID driver_KeQuerySystemTimePrecise(uint64_t where, PLARGE_INTEGER CurrentTime)
{
    (void)where;
    CurrentTime->QuadPart = (LONGLONG)(SYSTEM_TIME_AT_BOOT + clock_ns() / 100);
}

ULONG driver_KeQueryTimeIncrement(uint64_t where)
{
    (void)where;
    return (ULONG)(sched_tick_ns() / 100);
}

VOID driver_KeStallExecutionProcessor(uint64_t where, ULONG MicroSeconds)
{
    uint64_t end = clock_ns() + MicroSeconds * 1000ul;
    (void)where;
    while (clock_ns() < end)
        pause();
}

/* --- Waits. --- */

static void check_wait(uint64_t where, const char *name, const LARGE_INTEGER *timeout)
{
    uint64_t irql = irql_current();
    if (irql >= DISPATCH_LEVEL && (!timeout || timeout->QuadPart))
        bug_check(IRQL_NOT_LESS_OR_EQUAL, (uint64_t[]){ where, irql, 0, where }, where, name);
}

NTSTATUS driver_KeWaitForSingleObject(uint64_t where, PVOID Object, KWAIT_REASON WaitReason,
                                      KPROCESSOR_MODE WaitMode, BOOLEAN Alertable,
                                      PLARGE_INTEGER Timeout)
{
    check_wait(where, "KeWaitForSingleObject waits at DISPATCH_LEVEL", Timeout);
    return KeWaitForSingleObject(Object, WaitReason, WaitMode, Alertable, Timeout);
}

NTSTATUS driver_KeWaitForMultipleObjects(uint64_t where, ULONG Count, PVOID Object[],
                                         WAIT_TYPE WaitType, KWAIT_REASON WaitReason,
                                         KPROCESSOR_MODE WaitMode, BOOLEAN Alertable,
                                         PLARGE_INTEGER Timeout, PKWAIT_BLOCK WaitBlockArray)
{
    check_wait(where, "KeWaitForMultipleObjects waits at DISPATCH_LEVEL", Timeout);
    return KeWaitForMultipleObjects(Count, Object, WaitType, WaitReason, WaitMode, Alertable,
                                    Timeout, WaitBlockArray);
}

/* There are no APCs to hold back. */
VOID driver_KeEnterCriticalRegion(uint64_t where) { (void)where; }
VOID driver_KeLeaveCriticalRegion(uint64_t where) { (void)where; }

VOID driver_KeBugCheckEx(uint64_t where, ULONG BugCheckCode, ULONG_PTR P1, ULONG_PTR P2,
                         ULONG_PTR P3, ULONG_PTR P4)
{
    bug_check(BugCheckCode, (uint64_t[]){ P1, P2, P3, P4 }, where, "KeBugCheckEx");
}

VOID driver_KeBugCheck(uint64_t where, ULONG BugCheckCode)
{
    bug_check(BugCheckCode, (uint64_t[]){ 0, 0, 0, 0 }, where, "KeBugCheck");
}
