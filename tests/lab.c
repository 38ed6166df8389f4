/* SPDX-License-Identifier: MIT */
/* What the conformance tests share. One test runs at a time, one body at a time: no lock. */
#include "tests/lab.h"
#include "hal/apic.h"
#include "hal/hal.h"
#include "kernel/cpu.h"
#include "kernel/irql.h"
#include "kernel/smp.h"
#include "kernel/string.h"
#include "kernel/trap.h"

#define VECTOR_DB 1
#define VECTOR_NMI 2
#define VECTOR_PF 14
#define NAMED(f) #f, f

/*                                                                  instructions, branches, loads, stores */
const struct lab_work lab_loop_work     = { NAMED(lab_loop),     { 2, 1, 0, 0 }, { 1, 1, 1, 0 } };
const struct lab_work lab_memory_work   = { NAMED(lab_memory),   { 4, 1, 1, 1 }, { 1, 1, 1, 0 } };
const struct lab_work lab_branches_work = { NAMED(lab_branches), { 7, 5, 1, 1 }, { 1, 1, 1, 0 } };
const struct lab_work lab_exits_work    = { NAMED(lab_exits),    { 5, 1, 0, 0 }, { 3, 1, 2, 1 } };
static const uint8_t around[LAB_KINDS] = { LAB_BEFORE + LAB_AFTER, 1, 3, 1 };

struct lab_caught lab_caught;
static struct gate {
    uint16_t offset_low, selector;
    uint8_t ist, type;
    uint16_t offset_middle;
    uint32_t offset_high, reserved;
} gates[256];
static struct table_register kernel_gates;
extern void lab_on_pmi(void), lab_on_nmi(void), lab_on_step(void), lab_on_page_fault(void);
_Static_assert(VECTOR_PMI == 0xfe, "lab.asm");

uint64_t lab_expected(const struct lab_work *work, enum lab_kind kind, uint64_t n)
{
    return work->each[kind] * n + work->once[kind] + around[kind];
}

uint64_t lab_count(unsigned ctr, uint64_t select, uint64_t start, void (*work)(uint64_t), uint64_t n)
{
    pmu_program(ctr, select, start);
    struct pmu_gate gate = pmu_gate(ctr);
    lab_measure(&gate, work, n);
    return pmu_read(ctr);
}

enum pmu_event lab_event(unsigned ctr)
{
    static const enum pmu_event events[] = { PMU_INSTRUCTIONS, PMU_CYCLES, PMU_REF_CYCLES, PMU_SLOTS };
    for (unsigned i = 0; i < sizeof events / sizeof *events; i++)
        if (pmu_counters_for(events[i]) >> ctr & 1)
            return events[i];
    return PMU_EVENT_COUNT;
}

/* A counter without an event that must happen still takes the select. */
uint64_t lab_select(unsigned ctr, uint32_t flags)
{
    enum pmu_event event = lab_event(ctr);
    return pmu_select(event == PMU_EVENT_COUNT ? PMU_INSTRUCTIONS : event, flags);
}

bool lab_is_intel(void) { return strcmp(pmu_caps.driver, "intel") == 0; }

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
    if (rdmsr_fault(msr, &value) != LAB_GP_FAULT || wrmsr_fault(msr, 0) != LAB_GP_FAULT)
        test_note("MSR %x", msr);
    CHECK_EQ(rdmsr_fault(msr, &value), LAB_GP_FAULT);
    CHECK_EQ(wrmsr_fault(msr, 0), LAB_GP_FAULT);
}

/* After the first failed check of a body, what a report of it needs: the processor, the PMU, and by their MSRs the
 * registers that matter. */
static unsigned shown;
static bool told;

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
    if (told)
        return;
    told = true;
    test_note("%s family %x model %x stepping %x, CPU %u; %s version %u, %u counters; events of %s", cpu_features.vendor,
              pmu_caps.family, pmu_caps.model, pmu_caps.stepping, cpu_number(), pmu_caps.driver, pmu_caps.version,
              pmu_caps.gp_reported, pmu_caps.table->name);
    test_note("  LVT of the counters (APIC 340) = %x", apic_read_pmi_lvt());
    show_msr("global control", pmu_caps.msr.global_control);
    show_msr("global status", pmu_caps.msr.global_status);
    if (shown == LAB_ANY)
        return;
    show_msr(lab_is_fixed(shown) ? "fixed control" : "event select", pmu_select_msr(shown));
    show_msr(lab_is_fixed(shown) ? "fixed counter" : "counter", pmu_counter_msr(shown));
}

static void on_this_cpu(void (*body)(unsigned), unsigned ctr)
{
    KIRQL old = irql_raise(IPI_LEVEL);
    pmu_init_cpu();
    test_on_failure = show_registers;
    told = false;
    body(ctr);
    test_on_failure = NULL;
    pmu_init_cpu();
    irql_lower(old);
}

void lab_run(void (*body)(unsigned ctr), unsigned ctr)
{
    HANDLE handle;
    SKIP_WITHOUT_PMU();
    if (ctr != LAB_ANY && !(pmu_caps.reported >> ctr & 1))
        SKIP("no such counter");
    REQUIRE(ctr == LAB_ANY || pmu_caps.counters >> ctr & 1); /* else the self-test found it wanting */
    REQUIRE_STATUS(HalAllocateHardwareCounters(NULL, 0, NULL, &handle), STATUS_SUCCESS);
    shown = ctr;
    for (unsigned cpu = 0; cpu < cpu_count; cpu++) {
        test_run_on(cpu);
        on_this_cpu(body, ctr);
    }
    test_run_anywhere();
    CHECK_STATUS(HalFreeHardwareCounters(handle), STATUS_SUCCESS);
}

static void record(const struct lab_frame *frame)
{
    lab_caught.rip = frame->rip;
    lab_caught.lvt = apic_read_pmi_lvt();
    if (pmu_caps.msr.global_status) {
        lab_caught.status = rdmsr(pmu_caps.msr.global_status);
        lab_caught.control = rdmsr(pmu_caps.msr.global_control);
    }
    if (lab_caught.action)
        lab_caught.action();
}

/* From lab.asm. */
void lab_interrupt(const struct lab_frame *frame, unsigned vector);
void lab_interrupt(const struct lab_frame *frame, unsigned vector)
{
    if (vector == VECTOR_DB) {
        lab_caught.steps++;
        lab_caught.watched += frame->rip >= lab_caught.watch[0] && frame->rip < lab_caught.watch[1];
        return;
    }
    if (vector == VECTOR_PF) {
        lab_caught.faults++;
        if (!lab_caught.resolve(read_cr2()))
            lidt(&kernel_gates); /* not the test's: the kernel sees it when it comes again */
        return;
    }
    lab_caught.pmis += vector == VECTOR_PMI;
    lab_caught.nmis += vector == VECTOR_NMI;
    record(frame);
    if (vector == VECTOR_PMI)
        apic_eoi();
}

static void set_gate(unsigned vector, void (*handler)(void))
{
    uint64_t to = (uint64_t)handler;
    gates[vector].offset_low = (uint16_t)to;
    gates[vector].offset_middle = (uint16_t)(to >> 16);
    gates[vector].offset_high = (uint32_t)(to >> 32);
}

void lab_catch(void)
{
    sidt(&kernel_gates);
    memcpy(gates, (const void *)kernel_gates.base, sizeof gates);
    set_gate(VECTOR_PMI, lab_on_pmi);
    set_gate(VECTOR_NMI, lab_on_nmi);
    set_gate(VECTOR_DB, lab_on_step);
    lab_caught = (struct lab_caught){ 0 };
    struct table_register mine = { sizeof gates - 1, (uint64_t)gates };
    lidt(&mine);
    apic_write_pmi_lvt(VECTOR_PMI);
}

void lab_resolve(bool (*resolve)(uint64_t address))
{
    lab_caught.resolve = resolve;
    set_gate(VECTOR_PF, lab_on_page_fault);
}

void lab_release(void)
{
    lidt(&kernel_gates);
    apic_write_pmi_lvt(VECTOR_PMI);
}
