/* SPDX-License-Identifier: MIT */
#include "tests/harness/invariants.h"
#include "kernel/ke/fpu.h"
#include "tests/harness/kernel.h"

#define DEBUGCTL 0x1d9
#define DR7_OFF 0x400u
#define FROZEN (3ul << 58) /* in the global status: the list of branches, the counters */
#define FIXED_RINGS 3u
#define FLAGS_DF_IOPL_NT (1u << 10 | 3u << 12 | 1u << 14)
#define SHOWN 8u

static bool may_lose; /* interrupts of counters */
static struct cpu_features *const has = &cpu_features;
static uint64_t kernels_gates, kernels_cr4;

/* Of an MSR that may be absent. */
static uint64_t msr_or_0(uint32_t msr)
{
    uint64_t value = 0;
    return msr && !rdmsr_fault(msr, &value) ? value : 0;
}

static uint64_t cr0(void) { return CR0_PG | CR0_AM | CR0_WP | CR0_NE | CR0_ET | CR0_MP | CR0_PE; }

/* OSXSAVE and FSGSBASE were found out at boot. */
static uint64_t cr4(void)
{
    return CR4_PAE | CR4_MCE | CR4_OSFXSR | CR4_OSXMMEXCPT | (has->smep ? CR4_SMEP : 0) |
           (has->smap ? CR4_SMAP : 0) | (kernels_cr4 & (CR4_OSXSAVE | CR4_FSGSBASE));
}

static uint64_t read_efer(void) { return rdmsr(MSR_EFER); }
static uint64_t efer(void) { return EFER_SCE | EFER_LME | EFER_LMA | (has->nx ? EFER_NXE : 0); }
static uint64_t xcr0(void) { return fpu_facts.xcr0; }
static uint64_t sfmask(void) { return RFLAGS_TF | RFLAGS_IF | RFLAGS_AC | FLAGS_DF_IOPL_NT; }
static uint64_t read_pat(void) { return has->pat ? rdmsr(MSR_PAT) : PAT_OURS; }
static uint64_t pat(void) { return PAT_OURS; }
static uint64_t dr7(void) { return DR7_OFF; }
static uint64_t read_xcr0(void) { return xcr0() ? xgetbv(0) : 0; }
static uint64_t read_sfmask(void) { return rdmsr(MSR_SFMASK) & sfmask(); }

static uint64_t read_gates(void)
{
    struct table_register idt;
    sidt(&idt);
    return idt.base;
}

static uint64_t gates(void) { return kernels_gates; }
static uint64_t read_debugctl(void) { return msr_or_0(DEBUGCTL); }
static uint64_t entry(void) { return hal_pmi_is_nmi() ? APIC_LVT_NMI : APIC_PMI_VECTOR; }
static uint64_t read_control(void) { return msr_or_0(pmu_here()->msr.global_control); }

/* A counter that somebody has may overflow at any time: its interrupt masks the entry. */
static bool may_overflow(void) { return pmu_this_cpu()->running || hal_counters_owned_here(); }

static uint64_t entry_here(void)
{
    return pmu_here()->counters && !may_overflow() ? apic_read_pmi_lvt() : entry();
}

/* Without what firmware's counters and reserved bits say. */
static uint64_t read_status(void)
{
    if (may_overflow())
        return 0;
    return msr_or_0(pmu_here()->msr.global_status) & (pmu_here()->counters | FROZEN);
}

/* Each access leaves a virtual machine: where one register enables all, the first alone, unless
 * there is time. */
static uint64_t enabled_here(void)
{
    uint64_t enabled = 0, counters = pmu_here()->counters & ~pmu_here()->left_running;
    if (pmu_here()->msr.global_control && !test_long())
        counters &= -counters | ~PMU_ANY_GP;
    uint64_t fixed = msr_or_0(pmu_here()->msr.fixed_control);
    for_each_bit(ctr, counters) {
        bool on = ctr < PMU_FIXED ? rdmsr(pmu_select_msr(pmu_here(), ctr)) & PMU_ENABLE
                                  : fixed >> 4 * (ctr - PMU_FIXED) & FIXED_RINGS;
        enabled |= on ? PMU_BIT(ctr) : 0;
    }
    return enabled;
}

static uint64_t read_state(void)
{
    const struct pmu_cpu *cpu = pmu_this_cpu();
    return cpu->running | cpu->armed | (cpu->paused ? FROZEN : 0);
}

static uint64_t read_lent(void) { return pmu_this_cpu()->lent; }
static uint64_t read_lost(void) { return may_lose ? 0 : hal_profile_lost[cpu_number()]; }
static uint64_t read_calls(void) { return cpu_current()->calls_run - cpu_current()->calls_made; }
static uint64_t nothing(void) { return 0; }

static const struct invariant {
    const char *name;
    uint64_t (*read)(void), (*wanted)(void);
} table[] = {
    { "CR0", read_cr0, cr0 },
    { "CR4", read_cr4, cr4 },
    { "EFER", read_efer, efer },
    { "PAT", read_pat, pat },
    { "DR7", read_dr7, dr7 },
    { "XCR0", read_xcr0, xcr0 },
    { "flags that SYSCALL clears", read_sfmask, sfmask },
    { "the interrupt table", read_gates, gates },
    { "DEBUGCTL", read_debugctl, nothing },
    { "the counters' LVT entry", entry_here, entry },
    { "the global control", read_control, nothing },
    { "the overflow status", read_status, nothing },
    { "enabled counters", enabled_here, nothing },
    { "running counters", read_state, nothing },
    { "lent counters", read_lent, nothing },
    { "counters with an owner", hal_counters_owned_here, nothing },
    { "lost interrupts of counters", read_lost, nothing },
    { "calls run and not made", read_calls, nothing },
};

static struct broken {
    const struct invariant *what;
    unsigned cpu;
    uint64_t is;
} broken[SHOWN];
static uint64_t found; /* atomic */

static void look_here(void *)
{
    KIRQL old = irql_raise(PROFILE_LEVEL);
    for (const struct invariant *i = table; i < table + ARRAY_SIZE(table); i++) {
        uint64_t is = i->read();
        uint64_t n = is == i->wanted() ? SHOWN : __atomic_fetch_add(&found, 1, __ATOMIC_RELAXED);
        if (n < SHOWN)
            broken[n] = (struct broken){ i, cpu_number(), is };
    }
    irql_lower(old);
}

uint64_t invariants_broken(void)
{
    found = 0;
    smp_call(SMP_ALL, look_here, NULL);
    return found;
}

void invariants_print(void)
{
    for (const struct broken *b = broken; b < broken + (found < SHOWN ? found : SHOWN); b++)
        print("# CPU %u: %s: %lx, not %lx\n", b->cpu, b->what->name, b->is, b->what->wanted());
}

static void restore_here(void *)
{
    cpu_load_idt();
    write_dr7(DR7_OFF);
    write_cr0(cr0());
    write_cr4(cr4());
    wrmsr(MSR_EFER, efer());
    if (has->pat)
        wrmsr(MSR_PAT, PAT_OURS);
    KIRQL old = irql_raise(PROFILE_LEVEL);
    pmu_clear(pmu_here()->counters);
    pmu_reset(); /* which counters there are was found out at boot */
    hal_pmi_init_cpu();
    hal_profile_lost[cpu_number()] = 0;
    cpu_current()->calls_run = cpu_current()->calls_made;
    irql_lower(old);
}

void invariants_restore(void) { smp_call(SMP_ALL, restore_here, NULL); }

#define LATE 1000u /* instructions: a tick may find the overflow first */

static bool loses(void)
{
    static const char *const quirks[] = { "lostpmi", "throttle", "contend", "smi" };
    bool can = !vpmu_present() || vpmu_quirk("skid") > LATE;
    for (unsigned i = 0; i < ARRAY_SIZE(quirks) && !can; i++)
        can = vpmu_quirk(quirks[i]);
    return can;
}

void invariants_init(void)
{
    may_lose = loses();
    kernels_gates = read_gates();
    kernels_cr4 = read_cr4();
}
