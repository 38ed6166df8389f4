/* SPDX-License-Identifier: MIT */
/* CPUID once, and what every CPU needs before it can take an exception. */
#include "kernel/cpu.h"
#include "kernel/msr.h"
#include "kernel/phys.h"
#include "kernel/string.h"
#include "kernel/x86.h"

struct cpu *cpus[MAX_CPUS];
unsigned cpu_count;
struct cpu_features cpu_features;

static void detect_names(void)
{
    struct cpuid r = cpuid(0, 0);
    cpu_features.max_leaf = r.eax;
    memcpy(cpu_features.vendor, &r.ebx, 4);
    memcpy(cpu_features.vendor + 4, &r.edx, 4);
    memcpy(cpu_features.vendor + 8, &r.ecx, 4);
    cpu_features.max_extended_leaf = cpuid(0x80000000, 0).eax;
    if (cpu_features.max_extended_leaf < 0x80000000)
        cpu_features.max_extended_leaf = 0;
    if (cpu_features.max_extended_leaf >= 0x80000004)
        for (unsigned i = 0; i < 3; i++) {
            r = cpuid(0x80000002 + i, 0);
            memcpy(cpu_features.name + 16 * i, &r, 16);
        }
}

void cpu_detect(void)
{
    detect_names();
    struct cpuid r = cpuid(1, 0);
    cpu_features.hypervisor = r.ecx >> 31 & 1;
    cpu_features.x2apic = r.ecx >> 21 & 1;
    cpu_features.tsc_deadline = r.ecx >> 24 & 1;
    if (cpu_features.max_leaf >= 7) {
        r = cpuid(7, 0);
        cpu_features.smep = r.ebx >> 7 & 1;
        cpu_features.smap = r.ebx >> 20 & 1;
    }
    if (cpu_features.max_extended_leaf >= 0x80000001)
        cpu_features.nx = cpuid(0x80000001, 0).edx >> 20 & 1;
}

static void load_segments(struct cpu *cpu)
{
    uint64_t tss = (uint64_t)&cpu->tss;
    cpu->gdt[SEL_KERNEL_CS / 8] = 0x00af9a000000ffff;
    cpu->gdt[SEL_KERNEL_SS / 8] = 0x00cf92000000ffff;
    cpu->gdt[3] = 0x00cffa000000ffff; /* 32-bit user code: SYSRET's base, unused */
    cpu->gdt[SEL_USER_SS / 8] = 0x00cff2000000ffff;
    cpu->gdt[SEL_USER_CS / 8] = 0x00affa000000ffff;
    cpu->gdt[SEL_TSS / 8] = (sizeof cpu->tss - 1) | (tss & 0xffffff) << 16 | 0x89ul << 40 | (tss >> 24 & 0xff) << 56;
    cpu->gdt[SEL_TSS / 8 + 1] = tss >> 32;
    cpu->tss.io_map = sizeof cpu->tss;
    cpu->tss.ist[0] = (uint64_t)cpu->fault_stacks + PAGE_SIZE;     /* NMI */
    cpu->tss.ist[1] = (uint64_t)cpu->fault_stacks + 2 * PAGE_SIZE; /* double fault */

    struct table_register gdtr = { sizeof cpu->gdt - 1, (uint64_t)cpu->gdt };
    lgdt(&gdtr);
    ltr(SEL_TSS);
}

static void set_control_registers(void)
{
    uint64_t cr4 = read_cr4() | CR4_OSFXSR | CR4_OSXMMEXCPT;
    write_cr0((read_cr0() | CR0_MP | CR0_NE | CR0_WP) & ~(uint64_t)(CR0_EM | CR0_TS));
    cr4 &= ~(uint64_t)CR4_PCE;
    if (cpu_features.smep)
        cr4 |= CR4_SMEP;
    if (cpu_features.smap)
        cr4 |= CR4_SMAP;
    write_cr4(cr4);
}

struct cpu *cpu_allocate(uint32_t apic_id)
{
    struct cpu *cpu = phys_alloc(1);
    void *stacks = phys_alloc(2);
    if (!cpu || !stacks)
        return NULL;
    cpu->apic_id = apic_id;
    cpu->fault_stacks = stacks;
    return cpu;
}

void cpu_init(struct cpu *cpu, unsigned number)
{
    cpu->self = cpu;
    cpu->number = number;
    load_segments(cpu);
    wrmsr(MSR_GS_BASE, (uint64_t)cpu);
    wrmsr(MSR_KERNEL_GS_BASE, 0);
    set_control_registers();
    cpus[number] = cpu;
}
