/* SPDX-License-Identifier: MIT */
/* What the conformance tests share. One test runs at a time, one body at a time: no lock. */
#include "tests/harness/lab.h"
#include "tests/harness/checks.h"

#define VECTOR_DB 1
#define VECTOR_NMI 2
#define VECTOR_PF 14
#define NAMED(f) #f, f
#define MARGIN 8u
#define THROTTLE_NS 2000000u /* two of a host's ticks */
#define PROMPT_TURNS 100u
#define LOOKS 200u
#define DEBUGCTL 0x1d9
#define RR_SKID 10000

/*                                                                  instructions, branches, loads,
 * stores */
const struct lab_work lab_loop_work = { NAMED(lab_loop), { 2, 1, 0, 0 }, { 1, 1, 1, 0 }, 0 };
const struct lab_work lab_memory_work = { NAMED(lab_memory), { 4, 1, 1, 1 }, { 1, 1, 1, 0 }, 0 };
const struct lab_work lab_branches_work = {
    NAMED(lab_branches), { 7, 5, 1, 1 }, { 1, 1, 1, 0 }, 0
};
const struct lab_work lab_pauses_work = { NAMED(lab_pauses), { 3, 1, 0, 0 }, { 1, 1, 1, 0 }, 0 };
const struct lab_work lab_exits_work = { NAMED(lab_exits), { 5, 1, 0, 0 }, { 3, 1, 2, 1 }, 1 };
static const uint8_t around[LAB_KINDS] = { LAB_AFTER, 1, 3, 1 };

struct lab_caught lab_caught;
static struct gate gates[256];
static struct table_register kernel_gates;
extern void lab_on_pmi(void), lab_on_nmi(void), lab_on_step(void), lab_on_page_fault(void);
_Static_assert(VECTOR_PMI == 0xfe, "lab.asm");

bool lab_has_op(const struct lab_op *op)
{
    unsigned need = op->effects >> 48 & 31;
    if (!need || cpuid(1, 0).ecx >> need & 1)
        return true;
    test_note("this processor lacks %s: left out", op->name);
    return false;
}

uint64_t lab_before(void) { return 1 + (uint64_t)pmu_here()->measured.enabling.low; }

uint64_t lab_of_exits(const struct lab_work *work, enum lab_kind kind, uint64_t n)
{
    int64_t each = kind == LAB_INSTRUCTIONS ? pmu_here()->measured.exit.low - 1
                   : kind == LAB_BRANCHES   ? measured_here()->exit_branches
                                            : 0;
    return n * work->exits * (uint64_t)each;
}

uint64_t lab_expected(const struct lab_work *work, enum lab_kind kind, uint64_t n)
{
    uint64_t expected =
        work->each[kind] * n + work->once[kind] + around[kind] + lab_of_exits(work, kind, n);
    return kind == LAB_INSTRUCTIONS ? expected + lab_before() : expected;
}

struct lab_range lab_range(uint64_t wanted)
{
    uint64_t slack = wanted / 8 + 8;
    if (pmu_here()->exact)
        return (struct lab_range){ wanted, wanted, "exact" };
    if (pmu_here()->measured.exit.low < 1)
        return (struct lab_range){ wanted > slack ? wanted - slack : 1, wanted,
                                   "instructions that exit are not counted" };
    return (struct lab_range){ wanted, wanted + slack, "exits add to counts" };
}

uint64_t lab_count(unsigned ctr, uint64_t select, uint64_t start, void (*work)(uint64_t),
                   uint64_t n)
{
    pmu_program(ctr, select, start);
    struct pmu_gate gate = pmu_gate(ctr);
    lab_measure(&gate, work, n);
    return pmu_read(ctr);
}

enum pmu_event lab_event(unsigned ctr)
{
    static const enum pmu_event events[] = { PMU_INSTRUCTIONS, PMU_CYCLES, PMU_REF_CYCLES,
                                             PMU_SLOTS };
    for (unsigned i = 0; i < ARRAY_SIZE(events); i++)
        if (pmu_counters_for(pmu_here(), events[i]) >> ctr & 1)
            return events[i];
    return PMU_EVENT_COUNT;
}

/* A counter without an event that must happen still takes the select. */
uint64_t lab_select(unsigned ctr, uint32_t flags)
{
    enum pmu_event event = lab_event(ctr);
    return pmu_select(pmu_here(), event == PMU_EVENT_COUNT ? PMU_INSTRUCTIONS : event, flags);
}

uint64_t lab_instructions(enum pmu_event event, uint64_t events)
{
    const struct pmu_measured *m = &pmu_here()->measured;
    const struct pmu_spread *cycles = &m->cycles;
    uint64_t per_thousand = cycles->low > 0 ? (uint64_t)cycles->low : 1,
             margin = pmu_stable(cycles) ? 1 : MARGIN;
    if (event != PMU_CYCLES && event != PMU_REF_CYCLES && event != PMU_BUS_CYCLES)
        return events;
    if (event == PMU_BUS_CYCLES && m->bus_cycle.tries)
        events = (events * (uint64_t)m->bus_cycle.high + 999) / 1000;
    if (event == PMU_REF_CYCLES && m->ref_cycle.high > 1000)
        events = (events * (uint64_t)m->ref_cycle.high + 999) / 1000;
    return (events * 1000 + per_thousand - 1) / per_thousand * margin;
}

uint64_t lab_iterations(unsigned ctr, uint64_t events)
{
    return lab_instructions(lab_event(ctr), events) / 2 + 1;
}

uint64_t lab_late(unsigned pmis)
{
    int64_t latest = pmu_here()->measured.skid.high;
    if (latest <= 0)
        return PROMPT_TURNS;
    return (uint64_t)(4 * latest > RR_SKID ? 4 * latest : RR_SKID) * pmis / 2;
}

struct lab_range lab_pmis(unsigned overflows)
{
    const struct pmu_spread *each = &pmu_here()->measured.pmis;
    uint64_t low = each->tries ? (uint64_t)each->low : 1,
             high = each->tries ? (uint64_t)each->high : 1;
    return (struct lab_range){ overflows * low, overflows * high,
                               "as many interrupts for each overflow as was measured at boot" };
}

bool lab_is_intel(void) { return pmu_kinds->driver && strcmp(pmu_kinds->driver, "intel") == 0; }

uint64_t lab_rdmsr(uint32_t msr)
{
    uint64_t value = 0;
    CHECK_EQ(rdmsr_fault(msr, &value), 0);
    return value;
}

void lab_wrmsr(uint32_t msr, uint64_t value) { CHECK_EQ(wrmsr_fault(msr, value), 0); }

void lab_absent(uint32_t msr)
{
    uint64_t value = 0;
    if (rules_absent_ignored()) {
        test_skip("absent registers do not fault");
        return;
    }
    if (rdmsr_fault(msr, &value) != LAB_GP_FAULT || wrmsr_fault(msr, 0) != LAB_GP_FAULT)
        test_note("MSR %x", msr);
    CHECK_EQ(rdmsr_fault(msr, &value), LAB_GP_FAULT);
    CHECK_EQ(wrmsr_fault(msr, 0), LAB_GP_FAULT);
}

/* After the first failed check of a body, what a report of it needs: the processor, the PMU, and by
 * their MSRs the registers that matter. */
static unsigned shown;
static bool printed;

static void show_msr(const char *name, uint32_t msr)
{
    uint64_t value = 0;
    unsigned fault = msr ? rdmsr_fault(msr, &value) : 0;
    if (fault)
        test_note("  %s (MSR %x): RDMSR faults", name, msr);
    else if (msr)
        test_note("  %s (MSR %x) = %lx", name, msr, value);
}

static void show_registers(void)
{
    if (printed)
        return;
    printed = true;
    test_note("%s family %x model %x stepping %x, CPU %u; %s version %u, %u counters; events of %s",
              cpu_features.vendor, pmu_here()->family, pmu_here()->model, pmu_here()->stepping,
              cpu_number(), pmu_here()->driver, pmu_here()->version, pmu_here()->gp_reported,
              pmu_here()->table->name);
    test_note("  LVT of the counters (APIC 340) = %x", apic_read_pmi_lvt());
    show_msr("global control", pmu_here()->msr.global_control);
    show_msr("global status", pmu_here()->msr.global_status);
    if (shown == LAB_ANY)
        return;
    show_msr(lab_is_fixed(shown) ? "fixed control" : "event select",
             pmu_select_msr(pmu_here(), shown));
    show_msr(lab_is_fixed(shown) ? "fixed counter" : "counter", pmu_counter_msr(pmu_here(), shown));
}

/* A PAUSE costs the virtual PMU more than anything: a few, and many looks between two of them. */
void lab_wait_quietly(void)
{
    for (unsigned i = 0; i < (test_long() ? 1000 : 10) * LOOKS; i++)
        if (i % LOOKS == 0)
            pause();
        else
            asm volatile("");
}

void lab_forget(void) { test_on_failure = NULL; }

/* HalFreeHardwareCounters, which comes next, clears counters that are stopped and count: the rest
 * need not be written twice, where each access leaves a virtual machine. */
static void reset_lab(void)
{
    const struct pmu_kind *pmu = pmu_here();
    uint64_t debugctl = 0;
    if (test_long() || !pmu->msr.global_control || pmu->reported != pmu->counters ||
        (!rdmsr_fault(DEBUGCTL, &debugctl) && debugctl)) {
        pmu_reset();
        return;
    }
    wrmsr(pmu->msr.global_control, 0);
    pmu_take_overflow();
}

/* False if the body skips. */
static bool on_this_cpu(void (*body)(unsigned), unsigned ctr)
{
    test_skip(NULL);
    KIRQL old = irql_raise(IPI_LEVEL);
    if (test_long())
        pmu_reset(); /* else what the last one left is all zero, as it should be */
    test_on_failure = show_registers;
    printed = false;
    body(ctr);
    test_on_failure = NULL;
    reset_lab();
    irql_lower(old);
    return !test_report()->skip;
}

static uint64_t or_first(uint64_t counters) { return counters ? counters : 1; }

static uint64_t reported_somewhere(void)
{
    uint64_t reported = 0;
    for (unsigned i = 0; i < pmu_kind_count; i++)
        reported |= pmu_kinds[i].reported;
    return reported;
}

/* The self-test found it wanting on this kind of CPU: one failure says so; all other tests of it do
 * without. */
static void left_out(const struct pmu_kind *pmu, unsigned ctr)
{
    static uint64_t named[PMU_KINDS_MAX];
    uint64_t *mine = &named[pmu_kind_number(pmu)];
    if (*mine >> ctr & 1)
        return;
    *mine |= PMU_BIT(ctr);
    test_note("%s counter %u of kind %u is left out: %s",
              lab_is_fixed(ctr) ? "fixed" : "general-purpose", ctr % PMU_FIXED,
              pmu_kind_number(pmu), pmu_verdict_text(pmu->verdict));
    CHECK(pmu->counters >> ctr & 1);
}

uint64_t each_counter(void) { return or_first(reported_somewhere()); }
uint64_t each_gp(void) { return or_first(reported_somewhere() & PMU_ANY_GP); }

uint64_t each_counting_instructions(void)
{
    uint64_t counters = 0;
    for (unsigned i = 0; i < pmu_kind_count; i++)
        counters |= pmu_counters_for(&pmu_kinds[i], PMU_INSTRUCTIONS);
    return or_first(counters);
}

/* A host that has stopped a counter which overflowed often starts it again at its next tick. */
static void let_go_on(void)
{
    uint64_t start = clock_ns();
    while (measured_here()->throttled && clock_ns() < start + THROTTLE_NS)
        pause();
}

void lab_run(void (*body)(unsigned ctr), unsigned ctr)
{
    HANDLE handle;
    bool ran = false;
    SKIP_WITHOUT_PMU();
    SKIP_IF(ctr != LAB_ANY && !(reported_somewhere() >> ctr & 1), "no such counter");
    for (unsigned i = 0; ctr != LAB_ANY && i < pmu_kind_count; i++)
        if ((pmu_kinds[i].reported & ~pmu_kinds[i].counters) >> ctr & 1)
            left_out(&pmu_kinds[i], ctr);
    if (ctr != LAB_ANY && !(pmu_some_counters(EVERYWHERE) >> ctr & 1))
        SKIP("the counter is left out");
    REQUIRE_OK(HalAllocateHardwareCounters(NULL, 0, NULL, &handle));
    shown = ctr;
    for (unsigned cpu = 0; cpu < cpu_count; cpu++) {
        if (ctr != LAB_ANY && !(pmu_of(cpu)->counters >> ctr & 1))
            continue;
        test_run_on(cpu);
        let_go_on();
        ran |= on_this_cpu(body, ctr);
    }
    if (ran)
        test_skip(NULL); /* that other kinds of CPUs cannot do it is no matter */
    test_run_anywhere();
    CHECK_OK(HalFreeHardwareCounters(handle));
}

static void record(const struct lab_frame *frame)
{
    lab_caught.rip = frame->rip;
    lab_caught.lvt = apic_read_pmi_lvt();
    if (pmu_here()->msr.global_status) {
        lab_caught.status = rdmsr(pmu_here()->msr.global_status);
        lab_caught.control = rdmsr(pmu_here()->msr.global_control);
    }
    if (lab_caught.action)
        lab_caught.action();
}

/* From lab.asm. */
void lab_interrupt(struct lab_frame *frame, unsigned vector);
void lab_interrupt(struct lab_frame *frame, unsigned vector)
{
    _Static_assert(sizeof *frame == sizeof(struct interrupted), "the same");
    bool kernels_gs = !(frame->cs & 3);
    struct table_register gdt; /* in the CPU's block */
    sgdt(&gdt);
    if (vector == VECTOR_NMI) /* it may interrupt a handler of ring 3's traps, with ring 3's GS */
        kernels_gs &= rdmsr(MSR_GS_BASE) == gdt.base - CPU_GDT;
    if (vector == VECTOR_NMI && kernels_gs)
        thread_nmi((struct interrupted *)(void *)frame); /* this test may be the stuck one */
    if (vector == VECTOR_DB) {
        lab_caught.steps++;
        lab_caught.watched += frame->rip >= lab_caught.watch[0] && frame->rip < lab_caught.watch[1];
        return;
    }
    lab_caught.pmis += vector == VECTOR_PMI;
    lab_caught.nmis += vector == VECTOR_NMI;
    if (kernels_gs)
        record(frame);
    if (kernels_gs && vector == VECTOR_NMI && !(lab_caught.lvt & APIC_LVT_NMI))
        cpu_current()->stray_nmis++; /* no counter's: a failure names it (causes.c) */
    if (vector == VECTOR_PMI)
        apic_eoi();
}

uint64_t lab_kernels_page_fault; /* for lab.asm */
bool lab_page_fault(void);
bool lab_page_fault(void) { return lab_caught.resolve(read_cr2()); }

uint64_t lab_gate(unsigned vector) { return gate_to(&gates[vector]); }

void lab_set_gate(unsigned vector, void (*handler)(void))
{
    gate_set(&gates[vector], (uint64_t)handler);
}

void lab_set_user_gate(unsigned vector, void (*handler)(void))
{
    lab_set_gate(vector, handler);
    gates[vector].type = GATE_RING3;
}

void lab_catch(void)
{
    sidt(&kernel_gates);
    memcpy(gates, (const void *)kernel_gates.base, sizeof gates);
    lab_set_gate(VECTOR_PMI, lab_on_pmi);
    lab_set_gate(VECTOR_NMI, lab_on_nmi);
    lab_set_gate(VECTOR_DB, lab_on_step);
    gates[VECTOR_DB].ist = 0;
    lab_caught = (struct lab_caught){ 0 };
    struct table_register mine = { sizeof gates - 1, (uint64_t)gates };
    lidt(&mine);
    apic_write_pmi_lvt(VECTOR_PMI);
}

void lab_resolve(bool (*resolve)(uint64_t address))
{
    lab_caught.resolve = resolve;
    lab_kernels_page_fault = lab_gate(VECTOR_PF);
    lab_set_gate(VECTOR_PF, lab_on_page_fault);
}

void lab_release(void)
{
    lidt(&kernel_gates);
    hal_pmi_init_cpu(); /* where PMIs are NMIs, they are so again */
}

struct thread *lab_run_user(struct process *process, void (*function)(void), uint64_t argument,
                            unsigned cpu)
{
    test_run_on(cpu);
    KIRQL old = irql_raise(DISPATCH_LEVEL);
    lab_catch();
    irql_lower(old);
    struct thread *thread =
        user_thread("laboratory", process, (uint64_t)function, argument, cpu_set_one(cpu));
    user_wait(thread);
    lab_release();
    return thread;
}
