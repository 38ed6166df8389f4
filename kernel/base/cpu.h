/* SPDX-License-Identifier: MIT */
/* The block that each CPU has at GS in ring 0, and what CPUID said at boot. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "kernel/base/cpu_set.h"
#include "kernel/base/layout.h"

struct etw_stream;
struct pmu_cpu;
struct thread;
struct trap_frame;

struct tss {
    uint32_t reserved0;
    uint64_t rsp0, rsp1, rsp2, reserved1, ist[7], reserved2;
    uint16_t reserved3, io_map;
} __attribute__((packed));

struct cpu {
    struct cpu *self;
    uint64_t kernel_rsp;   /* top of the current thread's kernel stack */
    uint64_t user_rsp;     /* scratch of the SYSCALL entry */
    struct cpu *pcr;       /* itself: KPCR.Self, for drivers */
    struct thread *thread; /* running here; this CPU writes it */
    struct thread *idle;
    uint32_t apic_id;
    bool halt_stops_timer; /* idle must not halt */
    bool called;           /* atomic: has yet to run the function of smp_call */
    bool in_dpc;           /* a driver's DPC runs; this CPU writes it */
    uint32_t reschedule;   /* atomic: switch at the next return to below DISPATCH_LEVEL */
    uint64_t ticks;        /* timer interrupts taken; atomic, this CPU writes it */
    uint32_t locks; /* spin locks that this CPU holds or waits for, and functions of IPIs that it
                       runs; this CPU writes it */
    uint32_t number;
    struct tss tss;
    uint64_t gdt[10];
    struct pmu_cpu *pmu;          /* its counters; pmu_init_cpu writes it */
    void *fault_stacks;           /* pages of the NMI, double fault and debug stacks */
    struct trap_frame *pmi_frame; /* what the counters' interrupt interrupted; this CPU writes it */
    uint8_t gap[0x184 - 0x120];
    /* Where the inline routines of wdm.h and ntddk.h look: KPCR.Prcb's LegacyNumber, which is the
     * number in the group, and CurrentThread. */
    uint32_t legacy_number;
    void *kthread;        /* the header of `thread`, which is what drivers call a PKTHREAD */
    const uint64_t *pml4; /* the table it runs with; atomic, this CPU writes it (vm_switch) */
    struct etw_stream *streams[16]; /* of the trace sessions; L: see etw_session.c */
    uint64_t stray_nmis;   /* that nobody claims; this CPU writes it, once the kernel runs */
    uint64_t counter_seen; /* of thread profiling: what the first configured counter was last */
    uint64_t calls_made, calls_run; /* of smp_call to this CPU; L: call_lock; this CPU writes it */
    uint64_t tsc_behind; /* how far its TSC is behind the boot CPU's, if it cannot be set (tsc.c) */
};
_Static_assert(offsetof(struct cpu, pcr) == 0x18 && offsetof(struct cpu, legacy_number) == 0x184,
               "KPCR");
_Static_assert(offsetof(struct cpu, kthread) == 0x188, "KPCR");
_Static_assert(offsetof(struct cpu, self) == CPU_SELF, "layout.h");
_Static_assert(offsetof(struct cpu, kernel_rsp) == CPU_KERNEL_RSP, "layout.h");
_Static_assert(offsetof(struct cpu, user_rsp) == CPU_USER_RSP, "layout.h");
_Static_assert(offsetof(struct cpu, thread) == CPU_THREAD, "layout.h");
_Static_assert(offsetof(struct cpu, gdt) == CPU_GDT, "layout.h");

struct cpu_features {
    char vendor[13], name[49];
    uint32_t max_leaf, max_extended_leaf;
    unsigned family, model, stepping;
    unsigned physical_bits; /* of an address */
    bool hypervisor, x2apic, smep, smap, nx, pat;
    bool arat; /* the APIC timer goes on in every sleep */
};

extern struct cpu *cpus[MAX_CPUS]; /* [0, cpu_count); written while CPUs start, then const */
extern unsigned cpu_count;         /* CPUs running */
#define for_all_cpus(cpu) for (unsigned cpu = 0; cpu < cpu_count; cpu++)
extern struct cpu_features cpu_features;

static inline struct cpu *cpu_current(void)
{
    struct cpu *cpu;
    asm volatile("mov %%gs:0,%0" : "=r"(cpu));
    return cpu;
}

/* A field of this CPU's block, by one instruction: between two the thread may have gone to another
 * CPU. */
#define CPU_FIELD(field)                                                                           \
    ({                                                                                             \
        __typeof__(cpus[0]->field) field##_here;                                                   \
        asm volatile("mov %%gs:%c1,%0" : "=r"(field##_here) : "i"(offsetof(struct cpu, field)));   \
        field##_here;                                                                              \
    })

/* An element of an array of pointers in it, by one instruction too. */
#define CPU_ELEMENT(field, i)                                                                      \
    ({                                                                                             \
        __typeof__(cpus[0]->field[0]) field##_here;                                                \
        asm volatile("mov %%gs:%c1(,%2,8),%0"                                                      \
                     : "=r"(field##_here)                                                          \
                     : "i"(offsetof(struct cpu, field)), "r"((uint64_t)(i)));                      \
        field##_here;                                                                              \
    })

#define CPU_SET_FIELD(field, value)                                                                \
    asm volatile("mov %0,%%gs:%c1"                                                                 \
                 :                                                                                 \
                 : "r"((__typeof__(cpus[0]->field))(value)), "i"(offsetof(struct cpu, field))      \
                 : "memory")

static inline unsigned cpu_number(void) { return CPU_FIELD(number); }

/* As an index, which need not be extended to 64 bits first. */
static inline uint64_t cpu_index(void)
{
    uint64_t number;
    asm volatile("mov %%gs:%c1,%k0" : "=r"(number) : "i"(offsetof(struct cpu, number)));
    return number;
}

/* Sets the interrupt descriptor table of all CPUs; loads it on this CPU. */
void cpu_set_idt(const void *table, size_t size);
void cpu_load_idt(void);
/* Reads CPUID once, on the boot CPU. */
struct cpuid cpuid_leaf(uint32_t leaf); /* zeros where it is above the last */
void cpu_detect(void);
/* Gives this CPU its block, GDT, TSS and the control registers that every CPU of ours has. */
void cpu_init(struct cpu *cpu, unsigned number);
/* Whether the local APIC's timer goes on in HLT. With ARAT (CPUID 6) it does. Without ARAT, on AMD,
 * it does unless MSR C001_0055h turns C1E on (erratum 400); on Intel nobody promises it. */
bool cpu_halt_is_safe(bool arat, bool amd, uint64_t interrupt_pending);
/* Counts one CPU more as running: the one with number cpu_count. */
void cpu_joins(void);
/* Finds out how this CPU may idle; turns C1E off where it can. The CPU can take exceptions. */
void cpu_init_idle(void);
