/* SPDX-License-Identifier: MIT */
/* Counters of this CPU, driven by the facts in pmu_caps. No lock: each CPU has its own state, and
 * the caller keeps interrupts that use the PMU away. Any IRQL.
 *
 * Sources: Intel SDM vol. 3 "Architectural performance monitoring"; AMD APM vol. 2 "Performance
 * monitoring counters". */
#include "kernel/assert.h"
#include "kernel/cpu.h"
#include "kernel/x86.h"
#include "pmu/pmu.h"

#define FIXED_KERNEL 1u /* a counter's four bits in the fixed control register */
#define FIXED_USER 2u
#define FIXED_INTERRUPT 8u
#define RDPMC_FIXED 0x40000000u
#define MSR_DEBUGCTL 0x1d9
#define DEBUGCTL_FREEZE_ON_PMI (3u << 11) /* unused: the handler pauses the counters itself */

static struct {
    uint64_t running; /* what global control has, or which selects have EN, unless paused */
    uint64_t armed;   /* without a status register: written with the top bit set */
    bool paused;      /* nothing runs until pmu_resume */
    uint64_t selects[64]; /* what pmu_program gave each counter, without EN */
} state[MAX_CPUS];    /* each its CPU's own */

static uint32_t msr_of(unsigned ctr, uint32_t gp, uint32_t fixed)
{
    return ctr < PMU_FIXED ? gp + ctr * pmu_caps.msr.stride : fixed;
}

uint32_t pmu_counter_msr(unsigned ctr)
{
    return msr_of(ctr, pmu_caps.msr.counter, pmu_caps.msr.fixed_counter + ctr - PMU_FIXED);
}

uint32_t pmu_write_msr(unsigned ctr)
{
    return msr_of(ctr, pmu_caps.msr.write, pmu_caps.msr.fixed_counter + ctr - PMU_FIXED);
}

uint32_t pmu_select_msr(unsigned ctr)
{
    return msr_of(ctr, pmu_caps.msr.select, pmu_caps.msr.fixed_control);
}

static uint64_t width_mask(unsigned width)
{
    return ~UINT64_C(0) >> (-width & 63);
}

uint64_t pmu_mask(unsigned ctr)
{
    return width_mask(ctr < PMU_FIXED ? pmu_caps.gp_width : pmu_caps.fixed_width);
}

uint64_t pmu_max_period(unsigned ctr)
{
    return width_mask(ctr < PMU_FIXED ? pmu_caps.gp_write_width : pmu_caps.fixed_width) >> 1;
}

uint32_t pmu_rdpmc_index(unsigned ctr)
{
    return ctr < PMU_FIXED ? ctr : RDPMC_FIXED + ctr - PMU_FIXED;
}

uint64_t pmu_read(unsigned ctr) { return rdpmc(pmu_rdpmc_index(ctr)); }

bool pmu_paused(void) { return state[cpu_number()].paused; }
uint64_t pmu_running(void) { return state[cpu_number()].running; }

static void arm(unsigned ctr, uint64_t value)
{
    uint64_t *armed = &state[cpu_number()].armed;
    if (value & ~(pmu_mask(ctr) >> 1))
        *armed |= PMU_BIT(ctr);
    else
        *armed &= ~PMU_BIT(ctr);
}

void pmu_write(unsigned ctr, uint64_t value)
{
    ASSERT(value <= pmu_mask(ctr));
    ASSERT(value <= pmu_max_period(ctr) || value >= pmu_mask(ctr) - pmu_max_period(ctr));
    wrmsr(pmu_write_msr(ctr), value);
    if (!pmu_caps.msr.global_status)
        arm(ctr, value);
}

void pmu_rearm(unsigned ctr, uint64_t period)
{
    uint64_t past = pmu_read(ctr); /* events since it wrapped */
    if (past >= period)
        past = period - 1; /* held up for longer than a period: those overflows are lost */
    wrmsr(pmu_write_msr(ctr), (past - period) & pmu_mask(ctr));
    if (!pmu_caps.msr.global_status)
        state[cpu_number()].armed |= PMU_BIT(ctr);
}

/* Its four bits of the control register, at their place. */
static uint64_t fixed_bits(unsigned ctr, uint64_t select)
{
    uint64_t mine = (select & PMU_KERNEL ? FIXED_KERNEL : 0) |
                    (select & PMU_USER ? FIXED_USER : 0) |
                    (select & PMU_INTERRUPT ? FIXED_INTERRUPT : 0);
    return mine << 4 * (ctr - PMU_FIXED);
}

static uint64_t fixed_mask(unsigned ctr) { return UINT64_C(0xf) << 4 * (ctr - PMU_FIXED); }

static void program_fixed(unsigned ctr, uint64_t select)
{
    uint64_t others = rdmsr(pmu_caps.msr.fixed_control) & ~fixed_mask(ctr);
    wrmsr(pmu_caps.msr.fixed_control, others | fixed_bits(ctr, select));
}

void pmu_program(unsigned ctr, uint64_t select, uint64_t start)
{
    ASSERT(pmu_caps.reported >> ctr & 1);
    ASSERT(!(pmu_running() >> ctr & 1));
    state[cpu_number()].selects[ctr] = select;
    pmu_write(ctr, start);
    if (ctr >= PMU_FIXED)
        program_fixed(ctr, select);
    else
        wrmsr(pmu_select_msr(ctr),
              select && pmu_caps.msr.global_control ? select | PMU_ENABLE : select);
    if (pmu_caps.msr.global_clear)
        wrmsr(pmu_caps.msr.global_clear, PMU_BIT(ctr));
}

/* Makes the hardware run exactly `now` of the counters, where `before` ran. */
static void run(uint64_t before, uint64_t now)
{
    if (state[cpu_number()].paused)
        return;
    if (pmu_caps.msr.global_control) {
        wrmsr(pmu_caps.msr.global_control, now);
        return;
    }
    for (uint64_t change = before ^ now; change; change &= change - 1) {
        unsigned ctr = (unsigned)__builtin_ctzll(change);
        uint64_t select = rdmsr(pmu_select_msr(ctr)) & ~(uint64_t)PMU_ENABLE;
        wrmsr(pmu_select_msr(ctr), now >> ctr & 1 ? select | PMU_ENABLE : select);
    }
}

void pmu_start(uint64_t counters)
{
    uint64_t *running = &state[cpu_number()].running, before = *running;
    *running |= counters;
    run(before, *running);
}

void pmu_stop(uint64_t counters)
{
    uint64_t *running = &state[cpu_number()].running, before = *running;
    *running &= ~counters;
    run(before, *running);
}

void pmu_clear(uint64_t counters)
{
    pmu_stop(counters);
    for (; counters; counters &= counters - 1)
        pmu_program((unsigned)__builtin_ctzll(counters), 0, 0);
}

/* These two are on the way of every sample: the usual case first. */
void pmu_pause(void)
{
    unsigned cpu = cpu_number();
    if (pmu_caps.msr.global_control)
        wrmsr(pmu_caps.msr.global_control, 0);
    else
        run(state[cpu].running, 0);
    state[cpu].paused = true;
}

void pmu_resume(void)
{
    unsigned cpu = cpu_number();
    state[cpu].paused = false;
    if (pmu_caps.msr.global_control)
        wrmsr(pmu_caps.msr.global_control, state[cpu].running);
    else
        run(0, state[cpu].running);
}

uint64_t pmu_take_overflow(void)
{
    if (pmu_caps.msr.global_status) {
        uint64_t status = rdmsr(pmu_caps.msr.global_status);
        if (status)
            wrmsr(pmu_caps.msr.global_clear, status); /* freeze bits too */
        return status & pmu_caps.counters;
    }
    uint64_t *armed = &state[cpu_number()].armed, overflowed = 0;
    for (uint64_t rest = *armed; rest; rest &= rest - 1) {
        unsigned ctr = (unsigned)__builtin_ctzll(rest);
        if (!(pmu_read(ctr) & ~(pmu_mask(ctr) >> 1)))
            overflowed |= PMU_BIT(ctr);
    }
    *armed &= ~overflowed;
    return overflowed;
}

uint64_t pmu_rewritten(void)
{
    uint64_t found = 0, running = pmu_running();
    if (pmu_caps.msr.global_control && running)
        found = running & ~rdmsr(pmu_caps.msr.global_control);
    for (uint64_t rest = running; rest; rest &= rest - 1) {
        unsigned ctr = (unsigned)__builtin_ctzll(rest);
        uint64_t want = state[cpu_number()].selects[ctr], is = rdmsr(pmu_select_msr(ctr));
        if (ctr < PMU_FIXED ? is != (want | PMU_ENABLE) : (is & fixed_mask(ctr)) != fixed_bits(ctr, want))
            found |= PMU_BIT(ctr);
    }
    return found;
}

struct pmu_gate pmu_gate(unsigned ctr)
{
    if (pmu_caps.msr.global_control)
        return (struct pmu_gate){ pmu_caps.msr.global_control, pmu_running() | PMU_BIT(ctr),
                                  pmu_running() & ~PMU_BIT(ctr) };
    uint64_t select = rdmsr(pmu_select_msr(ctr)) & ~(uint64_t)PMU_ENABLE;
    return (struct pmu_gate){ pmu_select_msr(ctr), select | PMU_ENABLE, select };
}

/* Before the self-test, so nothing here may be trusted to exist. */
void pmu_init_cpu(void)
{
    const struct pmu_msrs *msr = &pmu_caps.msr;
    uint64_t value = 0;

    state[cpu_number()].running = state[cpu_number()].armed = 0;
    state[cpu_number()].paused = false;
    if (!pmu_caps.driver)
        return;
    if (msr->global_control)
        wrmsr_fault(msr->global_control, 0);
    for (uint64_t rest = pmu_caps.reported; rest; rest &= rest - 1) {
        unsigned ctr = (unsigned)__builtin_ctzll(rest);
        wrmsr_fault(pmu_select_msr(ctr), 0);
        wrmsr_fault(pmu_write_msr(ctr), 0);
    }
    if (!rdmsr_fault(MSR_DEBUGCTL, &value) && (value & DEBUGCTL_FREEZE_ON_PMI))
        wrmsr_fault(MSR_DEBUGCTL, value & ~(uint64_t)DEBUGCTL_FREEZE_ON_PMI);
    if (msr->global_status && !rdmsr_fault(msr->global_status, &value) && value)
        wrmsr_fault(msr->global_clear, value);
}
