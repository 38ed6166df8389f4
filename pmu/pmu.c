/* SPDX-License-Identifier: MIT */
/* Picks the driver once, proves that counters count, names what is wrong. Boot CPU, interrupts off,
 * before anybody else uses the PMU. Every access on the way to the verdict may fault: a machine
 * that promises a PMU by CPUID may have none, or swallow writes, or count nothing. Zero is never
 * taken for a count.
 *
 * Sources: Intel SDM vol. 3 "Performance monitoring"; AMD APM vol. 2 "Performance monitoring
 * counters". */
#include "pmu/pmu.h"
#include "kernel/assert.h"
#include "kernel/cpu.h"
#include "kernel/print.h"
#include "kernel/x86.h"

#define PATTERN 0x12345678u /* bit 31 clear: a legacy write keeps it as it is */
#define SHORT_LOOP 100u     /* iterations of two instructions */
#define LONG_LOOP 1100u
#define LOOP_DIFFERENCE (2 * (LONG_LOOP - SHORT_LOOP))
#define OVERFLOW_AFTER 50u
#define FEW_EXITS 3u /* iterations of five instructions, one of which exits */
#define MORE_EXITS 10u
#define EXITS_DIFFERENCE (5 * MORE_EXITS)
#define TRIES 3
#define VECTOR_UD 6 /* the other that RDPMC raises is #GP */

static bool (*const probes[])(struct pmu_caps *) = { intel_probe, amd_probe };
struct pmu_caps pmu_caps;
static enum pmu_verdict verdict;

const char *pmu_verdict_text(enum pmu_verdict v)
{
    static const char *const text[PMU_VERDICT_COUNT] = {
        [PMU_OK] = "every counter counts",
        [PMU_NOT_REPORTED] = "RDPMC does not fault, but CPUID reports no PMU that we know",
        [PMU_NO_COUNTERS] = "CPUID reports a PMU with no counter in it",
        [PMU_ABSENT_UD] = "RDPMC raises #UD and counters keep no value: there is no PMU",
        [PMU_ABSENT_GP] = "RDPMC raises #GP and counters keep no value: there is no PMU",
        [PMU_MSR_FAULTS] = "RDMSR, WRMSR or RDPMC faults on a counter that CPUID reports",
        [PMU_WRITES_SWALLOWED] = "RDMSR of a counter or its select is not what WRMSR wrote",
        [PMU_RDPMC_DISABLED] = "RDPMC faults in ring 0 on a counter that RDMSR reads",
        [PMU_RDPMC_DIFFERS] = "RDPMC and RDMSR of the same stopped counter differ",
        [PMU_WIDTH_LIES] = "the counter is not as wide as CPUID (AMD: the manual) says",
        [PMU_FIRMWARE_OWNS] = "firmware owns it: the select stays enabled after a write of 0",
        [PMU_COUNTERS_DEAD] = "the counter takes every write, but counts nothing",
        [PMU_WRONG_RATE] = "the count of a loop of known length is out of all bounds",
        [PMU_OVERFLOW_LOST] = "the counter wraps, but its overflow status bit stays 0",
        [PMU_PMI_LOST] = "the counter overflows, but no interrupt comes",
        [PMU_EXITS_MISCOUNTED] =
            "instructions that exit to a hypervisor are not counted once: counts depend on exits",
    };
    return v < PMU_VERDICT_COUNT ? text[v] : "?";
}

enum pmu_verdict pmu_verdict(void) { return verdict; }

/* The event to prove a counter with: the one whose count is known, if the counter has it. */
static enum pmu_event event_to_prove(unsigned ctr)
{
    static const enum pmu_event events[] = { PMU_INSTRUCTIONS, PMU_CYCLES, PMU_REF_CYCLES,
                                             PMU_SLOTS };
    for (unsigned i = 0; i < sizeof events / sizeof *events; i++)
        if (pmu_counters_for(events[i]) >> ctr & 1)
            return events[i];
    return PMU_EVENT_COUNT;
}

/* --- The real thing. --- */

__attribute__((noinline)) static uint64_t count(unsigned ctr, enum pmu_event event, uint64_t start,
                                                uint64_t iterations)
{
    pmu_program(ctr, pmu_select(event, PMU_KERNEL), start);
    pmu_start(PMU_BIT(ctr));
    asm volatile("1: dec %0\njnz 1b" : "+r"(iterations) : : "cc");
    pmu_stop(PMU_BIT(ctr));
    return pmu_read(ctr);
}

__attribute__((noinline)) static uint64_t count_exits(unsigned ctr, uint64_t loops)
{
    pmu_program(ctr, pmu_select(PMU_INSTRUCTIONS, PMU_KERNEL), 0);
    pmu_start(PMU_BIT(ctr));
    asm volatile("1: xor %%eax,%%eax\nxor %%ecx,%%ecx\ncpuid\ndec %0\njnz 1b"
                 : "+r"(loops) : : "rax", "rbx", "rcx", "rdx", "cc");
    pmu_stop(PMU_BIT(ctr));
    return pmu_read(ctr);
}

static unsigned read_msr(uint32_t msr, uint64_t *value) { return rdmsr_fault(msr, value); }
static unsigned write_msr(uint32_t msr, uint64_t value) { return wrmsr_fault(msr, value); }
static unsigned read_pmc(uint32_t selector, uint64_t *value) { return rdpmc_fault(selector, value); }
static void clear(unsigned ctr) { pmu_clear(PMU_BIT(ctr)); }

const struct pmu_access pmu_hardware = { read_msr, write_msr, read_pmc, count, count_exits, pmu_take_overflow, clear };

/* --- The self-test. --- */

static const struct pmu_access *to = &pmu_hardware;

static enum pmu_verdict prove_registers(unsigned ctr)
{
    uint64_t value = 0, by_rdpmc = 0, mask = pmu_mask(ctr);
    unsigned fault = to->wrmsr(pmu_write_msr(ctr), PATTERN);
    if (!fault)
        fault = to->rdmsr(pmu_counter_msr(ctr), &value);
    unsigned rdpmc_vector = to->rdpmc(pmu_rdpmc_index(ctr), &by_rdpmc);

    if (fault || value != PATTERN) {
        if (rdpmc_vector)
            return rdpmc_vector == VECTOR_UD ? PMU_ABSENT_UD : PMU_ABSENT_GP;
        return fault ? PMU_MSR_FAULTS : PMU_WRITES_SWALLOWED;
    }
    if (rdpmc_vector)
        return PMU_RDPMC_DISABLED;
    if (by_rdpmc != value)
        return PMU_RDPMC_DIFFERS;
    /* Ones from the lowest to the highest bit; a legacy write makes them of bit 31. */
    if (mask < UINT32_MAX || to->wrmsr(pmu_write_msr(ctr), mask) ||
        to->rdmsr(pmu_counter_msr(ctr), &value) || value != mask)
        return PMU_WIDTH_LIES;
    return to->wrmsr(pmu_write_msr(ctr), 0) ? PMU_MSR_FAULTS : PMU_OK;
}

/* A select that stays stopped: no enable bit. */
static enum pmu_verdict prove_select(unsigned ctr)
{
    uint64_t value = 0, select = pmu_select(PMU_INSTRUCTIONS, PMU_KERNEL | PMU_INTERRUPT);
    if (to->rdmsr(pmu_select_msr(ctr), &value))
        return PMU_MSR_FAULTS;
    if (value & PMU_ENABLE)
        return PMU_FIRMWARE_OWNS;
    if (to->wrmsr(pmu_select_msr(ctr), select) || to->rdmsr(pmu_select_msr(ctr), &value))
        return PMU_MSR_FAULTS;
    if (value != select)
        return PMU_WRITES_SWALLOWED;
    return to->wrmsr(pmu_select_msr(ctr), 0) ? PMU_MSR_FAULTS : PMU_OK;
}

/* Fixed counters share a register; only its own bits say something of one. Nothing counts while global control is 0. */
static enum pmu_verdict prove_fixed_control(unsigned ctr)
{
    unsigned shift = 4 * (ctr - PMU_FIXED);
    uint64_t value = 0, bits = UINT64_C(9) << shift; /* kernel, interrupt */
    if (to->rdmsr(pmu_select_msr(ctr), &value))
        return PMU_MSR_FAULTS;
    if (value >> shift & 3)
        return PMU_FIRMWARE_OWNS;
    if (to->wrmsr(pmu_select_msr(ctr), bits) || to->rdmsr(pmu_select_msr(ctr), &value) ||
        to->wrmsr(pmu_select_msr(ctr), 0))
        return PMU_MSR_FAULTS;
    return (value >> shift & 0xf) == 9 ? PMU_OK : PMU_WRITES_SWALLOWED;
}

/* An exit more adds the instructions around it and the one that exits, no more and no less. No reason to do without the
 * counter, but exact it is not. */
static enum pmu_verdict prove_exits(unsigned ctr)
{
    uint64_t difference = 0;
    for (unsigned i = 0; i < TRIES && difference != EXITS_DIFFERENCE; i++)
        difference = to->count_exits(ctr, FEW_EXITS + MORE_EXITS) - to->count_exits(ctr, FEW_EXITS);
    return difference == EXITS_DIFFERENCE ? PMU_OK : PMU_EXITS_MISCOUNTED;
}

/* Two loops that differ in length only: their counts differ by the instructions between. */
static enum pmu_verdict prove_instructions(unsigned ctr)
{
    uint64_t difference = 0;
    for (unsigned i = 0; i < TRIES && difference != LOOP_DIFFERENCE; i++) {
        uint64_t shorter = to->count(ctr, PMU_INSTRUCTIONS, 0, SHORT_LOOP);
        uint64_t longer = to->count(ctr, PMU_INSTRUCTIONS, 0, LONG_LOOP);
        if (!shorter || !longer)
            return PMU_COUNTERS_DEAD;
        difference = longer - shorter;
    }
    pmu_caps.exact &= difference == LOOP_DIFFERENCE;
    /* An eighth: some parts and hypervisors count extra at each exit to the host, in either run. */
    if (difference < LOOP_DIFFERENCE - LOOP_DIFFERENCE / 8 || difference > LOOP_DIFFERENCE + LOOP_DIFFERENCE / 8)
        return PMU_WRONG_RATE;
    return prove_exits(ctr);
}

static enum pmu_verdict prove_counting(unsigned ctr)
{
    enum pmu_event event = event_to_prove(ctr);
    if (event == PMU_EVENT_COUNT)
        return PMU_OK; /* an event that need not happen: registers are all that can be proved */
    uint64_t n = to->count(ctr, event, 0, LONG_LOOP);
    if (!n)
        return PMU_COUNTERS_DEAD;
    /* Low: a taken branch a cycle, the TSC at a third of the clock. High: no machine is so slow. */
    if (n < LONG_LOOP / 4 || n > LONG_LOOP * 10000)
        return PMU_WRONG_RATE;
    if (pmu_caps.msr.global_status) {
        if (to->count(ctr, event, pmu_mask(ctr) - OVERFLOW_AFTER + 1, LONG_LOOP) > pmu_mask(ctr) / 2)
            return PMU_WIDTH_LIES;
        if (!(to->take_overflow() >> ctr & 1))
            return PMU_OVERFLOW_LOST;
    }
    return event == PMU_INSTRUCTIONS ? prove_instructions(ctr) : PMU_OK;
}

static enum pmu_verdict prove(unsigned ctr)
{
    enum pmu_verdict v = prove_registers(ctr);
    if (v == PMU_OK)
        v = ctr >= PMU_FIXED ? prove_fixed_control(ctr) : prove_select(ctr);
    uint64_t value;
    if (v == PMU_OK && pmu_caps.msr.global_control &&
        (to->wrmsr(pmu_caps.msr.global_control, PMU_BIT(ctr)) ||
         to->wrmsr(pmu_caps.msr.global_control, 0) ||
         to->rdmsr(pmu_caps.msr.global_status, &value) ||
         to->wrmsr(pmu_caps.msr.global_clear, PMU_BIT(ctr))))
        v = PMU_MSR_FAULTS;
    if (v == PMU_OK)
        v = prove_counting(ctr);
    if (v == PMU_OK || v == PMU_EXITS_MISCOUNTED)
        to->clear(ctr);
    return v;
}

static void detect(void)
{
    struct cpuid r = cpuid(1, 0);
    pmu_caps.stepping = r.eax & 0xf;
    pmu_caps.family = (r.eax >> 8 & 0xf) + ((r.eax >> 8 & 0xf) == 0xf ? r.eax >> 20 & 0xff : 0);
    pmu_caps.model = (r.eax >> 4 & 0xf) | (r.eax >> 12 & 0xf0);
    for (unsigned i = 0; i < sizeof probes / sizeof *probes && !pmu_caps.driver; i++)
        probes[i](&pmu_caps);
    pmu_caps.counters = pmu_caps.reported;
}

static void find_left_running(void)
{
    for (uint64_t rest = pmu_caps.reported; rest; rest &= rest - 1) {
        unsigned ctr = (unsigned)__builtin_ctzll(rest);
        uint64_t value = 0;
        if (rdmsr_fault(pmu_select_msr(ctr), &value))
            continue;
        if (ctr < PMU_FIXED ? value & PMU_ENABLE : value >> 4 * (ctr - PMU_FIXED) & 3)
            pmu_caps.left_running |= PMU_BIT(ctr);
    }
}

static enum pmu_verdict prove_all(uint64_t *bad)
{
    enum pmu_verdict first = PMU_OK;
    uint64_t ignored;
    unsigned vector = to->rdpmc(0, &ignored);
    if (!pmu_caps.driver)
        return !vector ? PMU_NOT_REPORTED : vector == VECTOR_UD ? PMU_ABSENT_UD : PMU_ABSENT_GP;
    if (!pmu_caps.reported)
        return PMU_NO_COUNTERS;
    pmu_caps.exact = true;

    for (uint64_t rest = pmu_caps.reported; rest; rest &= rest - 1) {
        enum pmu_verdict v = prove((unsigned)__builtin_ctzll(rest));
        if (v != PMU_OK && (first == PMU_OK || first == PMU_EXITS_MISCOUNTED))
            first = v;
        if (v != PMU_OK && v != PMU_EXITS_MISCOUNTED)
            *bad |= rest & -rest;
    }
    bool absent = first == PMU_ABSENT_UD || first == PMU_ABSENT_GP;
    return absent && *bad != pmu_caps.reported ? PMU_MSR_FAULTS : first; /* only some are absent */
}

enum pmu_verdict pmu_diagnose(const struct pmu_caps *caps, const struct pmu_access *access, uint64_t *bad)
{
    struct pmu_caps saved = pmu_caps;
    pmu_caps = *caps;
    to = access;
    *bad = 0;
    enum pmu_verdict v = prove_all(bad);
    to = &pmu_hardware;
    pmu_caps = saved;
    return v;
}

static unsigned bits_in(uint64_t mask)
{
    unsigned n = 0;
    for (; mask; mask &= mask - 1)
        n++;
    return n;
}

static void describe(void)
{
    const struct pmu_caps *c = &pmu_caps;
    print("%s version %u, %u counters of %u bits", c->driver, c->version, c->gp_reported,
          c->gp_width);
    if (c->reported >> PMU_FIXED)
        print(", %u fixed of %u", bits_in(c->reported >> PMU_FIXED), c->fixed_width);
    print("%s%s", c->msr.global_control ? ", global control" : "",
          c->gp_write_width < c->gp_width ? ", 32-bit writes" : "");
    if (c->left_running)
        print(", firmware had left %lx enabled", c->left_running);
}

/* The one line. */
static void report(uint64_t bad)
{
    print("# pmu: ");
    if (verdict == PMU_OK) {
        describe();
        print(": %s%s\n", pmu_verdict_text(verdict),
              pmu_caps.exact ? ", instructions exactly" : "");
        return;
    }
    print("%s", pmu_verdict_text(verdict));
    if (bad && pmu_caps.counters)
        print("; left out: counters %lx of %lx", bad, pmu_caps.reported);
    if (pmu_caps.driver) {
        print(" (");
        describe();
        print(")");
    }
    print("\n");
}

enum pmu_verdict pmu_init(void)
{
    uint64_t bad = 0;
    detect();
    find_left_running();
    pmu_init_cpu();
    verdict = prove_all(&bad);
    pmu_caps.counters = pmu_caps.reported & ~bad;
    if (bad)
        pmu_init_cpu();
    report(bad);
    return verdict;
}

void pmu_complain(enum pmu_verdict v, uint64_t counters)
{
    if (verdict == PMU_OK)
        verdict = v;
    print("# pmu: %s (counters %lx of %lx)\n", pmu_verdict_text(v), counters, pmu_caps.reported);
}
