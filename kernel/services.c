/* SPDX-License-Identifier: MIT */
/* Thread, handle and time services. They run at PASSIVE_LEVEL in the caller's context. */
#include "kernel/services.h"
#include "kernel/cpu.h"
#include "kernel/print.h"
#include "kernel/process.h"
#include "kernel/sched.h"
#include "kernel/thread.h"
#include "kernel/thread_profiling.h"
#include "kernel/vm.h"
#include "kernel/x86.h"

#define WRITE_MAX 256

/* STATUS_INVALID_HANDLE. */
NTSTATUS NtClose(HANDLE Handle) { return handle_close(Handle); }

/* NT: within the current process only (STATUS_NOT_SUPPORTED otherwise). STATUS_ACCESS_DENIED: more access than the
 * source has. Handle errors of all three handles; STATUS_ACCESS_VIOLATION; STATUS_INSUFFICIENT_RESOURCES. */
NTSTATUS NtDuplicateObject(HANDLE SourceProcessHandle, HANDLE SourceHandle, HANDLE TargetProcessHandle,
                           PHANDLE TargetHandle, ACCESS_MASK DesiredAccess, ULONG HandleAttributes, ULONG Options)
{
    struct object *object;
    HANDLE handle = NULL;
    ACCESS_MASK access; /* of the handle at the time of the look-up: another thread may put another one in its place */

    (void)HandleAttributes;
    if (SourceProcessHandle != NtCurrentProcess() || TargetProcessHandle != NtCurrentProcess())
        return STATUS_NOT_SUPPORTED;
    bool same = Options & DUPLICATE_SAME_ACCESS;
    NTSTATUS status = handle_lookup_access(SourceHandle, 0, same ? 0 : DesiredAccess, &object, &access);
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
    NTSTATUS status = handle_lookup(ThreadHandle, OBJECT_THREAD, THREAD_TERMINATE, &object);
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

/* NT: the current process only: STATUS_NOT_SUPPORTED otherwise. Its other threads end at their next return to
 * ring 3. */
NTSTATUS NtTerminateProcess(HANDLE ProcessHandle, NTSTATUS ExitStatus)
{
    struct object *object;
    NTSTATUS status = handle_lookup(ProcessHandle ? ProcessHandle : NtCurrentProcess(), OBJECT_PROCESS, 0, &object);
    if (!NT_SUCCESS(status))
        return status;
    bool ours = object == &thread_current()->process->object;
    object_release(object);
    if (!ours)
        return STATUS_NOT_SUPPORTED;
    process_end(ExitStatus);
}

/* A point in sched_time_ns from a Windows interval: units of 100 ns, negative relative, else since boot. */
static uint64_t deadline(int64_t interval)
{
    if (interval == INT64_MIN)
        return SCHED_FOREVER;
    uint64_t units = interval < 0 ? (uint64_t)-interval : (uint64_t)interval;
    if (units > SCHED_FOREVER / 200)
        return SCHED_FOREVER;
    return interval < 0 ? sched_time_ns() + units * 100 : units * 100;
}

/* NT: Alertable has no effect: there are no APCs. STATUS_ACCESS_VIOLATION. */
NTSTATUS NtDelayExecution(BOOLEAN Alertable, PLARGE_INTEGER DelayInterval)
{
    LARGE_INTEGER interval;
    (void)Alertable;
    NTSTATUS status = copy_in(&interval, DelayInterval, sizeof interval);
    if (!NT_SUCCESS(status))
        return status;
    if (interval.QuadPart == 0)
        return NtYieldExecution();
    return sched_wait(NULL, deadline(interval.QuadPart), DelayExecution);
}

/* Timeout NULL: for ever. STATUS_TIMEOUT; STATUS_ACCESS_VIOLATION; handle errors (SYNCHRONIZE). */
NTSTATUS NtWaitForSingleObject(HANDLE Handle, BOOLEAN Alertable, PLARGE_INTEGER Timeout)
{
    LARGE_INTEGER interval = { .QuadPart = INT64_MIN };
    struct object *object;
    (void)Alertable;
    if (Timeout) {
        NTSTATUS copied = copy_in(&interval, Timeout, sizeof interval);
        if (!NT_SUCCESS(copied))
            return copied;
    }
    NTSTATUS status = handle_lookup(Handle, 0, SYNCHRONIZE, &object);
    if (!NT_SUCCESS(status))
        return status;
    status = sched_wait(object, deadline(interval.QuadPart), UserRequest);
    object_release(object);
    return status;
}

NTSTATUS NtYieldExecution(void)
{
    sched_switch(WrYieldExecution);
    return STATUS_SUCCESS;
}

/* NT: in the current process, not suspended, stack of our size: CreateFlags, ZeroBits, AttributeList must be 0
 * (STATUS_NOT_SUPPORTED). STATUS_ACCESS_VIOLATION also for a StartRoutine outside ring 3. STATUS_NO_MEMORY. */
NTSTATUS NtCreateThreadEx(PHANDLE ThreadHandle, ACCESS_MASK DesiredAccess, PVOID ObjectAttributes,
                          HANDLE ProcessHandle, PVOID StartRoutine, PVOID Argument, ULONG CreateFlags,
                          SIZE_T ZeroBits, SIZE_T StackSize, SIZE_T MaximumStackSize, PVOID AttributeList)
{
    struct thread *me = thread_current();
    HANDLE handle = NULL;

    (void)StackSize, (void)MaximumStackSize;
    if (ProcessHandle != NtCurrentProcess() || ObjectAttributes || CreateFlags || ZeroBits || AttributeList)
        return STATUS_NOT_SUPPORTED;
    if (!user_range(StartRoutine, 1))
        return STATUS_ACCESS_VIOLATION;
    NTSTATUS status = copy_out(ThreadHandle, &handle, sizeof handle);
    if (!NT_SUCCESS(status))
        return status;
    struct thread *thread = thread_create_another(me->process, (uint64_t)StartRoutine, (uint64_t)Argument);
    if (!thread)
        return STATUS_NO_MEMORY;
    status = handle_create(&thread->object, DesiredAccess, &handle);
    if (NT_SUCCESS(status))
        status = copy_out(ThreadHandle, &handle, sizeof handle);
    else
        thread_terminate(thread, status);
    object_release(&thread->object);
    return status;
}

static NTSTATUS set_affinity(HANDLE handle, PVOID buffer, ULONG length)
{
    KAFFINITY mask;
    struct object *object;
    if (length != sizeof mask)
        return STATUS_INFO_LENGTH_MISMATCH;
    NTSTATUS status = copy_in(&mask, buffer, sizeof mask);
    if (NT_SUCCESS(status))
        status = handle_lookup(handle, OBJECT_THREAD, THREAD_SET_INFORMATION, &object);
    if (!NT_SUCCESS(status))
        return status;
    status = sched_set_affinity((struct thread *)object, mask);
    object_release(object);
    return status;
}

/* ThreadAffinityMask and ThreadCounterProfiling (profiling_enable.c); others STATUS_INVALID_INFO_CLASS. */
NTSTATUS NtSetInformationThread(HANDLE ThreadHandle, THREADINFOCLASS ThreadInformationClass,
                                PVOID ThreadInformation, ULONG ThreadInformationLength)
{
    switch (ThreadInformationClass) {
    case ThreadAffinityMask:
        return set_affinity(ThreadHandle, ThreadInformation, ThreadInformationLength);
    case ThreadCounterProfiling:
        return thread_profiling_set(ThreadHandle, ThreadInformation, ThreadInformationLength);
    default:
        return STATUS_INVALID_INFO_CLASS;
    }
}

static NTSTATUS query_basic(HANDLE handle, PVOID buffer, ULONG length, PULONG returned)
{
    struct object *object;
    THREAD_BASIC_INFORMATION info = { 0 };
    ULONG size = sizeof info;
    if (length != size)
        return STATUS_INFO_LENGTH_MISMATCH;
    NTSTATUS status = handle_lookup(handle, OBJECT_THREAD, THREAD_QUERY_INFORMATION, &object);
    if (!NT_SUCCESS(status))
        return status;
    struct thread *thread = (struct thread *)object;
    info.ExitStatus = thread->object.signaled ? thread->exit_status : STATUS_PENDING;
    info.ClientId.UniqueThread = (HANDLE)(uint64_t)thread->id;
    info.AffinityMask = thread->affinity;
    object_release(object);
    status = copy_out(buffer, &info, size);
    return NT_SUCCESS(status) && returned ? copy_out(returned, &size, sizeof size) : status;
}

/* ThreadBasicInformation and ThreadCounterProfiling; others STATUS_INVALID_INFO_CLASS. */
NTSTATUS NtQueryInformationThread(HANDLE ThreadHandle, THREADINFOCLASS ThreadInformationClass,
                                  PVOID ThreadInformation, ULONG ThreadInformationLength, PULONG ReturnLength)
{
    switch (ThreadInformationClass) {
    case ThreadBasicInformation:
        return query_basic(ThreadHandle, ThreadInformation, ThreadInformationLength, ReturnLength);
    case ThreadCounterProfiling:
        return thread_profiling_query(ThreadHandle, ThreadInformation, ThreadInformationLength, ReturnLength);
    default:
        return STATUS_INVALID_INFO_CLASS;
    }
}

ULONG NtGetCurrentProcessorNumber(void) { return cpu_number(); }

/* STATUS_ACCESS_VIOLATION. PerformanceFrequency may be NULL. */
NTSTATUS NtQueryPerformanceCounter(PLARGE_INTEGER PerformanceCounter, PLARGE_INTEGER PerformanceFrequency)
{
    LARGE_INTEGER now = { .QuadPart = (LONGLONG)(sched_time_ns() / 100) };
    LARGE_INTEGER frequency = { .QuadPart = 10000000 };
    NTSTATUS status = copy_out(PerformanceCounter, &now, sizeof now);
    return NT_SUCCESS(status) && PerformanceFrequency ? copy_out(PerformanceFrequency, &frequency, sizeof frequency)
                                                      : status;
}

/* RtlAdjustPrivilege. NT: there are no tokens. Every process holds SeSystemProfilePrivilege, disabled at first as an
 * administrator's is, and no other: STATUS_PRIVILEGE_NOT_HELD. STATUS_ACCESS_VIOLATION. */
NTSTATUS adjust_privilege(ULONG Privilege, BOOLEAN Enable, BOOLEAN CurrentThread, PBOOLEAN Enabled)
{
    struct process *process = thread_current()->process;
    BOOLEAN was = process->profile_privilege;
    (void)CurrentThread;
    if (Privilege != SE_SYSTEM_PROFILE_PRIVILEGE || process->restricted)
        return STATUS_PRIVILEGE_NOT_HELD;
    NTSTATUS status = copy_out(Enabled, &was, sizeof was);
    if (NT_SUCCESS(status))
        process->profile_privilege = Enable != 0;
    return status;
}

NTSTATUS write_console(const char *text, ULONG length)
{
    char line[WRITE_MAX + 1];
    if (length > WRITE_MAX)
        return STATUS_INVALID_PARAMETER;
    NTSTATUS status = copy_in(line, text, length);
    if (!NT_SUCCESS(status))
        return status;
    for (ULONG i = 0; i < length; i++)
        if ((line[i] < ' ' || line[i] > '~') && line[i] != '\n' && line[i] != '\t')
            line[i] = '?';
    line[length] = 0;
    print("%s", line);
    return STATUS_SUCCESS;
}
