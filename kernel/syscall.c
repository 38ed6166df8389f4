/* SPDX-License-Identifier: MIT */
/* The service table, and nothing else: each service checks its own arguments.
 * Ring 3 passes the first six arguments in registers, the rest on its stack. */
#include "kernel/syscall.h"
#include "kernel/etw.h"
#include "kernel/msr.h"
#include "kernel/process.h"
#include "kernel/profile.h"
#include "kernel/services.h"
#include "kernel/thread.h"
#include "kernel/thread_profiling.h"
#include "kernel/trap.h"
#include "kernel/vm.h"
#include "kernel/x86.h"

#define ARGUMENTS_MAX 11
#define IN_REGISTERS 6

typedef uint64_t (*service_function)(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t,
                                     uint64_t, uint64_t, uint64_t);

struct service {
    void (*function)(void);
    unsigned arguments;
};

#define SERVICE(number, name, count) [number] = { (void (*)(void))(name), (count) }
static const struct service services[SYS_COUNT] = {
    SERVICE(SYS_CLOSE, NtClose, 1),
    SERVICE(SYS_TERMINATE_THREAD, NtTerminateThread, 2),
    SERVICE(SYS_TERMINATE_PROCESS, NtTerminateProcess, 2),
    SERVICE(SYS_DELAY_EXECUTION, NtDelayExecution, 2),
    SERVICE(SYS_WAIT_FOR_SINGLE_OBJECT, NtWaitForSingleObject, 3),
    SERVICE(SYS_YIELD_EXECUTION, NtYieldExecution, 0),
    SERVICE(SYS_CREATE_THREAD_EX, NtCreateThreadEx, 11),
    SERVICE(SYS_SET_INFORMATION_THREAD, NtSetInformationThread, 4),
    SERVICE(SYS_QUERY_INFORMATION_THREAD, NtQueryInformationThread, 5),
    SERVICE(SYS_ALLOCATE_VIRTUAL_MEMORY, NtAllocateVirtualMemory, 6),
    SERVICE(SYS_FREE_VIRTUAL_MEMORY, NtFreeVirtualMemory, 4),
    SERVICE(SYS_PROTECT_VIRTUAL_MEMORY, NtProtectVirtualMemory, 5),
    SERVICE(SYS_DUPLICATE_OBJECT, NtDuplicateObject, 7),
    SERVICE(SYS_GET_CURRENT_PROCESSOR_NUMBER, NtGetCurrentProcessorNumber, 0),
    SERVICE(SYS_QUERY_PERFORMANCE_COUNTER, NtQueryPerformanceCounter, 2),
    SERVICE(SYS_READ_THREAD_PROFILING_DATA, NtReadThreadProfilingData, 3),
    SERVICE(SYS_SET_COUNTER_CONFIGURATION, counter_driver_set, 2),
    SERVICE(SYS_QUERY_COUNTER_CONFIGURATION, counter_driver_query, 3),
    SERVICE(SYS_WRITE, write_console, 2),
    SERVICE(SYS_CREATE_PROFILE, NtCreateProfile, 9),
    SERVICE(SYS_CREATE_PROFILE_EX, NtCreateProfileEx, 10),
    SERVICE(SYS_START_PROFILE, NtStartProfile, 1),
    SERVICE(SYS_STOP_PROFILE, NtStopProfile, 1),
    SERVICE(SYS_QUERY_INTERVAL_PROFILE, NtQueryIntervalProfile, 2),
    SERVICE(SYS_SET_INTERVAL_PROFILE, NtSetIntervalProfile, 2),
    SERVICE(SYS_ADJUST_PRIVILEGE, adjust_privilege, 4),
    SERVICE(SYS_TRACE_CONTROL, NtTraceControl, 6),
    SERVICE(SYS_SET_SYSTEM_INFORMATION, NtSetSystemInformation, 3),
    SERVICE(SYS_QUERY_SYSTEM_INFORMATION, NtQuerySystemInformation, 4),
};

static uint64_t call(const struct service *service, const struct trap_frame *f)
{
    uint64_t a[ARGUMENTS_MAX] = { f->rdi, f->rsi, f->rdx, f->r10, f->r8, f->r9 };
    if (service->arguments > IN_REGISTERS) {
        NTSTATUS status = copy_in(a + IN_REGISTERS, (const void *)(f->rsp + 8),
                                  (service->arguments - IN_REGISTERS) * sizeof a[0]);
        if (!NT_SUCCESS(status))
            return (uint64_t)(int64_t)status;
    }
    return ((service_function)service->function)(a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8], a[9], a[10]);
}

void syscall_dispatch(struct trap_frame *frame)
{
    bool known = frame->rax < SYS_COUNT;
    const struct service *service = &services[known ? frame->rax : 0];
    if (etw_wants(ETW_SYSCALL_ENTER))
        etw_syscall_enter(known ? (uint64_t)service->function : 0);
    frame->rax = known ? call(service, frame) : (uint64_t)(int64_t)STATUS_INVALID_SYSTEM_SERVICE;
    if (etw_wants(ETW_SYSCALL_EXIT))
        etw_syscall_exit((NTSTATUS)frame->rax);
    thread_check_terminated();
}

extern void syscall_entry(void);

void syscall_init_cpu(void)
{
    /* SYSRET: SS = base + 8, CS = base + 16, both with RPL 3. */
    wrmsr(MSR_STAR, (uint64_t)(SEL_USER_SS - 8) << 48 | (uint64_t)SEL_KERNEL_CS << 32);
    wrmsr(MSR_LSTAR, (uint64_t)syscall_entry);
    wrmsr(MSR_SFMASK, 0x47700); /* TF IF DF IOPL NT AC */
    wrmsr(MSR_EFER, rdmsr(MSR_EFER) | EFER_SCE);
}
