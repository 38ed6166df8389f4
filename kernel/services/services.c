/* SPDX-License-Identifier: MIT */
/* Thread, handle and time services. They run at PASSIVE_LEVEL in the caller's context. */
#include "hal/machine/clock.h"
#include "kernel/ke/copy.h"
#include "kernel/services/services.h"
#include "kernel/base/bits.h"
#include "kernel/base/cpu.h"
#include "kernel/base/print.h"
#include "kernel/base/x86.h"
#include "kernel/ke/process.h"
#include "kernel/ke/sched.h"
#include "kernel/ke/suspend.h"
#include "kernel/ke/thread.h"
#include "kernel/mm/vm.h"
#include "kernel/profiling/profiling_enable.h"

/* STATUS_INVALID_HANDLE. */
NTSTATUS NtClose(HANDLE Handle) { return handle_close(Handle); }

/* NT: within the current process only (STATUS_NOT_SUPPORTED otherwise). STATUS_ACCESS_DENIED: more
 * access than the source has. Handle errors of all three handles; STATUS_ACCESS_VIOLATION;
 * STATUS_INSUFFICIENT_RESOURCES. */
NTSTATUS NtDuplicateObject(HANDLE SourceProcessHandle, HANDLE SourceHandle,
                           HANDLE TargetProcessHandle, PHANDLE TargetHandle,
                           ACCESS_MASK DesiredAccess, ULONG, ULONG Options)
{
    struct object *object;
    HANDLE handle = NULL;
    ACCESS_MASK access; /* of the handle at the time of the look-up: another thread may put another
                           one in its place */

    if (SourceProcessHandle != NtCurrentProcess() || TargetProcessHandle != NtCurrentProcess())
        return STATUS_NOT_SUPPORTED;
    bool same = Options & DUPLICATE_SAME_ACCESS;
    NTSTATUS status =
        handle_lookup_access(SourceHandle, 0, same ? 0 : DesiredAccess, &object, &access);
    if (!NT_SUCCESS(status))
        return status;
    status = handle_create(object, same ? access : DesiredAccess, &handle);
    if (NT_SUCCESS(status)) {
        status = copy_out(TargetHandle, &handle, sizeof handle);
        if (!NT_SUCCESS(status))
            handle_close(handle);
        else if (Options & DUPLICATE_CLOSE_SOURCE)
            handle_close(SourceHandle);
    }
    object_release(object);
    return status;
}

/* NULL or the current thread: does not return. Another one ends at its next return to ring 3. */
NTSTATUS NtTerminateThread(HANDLE ThreadHandle, NTSTATUS ExitStatus)
{
    struct object *object;
    if (!ThreadHandle)
        thread_exit(ExitStatus);
    NTSTATUS status = handle_lookup(ThreadHandle, &thread_type, THREAD_TERMINATE, &object);
    if (!NT_SUCCESS(status))
        return status;
    if (object == &thread_current()->object) {
        object_release(object);
        thread_exit(ExitStatus);
    }
    thread_terminate((struct thread *)object, ExitStatus);
    object_release(object);
    return STATUS_SUCCESS;
}

/* NT: the current process only: STATUS_NOT_SUPPORTED otherwise. Its other threads end at their next
 * return to ring 3. ProcessHandle NULL: only these end, and the service returns when they have. */
NTSTATUS NtTerminateProcess(HANDLE ProcessHandle, NTSTATUS ExitStatus)
{
    struct object *object;
    if (!ProcessHandle && thread_current()->process) {
        process_end_others(ExitStatus);
        return STATUS_SUCCESS;
    }
    NTSTATUS status = handle_lookup(ProcessHandle, &process_type, 0, &object);
    if (!NT_SUCCESS(status))
        return status;
    bool ours = object == &thread_current()->process->object;
    object_release(object);
    if (!ours)
        return STATUS_NOT_SUPPORTED;
    process_end(ExitStatus);
}

/* NT: in the current process, stack of our size: ZeroBits, AttributeList and all CreateFlags but
 * THREAD_CREATE_FLAGS_CREATE_SUSPENDED must be 0 (STATUS_NOT_SUPPORTED). STATUS_ACCESS_VIOLATION
 * also for a StartRoutine outside ring 3. STATUS_NO_MEMORY. */
NTSTATUS NtCreateThreadEx(PHANDLE ThreadHandle, ACCESS_MASK DesiredAccess, PVOID ObjectAttributes,
                          HANDLE ProcessHandle, PVOID StartRoutine, PVOID Argument,
                          ULONG CreateFlags, SIZE_T ZeroBits, SIZE_T, SIZE_T, PVOID AttributeList)
{
    struct thread *me = thread_current();
    HANDLE handle = NULL;

    if (ProcessHandle != NtCurrentProcess() || ObjectAttributes ||
        (CreateFlags & ~THREAD_CREATE_FLAGS_CREATE_SUSPENDED) || ZeroBits || AttributeList)
        return STATUS_NOT_SUPPORTED;
    if (!user_range(StartRoutine, 1))
        return STATUS_ACCESS_VIOLATION;
    NTSTATUS status = copy_probe(ThreadHandle, sizeof handle);
    if (!NT_SUCCESS(status))
        return status;
    struct thread *thread =
        thread_create_another(me->process, (uint64_t)StartRoutine, (uint64_t)Argument, true);
    if (!thread)
        return STATUS_NO_MEMORY;
    status = handle_create(&thread->object, DesiredAccess, &handle);
    if (NT_SUCCESS(status))
        status = copy_out(ThreadHandle, &handle, sizeof handle);
    else
        thread_terminate(thread, status); /* before it has run */
    if (!CreateFlags)
        thread_resume(thread);
    object_release(&thread->object);
    return status;
}

/* --- What a thread has, by class: as many bytes are copied as the class has. --- */

union thread_information {
    THREAD_BASIC_INFORMATION basic;
    KERNEL_USER_TIMES times;
    uint64_t cycles[2];
    LONG priority;
    KAFFINITY mask;
    GROUP_AFFINITY group;
};

static void query_basic(const struct thread *thread, union thread_information *info)
{
    THREAD_BASIC_INFORMATION *basic = &info->basic;
    basic->ExitStatus = object_signaled(&thread->object) ? thread->exit_status : STATUS_PENDING;
    basic->TebBaseAddress = (PVOID)thread->teb;
    basic->ClientId = thread_client_id(thread);
    basic->AffinityMask = cpu_set_primary(thread->affinity).Mask;
    basic->Priority = thread->priority;
    basic->BasePriority = thread->priority - THREAD_PRIORITY;
}

static void query_times(const struct thread *thread, union thread_information *info)
{
    uint64_t ended, cycles = thread_cycles(thread, &ended);
    usage_times(thread->created, ended, cycles, &info->times);
}

/* The cycles, and a copy of them (NT: those since the last switch). */
static void query_cycles(const struct thread *thread, union thread_information *info)
{
    uint64_t ended;
    info->cycles[0] = info->cycles[1] = thread_cycles(thread, &ended);
}

/* Of the process' priority: -2 to 2, and -15 and 15, which stand for 1 and 15. */
static NTSTATUS set_base_priority(struct thread *thread, const union thread_information *info)
{
    LONG above = info->priority, priority = THREAD_PRIORITY + above;
    if ((above < -2 || above > 2) && above != -15 && above != 15)
        return STATUS_INVALID_PARAMETER;
    sched_set_priority(thread, priority < 1 ? 1 : priority > 15 ? 15 : priority);
    return STATUS_SUCCESS;
}

/* Of the thread's primary group. */
static NTSTATUS set_affinity(struct thread *thread, const union thread_information *info)
{
    unsigned group = cpu_set_primary(thread->affinity).Group;
    return thread_profiling_set_affinity(thread, cpu_set_group(group, info->mask));
}

static void query_group(const struct thread *thread, union thread_information *info)
{
    info->group = cpu_set_primary(thread->affinity);
}

static NTSTATUS set_group(struct thread *thread, const union thread_information *info)
{
    struct cpu_set affinity;
    if (!cpu_set_of_group(&info->group, &affinity))
        return STATUS_INVALID_PARAMETER;
    return thread_profiling_set_affinity(thread, affinity);
}

static const struct information_class {
    THREADINFOCLASS number;
    ULONG size;
    void (*query)(const struct thread *thread, union thread_information *info);
    NTSTATUS (*set)(struct thread *thread, const union thread_information *info);
} classes[] = {
    { ThreadBasicInformation, sizeof(THREAD_BASIC_INFORMATION), query_basic, NULL },
    { ThreadTimes, sizeof(KERNEL_USER_TIMES), query_times, NULL },
    { ThreadCycleTime, sizeof(uint64_t[2]), query_cycles, NULL },
    { ThreadBasePriority, sizeof(LONG), NULL, set_base_priority },
    { ThreadAffinityMask, sizeof(KAFFINITY), NULL, set_affinity },
    { ThreadGroupInformation, sizeof(GROUP_AFFINITY), query_group, set_group },
};

static const struct information_class *find_class(THREADINFOCLASS number)
{
    for_each_in(c, classes)
        if (c->number == number)
            return c;
    return NULL;
}

/* The classes with `set`, and ThreadCounterProfiling (profiling_enable.c); others
 * STATUS_INVALID_INFO_CLASS. NT: threads have no names. */
NTSTATUS NtSetInformationThread(HANDLE ThreadHandle, THREADINFOCLASS ThreadInformationClass,
                                PVOID ThreadInformation, ULONG ThreadInformationLength)
{
    const struct information_class *class = find_class(ThreadInformationClass);
    union thread_information info;
    struct object *object;
    if (ThreadInformationClass == ThreadCounterProfiling)
        return thread_profiling_set(ThreadHandle, ThreadInformation, ThreadInformationLength);
    if (!class || !class->set)
        return STATUS_INVALID_INFO_CLASS;
    if (ThreadInformationLength != class->size)
        return STATUS_INFO_LENGTH_MISMATCH;
    NTSTATUS status = copy_in(&info, ThreadInformation, class->size);
    if (NT_SUCCESS(status))
        status = handle_lookup(ThreadHandle, &thread_type, THREAD_SET_INFORMATION, &object);
    if (!NT_SUCCESS(status))
        return status;
    status = class->set((struct thread *)object, &info);
    object_release(object);
    return status;
}

/* The classes with `query`, and ThreadCounterProfiling; others STATUS_INVALID_INFO_CLASS. */
NTSTATUS NtQueryInformationThread(HANDLE ThreadHandle, THREADINFOCLASS ThreadInformationClass,
                                  PVOID ThreadInformation, ULONG ThreadInformationLength,
                                  PULONG ReturnLength)
{
    const struct information_class *class = find_class(ThreadInformationClass);
    union thread_information info = { 0 };
    struct object *object;
    if (ThreadInformationClass == ThreadCounterProfiling)
        return thread_profiling_query(ThreadHandle, ThreadInformation, ThreadInformationLength,
                                      ReturnLength);
    if (!class || !class->query)
        return STATUS_INVALID_INFO_CLASS;
    if (ThreadInformationLength != class->size)
        return STATUS_INFO_LENGTH_MISMATCH;
    NTSTATUS status = handle_lookup(ThreadHandle, &thread_type, THREAD_QUERY_INFORMATION, &object);
    if (!NT_SUCCESS(status))
        return status;
    class->query((const struct thread *)object, &info);
    object_release(object);
    status = copy_out(ThreadInformation, &info, class->size);
    return NT_SUCCESS(status) && ReturnLength
               ? copy_out(ReturnLength, &class->size, sizeof class->size)
               : status;
}

/* The number in its group. */
ULONG NtGetCurrentProcessorNumber(void) { return cpu_current()->legacy_number; }

/* STATUS_ACCESS_VIOLATION. */
NTSTATUS NtGetCurrentProcessorNumberEx(PPROCESSOR_NUMBER ProcNumber)
{
    PROCESSOR_NUMBER number = cpu_group_number(cpu_number());
    return copy_out(ProcNumber, &number, sizeof number);
}

/* STATUS_ACCESS_VIOLATION. PerformanceFrequency may be NULL. */
NTSTATUS NtQueryPerformanceCounter(PLARGE_INTEGER PerformanceCounter,
                                   PLARGE_INTEGER PerformanceFrequency)
{
    LARGE_INTEGER now = { .QuadPart = (LONGLONG)(clock_ns() / 100) };
    LARGE_INTEGER frequency = { .QuadPart = 10000000 };
    NTSTATUS status = copy_out(PerformanceCounter, &now, sizeof now);
    return NT_SUCCESS(status) && PerformanceFrequency
               ? copy_out(PerformanceFrequency, &frequency, sizeof frequency)
               : status;
}

/* RtlAdjustPrivilege. NT: there are no tokens. Every process holds SeSystemProfilePrivilege and
 * SeLoadDriverPrivilege, disabled at first as an administrator's are, and no other:
 * STATUS_PRIVILEGE_NOT_HELD. STATUS_ACCESS_VIOLATION. */
NTSTATUS adjust_privilege(ULONG Privilege, BOOLEAN Enable, BOOLEAN, PBOOLEAN Enabled)
{
    struct process *process = thread_current()->process;
    bool *held = Privilege == SE_SYSTEM_PROFILE_PRIVILEGE ? &process->profile_privilege
                 : Privilege == SE_LOAD_DRIVER_PRIVILEGE  ? &process->load_privilege
                                                          : NULL;
    if (!held || process->restricted)
        return STATUS_PRIVILEGE_NOT_HELD;
    BOOLEAN was = *held;
    NTSTATUS status = copy_out(Enabled, &was, sizeof was);
    if (NT_SUCCESS(status))
        *held = Enable != 0;
    return status;
}

/* NT: a carriage return has no effect; the console makes one of each newline. */
NTSTATUS write_console(const char *text, ULONG length)
{
    char line[WRITE_MAX + 1];
    ULONG kept = 0;
    if (length > WRITE_MAX)
        return STATUS_INVALID_PARAMETER;
    NTSTATUS status = copy_in(line, text, length);
    if (!NT_SUCCESS(status))
        return status;
    for (ULONG i = 0; i < length; i++) {
        const bool printed =
            (line[i] >= ' ' && line[i] <= '~') || line[i] == '\n' || line[i] == '\t';
        if (line[i] != '\r')
            line[kept++] = printed ? line[i] : '?';
    }
    line[kept] = 0;
    print("%s", line);
    return STATUS_SUCCESS;
}
