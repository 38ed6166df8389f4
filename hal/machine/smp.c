/* SPDX-License-Identifier: MIT */
/* AP start and IPIs. Timeouts count PAUSEs as well as time: an emulator's other CPUs may run only
 * after millions of instructions, a busy host's after milliseconds.
 * Source: Intel SDM vol. 3 "Multiple-processor management". */
#include "hal/machine/smp.h"
#include "hal/machine/acpi.h"
#include "hal/machine/apic.h"
#include "hal/machine/clock.h"
#include "hal/machine/tsc.h"
#include "kernel/base/boot_info.h"
#include "kernel/base/cpu.h"
#include "kernel/base/irql.h"
#include "kernel/base/lock.h"
#include "kernel/base/panic.h"
#include "kernel/base/print.h"
#include "kernel/base/string.h"
#include "kernel/base/vectors.h"
#include "kernel/mm/phys.h"
#include "kernel/mm/vm.h"

#define START_NS 500000000u   /* a CPU starts within a few milliseconds, or never */
#define START_PAUSES 2000000u /* and besides; two are enough for QEMU, 150 for KVM */
#define ARRIVED_LIMITS 40u    /* for one that has begun */
#define USUAL_PAGE 0x8000u
#define LOW_END 0xa0000u
#define SILENT_MAX 4    /* after so many failures in a row the rest is not tried */
#define CALL_TICKS 3    /* a CPU that takes so many later interrupts has lost the call */
#define CALL_LOOK 5000u /* PAUSEs from one look at the clocks to the next */
#define CALL_LOOKS 8u   /* a call is overdue after so many looks and so many seconds */
#define CALL_SECONDS 5u
#define CALL_PAUSES_MOST 400000000u /* where there is no real-time clock */
#define INIT_DELAY_NS 10000000u
#define STARTUP_DELAY_NS 200000u

static struct lock call_lock = LOCK("smp_call", DISPATCH_LEVEL);
static void (*call_function)(void *); /* L: call_lock */
static void *call_argument;           /* L: call_lock */

static void (*call_ended)(uint64_t entered, void (*function)(void *)); /* written at boot */
static const struct smp_plan *plan;
static struct cpu *starting; /* the block of the CPU being started */
static enum start { WAITED_FOR, GIVEN_UP, ARRIVED, RUNS } started; /* atomic */
static uint32_t start_page; /* physical: where it begins; written at boot */

static bool set_started(enum start from, enum start to)
{
    return __atomic_compare_exchange_n(&started, &from, to, false, __ATOMIC_ACQ_REL,
                                       __ATOMIC_ACQUIRE);
}

void smp_ap_main(void);
void smp_ap_main(void)
{
    struct cpu *cpu = __atomic_load_n(&starting, __ATOMIC_ACQUIRE);
    if (!set_started(WAITED_FOR, ARRIVED))
        for (;;) /* too late: its INIT comes, and the next CPU is waited for */
            pause();
    vm_init_cpu();
    cpu_init(cpu, cpu->number);
    cpu_load_idt();
    plan->init();
    __atomic_store_n(&started, RUNS, __ATOMIC_RELEASE);
    tsc_answer();
    sti();
    plan->run();
}

static bool runs_within(unsigned limits)
{
    uint64_t end = clock_ns() + limits * (uint64_t)START_NS;
    for (uint64_t i = 0; i < limits * (uint64_t)START_PAUSES || clock_ns() < end; i++) {
        if (__atomic_load_n(&started, __ATOMIC_ACQUIRE) == RUNS)
            return true;
        pause();
    }
    return false;
}

/* Who has arrived may hold a lock, and is waited for: an INIT would leave it locked. */
static bool wait_started(uint32_t id)
{
    if (runs_within(1))
        return true;
    if (set_started(WAITED_FOR, GIVEN_UP))
        return false;
    if (!runs_within(ARRIVED_LIMITS))
        panic("the CPU with APIC id %u started, and does not come to its work", id);
    return true;
}

static void delay_ns(uint64_t ns)
{
    uint64_t end = clock_ns() + ns;
    while (clock_ns() < end)
        pause();
}

/* INIT, then STARTUP twice, as the manual requires; the last wait ends when the CPU runs. */
static bool start_one(uint32_t id)
{
    apic_send_init(id);
    if (!cpu_features.hypervisor)
        delay_ns(INIT_DELAY_NS);
    apic_send_startup(id, start_page >> 12);
    if (!cpu_features.hypervisor)
        delay_ns(STARTUP_DELAY_NS);
    if (__atomic_load_n(&started, __ATOMIC_ACQUIRE) == WAITED_FOR)
        apic_send_startup(id, start_page >> 12);
    return wait_started(id);
}

static bool page_is_free(const struct boot_info *info, uint32_t page)
{
    for (unsigned i = 0; i < info->module_count; i++)
        if (info->modules[i].start < page + PAGE_SIZE && info->modules[i].end > page)
            return false;
    for (unsigned i = 0; i < info->memory_count; i++)
        if (info->memory[i].start <= page && info->memory[i].size >= PAGE_SIZE &&
            page - info->memory[i].start <= info->memory[i].size - PAGE_SIZE)
            return true;
    return false;
}

uint32_t smp_free_page(const struct boot_info *info)
{
    if (page_is_free(info, USUAL_PAGE))
        return USUAL_PAGE;
    for (uint32_t page = PAGE_SIZE; page < LOW_END; page += PAGE_SIZE) /* page 0 is the BIOS's */
        if (page_is_free(info, page))
            return page;
    return 0;
}

/* *pages: boot_info.ap_pages. */
static struct cpu *allocate_cpu(uint32_t id, void **pages)
{
    struct cpu *cpu = phys_alloc(1);
    void *stacks = phys_alloc(3);
    *pages = boot_info.ap_pages ? phys_alloc(boot_info.ap_pages) : NULL;
    if (!cpu || !stacks || (boot_info.ap_pages && !*pages))
        return NULL;
    cpu->apic_id = id;
    cpu->fault_stacks = stacks;
    return cpu;
}

static bool start_cpu(uint32_t id)
{
    void *pages;
    struct cpu *cpu = allocate_cpu(id, &pages);
    if (!cpu) {
        print("# smp: no memory for CPU %u\n", cpu_count);
        return false;
    }
    cpu->number = cpu_count;
    boot_put_ap(phys_to_virt(start_page), plan->idle_stack(cpu), pages);
    __atomic_store_n(&started, WAITED_FOR, __ATOMIC_RELAXED);
    __atomic_store_n(&starting, cpu, __ATOMIC_RELEASE);
    if (!start_one(id)) {
        apic_send_init(id); /* if it starts late, this makes it wait for a STARTUP */
        print("# smp: the CPU with APIC id %u does not start: left out\n",
              id); /* its stack is not reused */
        return false;
    }
    tsc_compare(cpu);
    cpu_joins();
    return true;
}

void smp_start(const struct acpi_info *info, unsigned first, unsigned last,
               const struct smp_plan *how)
{
    unsigned beyond = info->apics_dropped, unreachable = 0, silent = 0, others = 0;
    plan = how;
    start_page = smp_free_page(&boot_info);
    if (!start_page) {
        print("# smp: no page below %x is free memory by the loader's map: one CPU only\n",
              LOW_END);
        return;
    }
    if (start_page != USUAL_PAGE)
        print("# smp: page %x is not free: CPUs start at %x\n", USUAL_PAGE, start_page);
    for (unsigned i = 0; i < info->apic_count; i++) {
        uint32_t id = info->apic_ids[i];
        if (id == apic_id())
            continue;
        if (i < first || i > last)
            others++;
        else if (!apic_reaches(id))
            unreachable++;
        else if (cpu_count == how->most)
            beyond++;
        else if (silent < SILENT_MAX)
            silent = start_cpu(id) ? 0 : silent + 1;
    }
    tsc_report();
    if (others)
        print("# smp: %u of %u CPUs not among cpus=%u-%u: parked\n", others, info->apic_count,
              first, last);
    if (unreachable)
        print("# smp: %u CPUs have APIC ids above 254, and there is no x2APIC, or it is off: "
              "parked\n",
              unreachable);
    if (silent == SILENT_MAX)
        print("# smp: %u in a row did not start: the rest is not tried\n", silent);
    if (beyond)
        print("# smp: %u CPUs stay parked: %u run; cpus=FIRST-LAST chooses which\n", beyond,
              cpu_count);
}

void smp_owed(char *text, size_t size)
{
    uint32_t offset, caller = __atomic_load_n(&call_lock.owner, __ATOMIC_RELAXED) - 1;
    const char *function = symbol_of((uint64_t)call_function, &offset);
    size_t n = 0;
    *text = 0;
    for_all_cpus(cpu)
        if (__atomic_load_n(&cpus[cpu]->called, __ATOMIC_RELAXED))
            n += print_to(text + n, size - n, "; CPU %u owes CPU %u an answer to %s", cpu, caller,
                          function);
}

struct patience {
    uint64_t ticks; /* of the CPU that owes, when its wait began */
    unsigned pauses, second, seconds;
};

/* A CPU takes the call before its timer's interrupt. One that takes neither may have interrupts off
 * for long: by its own time while the host stops it, by PAUSEs while an emulator's time creeps. */
static bool is_overdue(struct patience *p, unsigned cpu)
{
    if (++p->pauses % CALL_LOOK)
        return false;
    unsigned second = clock_wall_second();
    p->seconds += p->pauses > CALL_LOOK ? (second + 60 - p->second) % 60 : 0;
    p->second = second;
    return __atomic_load_n(&cpus[cpu]->ticks, __ATOMIC_RELAXED) - p->ticks > CALL_TICKS ||
           (p->seconds > CALL_SECONDS && p->pauses >= CALL_LOOKS * CALL_LOOK) ||
           p->pauses >= CALL_PAUSES_MOST;
}

static void wait_for(unsigned cpu)
{
    struct patience p = { .ticks = __atomic_load_n(&cpus[cpu]->ticks, __ATOMIC_RELAXED) };
    while (__atomic_load_n(&cpus[cpu]->called, __ATOMIC_ACQUIRE)) {
        char text[160];
        pause();
        /* This CPU, too, may have been stopped since it looked. */
        if (!is_overdue(&p, cpu) || !__atomic_load_n(&cpus[cpu]->called, __ATOMIC_ACQUIRE))
            continue;
        smp_owed(text, sizeof text);
        panic("an IPI is not answered, after %u PAUSEs and %u s%s", p.pauses, p.seconds, text);
    }
}

static void wait_for_answers(const struct cpu_set *others)
{
    for_each_cpu(cpu, others)
        if (__atomic_load_n(&cpus[cpu]->called, __ATOMIC_ACQUIRE))
            wait_for(cpu);
}

void smp_call(struct cpu_set among, void (*function)(void *), void *argument)
{
    ASSERT(irql_current() < DISPATCH_LEVEL);
    KIRQL irql = lock_acquire(&call_lock);
    unsigned me = cpu_number();
    bool here = cpu_set_has(&among, me);
    cpu_set_remove(&among, me);
    bool others = !cpu_set_empty(among);

    call_function = function;
    call_argument = argument;
    if (others)
        for_each_cpu(cpu, &among) {
            cpus[cpu]->calls_made++;
            __atomic_store_n(&cpus[cpu]->called, true, __ATOMIC_RELEASE);
            apic_send(cpus[cpu]->apic_id, VECTOR_CALL);
        }
    if (here) {
        KIRQL old = irql_raise(IPI_LEVEL);
        function(argument);
        irql_lower(old);
    }
    if (others)
        wait_for_answers(&among);
    lock_release(&call_lock, irql);
    if (others)
        pause(); /* a CPU that waits takes the lock now, though this one may call without end */
}

bool smp_waits(void)
{
    return __atomic_load_n(&call_lock.owner, __ATOMIC_RELAXED) == cpu_number() + 1;
}

/* L: call_lock: who calls has it. */
void smp_call_interrupt(void)
{
    struct cpu *me = cpu_current();
    if (!__atomic_load_n(&me->called, __ATOMIC_ACQUIRE))
        return;
    uint64_t entered = rdtsc();
    me->locks++;
    me->calls_run++;
    call_function(call_argument);
    if (call_ended)
        call_ended(entered, call_function); /* before the answer, while the caller waits */
    __atomic_store_n(&me->called, false, __ATOMIC_RELEASE);
    me->locks--;
}

void smp_call_ended(void (*notify)(uint64_t entered, void (*function)(void *)))
{
    call_ended = notify;
}
