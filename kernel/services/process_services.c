/* SPDX-License-Identifier: MIT */
/* What threads and processes have used. PASSIVE_LEVEL. Sources: the Win32 documentation of
 * GetProcessTimes and QueryProcessCycleTime; winternl.h; phnt's headers. */
#include "hal/machine/clock.h"
#include "kernel/base/bits.h"
#include "kernel/ke/caller.h"
#include "kernel/ke/process.h"
#include "kernel/nt/nt_time.h"
#include "kernel/services/services.h"

static LONGLONG date_of(uint64_t ns) { return SYSTEM_TIME_AT_BOOT + (LONGLONG)(ns / 100); }

void usage_times(uint64_t created_ns, uint64_t ended_ns, uint64_t cycles, KERNEL_USER_TIMES *times)
{
    const uint64_t hz = clock_tsc_hz, used = cycles / hz * 10000000 + cycles % hz * 10000000 / hz;
    *times = (KERNEL_USER_TIMES){ .CreateTime.QuadPart = date_of(created_ns),
                                  .ExitTime.QuadPart = ended_ns ? date_of(ended_ns) : 0,
                                  .UserTime.QuadPart = (LONGLONG)used };
}

/* Of all its threads, those that have ended among them. */
static uint64_t cycles_of(struct process *process)
{
    uint64_t ended;
    KIRQL irql = lock_acquire(&process->lock);
    uint64_t cycles = process->ended_cycles;
    for (const struct thread *t = process->first; t; t = t->sibling)
        cycles += thread_cycles(t, &ended);
    lock_release(&process->lock, irql);
    return cycles;
}

static void fill_basic(struct process *process, void *info)
{
    PROCESS_BASIC_INFORMATION *basic = info;
    basic->ExitStatus = object_signaled(&process->object) ? process->exit_status : STATUS_PENDING;
    basic->PebBaseAddress = (PVOID)process->peb;
    basic->AffinityMask = cpu_set_primary(cpu_all()).Mask;
    basic->BasePriority = THREAD_PRIORITY;
    basic->UniqueProcessId = PROCESS_ID;
}

static void fill_times(struct process *process, void *info)
{
    usage_times(process->created, __atomic_load_n(&process->ended, __ATOMIC_RELAXED),
                cycles_of(process), info);
}

/* NT: the second one is the cycles since the last switch. */
static void fill_cycles(struct process *process, void *info)
{
    uint64_t *cycles = info;
    cycles[0] = cycles[1] = cycles_of(process);
}

/* ProcessBasicInformation, ProcessTimes and ProcessCycleTime; others STATUS_INVALID_INFO_CLASS.
 * Then STATUS_INFO_LENGTH_MISMATCH; those of the handle, which needs PROCESS_QUERY_INFORMATION;
 * STATUS_ACCESS_VIOLATION. */
NTSTATUS NtQueryInformationProcess(HANDLE ProcessHandle, PROCESSINFOCLASS ProcessInformationClass,
                                   PVOID ProcessInformation, ULONG ProcessInformationLength,
                                   PULONG ReturnLength)
{
    static const struct {
        PROCESSINFOCLASS class;
        ULONG size;
        /* `info` is 0, and stays so between its fields. */
        void (*fill)(struct process *process, void *info);
    } classes[] = {
        { ProcessBasicInformation, sizeof(PROCESS_BASIC_INFORMATION), fill_basic },
        { ProcessTimes, sizeof(KERNEL_USER_TIMES), fill_times },
        { ProcessCycleTime, 2 * sizeof(ULONG64), fill_cycles },
    };
    struct object *object;
    uint64_t info[6] = { 0 };
    unsigned i = 0;
    while (i < ARRAY_SIZE(classes) && classes[i].class != ProcessInformationClass)
        i++;
    if (i == ARRAY_SIZE(classes))
        return STATUS_INVALID_INFO_CLASS;
    if (ProcessInformationLength != classes[i].size)
        return STATUS_INFO_LENGTH_MISMATCH;
    NTSTATUS status =
        handle_lookup(ProcessHandle, &process_type, PROCESS_QUERY_INFORMATION, &object);
    if (!NT_SUCCESS(status))
        return status;
    classes[i].fill((struct process *)object, info);
    object_release(object);
    return caller_answer(ProcessInformation, info, classes[i].size, ReturnLength);
}
