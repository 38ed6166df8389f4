/* SPDX-License-Identifier: MIT */
/* The counters' interrupt (PMI). Once a CPU has started, only this file writes its counter LVT. No
 * lock: each CPU uses its own state, at PROFILE_LEVEL.
 *
 * The handler pauses every counter of the CPU. So it is not counted, and no overflow can come
 * between reading the status and clearing it. Freezing by hardware is not used: it is not reliable
 * on all processors. With a status register an interrupt costs five MSR accesses and an RDPMC:
 * pause, read status, clear it, read and re-arm one counter, resume.
 *
 * Sources: Intel SDM vol. 3 "Generating an interrupt on overflow"; AMD APM vol. 2 "Performance
 * monitoring counters". */
#include "kernel/base/upcalls.h"
#include "hal/interrupt.h"
#include "hal/buffers/event_buffer.h"
#include "hal/machine/apic.h"
#include "hal/machine/smp.h"
#include "hal/owners.h"
#include "hal/source.h"
#include "kernel/base/assert.h"
#include "kernel/base/bits.h"
#include "kernel/base/cpu.h"
#include "kernel/base/irql.h"
#include "kernel/base/x86.h"
#include "pmu/pmu.h"

#define PROVE_PERIOD 1000u
#define PROVE_PAUSES 100000u /* limit until it overflows; dead counters were excluded before */
#define PROVE_LATENCY 2000u  /* PAUSEs from the overflow to its interrupt */

static uint32_t proved; /* atomic: interrupts taken by hal_pmi_prove */

/* A queue of samples from the NMI to the handler of the self-IPI. The NMI writes head, the handler
 * writes tail. */
#define NOTES 64
static struct notes {
    uint32_t head, tail; /* atomic */
    struct note {
        uint64_t rip, cs, counters;
    } notes[NOTES];
} notes[MAX_CPUS];
static uint32_t lvt = APIC_PMI_VECTOR; /* const once CPUs run */

bool pmi_by_nmi;

static PMIHANDLER driver_handler; /* atomic */

void hal_pmi_use_nmi(void)
{
    pmi_by_nmi = true;
    lvt = APIC_LVT_NMI;
}

bool hal_pmi_is_nmi(void) { return pmi_by_nmi; }

void hal_pmi_init_cpu(void)
{
    event_buffer_init_cpu();
    if (pmu_here()->counters)
        apic_write_pmi_lvt(lvt);
}

bool hal_pmi_nmi(uint64_t rip, uint64_t cs)
{
    struct notes *n = &notes[cpu_number()];
    if (!pmi_by_nmi)
        return false;
    bool paused = pmu_paused(); /* true: the NMI came inside hal_pmi_deliver */
    pmu_pause();
    uint64_t overflowed = pmu_take_overflow();
    if (pmi_rearm)
        pmi_rearm(overflowed);
    uint32_t head = __atomic_load_n(&n->head, __ATOMIC_RELAXED);
    if (overflowed && head - __atomic_load_n(&n->tail, __ATOMIC_ACQUIRE) < NOTES) {
        n->notes[head % NOTES] = (struct note){ rip, cs, overflowed };
        __atomic_store_n(&n->head, head + 1, __ATOMIC_RELEASE);
        apic_send_self(APIC_NOTED_VECTOR);
    }
    apic_write_pmi_lvt(lvt);
    if (!paused)
        pmu_resume();
    return overflowed;
}

bool hal_pmi_noted(uint64_t *rip, uint64_t *cs, uint64_t *counters)
{
    struct notes *n = &notes[cpu_number()];
    uint32_t tail = __atomic_load_n(&n->tail, __ATOMIC_RELAXED);
    if (tail == __atomic_load_n(&n->head, __ATOMIC_ACQUIRE))
        return false;
    *rip = n->notes[tail % NOTES].rip;
    *cs = n->notes[tail % NOTES].cs;
    *counters = n->notes[tail % NOTES].counters;
    __atomic_store_n(&n->tail, tail + 1, __ATOMIC_RELEASE);
    return true;
}

void hal_pmi_deliver(struct trap_frame *frame, uint64_t counters)
{
    CPU_SET_FIELD(pmi_frame, frame);
    pmu_pause();
    hal_counters_overflowed(counters);
    pmu_resume();
}

void hal_pmi(struct trap_frame *frame)
{
    CPU_SET_FIELD(pmi_frame, frame);
    pmu_pause();
    PMIHANDLER handler = __atomic_load_n(&driver_handler, __ATOMIC_ACQUIRE);
    if (handler)
        handler(hal_pmi_frame()); /* not `frame`, which then need not be saved across the call */
    /* May be 0: the interrupt before may have handled two overflows at once. */
    uint64_t overflowed = pmu_take_overflow();
    if (__builtin_expect(overflowed != 0, 1))
        hal_counters_overflowed(overflowed);
    /* Intel's APIC masked the entry when it delivered, AMD's did not. It is unmasked while the
     * counters pause, because an overflow while the entry is masked never raises an interrupt.
     * (Linux unmasks later on Haswell and newer, to avoid spurious NMIs. Here a spurious interrupt
     * finds no overflow and does nothing.) */
    apic_write_pmi_lvt(APIC_PMI_VECTOR);
    pmu_resume();
}

static void run_nothing(void *unused) { (void)unused; }

bool hal_pmi_has_driver(void) { return __atomic_load_n(&driver_handler, __ATOMIC_RELAXED) != NULL; }

NTSTATUS hal_pmi_set_driver(PMIHANDLER handler)
{
    PMIHANDLER none = NULL;
    if (!pmu_some_counters(SMP_ALL) || pmi_by_nmi)
        return STATUS_NOT_SUPPORTED;
    if (!handler) {
        __atomic_store_n(&driver_handler, NULL, __ATOMIC_RELEASE);
        smp_call(SMP_ALL, run_nothing, NULL); /* after this no processor runs the old handler */
        return STATUS_SUCCESS;
    }
    return __atomic_compare_exchange_n(&driver_handler, &none, handler, false, __ATOMIC_ACQ_REL,
                                       __ATOMIC_RELAXED)
               ? STATUS_SUCCESS
               : STATUS_DEVICE_BUSY;
}

static void prove_handler(ULONGLONG, HANDLE) { __atomic_fetch_add(&proved, 1, __ATOMIC_RELAXED); }

static void prove_once(unsigned ctr)
{
    KIRQL dispatch = irql_raise(DISPATCH_LEVEL); /* stay on this CPU */
    KIRQL old = irql_raise(PROFILE_LEVEL);
    const struct pmu_kind *pmu = pmu_here();
    pmu_program(ctr, pmu_select(pmu, PMU_INSTRUCTIONS, PMU_KERNEL | PMU_INTERRUPT),
                -(uint64_t)PROVE_PERIOD & pmu_mask(pmu, ctr));
    pmu_start(PMU_BIT(ctr));
    irql_lower(old);
    unsigned late = 0;
    for (unsigned i = 0; i < PROVE_PAUSES && late < PROVE_LATENCY; i++) {
        if (__atomic_load_n(&proved, __ATOMIC_RELAXED))
            break;
        late += late || pmu_read(ctr) <= pmu_mask(pmu, ctr) / 2; /* read no more once it is */
        pause();
    }
    irql_lower(dispatch);
}

bool hal_pmi_prove(void)
{
    uint64_t able = pmu_counters_for(pmu_here(), PMU_INSTRUCTIONS);
    HANDLE handle;

    if (!able)
        return true;
    unsigned ctr = bit_lowest(able);
    NTSTATUS status = hal_counters_claim("hal_pmi_prove", cpu_set_one(cpu_number()), PMU_BIT(ctr),
                                         prove_handler, &handle);
    if (!NT_SUCCESS(status))
        return true;
    proved = 0;
    prove_once(ctr);
    status = HalFreeHardwareCounters(handle);
    ASSERT(NT_SUCCESS(status));
    return proved != 0;
}

void hal_pmi_prove_kind(void)
{
    const struct pmu_kind *pmu = pmu_here();
    for (unsigned cpu = 0; cpu < cpu_number(); cpu++)
        if (pmu_of(cpu) == pmu)
            return;
    if (!hal_pmi_prove())
        pmu_complain(pmu, PMU_PMI_LOST, pmu->counters);
}
