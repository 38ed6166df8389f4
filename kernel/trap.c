/* SPDX-License-Identifier: MIT */
/* What to do with an exception or interrupt. Exceptions of ring 3 end the thread with an NTSTATUS; those of
 * ring 0 continue at a fix-up (x86.h, copy.c) or panic. Interrupts run at the IRQL of their vector.
 * Source: Intel SDM vol. 3 "Interrupt and exception handling". */
#include "kernel/trap.h"
#include "hal/apic.h"
#include "hal/hal.h"
#include "kernel/cpu.h"
#include "kernel/etw.h"
#include "kernel/irql.h"
#include "kernel/panic.h"
#include "kernel/print.h"
#include "kernel/process.h"
#include "kernel/sched.h"
#include "kernel/smp.h"
#include "kernel/syscall.h"
#include "kernel/thread.h"
#include "kernel/thread_profiling.h"
#include "kernel/vm.h"
#include "kernel/x86.h"

struct gate {
    uint16_t offset_low, selector;
    uint8_t ist, type;
    uint16_t offset_middle;
    uint32_t offset_high, reserved;
};
_Static_assert(sizeof(struct gate) == 16, "IDT entry");

struct fixup {
    uint64_t from, to;
};

enum {
    EXC_DIVIDE = 0, EXC_DEBUG = 1, EXC_NMI = 2, EXC_BREAKPOINT = 3, EXC_INVALID_OPCODE = 6, EXC_DOUBLE_FAULT = 8,
    EXC_GENERAL_PROTECTION = 13, EXC_PAGE_FAULT = 14, EXC_X87 = 16, EXC_SIMD = 19
};

extern const uint8_t trap_stubs[256][16];
extern void syscall_entry(void);
extern const struct fixup extable_start[], extable_end[];

static struct gate idt[256];
uint64_t trap_counts[256];

void trap_init(void)
{
    for (unsigned v = 0; v < 256; v++) {
        uint64_t stub = (uint64_t)trap_stubs[v];
        idt[v] = (struct gate){ (uint16_t)stub, SEL_KERNEL_CS, 0, 0x8e, (uint16_t)(stub >> 16),
                                (uint32_t)(stub >> 32), 0 };
    }
    idt[EXC_BREAKPOINT].type = 0xee; /* INT3 is for ring 3 too */
    idt[EXC_NMI].ist = 1;
    idt[EXC_DOUBLE_FAULT].ist = 2;
    trap_init_cpu();
}

void trap_init_cpu(void)
{
    struct table_register r = { sizeof idt - 1, (uint64_t)idt };
    lidt(&r);
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

/* #GP says nothing of its cause. As in Windows, an instruction that ring 3 may not execute is
 * STATUS_PRIVILEGED_INSTRUCTION, anything else an access violation. */
static bool is_privileged(uint64_t rip)
{
    uint8_t code[4] = { 0 };
    unsigned i = 0;
    if (!NT_SUCCESS(copy_in(code, (const void *)rip, sizeof code)))
        copy_in(code, (const void *)rip, 1); /* at a page's end */
    while (i < 2 && ((code[i] & 0xf0) == 0x40 || code[i] == 0x66 || code[i] == 0xf2 || code[i] == 0xf3))
        i++;
    uint8_t b = code[i], c = code[i + 1];
    if (b == 0xf4 || b == 0xfa || b == 0xfb || (b >= 0x6c && b <= 0x6f) || (b & 0xf4) == 0xe4)
        return true; /* HLT CLI STI INS OUTS; IN and OUT */
    if (b != 0x0f)
        return false;
    return c == 0x00 || c == 0x01 || c == 0x06 || c == 0x08 || c == 0x09 || (c >= 0x20 && c <= 0x23) ||
           c == 0x30 || c == 0x32 || c == 0x33; /* ... WRMSR RDMSR RDPMC */
}

static NTSTATUS status_of(const struct trap_frame *frame)
{
    switch (frame->vector) {
    case EXC_DIVIDE:
        return STATUS_INTEGER_DIVIDE_BY_ZERO;
    case EXC_DEBUG:
        return STATUS_SINGLE_STEP;
    case EXC_BREAKPOINT:
        return STATUS_BREAKPOINT;
    case EXC_INVALID_OPCODE:
        return STATUS_ILLEGAL_INSTRUCTION;
    case EXC_GENERAL_PROTECTION:
        return is_privileged(frame->rip) ? STATUS_PRIVILEGED_INSTRUCTION : STATUS_ACCESS_VIOLATION;
    case EXC_X87:
    case EXC_SIMD:
        return STATUS_FLOAT_MULTIPLE_TRAPS;
    default:
        return STATUS_ACCESS_VIOLATION;
    }
}

/* A KVM that emulates ring 0 was seen to do half of a SYSCALL: RIP, RCX, R11 and RFLAGS change, CPL stays 3, and
 * the entry's first fetch faults. The fault then is the system call. For a program that jumps there it is one too. */
static bool is_half_syscall(const struct trap_frame *frame)
{
    return frame->vector == EXC_PAGE_FAULT && frame->rip == (uint64_t)syscall_entry;
}

static void complete_syscall(struct trap_frame *frame)
{
    frame->rip = frame->rcx;
    frame->rflags = (frame->r11 & RFLAGS_USER) | RFLAGS_IF;
    syscall_dispatch(frame);
}

static void exception(struct trap_frame *frame)
{
    uint64_t fault_address = frame->vector == EXC_PAGE_FAULT ? read_cr2() : 0;

    if (!trap_from_user(frame)) {
        if (!fix_up(frame))
            panic_trap(frame, fault_address);
        return;
    }
    sti();
    if (is_half_syscall(frame)) {
        complete_syscall(frame);
        return;
    }
    struct thread *thread = cpu_current()->thread;
    thread->fault_rip = frame->rip;
    thread->fault_address = fault_address;
    NTSTATUS status = status_of(frame);
    if (thread->process->fault_ends_all) {
        thread->process->fault_rip = frame->rip;
        thread->process->fault_address = fault_address;
        process_end(status);
    }
    thread_exit(status);
}

/* Samples that NMIs took, just now or while interrupts were off. NT: a process is that of now. */
static void deliver_noted(const struct trap_frame *frame)
{
    struct trap_frame at = *frame;
    uint64_t counters;
    while (hal_pmi_noted(&at.rip, &at.cs, &counters))
        hal_pmi_deliver(&at, counters);
}

static inline __attribute__((always_inline)) void interrupt(struct trap_frame *frame)
{
    switch (frame->vector) {
    case VECTOR_TIMER:
        hal_profile_tick(frame);
        sched_tick();
        break;
    case VECTOR_CALL:
        smp_call_interrupt();
        break;
    case VECTOR_RESCHEDULE:
        break; /* the flag is set; the switch is below */
    case VECTOR_PMI:
        hal_pmi(frame);
        break;
    case VECTOR_PMI_NOTED:
        deliver_noted(frame);
        break;
    default:
        break; /* spurious, or a stray line of a device that nobody drives */
    }
    if (frame->vector != VECTOR_SPURIOUS)
        apic_eoi();
}

static __attribute__((noinline)) void traced_interrupt(struct trap_frame *frame)
{
    uint64_t entered = rdtsc();
    interrupt(frame);
    etw_interrupt(entered, (unsigned)frame->vector, (uint64_t)trap_stubs[frame->vector]);
}

void trap_dispatch(struct trap_frame *frame);
void trap_dispatch(struct trap_frame *frame)
{
    __atomic_fetch_add(&trap_counts[frame->vector], 1, __ATOMIC_RELAXED);
    if (frame->vector < 0x20) {
        exception(frame);
    } else {
        KIRQL old = irql_current();
        struct thread *thread = cpu_current()->thread;
        uint64_t entered = thread->profiling ? rdtsc() : 0;
        if (frame->vector >> 4 > old)
            write_cr8(frame->vector >> 4);
        if (etw_wants(ETW_INTERRUPT))
            traced_interrupt(frame);
        else
            interrupt(frame);
        write_cr8(old);
        if (entered && thread->profiling)
            thread_profiling_exclude(thread, rdtsc() - entered);
        if (old < DISPATCH_LEVEL && __atomic_load_n(&cpu_current()->reschedule, __ATOMIC_RELAXED))
            sched_switch(frame->vector == VECTOR_TIMER ? WrQuantumEnd : WrPreempted);
    }
    if (trap_from_user(frame))
        thread_check_terminated();
}

/* NMI or double fault: any stack, any moment, so no lock and no list. */
void trap_nmi(struct trap_frame *frame);
void trap_nmi(struct trap_frame *frame)
{
    if (frame->vector == EXC_DOUBLE_FAULT)
        panic_trap(frame, read_cr2());
    panic_stop_if_dying();
    __atomic_fetch_add(&trap_counts[EXC_NMI], 1, __ATOMIC_RELAXED);
    hal_pmi_nmi(frame->rip, frame->cs);
}
