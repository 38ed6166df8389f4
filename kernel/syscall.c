/* SPDX-License-Identifier: MIT */
/* The service table, and nothing else: each service checks its own arguments. They are passed as
 * in a call of Windows, but R10 instead of RCX. */
#include "kernel/ke/copy.h"
#include "kernel/syscall.h"
#include "kernel/profiling/profiling_enable.h"
#include "kernel/base/bits.h"
#include "kernel/base/msr.h"
#include "kernel/base/string.h"
#include "kernel/base/x86.h"
#include "kernel/driver/io.h"
#include "kernel/etw/etw_class.h"
#include "kernel/etw/etw_control.h"
#include "kernel/image/image.h"
#include "kernel/ke/etw.h"
#include "kernel/ke/exception.h"
#include "kernel/ke/process.h"
#include "kernel/ke/suspend.h"
#include "kernel/ke/thread_context.h"
#include "kernel/ke/synchronization.h"
#include "kernel/ke/thread.h"
#include "kernel/profiling/counter_config.h"
#include "kernel/profiling/profile.h"
#include "kernel/services/services.h"
#include "kernel/trap.h"

#define ARGUMENTS_MAX 11
#define IN_REGISTERS 4

typedef uint64_t (*service_function)(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t,
                                     uint64_t, uint64_t, uint64_t, uint64_t, uint64_t);

struct service {
    void (*function)(void);
    unsigned arguments;
};

#define NT_SERVICE(number, name, count) [number] = { (void (*)(void))(Nt##name), (count) },
#define OWN_SERVICE(number, stub, routine, count) [number] = { (void (*)(void))(routine), (count) },
static const struct service services[] = {
#include "kernel/nt/service_list.h"
};
#define SERVICES ARRAY_SIZE(services)

/* Four registers, and the stack above the space for them. */
static NTSTATUS arguments(uint64_t *a, unsigned count, const struct trap_frame *f)
{
    a[0] = f->r10;
    a[1] = f->rdx;
    a[2] = f->r8;
    a[3] = f->r9;
    return count <= IN_REGISTERS ? STATUS_SUCCESS
                                 : copy_in(a + IN_REGISTERS, (const void *)(f->rsp + 40),
                                           (count - IN_REGISTERS) * sizeof a[0]);
}

static uint64_t call(const struct service *service, const struct trap_frame *f)
{
    uint64_t a[ARGUMENTS_MAX] = { 0 };
    NTSTATUS status = arguments(a, service->arguments, f);
    if (!NT_SUCCESS(status))
        return (uint64_t)(int64_t)status;
    return ((service_function)service->function)(a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7],
                                                 a[8], a[9], a[10]);
}

void syscall_dispatch(struct trap_frame *frame)
{
    uint64_t number = frame->rax;
    bool known = number < SERVICES && services[number].function;
    const struct service *service = &services[known ? number : 0];
    if (etw_wants(ETW_SYSCALL_ENTER))
        etw_syscall_enter(known ? (uint64_t)service->function : 0);
    uint64_t result =
        known ? call(service, frame) : (uint64_t)(int64_t)STATUS_INVALID_SYSTEM_SERVICE;
    if (frame->vector != TRAP_RESTORE)
        frame->rax = result;
    if (etw_wants(ETW_SYSCALL_EXIT))
        etw_syscall_exit((NTSTATUS)result);
    thread_way_out();
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
