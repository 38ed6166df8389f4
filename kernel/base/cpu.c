/* SPDX-License-Identifier: MIT */
/* CPUID once, and what every CPU needs before it can take an exception. */
#include "kernel/base/cpu.h"
#include "kernel/base/msr.h"
#include "kernel/base/print.h"
#include "kernel/base/string.h"
#include "kernel/base/x86.h"

struct cpu *cpus[MAX_CPUS];
unsigned cpu_count;
struct cpu_features cpu_features;

/* Removes what cannot be printed, and blanks at both ends. */
static void trim(char *text)
{
    char *to = text;
    for (const char *from = text; *from; from++)
        if ((*from > ' ' && *from <= '~') || (*from == ' ' && to > text))
            *to++ = *from;
    while (to > text && to[-1] == ' ')
        to--;
    *to = 0;
}

struct cpuid cpuid_leaf(uint32_t leaf)
{
    uint32_t last = leaf >> 31 ? cpu_features.max_extended_leaf : cpu_features.max_leaf;
    return leaf <= last ? cpuid(leaf, 0) : (struct cpuid){ 0 };
}

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
    for (unsigned i = 0; i < 3; i++) {
        r = cpuid_leaf(0x80000002 + i);
        memcpy(cpu_features.name + 16 * i, &r, 16);
    }
    trim(cpu_features.name);
}

void cpu_detect(void)
{
    detect_names();
    struct cpuid r = cpuid(1, 0);
    cpu_features.hypervisor = r.ecx >> 31 & 1;
    cpu_features.x2apic = r.ecx >> 21 & 1;
    cpu_features.pat = r.edx >> 16 & 1;
    cpu_features.stepping = r.eax & 0xf;
    cpu_features.family = (r.eax >> 8 & 0xf) + ((r.eax >> 8 & 0xf) == 0xf ? r.eax >> 20 & 0xff : 0);
    cpu_features.model = (r.eax >> 4 & 0xf) | (r.eax >> 12 & 0xf0);
    cpu_features.arat = cpuid_leaf(6).eax >> 2 & 1;
    cpu_features.smep = cpuid_leaf(7).ebx >> 7 & 1;
    cpu_features.smap = cpuid_leaf(7).ebx >> 20 & 1;
    unsigned bits = cpuid_leaf(0x80000008).eax & 0xff;
    /* 36: every processor with long mode. */
    cpu_features.physical_bits = bits < 32 || bits > 52 ? 36 : bits;
    cpu_features.nx = cpuid_leaf(0x80000001).edx >> 20 & 1;
}

static void load_segments(struct cpu *cpu)
{
    uint64_t tss = (uint64_t)&cpu->tss;
    cpu->gdt[SEL_KERNEL_CS / 8] = 0x00af9a000000ffff;
    cpu->gdt[SEL_KERNEL_SS / 8] = 0x00cf92000000ffff;
    /* 32-bit user code: SYSRET's base, unused. */
    cpu->gdt[SEL_USER_SS / 8 - 1] = 0x00cffa000000ffff;
    cpu->gdt[SEL_USER_SS / 8] = 0x00cff2000000ffff;
    cpu->gdt[SEL_USER_CS / 8] = 0x00affa000000ffff;
    cpu->gdt[SEL_TSS / 8] =
        (sizeof cpu->tss - 1) | (tss & 0xffffff) << 16 | 0x89ul << 40 | (tss >> 24 & 0xff) << 56;
    cpu->gdt[SEL_TSS / 8 + 1] = tss >> 32;
    cpu->tss.io_map = sizeof cpu->tss;
    cpu->tss.ist[0] = (uint64_t)cpu->fault_stacks + PAGE_SIZE;     /* NMI */
    cpu->tss.ist[1] = (uint64_t)cpu->fault_stacks + 2 * PAGE_SIZE; /* double fault */
    cpu->tss.ist[2] = (uint64_t)cpu->fault_stacks + 3 * PAGE_SIZE; /* debug */

    struct table_register gdtr = { sizeof cpu->gdt - 1, (uint64_t)cpu->gdt };
    lgdt(&gdtr);
    ltr(SEL_TSS);
}

/* Written whole: firmware may have left anything in them. With MCE a machine check is a named
 * exception, not a reset. */
static void set_control_registers(void)
{
    write_cr0(CR0_PG | CR0_AM | CR0_WP | CR0_NE | CR0_ET | CR0_MP | CR0_PE);
    write_cr4(CR4_PAE | CR4_MCE | CR4_OSFXSR | CR4_OSXMMEXCPT | (cpu_features.smep ? CR4_SMEP : 0) |
              (cpu_features.smap ? CR4_SMAP : 0));
    if (cpu_features.pat)
        wrmsr(MSR_PAT, PAT_OURS); /* no table has used the entry that changes */
}

bool cpu_halt_is_safe(bool arat, bool amd, uint64_t interrupt_pending)
{
    return arat || (amd && !(interrupt_pending & AMD_C1E));
}

/* AMD's MSR that says whether HLT becomes C1E; 0 where there is none. */
static uint64_t interrupt_pending(bool amd)
{
    uint64_t value = 0;
    return amd && rdmsr_fault(MSR_AMD_INTERRUPT_PENDING, &value) == 0 ? value : 0;
}

void cpu_init_idle(void)
{
    static bool announced;
    bool amd = strcmp(cpu_features.vendor, "AuthenticAMD") == 0 ||
               strcmp(cpu_features.vendor, "HygonGenuine") == 0;
    uint64_t value = interrupt_pending(amd);
    if (cpu_halt_is_safe(cpu_features.arat, amd, value))
        return;
    if (amd)
        wrmsr_fault(MSR_AMD_INTERRUPT_PENDING, value & ~(uint64_t)AMD_C1E);
    cpu_current()->halt_stops_timer =
        !cpu_halt_is_safe(cpu_features.arat, amd, interrupt_pending(amd));
    if (!__atomic_exchange_n(&announced, true, __ATOMIC_RELAXED))
        print("# idle: HLT may stop the APIC timer (%s): %s\n", amd ? "C1E" : "no ARAT",
              cpu_current()->halt_stops_timer ? "CPUs wait without it" : "turned off");
}

static struct table_register idt; /* written once, at boot */

void cpu_set_idt(const void *table, size_t size)
{
    idt = (struct table_register){ (uint16_t)(size - 1), (uint64_t)table };
}

void cpu_load_idt(void) { lidt(&idt); }

void cpu_joins(void) { cpu_set_add(&cpu_running, cpu_count++); }

void cpu_init(struct cpu *cpu, unsigned number)
{
    cpu->self = cpu->pcr = cpu;
    cpu->number = number;
    cpu->legacy_number = number % CPU_GROUP_SIZE;
    load_segments(cpu);
    wrmsr(MSR_GS_BASE, (uint64_t)cpu);
    wrmsr(MSR_KERNEL_GS_BASE, 0);
    set_control_registers();
    cpus[number] = cpu;
}
