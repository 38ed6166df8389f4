/* SPDX-License-Identifier: MIT */
/* The block that each CPU has at GS in ring 0, and what CPUID said at boot. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "kernel/layout.h"

struct etw_stream;
struct thread;

struct tss {
    uint32_t reserved0;
    uint64_t rsp0, rsp1, rsp2, reserved1, ist[7], reserved2;
    uint16_t reserved3, io_map;
} __attribute__((packed));

struct cpu {
    struct cpu *self;
    uint64_t kernel_rsp;    /* top of the current thread's kernel stack */
    uint64_t user_rsp;      /* scratch of the SYSCALL entry */
    struct thread *thread;  /* running here; this CPU writes it */
    struct thread *idle;
    unsigned number;
    uint32_t apic_id;
    uint32_t reschedule;    /* atomic: switch at the next return to below DISPATCH_LEVEL */
    uint64_t ticks;         /* timer interrupts taken */
    struct tss tss;
    struct etw_stream *streams[16]; /* of the trace sessions; L: see etw_session.c */
    uint64_t gdt[8];
    void *fault_stacks;     /* pages of the NMI and double fault stacks */
};
_Static_assert(offsetof(struct cpu, self) == CPU_SELF, "layout.h");
_Static_assert(offsetof(struct cpu, kernel_rsp) == CPU_KERNEL_RSP, "layout.h");
_Static_assert(offsetof(struct cpu, user_rsp) == CPU_USER_RSP, "layout.h");
_Static_assert(offsetof(struct cpu, thread) == CPU_THREAD, "layout.h");

struct cpu_features {
    char vendor[13], name[49];
    uint32_t max_leaf, max_extended_leaf;
    bool hypervisor, x2apic, smep, smap, nx, tsc_deadline;
};

extern struct cpu *cpus[MAX_CPUS]; /* [0, cpu_count); written while CPUs start, then const */
extern unsigned cpu_count;         /* CPUs running */
extern struct cpu_features cpu_features;

static inline struct cpu *cpu_current(void)
{
    struct cpu *cpu;
    asm volatile("mov %%gs:0,%0" : "=r"(cpu));
    return cpu;
}

static inline unsigned cpu_number(void) { return cpu_current()->number; }

/* A zeroed block with fault stacks for the CPU with this APIC id; NULL without memory. */
struct cpu *cpu_allocate(uint32_t apic_id);
/* Reads CPUID once, on the boot CPU. */
void cpu_detect(void);
/* Gives this CPU its block, GDT, TSS and the control registers that every CPU of ours has. */
void cpu_init(struct cpu *cpu, unsigned number);
