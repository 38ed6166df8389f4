/* SPDX-License-Identifier: MIT */
/* Exactness: the single-step trap as an oracle that shares nothing with the counters, and what
 * interrupts and faults add to a count of ring 3: measured, reported, and subtracted by the number
 * measured. */
#include "hal/machine/smp.h"
#include "hal/owners.h"
#include "kernel/base/bits.h"
#include "kernel/base/cpu.h"
#include "kernel/base/irql.h"
#include "kernel/ke/process.h"
#include "kernel/ke/sched.h"
#include "kernel/ke/thread.h"
#include "kernel/mm/phys.h"
#include "kernel/mm/vm.h"
#include "tests/harness/counting.h"
#include "tests/harness/lab.h"
#include "tests/ring3/pmu_exact.h"
#include "tests/ring3/ring3.h"
#include "tests/harness/user.h"
#include "tests/harness/peek.h"

#define IN_LOOP 1000000ul /* instructions; before them a process's begin takes some 400,000 */
#define OVERFLOWS_AFTER 900000ul /* in the loop, where an interrupt that is late meets no service */

/* The traps of a stretch run with TF, less those around, against its table and its count. */
LAB_EACH(pmu_oracle, each_counting_instructions,
         "its count is the number of single-step traps [VP-52]")
{
    static const struct lab_work *const works[] = { &lab_loop_work, &lab_memory_work,
                                                    &lab_branches_work, &lab_exits_work };
    if (!(pmu_counters_for(pmu_here(), PMU_INSTRUCTIONS) >> ctr & 1))
        SKIP("the processor does not count the event there");
    for (unsigned i = 0; i < ARRAY_SIZE(works); i++)
        for (unsigned n = 1; n < 30; n += 9) {
            lab_catch();
            lab_steps(works[i]->code, n);
            uint64_t steps = lab_caught.steps - LAB_STEPS_AROUND;
            lab_release();
            CHECK_EQ(steps, (uint64_t)works[i]->each[LAB_INSTRUCTIONS] * n +
                                works[i]->once[LAB_INSTRUCTIONS]);
            LAB_CHECK_COUNT(lab_count(ctr, lab_select(ctr, PMU_KERNEL), 0, works[i]->code, n),
                            steps + lab_before() + LAB_AFTER +
                                lab_of_exits(works[i], LAB_INSTRUCTIONS, n));
        }
}

/* One CPU's gates are ours while the thread runs there: its #DB traps are counted, whatever ring
 * they come from. */
TEST(pmu_exact, ring3_oracle,
     "ring 3 under TF takes as many traps as the counter counts instructions [VP-52 slow]")
{
    unsigned ctr;
    SKIP_WITHOUT_RDPMC();
    REQUIRE(counting_start(PMU_INSTRUCTIONS, PMU_USER, &ctr));
    for (unsigned cpu = 0; cpu < cpu_count; cpu++) {
        struct process *process = user_process();
        struct thread *thread =
            lab_run_user(process, user_exact_steps, pmu_rdpmc_index(ctr), cpu, NULL);
        if (thread) {
            CHECK_STATUS(thread->exit_status, STATUS_SUCCESS);
            /* The least of several readings: nothing came between. */
            LAB_CHECK_COUNT(peek(process, &user_exact_counted),
                            lab_caught.steps - USER_STEPS_AROUND);
            object_release(&thread->object);
        }
        if (process)
            object_release(&process->object);
    }
    test_run_anywhere();
    counting_stop();
}

/* Ring 3's GS is in place then: the laboratory's handler must not ask which processor this is. */
static void overflow_in_ring3(unsigned cpu, unsigned ctr)
{
    HANDLE owner;
    test_run_on(cpu);
    if (!CHECK_STATUS(hal_counters_claim("laboratory", cpu_set_one(cpu), PMU_BIT(ctr), NULL,
                                         &owner),
                      STATUS_SUCCESS))
        return;
    struct process *process = user_process();
    pmu_program(ctr, lab_select(ctr, PMU_USER | PMU_INTERRUPT),
                -OVERFLOWS_AFTER & pmu_mask(pmu_of(cpu), ctr));
    pmu_start(PMU_BIT(ctr));
    struct thread *thread = lab_run_user(process, user_exact_loop, 0, cpu, NULL);
    uint64_t counted = pmu_read(ctr);
    pmu_clear(PMU_BIT(ctr));
    CHECK_RANGE(lab_caught.pmis, 1, 2);          /* KVM before Linux 6.7 may send two */
    CHECK_EQ(lab_caught.rip, 0);                 /* it came in ring 3 */
    CHECK(counted >= IN_LOOP - OVERFLOWS_AFTER); /* it counted on */
    user_finish(process, thread);
    CHECK_STATUS(HalFreeHardwareCounters(owner), STATUS_SUCCESS);
}

TEST(pmu_exact, ring3_overflow, "a counter of ring 3 that overflows there interrupts it")
{
    bool any = false;
    SKIP_WITHOUT_PMU();
    for (unsigned cpu = 0; cpu < cpu_count; cpu++) {
        uint64_t able = pmu_counters_for(pmu_of(cpu), PMU_INSTRUCTIONS);
        if (able)
            overflow_in_ring3(cpu, bit_lowest(able));
        any |= able != 0;
    }
    test_run_anywhere();
    if (!any)
        SKIP("no counter counts instructions");
}

#define INTERRUPTED_MAX 1000u /* processes; ten of a quarter of a tick meet one */

/* Other CPUs' ticks interrupt nothing here. */
static uint64_t ticks_of(unsigned cpu)
{
    return __atomic_load_n(&cpus[cpu]->ticks, __ATOMIC_RELAXED);
}

/* What ring 3 executed on a CPU, what was counted, and that CPU's ticks meanwhile. */
struct half {
    uint64_t all, counted, ticks;
};

/* At an instruction a nanosecond one process computes longer than from tick to tick; where it is
 * faster, another one until a tick met one. */
static struct half count_interrupted(unsigned ctr, unsigned cpu)
{
    struct half half = { 0, 0, 0 };
    uint64_t millions = 2 + sched_tick_ns() / 1000000;
    for (unsigned n = 0; n < INTERRUPTED_MAX && !half.ticks; n++) {
        struct process *process = user_process();
        if (!CHECK(process != NULL))
            break;
        uint64_t before = ticks_of(cpu);
        struct thread *thread =
            user_thread("interrupted", process, (uint64_t)user_exact_long,
                        millions << 32 | pmu_rdpmc_index(ctr), cpu_set_one(cpu));
        if (CHECK(thread != NULL))
            sched_wait(&thread->object, SCHED_FOREVER, Executive);
        half.ticks += ticks_of(cpu) - before;
        half.counted += peek(process, &user_exact_counted);
        half.all += millions * 1000000;
        user_finish(process, thread);
    }
    return half;
}

/* Ring 3 computes while ticks interrupt it. The first half measures what one interrupt adds, the
 * second must be exact when that is taken off. */
TEST(pmu_exact, interrupts,
     "what an interrupt adds to ring 3's count is measured, and taken off is exact [VP-52]")
{
    unsigned ctr;
    SKIP_WITHOUT_RDPMC();
    REQUIRE(counting_start(PMU_INSTRUCTIONS, PMU_USER, &ctr));
    for (unsigned cpu = 0; cpu < cpu_count; cpu++) {
        const struct half a = count_interrupted(ctr, cpu), b = count_interrupted(ctr, cpu);
        if (!CHECK(a.ticks > 0)) /* a half without interrupts measures nothing */
            break;
        CHECK_BECAUSE(a.counted, a.all, a.all + 2 * a.ticks, "at most two for each interrupt");
        uint64_t added = a.counted - a.all;
        test_note("CPU %u: %lu interrupts added %lu to %lu instructions of ring 3", cpu, a.ticks,
                  added, a.all);
        uint64_t corrected = b.counted - (added * b.ticks + a.ticks / 2) / a.ticks;
        if (added)
            CHECK_BECAUSE(
                corrected, b.all - b.ticks / 4 - 1, b.all + b.ticks / 4 + 1,
                "less the overcount of the other half, a quarter of an interrupt's either way");
        else
            CHECK_EQ(corrected, b.all);
    }
    counting_stop();
}

/* --- Page faults of ring 3, resolved by a handler of ours: the page is there, only its entry says
 * that it is not. --- */

static uint64_t *entries[2 * USER_PAGES];

static bool resolve(uint64_t address)
{
    uint64_t page = (address - USER_PAGES_AT) / PAGE_SIZE;
    if (page >= 2 * USER_PAGES)
        return false;
    *entries[page] |= PTE_PRESENT;
    return true;
}

static uint64_t *page_entry_of(uint64_t *table, uint64_t address)
{
    for (unsigned shift = 39; shift > 12; shift -= 9)
        table = phys_to_virt(table[address >> shift & 511] & PTE_ADDRESS);
    return &table[address >> 12 & 511];
}

/* A process with the pages mapped, and marked as not present. */
static struct process *process_that_faults(void)
{
    struct process *process = user_process();
    for (unsigned i = 0; process && i < 2 * USER_PAGES; i++) {
        void *page = phys_alloc(1);
        CHECK(page && vm_map(process->pml4, USER_PAGES_AT + i * PAGE_SIZE, virt_to_phys(page),
                             PTE_USER | PTE_NX));
        entries[i] = page_entry_of(process->pml4, USER_PAGES_AT + i * PAGE_SIZE);
        *entries[i] &= ~PTE_PRESENT;
    }
    return process;
}

/* The first stretch of faults measures what one adds, the second must be exact when that is taken
 * off. */
static void check_faults(const uint64_t *counts, uint64_t ticks, unsigned faults)
{
    uint64_t faulting = counts[0], again = counts[1], added = faulting - again;
    CHECK_EQ(faults, 2 * USER_PAGES);
    CHECK_BECAUSE(again, 2 * USER_PAGES, 20 * USER_PAGES, "a few instructions a page");
    CHECK_BECAUSE(
        faulting, again, again + 2 * (USER_PAGES + ticks),
        "a load retires once however often it faults; at most two for each fault and interrupt");
    test_note("CPU %u: %u page faults of ring 3 added %lu to %lu instructions", cpu_number(),
              USER_PAGES, added, again);
    if (added)
        CHECK_BECAUSE(
            counts[2] - added, again - 2 * ticks - USER_PAGES / 4,
            again + 2 * ticks + USER_PAGES / 4,
            "less what the first faults added, a quarter of a fault's either way, and interrupts");
    else
        CHECK_BECAUSE(counts[2], again, again + 2 * ticks,
                      "the same; more only by interrupts, two for each");
}

TEST(pmu_exact, page_faults,
     "what a page fault adds to ring 3's count is measured, and taken off is exact [VP-52]")
{
    unsigned ctr;
    SKIP_WITHOUT_RDPMC();
    REQUIRE(counting_start(PMU_INSTRUCTIONS, PMU_USER, &ctr));
    for (unsigned cpu = 0; cpu < cpu_count; cpu++) {
        uint64_t counts[3] = { 0 };
        struct process *process = process_that_faults();
        uint64_t ticks = ticks_of(cpu);
        struct thread *thread = lab_run_user(process, (void (*)(void))user_exact_touch,
                                             pmu_rdpmc_index(ctr), cpu, resolve);
        ticks = ticks_of(cpu) - ticks;
        for (unsigned i = 0; process && i < 2 * USER_PAGES; i++)
            *entries[i] |= PTE_PRESENT; /* the process frees what is present */
        for (unsigned i = 0; process && i < 3; i++)
            counts[i] = peek(process, &user_values[i]);
        if (CHECK(thread != NULL))
            check_faults(counts, ticks, lab_caught.faults);
        if (process)
            user_finish(process, thread);
    }
    test_run_anywhere();
    counting_stop();
}

/* A fault does not retire its instruction: RDPMC of no counter, in ring 0, resumed after it. */
static uint64_t fault_cost(unsigned ctr, unsigned faults)
{
    uint64_t value;
    pmu_program(ctr, lab_select(ctr, PMU_USER), 0);
    pmu_start(PMU_BIT(ctr));
    for (unsigned i = 0; i < faults; i++)
        rdpmc_fault(64, &value);
    pmu_stop(PMU_BIT(ctr));
    return pmu_read(ctr);
}

LAB_EACH(pmu_faults, each_counting_instructions,
         "a fault in ring 0 adds nothing to ring 3, and always the same to ring 0 [VP-52]")
{
    if (!(pmu_counters_for(pmu_here(), PMU_INSTRUCTIONS) >> ctr & 1))
        SKIP("the processor does not count the event there");
    CHECK_EQ(fault_cost(ctr, 20), 0); /* ring 0 faults: nothing of it is ring 3's */
    uint64_t value, few, many, select = lab_select(ctr, PMU_KERNEL);
    uint64_t counts[3];
    for (unsigned i = 0; i < 3; i++) {
        pmu_program(ctr, select, 0);
        pmu_start(PMU_BIT(ctr));
        for (unsigned n = 0; n < 10 * (i + 1); n++)
            rdpmc_fault(64, &value);
        pmu_stop(PMU_BIT(ctr));
        counts[i] = pmu_read(ctr);
    }
    few = counts[1] - counts[0];
    many = counts[2] - counts[1];
    if (pmu_here()->exact)
        CHECK_EQ(many, few); /* each fault costs the same */
    CHECK_BECAUSE(few, 10 * 20, 10 * 2000, "an exception's way in and out");
    if (ctr == 0)
        test_note("a fault and its handler: %lu instructions of ring 0", few / 10);
}

enum { ELEMENTS = 1000 };
static uint64_t strings[2][ELEMENTS]; /* zeros; several pages */

#define NO_DEVICE 0x80 /* port of POST codes */
#define REPEATED(name, end, value, code)                                                           \
    __attribute__((section(".repeated"))) static void name(uint64_t n)                             \
    {                                                                                              \
        uint64_t *to = strings[0] + (end), *from = strings[1] + (end), a = (value);                \
        asm volatile(code                                                                          \
                     : "+D"(to), "+S"(from), "+c"(n), "+a"(a)                                      \
                     : "d"(NO_DEVICE)                                                              \
                     : "memory", "cc");                                                            \
    }
REPEATED(stosb, 0, 0, "rep stosb")
REPEATED(stosw, 0, 0, "rep stosw")
REPEATED(stosq, 0, 0, "rep stosq")
REPEATED(movsb, 0, 0, "rep movsb")
REPEATED(movsl, 0, 0, "rep movsl")
REPEATED(movsq_down, ELEMENTS - 1, 0, "std\nrep movsq\ncld")
REPEATED(lodsw, 0, 0, "rep lodsw")
REPEATED(lodsq, 0, 0, "rep lodsq")
REPEATED(cmpsb, 0, 0, "repe cmpsb")
REPEATED(cmpsq_down, ELEMENTS - 1, 0, "std\nrepe cmpsq\ncld")
REPEATED(scasb, 0, 1, "repne scasb")
REPEATED(scasl, 0, 0, "repe scasl")
REPEATED(insb, 0, 0, "rep insb")
REPEATED(insl, 0, 0, "rep insl")
REPEATED(outsb, 0, 0, "rep outsb")
REPEATED(outsw, 0, 0, "rep outsw")

/* Ring 3 has all forms but those of ports: exact.strings. */
LAB_EACH(pmu_rep, each_counting_instructions,
         "a string instruction counts once, however often it repeats [VP-52 slow]")
{
    if (!(pmu_counters_for(pmu_here(), PMU_INSTRUCTIONS) >> ctr & 1))
        SKIP("the processor does not count the event there");
    static const struct {
        void (*code)(uint64_t);
        unsigned step;
    } works[] = { { stosb, 333 }, { stosw, 333 }, { stosq, 333 }, { movsb, 333 },
                  { movsl, 333 }, { lodsw, 333 }, { lodsq, 333 }, { movsq_down, 333 },
                  { cmpsb, 333 }, { scasb, 333 }, { scasl, 333 }, { cmpsq_down, 333 },
                  { insb, 3 },    { insl, 3 },    { outsb, 3 },   { outsw, 3 } };
    uint64_t select = lab_select(ctr, PMU_KERNEL);
    for (unsigned i = 0; i < ARRAY_SIZE(works); i++) {
        uint64_t once = lab_count(ctr, select, 0, works[i].code, 1);
        CHECK_BECAUSE(once, lab_before() + 3, 40, "a call, a few instructions and a return");
        for (unsigned n = 0; n <= 3 * works[i].step; n += works[i].step)
            LAB_CHECK_COUNT(lab_count(ctr, select, 0, works[i].code, n), once);
    }
}
