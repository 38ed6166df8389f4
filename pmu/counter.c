/* SPDX-License-Identifier: MIT */
/* Counters of this CPU, driven by the facts of its kind. No lock: each CPU has its own state, and
 * the caller keeps interrupts that use the PMU away. Any IRQL.
 *
 * Sources: Intel SDM vol. 3 "Architectural performance monitoring"; AMD APM vol. 2 "Performance
 * monitoring counters". */
#include "kernel/base/assert.h"
#include "kernel/base/bits.h"
#include "kernel/base/cpu.h"
#include "kernel/base/x86.h"
#include "pmu/pmu.h"

#define FIXED_KERNEL 1u /* a counter's four bits in the fixed control register */
#define FIXED_USER 2u
#define FIXED_INTERRUPT 8u
#define FIXED_ADAPTIVE (1ul << 32) /* and for the next counter four bits higher */
#define MSR_DEBUGCTL 0x1d9

static uint32_t msr_of(const struct pmu_kind *pmu, unsigned ctr, uint32_t gp, uint32_t fixed)
{
    return ctr < PMU_FIXED ? gp + ctr * pmu->msr.stride : fixed;
}

static uint32_t fixed_msr(const struct pmu_kind *pmu, unsigned ctr)
{
    return pmu->msr.fixed_counter + (ctr - PMU_FIXED) * pmu->msr.fixed_stride;
}

uint32_t pmu_counter_msr(const struct pmu_kind *pmu, unsigned ctr)
{
    return msr_of(pmu, ctr, pmu->msr.counter, fixed_msr(pmu, ctr));
}

uint32_t pmu_write_msr(const struct pmu_kind *pmu, unsigned ctr)
{
    return msr_of(pmu, ctr, pmu->msr.write, fixed_msr(pmu, ctr));
}

uint32_t pmu_select_msr(const struct pmu_kind *pmu, unsigned ctr)
{
    return msr_of(pmu, ctr, pmu->msr.select, pmu->msr.fixed_control);
}

static uint64_t width_mask(unsigned width) { return ~0ul >> (-width & 63); }

uint64_t pmu_mask(const struct pmu_kind *pmu, unsigned ctr)
{
    return width_mask(ctr < PMU_FIXED ? pmu->gp_width : pmu->fixed_width);
}

uint64_t pmu_max_period(const struct pmu_kind *pmu, unsigned ctr)
{
    return width_mask(ctr < PMU_FIXED ? pmu->gp_write_width : pmu->fixed_width) >> 1;
}

uint64_t pmu_read(unsigned ctr) { return rdpmc_exact(pmu_rdpmc_index(ctr)); }

bool pmu_paused(void) { return pmu_this_cpu()->paused; }
uint64_t pmu_running(void) { return pmu_this_cpu()->running; }

static void arm_counter(struct pmu_cpu *cpu, unsigned ctr, uint64_t value)
{
    if (value & ~(pmu_mask(cpu->kind, ctr) >> 1))
        cpu->armed |= PMU_BIT(ctr);
    else
        cpu->armed &= ~PMU_BIT(ctr);
}

void pmu_write(unsigned ctr, uint64_t value)
{
    const struct pmu_kind *pmu = pmu_here();
    uint64_t mask = pmu_mask(pmu, ctr), longest = pmu_max_period(pmu, ctr);
    ASSERT(value <= mask);
    ASSERT(value <= longest || value >= mask - longest);
    wrmsr(pmu_write_msr(pmu, ctr), value);
    if (!pmu->msr.global_status)
        arm_counter(pmu_this_cpu(), ctr, value);
}

/* The select of a fixed counter as its four bits of FIXED_CTR_CTRL. */
static uint64_t fixed_bits(unsigned ctr, uint64_t select)
{
    uint64_t mine = (select & PMU_KERNEL ? FIXED_KERNEL : 0) |
                    (select & PMU_USER ? FIXED_USER : 0) |
                    (select & PMU_INTERRUPT ? FIXED_INTERRUPT : 0) |
                    (select & PMU_ADAPTIVE ? FIXED_ADAPTIVE : 0);
    return mine << 4 * (ctr - PMU_FIXED);
}

static uint64_t fixed_mask(unsigned ctr)
{
    return (0xful | FIXED_ADAPTIVE) << 4 * (ctr - PMU_FIXED);
}

static void program_fixed(uint32_t control, unsigned ctr, uint64_t select)
{
    uint64_t others = rdmsr(control) & ~fixed_mask(ctr);
    wrmsr(control, others | fixed_bits(ctr, select));
}

/* Whether the select counts the instructions, or the branches, of ring 3 alone; PMU_RETIRED:
 * neither. */
static enum pmu_retired counts_in_ring3(const struct pmu_kind *pmu, unsigned ctr, uint64_t select)
{
    static const enum pmu_event events[PMU_RETIRED] = { PMU_INSTRUCTIONS, PMU_BRANCHES };
    if ((select & (PMU_USER | PMU_KERNEL)) != PMU_USER)
        return PMU_RETIRED;
    if (ctr >= PMU_FIXED)
        return ctr == PMU_FIXED ? PMU_RETIRED_INSTRUCTIONS : PMU_RETIRED;
    for (unsigned e = 0; e < PMU_RETIRED; e++)
        if (pmu_row(pmu->table, events[e]) &&
            (select & ~(uint64_t)PMU_INTERRUPT) == pmu_select(pmu, events[e], PMU_USER))
            return (enum pmu_retired)e;
    return PMU_RETIRED;
}

static void note_ring3(struct pmu_cpu *cpu, unsigned ctr, uint64_t select)
{
    enum pmu_retired now = counts_in_ring3(cpu->kind, ctr, select);
    for (unsigned e = 0; e < PMU_RETIRED; e++)
        cpu->ring3[e] = (cpu->ring3[e] & ~PMU_BIT(ctr)) | (e == now ? PMU_BIT(ctr) : 0);
}

int64_t pmu_trap_adds(unsigned ctr, enum pmu_trap trap)
{
    const struct pmu_cpu *cpu = pmu_this_cpu();
    for (unsigned e = 0; e < PMU_RETIRED; e++) {
        const struct pmu_spread *added = &cpu->kind->measured.trap[trap][e];
        if (cpu->running & cpu->ring3[e] & PMU_BIT(ctr))
            return pmu_trap_known(added) ? added->low : 0;
    }
    return 0;
}

/* Some of the three count after all, says Linux: the caller writes the counter afterwards. */
bool pmu_forget_event(const struct pmu_kind *pmu, unsigned ctr, uint64_t running,
                      unsigned (*write)(uint32_t msr, uint64_t value))
{
    static const uint32_t idle[] = { 0x4300b5, 0x4300d2, 0x4300b1, 0 };
    if (!pmu->table->stale || !pmu->msr.global_control || ctr >= PMU_FIXED)
        return false;
    bool fault = write(pmu->msr.global_control, running | PMU_BIT(ctr));
    for_each_in(at, idle)
        fault |= write(pmu_select_msr(pmu, ctr), *at) != 0;
    return write(pmu->msr.global_control, running) || fault;
}

static unsigned write_msr(uint32_t msr, uint64_t value)
{
    wrmsr(msr, value);
    return 0;
}

void pmu_program(unsigned ctr, uint64_t select, uint64_t start)
{
    struct pmu_cpu *cpu = pmu_this_cpu();
    const struct pmu_kind *pmu = cpu->kind;
    ASSERT(pmu->reported >> ctr & 1);
    ASSERT(!(cpu->running >> ctr & 1));
    cpu->selects[ctr] = select;
    note_ring3(cpu, ctr, select);
    if (pmu->table->stale && pmu->msr.global_control && select)
        pmu_forget_event(pmu, ctr, rdmsr(pmu->msr.global_control), write_msr);
    pmu_write(ctr, start);
    if (ctr >= PMU_FIXED)
        program_fixed(pmu->msr.fixed_control, ctr, select);
    else
        wrmsr(pmu_select_msr(pmu, ctr),
              select && pmu->msr.global_control ? select | PMU_ENABLE : select);
    if (pmu->msr.global_clear)
        wrmsr(pmu->msr.global_clear, PMU_BIT(ctr));
}

/* The lent counters that the global control enables now. */
static inline uint64_t lent_running(const struct pmu_cpu *cpu)
{
    return cpu->lent ? rdmsr(cpu->global_control) & cpu->lent : 0;
}

static void lend_counters(struct pmu_cpu *cpu, uint64_t counters)
{
    cpu->lent = counters;
    cpu->plain_control = counters ? 0 : cpu->global_control;
}

void pmu_lend(uint64_t counters) { lend_counters(pmu_this_cpu(), pmu_this_cpu()->lent | counters); }

/* Makes the counters `now` run; until now `before` ran. Lent ones stay as they are. */
static void run_counters(const struct pmu_cpu *cpu, uint64_t before, uint64_t now)
{
    const struct pmu_kind *pmu = cpu->kind;
    if (cpu->paused)
        return;
    if (pmu->msr.global_control) {
        wrmsr(pmu->msr.global_control, now | lent_running(cpu));
        return;
    }
    for_each_bit(ctr, before ^ now) {
        uint64_t select = rdmsr(pmu_select_msr(pmu, ctr)) & ~(uint64_t)PMU_ENABLE;
        wrmsr(pmu_select_msr(pmu, ctr), now >> ctr & 1 ? select | PMU_ENABLE : select);
    }
}

void pmu_start(uint64_t counters)
{
    struct pmu_cpu *cpu = pmu_this_cpu();
    uint64_t before = cpu->running;
    cpu->running |= counters;
    run_counters(cpu, before, cpu->running);
}

void pmu_stop(uint64_t counters)
{
    struct pmu_cpu *cpu = pmu_this_cpu();
    uint64_t before = cpu->running;
    cpu->running &= ~counters;
    run_counters(cpu, before, cpu->running);
}

void pmu_clear(uint64_t counters)
{
    struct pmu_cpu *cpu = pmu_this_cpu();
    const struct pmu_kind *pmu = cpu->kind;
    uint64_t fixed = 0;
    ASSERT(!(counters & ~pmu->reported));
    lend_counters(cpu, cpu->lent & ~counters);
    pmu_stop(counters);
    for_each_bit(ctr, counters) {
        cpu->selects[ctr] = 0;
        note_ring3(cpu, (unsigned)ctr, 0);
        pmu_write((unsigned)ctr, 0);
        if (ctr >= PMU_FIXED)
            fixed |= fixed_mask((unsigned)ctr);
        else
            wrmsr(pmu_select_msr(pmu, ctr), 0);
    }
    if (fixed)
        wrmsr(pmu->msr.fixed_control, rdmsr(pmu->msr.fixed_control) & ~fixed);
    if (pmu->msr.global_clear)
        wrmsr(pmu->msr.global_clear, counters);
}

void pmu_pause_any(void)
{
    struct pmu_cpu *cpu = pmu_this_cpu();
    cpu->lent_ran = cpu->global_control ? lent_running(cpu) : 0;
    if (cpu->global_control)
        wrmsr(cpu->global_control, 0);
    else
        run_counters(cpu, cpu->running, 0);
    cpu->paused = true;
}

void pmu_resume_any(void)
{
    struct pmu_cpu *cpu = pmu_this_cpu();
    if (cpu->global_control)
        wrmsr(cpu->global_control, cpu->running | cpu->lent_ran | lent_running(cpu));
    else
        run_counters(cpu, 0, cpu->running);
}

/* Without a status register: lent counters that may interrupt. A wrapped one is reported at each
 * call until it is written. */
static uint64_t lent_armed(const struct pmu_cpu *cpu)
{
    const uint64_t wanted = PMU_ENABLE | PMU_INTERRUPT;
    uint64_t armed = 0;
    for_each_bit(ctr, cpu->lent) {
        if ((rdmsr(pmu_select_msr(cpu->kind, ctr)) & wanted) == wanted)
            armed |= PMU_BIT(ctr);
    }
    return armed;
}

uint64_t pmu_take_wrapped(void)
{
    struct pmu_cpu *cpu = pmu_this_cpu();
    uint64_t overflowed = 0;
    for_each_bit(ctr, cpu->armed | lent_armed(cpu)) {
        if (!(rdpmc(pmu_rdpmc_index((unsigned)ctr)) & ~(pmu_mask(cpu->kind, ctr) >> 1)))
            overflowed |= PMU_BIT(ctr);
    }
    cpu->armed &= ~overflowed;
    return overflowed;
}

uint64_t pmu_rearm_late(unsigned ctr, uint64_t period)
{
    uint64_t past = pmu_read(ctr), mask = pmu_mask(pmu_here(), ctr);
    bool wrapped = past <= mask / 2; /* if not, it overflows at its next event */
    pmu_write(ctr, wrapped ? (past % period - period) & mask : mask);
    return wrapped ? past / period : 0;
}

uint64_t pmu_selected(unsigned ctr)
{
    uint64_t select = rdmsr(pmu_select_msr(pmu_here(), ctr));
    if (ctr < PMU_FIXED)
        return select & ~(uint64_t)PMU_ENABLE;
    select >>= 4 * (ctr - PMU_FIXED);
    return (select & FIXED_KERNEL ? PMU_KERNEL : 0) | (select & FIXED_USER ? PMU_USER : 0) |
           (select & FIXED_INTERRUPT ? PMU_INTERRUPT : 0);
}

/* Whether its register has the select that pmu_program wrote, enabled, but for the bits ignored. */
static bool is_selected(const struct pmu_cpu *cpu, unsigned ctr, uint64_t ignored)
{
    uint64_t want = cpu->selects[ctr], is = rdmsr(pmu_select_msr(cpu->kind, ctr));
    return ctr < PMU_FIXED ? !((is ^ (want | PMU_ENABLE)) & ~ignored)
                           : (is & fixed_mask(ctr)) == fixed_bits(ctr, want);
}

uint64_t pmu_rewritten(void)
{
    const struct pmu_cpu *cpu = pmu_this_cpu();
    const struct pmu_kind *pmu = cpu->kind;
    uint64_t found = 0, running = cpu->running;
    if (pmu->msr.global_control && running)
        found = running & ~rdmsr(pmu->msr.global_control);
    for_each_bit(ctr, running) {
        if (!is_selected(cpu, (unsigned)ctr, 0))
            found |= PMU_BIT(ctr);
    }
    return found;
}

bool pmu_kept(unsigned ctr)
{
    const struct pmu_cpu *cpu = pmu_this_cpu();
    return !cpu->selects[ctr] || is_selected(cpu, ctr, PMU_ENABLE);
}

struct pmu_gate pmu_gate(unsigned ctr)
{
    const struct pmu_cpu *cpu = pmu_this_cpu();
    const struct pmu_kind *pmu = cpu->kind;
    if (pmu->msr.global_control)
        return (struct pmu_gate){ pmu->msr.global_control, cpu->running | PMU_BIT(ctr),
                                  cpu->running & ~PMU_BIT(ctr) };
    uint64_t select = rdmsr(pmu_select_msr(pmu, ctr)) & ~(uint64_t)PMU_ENABLE;
    return (struct pmu_gate){ pmu_select_msr(pmu, ctr), select | PMU_ENABLE, select };
}

/* The self-test comes later, so any register may be absent. */
void pmu_reset(void)
{
    struct pmu_cpu *cpu = pmu_this_cpu();
    const struct pmu_msrs *msr = &cpu->kind->msr;
    uint64_t value = 0;

    cpu->running = cpu->armed = 0;
    cpu->paused = false;
    if (!cpu->kind->driver)
        return;
    if (msr->global_control)
        wrmsr_fault(msr->global_control, 0);
    for_each_bit(ctr, cpu->kind->reported) {
        wrmsr_fault(pmu_select_msr(cpu->kind, ctr), 0);
        wrmsr_fault(pmu_write_msr(cpu->kind, ctr), 0);
    }
    /* Unused: the handler pauses the counters itself. Firmware's bits freeze, or trace branches. */
    if (!rdmsr_fault(MSR_DEBUGCTL, &value) && value)
        wrmsr_fault(MSR_DEBUGCTL, 0);
    if (msr->global_status && !rdmsr_fault(msr->global_status, &value) && value)
        wrmsr_fault(msr->global_clear, value & cpu->kind->clears);
}
