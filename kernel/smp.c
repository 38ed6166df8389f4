/* SPDX-License-Identifier: MIT */
/* AP start and IPIs. Timeouts count PAUSEs and not time: under an emulator another CPU may wait millions of
 * instructions for its turn. Source: Intel SDM vol. 3 "Multiple-processor management". */
#include "kernel/smp.h"
#include "hal/apic.h"
#include "kernel/acpi.h"
#include "kernel/cpu.h"
#include "kernel/etw.h"
#include "kernel/irql.h"
#include "kernel/lock.h"
#include "kernel/main.h"
#include "kernel/phys.h"
#include "kernel/print.h"
#include "kernel/sched.h"
#include "kernel/string.h"
#include "kernel/trap.h"
#include "kernel/vm.h"

#define START_LIMIT 20000000u /* PAUSEs: some tenths of a second on silicon */
#define CALL_LIMIT 400000000u
#define INIT_DELAY_NS 10000000u
#define STARTUP_DELAY_NS 200000u

extern const uint8_t ap_start[], ap_end[];

static struct lock call_lock = LOCK("smp_call", DISPATCH_LEVEL);
static void (*call_function)(void *); /* L: call_lock */
static void *call_argument;           /* L: call_lock */
static uint64_t call_pending;         /* atomic: CPUs that have not run it yet */

static struct cpu *starting; /* the block of the CPU being started */
static uint32_t started;     /* atomic: it runs */

void smp_ap_main(void);
void smp_ap_main(void)
{
    struct cpu *cpu = __atomic_load_n(&starting, __ATOMIC_ACQUIRE);
    vm_init_cpu();
    cpu_init(cpu, cpu->number);
    trap_init_cpu();
    kernel_init_cpu();
    __atomic_store_n(&started, 1, __ATOMIC_RELEASE);
    sti();
    sched_idle(); /* does not return: this stack is the idle thread's */
}

static bool wait_started(unsigned pauses)
{
    for (unsigned i = 0; i < pauses; i++) {
        if (__atomic_load_n(&started, __ATOMIC_ACQUIRE))
            return true;
        pause();
    }
    return false;
}

static void delay_ns(uint64_t ns)
{
    uint64_t end = sched_time_ns() + ns;
    while (sched_time_ns() < end)
        pause();
}

/* INIT, then STARTUP twice as the manual wants it; the waits end early where the CPU comes early. */
static bool start_one(uint32_t id)
{
    apic_send_init(id);
    if (!cpu_features.hypervisor)
        delay_ns(INIT_DELAY_NS);
    apic_send_startup(id, AP_PAGE >> 12);
    if (!cpu_features.hypervisor)
        delay_ns(STARTUP_DELAY_NS);
    if (wait_started(START_LIMIT / 10))
        return true;
    apic_send_startup(id, AP_PAGE >> 12);
    return wait_started(START_LIMIT);
}

static void start_cpu(uint32_t id)
{
    struct cpu *cpu = cpu_allocate(id);
    if (!cpu) {
        print("# smp: no memory for CPU %u\n", cpu_count);
        return;
    }
    cpu->number = cpu_count;
    *(uint64_t *)phys_to_virt(AP_STACK) = sched_create_idle(cpu);
    __atomic_store_n(&started, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&starting, cpu, __ATOMIC_RELEASE);
    if (start_one(id))
        cpu_count++;
    else
        print("# smp: the CPU with APIC id %u does not start: left out\n", id); /* its stack stays its own */
}

void smp_start(const struct acpi_info *info)
{
    memcpy(phys_to_virt(AP_PAGE), ap_start, (size_t)(ap_end - ap_start));
    for (unsigned i = 0; i < info->apic_count; i++)
        if (info->apic_ids[i] != apic_id() && cpu_count < MAX_CPUS)
            start_cpu(info->apic_ids[i]);
}

void smp_call(uint64_t cpu_mask, void (*function)(void *), void *argument)
{
    ASSERT(irql_current() < DISPATCH_LEVEL);
    uint8_t irql = lock_acquire(&call_lock);
    unsigned me = cpu_number();
    uint64_t others = cpu_mask & (cpu_count == 64 ? ~0ul : (1ul << cpu_count) - 1) & ~(1ul << me);

    call_function = function;
    call_argument = argument;
    __atomic_store_n(&call_pending, others, __ATOMIC_RELEASE);
    for (unsigned i = 0; i < cpu_count; i++)
        if (others >> i & 1)
            apic_send(cpus[i]->apic_id, VECTOR_CALL);
    if (cpu_mask >> me & 1) {
        KIRQL old = irql_raise(IPI_LEVEL);
        function(argument);
        irql_lower(old);
    }
    for (unsigned pauses = 0; __atomic_load_n(&call_pending, __ATOMIC_ACQUIRE); pauses++) {
        if (pauses == CALL_LIMIT)
            panic("CPUs %lx do not answer an IPI", call_pending);
        pause();
    }
    lock_release(&call_lock, irql);
}

void smp_call_interrupt(void)
{
    uint64_t me = 1ul << cpu_number();
    if (!(__atomic_load_n(&call_pending, __ATOMIC_ACQUIRE) & me))
        return;
    bool traced = etw_wants(ETW_IPI);
    uint64_t entered = traced ? rdtsc() : 0;
    call_function(call_argument);
    if (traced)
        etw_ipi(entered, call_function);
    __atomic_fetch_and(&call_pending, ~me, __ATOMIC_RELEASE);
}

void smp_reschedule(unsigned cpu)
{
    __atomic_store_n(&cpus[cpu]->reschedule, 1, __ATOMIC_RELAXED);
    if (cpu != cpu_number())
        apic_send(cpus[cpu]->apic_id, VECTOR_RESCHEDULE);
}
