/* SPDX-License-Identifier: MIT */
/* What to do with an exception or interrupt. Exceptions of ring 3 go to its dispatcher
 * (exception.c); those of ring 0 continue at a fix-up (x86.h, copy.c) or panic. Interrupts run at
 * the IRQL of their vector. Source: Intel SDM vol. 3 "Interrupt and exception handling". */
#include "kernel/trap.h"
#include "kernel/base/upcalls.h"
#include "hal/interrupt.h"
#include "hal/machine/apic.h"
#include "hal/machine/smp.h"
#include "hal/measure_traps.h"
#include "hal/pmc.h"
#include "hal/profile_interrupt.h"
#include "kernel/base/cpu.h"
#include "kernel/base/irql.h"
#include "kernel/base/machine_check.h"
#include "kernel/base/panic.h"
#include "kernel/base/print.h"
#include "kernel/base/x86.h"
#include "kernel/ke/etw.h"
#include "kernel/ke/exception.h"
#include "kernel/ke/process.h"
#include "kernel/ke/sched.h"
#include "kernel/ke/shared_data.h"
#include "kernel/ke/suspend.h"
#include "kernel/ke/thread.h"
#include "kernel/counting/thread_profiling.h"
#include "kernel/ke/timer.h"
#include "kernel/mm/vm.h"
#include "kernel/syscall.h"

struct fixup {
    uint64_t from, to;
};

extern const uint8_t trap_stubs[256][16];
extern void syscall_entry(void);
extern const struct fixup extable_start[], extable_end[];

static struct gate idt[256];
uint64_t trap_counts[256];

void trap_init(void)
{
    for (unsigned v = 0; v < 256; v++) {
        idt[v] = (struct gate){ .selector = SEL_KERNEL_CS, .type = GATE_RING0 };
        gate_set(&idt[v], (uint64_t)trap_stubs[v]);
    }
    idt[EXC_BREAKPOINT].type = GATE_RING3; /* INT3 is for ring 3 too */
    gate_set(&idt[INT_FAST_FAIL], (uint64_t)trap_stubs[EXC_FAST_FAIL]);
    idt[EXC_NMI].ist = 1;
    idt[EXC_DEBUG].ist = 3;
    idt[EXC_DOUBLE_FAULT].ist = idt[EXC_MACHINE_CHECK].ist = 2; /* neither returns */
    cpu_set_idt(idt, sizeof idt);
    cpu_load_idt();
}

static bool fix_up(struct trap_frame *frame)
{
    for (const struct fixup *f = extable_start; f < extable_end; f++)
        if (f->from == frame->rip) {
            frame->rip = f->to;
            frame->rax = frame->vector;
            return true;
        }
    return false;
}

/* A KVM that emulates ring 0 was seen to do half of a SYSCALL: RIP, RCX, R11 and RFLAGS change, CPL
 * stays 3, and the entry's first fetch faults. The fault then is the system call. For a program
 * that jumps there it is one too. */
static bool is_half_syscall(const struct trap_frame *frame)
{
    return frame->vector == EXC_PAGE_FAULT && frame->rip == (uint64_t)syscall_entry &&
           frame->rcx < USER_END;
}

static void complete_syscall(struct trap_frame *frame)
{
    frame->rip = frame->rcx;
    frame->rflags = (frame->r11 & RFLAGS_USER) | RFLAGS_IF;
    syscall_dispatch(frame);
}

/* The kernel's copies open ring 3's guard pages as its own accesses do. */
static bool opens_guard(const struct trap_frame *frame, uint64_t fault_address)
{
    const struct thread *thread = cpu_current()->thread;
    if (frame->vector != EXC_PAGE_FAULT || fault_address >= USER_END || !thread->process ||
        irql_current() != PASSIVE_LEVEL || !(frame->rflags & RFLAGS_IF))
        return false;
    sti();
    NTSTATUS status = process_fault(fault_address);
    cli();
    return NT_SUCCESS(status);
}

/* Vector 29h is INT 29h's gate, and a device that nobody drives may interrupt by it. Such an
 * interrupt is ignored, as those of other vectors are. */
static bool is_stray(const struct trap_frame *frame)
{
    if (frame->vector != EXC_FAST_FAIL || !apic_is_in_service(INT_FAST_FAIL))
        return false;
    apic_eoi();
    return true;
}

static __attribute__((noinline)) void exception(struct trap_frame *frame)
{
    uint64_t fault_address = frame->vector == EXC_PAGE_FAULT ? read_cr2() : 0;

    if (is_stray(frame))
        return;
    if (!trap_from_user(frame)) {
        if (!opens_guard(frame, fault_address) && !fix_up(frame))
            panic_trap(frame, fault_address);
        return;
    }
    sti();
    if (is_half_syscall(frame)) {
        complete_syscall(frame);
        return;
    }
    NTSTATUS status =
        frame->vector == EXC_PAGE_FAULT ? process_fault(fault_address) : STATUS_UNSUCCESSFUL;
    if (status == STATUS_SUCCESS)
        return;
    EXCEPTION_RECORD record;
    exception_record(frame, fault_address, status, &record);
    exception_deliver(frame, &record);
}

/* Samples that NMIs took, just now or while interrupts were off. NT: their process is the current
 * one. */
static __attribute__((noinline)) void deliver_noted(const struct trap_frame *frame)
{
    struct trap_frame at = *frame;
    uint64_t counters;
    while (hal_pmi_noted(&at.rip, &at.cs, &counters))
        hal_pmi_deliver(&at, counters);
}

static void call_if(void (*const *hook)(void))
{
    void (*function)(void) = __atomic_load_n(hook, __ATOMIC_ACQUIRE);
    if (function)
        function();
}

/* Printed once, and not by the NMI's handler. */
static void report_stray_nmis(void)
{
    static bool reported;
    const struct cpu *cpu = cpu_current();
    if (cpu->stray_nmis && !print_ended() &&
        !__atomic_exchange_n(&reported, true, __ATOMIC_RELAXED)) {
        if (__atomic_load_n(&trap_stray_nmi, __ATOMIC_ACQUIRE))
            trap_stray_nmi();
        else
            print("# CPU %u: an NMI that nobody claims\n", cpu->number);
    }
}

/* Each sample by a counter comes through here, so the PMI stands first. */
static inline __attribute__((always_inline)) void interrupt(struct trap_frame *frame,
                                                            uint64_t vector, uint64_t irql)
{
    if (__builtin_expect(vector == VECTOR_PMI, 1)) {
        hal_pmi(frame);
    } else {
        switch (vector) {
        case VECTOR_TIMER:
            hal_profile_tick(frame, frame->rip, frame->cs);
            timer_tick();
            shared_data_tick();
            report_stray_nmis();
            if (__builtin_expect(trap_tick != NULL, 0))
                trap_tick(frame, irql);
            sched_tick();
            break;
        case VECTOR_CALL: smp_call_interrupt(); break;
        case VECTOR_RESCHEDULE: break; /* the flag is set; trap_dispatch switches */
        case VECTOR_DPC: call_if(&trap_dpc); break;
        case VECTOR_PMI_NOTED: deliver_noted(frame); break;
        case VECTOR_SPURIOUS: return; /* it has no EOI */
        default: break;               /* the line of a device that nobody drives */
        }
    }
    apic_eoi();
}

/* An interrupt that is traced, or whose time is not the interrupted thread's. */
static __attribute__((noinline)) void timed_interrupt(struct trap_frame *frame, uint64_t irql)
{
    uint64_t entered = rdtsc();
    interrupt(frame, frame->vector, irql);
    if (etw_wants(ETW_INTERRUPT))
        etw_interrupt(entered, (unsigned)frame->vector, (uint64_t)trap_stubs[frame->vector]);
    if (thread_current()->profiling)
        thread_profiling_exclude(thread_current()->profiling, rdtsc() - entered);
}

/* Some processors count a trap out of ring 3 as an instruction of ring 3. */
static __attribute__((noinline)) void left_ring3(enum hal_trap trap)
{
    struct thread_profiling *p = thread_current()->profiling;
    if (!hal_traps_add())
        return;
    hal_pmc_trapped(trap);
    if (p)
        thread_profiling_trapped(p, trap);
}

/* Traps out of ring 0; trap_user calls it for those out of ring 3. */
void trap_dispatch(struct trap_frame *frame);
void trap_dispatch(struct trap_frame *frame)
{
    uint64_t vector = frame->vector;
    __atomic_fetch_add(&trap_counts[vector], 1, __ATOMIC_RELAXED);
    if (vector < 0x20) {
        exception(frame);
    } else {
        uint64_t old = read_cr8();
        if (__builtin_expect(vector >> 4 > old, 1))
            write_cr8(vector >> 4);
        if (etw_wants(ETW_INTERRUPT) || __builtin_expect(thread_current()->profiling != NULL, 0))
            timed_interrupt(frame, old);
        else
            interrupt(frame, vector, old);
        write_cr8(old);
        if (__builtin_expect(CPU_FIELD(reschedule), 0)) {
            if (old < DISPATCH_LEVEL)
                thread_check_killed();
            sched_preempt((KIRQL)old, frame->vector == VECTOR_TIMER ? WrQuantumEnd : WrPreempted);
        }
    }
}

/* Out of ring 3. */
void trap_user(struct trap_frame *frame);
void trap_user(struct trap_frame *frame)
{
    left_ring3(frame->vector < 0x20 ? HAL_EXCEPTION : HAL_INTERRUPT);
    trap_dispatch(frame);
    thread_way_out();
}

static bool nmi_is_ours(struct trap_frame *frame)
{
    bool (*callbacks)(void) = __atomic_load_n(&trap_nmi_callbacks, __ATOMIC_ACQUIRE);
    bool ours = hal_pmi_nmi(frame->rip, frame->cs);
    return (callbacks && callbacks()) || ours;
}

/* NMI, double fault, machine check in any ring, #DB in ring 0: any stack, any moment, so no lock
 * and no list. */
void trap_nmi(struct trap_frame *frame);
void trap_nmi(struct trap_frame *frame)
{
    if (frame->vector == EXC_MACHINE_CHECK) {
        if (!machine_check_note())
            return;                     /* another one, of the CPU that is printing */
        idt[EXC_MACHINE_CHECK].ist = 0; /* it does not begin on this stack again */
    }
    if (frame->vector != EXC_NMI)
        panic_trap(frame, read_cr2());
    panic_stop_if_dying();
    __atomic_fetch_add(&trap_counts[EXC_NMI], 1, __ATOMIC_RELAXED);
    if (trap_from_user(frame))
        left_ring3(HAL_NMI);
    if (!nmi_is_ours(frame))
        cpu_current()->stray_nmis++;
    thread_nmi((struct interrupted *)&frame->rip);
}
