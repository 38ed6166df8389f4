/* SPDX-License-Identifier: MIT */
/* What the virtual PMU costs code that counts its instructions: exits and steps, which are exact
 * where the time that they take is not; and code that counts what must be decoded, by the
 * instruction clock. */
#include "tests/harness/lab.h"
#include "tests/harness/peek.h"
#include "pmu/branches.h"

#define ITERATIONS 5000000u
#define AROUND 10000u /* instructions of ring 3 by which two processes begin and end differently */

struct sum {
    unsigned ctr;
    uint64_t counted, exits, steps;
};

/* Each CPU. */
static void add_counts(void *argument)
{
    struct sum *sum = argument;
    struct cpuid r = cpuid(vpmu_leaf(1), 1);
    __atomic_fetch_add(&sum->counted, pmu_read(sum->ctr), __ATOMIC_SEQ_CST);
    __atomic_fetch_add(&sum->exits, r.eax, __ATOMIC_SEQ_CST);
    __atomic_fetch_add(&sum->steps, r.ebx, __ATOMIC_SEQ_CST);
}

TEST(vpmu, free_running,
     "ring 3 runs freely while its instructions are counted: few exits, and single steps only "
     "around interrupts [slow]")
{
    struct sum empty = { 0 }, before = { 0 }, after = { 0 };
    uint64_t iterations = ITERATIONS * ((sched_tick_ns() + 999999) / 1000000); /* ticks */
    SKIP_WITHOUT_PMU();
    SKIP_WITHOUT_VPMU();
    SKIP_IF_STEPPED();
    REQUIRE(counting_start(PMU_INSTRUCTIONS, PMU_USER, &before.ctr));
    empty.ctr = after.ctr = before.ctr;
    CHECK_STATUS(user_run(user_speed_loop, 1), STATUS_SUCCESS); /* finds its pages */
    smp_call(SMP_ALL, add_counts, &empty);
    uint64_t begin = clock_ns();
    CHECK_STATUS(user_run(user_speed_loop, 1), STATUS_SUCCESS);
    smp_call(SMP_ALL, add_counts, &before);
    uint64_t start = clock_ns();
    CHECK_STATUS(user_run(user_speed_loop, iterations), STATUS_SUCCESS);
    uint64_t ticks = (clock_ns() - 2 * start + begin) / sched_tick_ns() + 1;
    smp_call(SMP_ALL, add_counts, &after);
    counting_stop();
    uint64_t wanted = before.counted - empty.counted + 2 * (iterations - 1);
    CHECK_RANGE(after.counted - before.counted, wanted - AROUND, wanted + AROUND);
    /* Beside what the process's start takes: a tick makes three exits and a step; where CPUs take
     * turns, each has an alarm and makes two exits. */
    uint64_t exits = 2 * before.exits - empty.exits, steps = 2 * before.steps - empty.steps;
    CHECK_RANGE(after.exits - exits, 2 * ticks, 5 * ticks + 200 * cpu_count);
    CHECK_RANGE(after.steps - steps, ticks / 2, 2 * ticks + 20 * cpu_count);
}

/* Where it faults RF is set, as is RF of a string instruction that a step interrupts: from QEMU 9.2
 * on, as by a processor, and nothing of it hinders the next block. */
TEST(vpmu, string_steps,
     "a string instruction over new pages is stepped where it faults, and not each iteration")
{
    enum { STRING_PAGES = 32 };
    struct sum before = { 0 }, after = { 0 };
    SKIP_WITHOUT_PMU();
    SKIP_WITHOUT_VPMU();
    SKIP_IF_STEPPED();
    REQUIRE(counting_start(PMU_INSTRUCTIONS, PMU_USER, &before.ctr));
    after.ctr = before.ctr;
    smp_call(SMP_ALL, add_counts, &before);
    CHECK_STATUS(user_run(user_speed_string, STRING_PAGES), STATUS_SUCCESS);
    smp_call(SMP_ALL, add_counts, &after);
    counting_stop();
    CHECK_BECAUSE(after.steps - before.steps, STRING_PAGES, STRING_PAGES * 16,
                  "one a page; the process's start and ticks add some");
}

static char line[80];

static __attribute__((noinline, aligned(64))) char *put_digit(char *to, uint64_t digit)
{
    *to = "0123456789abcdef"[digit];
    return to + 1;
}

/* Common code of a compiler's: calls through pointers, divisions, bytes. On a page of its own: an
 * instruction across a page's end is stepped, and which one is there changes with each build. */
static __attribute__((noinline, aligned(4096))) void format_numbers(uint64_t n)
{
    char *(*put)(char *to, uint64_t digit) = put_digit;
    uint64_t base = 10;
    asm volatile("" : "+r"(put), "+r"(base));
    while (n--) {
        char *to = line;
        for (uint64_t left = 1234567; left; left /= base)
            to = put(to, left % base);
    }
}

/* As the loop of kvm-unit-tests' pmu.flat, with fewer NOPs. */
static __attribute__((noinline, aligned(64))) void loop_loads(uint64_t n)
{
    asm volatile("1: mov (%1),%%al\n\tadd $0,%1\n\tnop\n\tnop\n\tnop\n\tloop 1b"
                 : "+c"(n)
                 : "r"(line)
                 : "rax", "memory");
}

/* 2,000 blocks of code. */
static __attribute__((noinline, aligned(64))) void jump_far_and_wide(uint64_t n)
{
    asm volatile("1: .rept 2000\n\t.byte 0x90, 0x90, 0xeb, 0\n\t.endr\n\tdec %0\n\tjnz 1b"
                 : "+r"(n));
}

/* Of ring 0, without exits. */
static __attribute__((noinline, aligned(64))) void execute_system(uint64_t n)
{
    while (n--) {
        asm volatile("pushfq\n\tpop %%rax\n\tstd\n\tcld\n\tlfence\n\trdtsc\n\t"
                     "invlpg (%%rsp)\n\tmov %%cr2,%%rax\n\tmov %%cr3,%%rax\n\tmov %%rax,%%cr3"
                     :
                     :
                     : "rax", "rdx", "memory");
        if (cpu_features.smap)
            asm volatile("stac\n\tclac" : : : "memory");
    }
}

/* The first one that works. */
static unsigned counter_of(enum pmu_event event)
{
    uint64_t able = pmu_counters_for(pmu_here(), event);
    return able ? bit_lowest(able) : 0;
}

/* With the list on if there is one, else with branches counted. */
static void run_decoded(bool listed, void (*work)(uint64_t), uint64_t n)
{
    if (!listed) {
        lab_count(counter_of(PMU_BRANCHES), pmu_select(pmu_here(), PMU_BRANCHES, PMU_KERNEL), 0,
                  work, n);
        return;
    }
    struct pmu_gate gate = pmu_branches_gate(pmu_branches_of(pmu_here()), 0);
    lab_measure(&gate, work, n);
}

/* Ticks for each instruction of the work while branches are counted or listed; by -icount an
 * instruction that runs freely takes one. The least of three: the first time its code is decoded,
 * one may find the place for decoded code full, and others' ticks come in between. */
static uint64_t ticks_each(bool listed, void (*work)(uint64_t), uint64_t n)
{
    uint64_t least = UINT64_MAX,
             instructions =
                 lab_count(counter_of(PMU_INSTRUCTIONS),
                           pmu_select(pmu_here(), PMU_INSTRUCTIONS, PMU_KERNEL), 0, work, n);
    if (!CHECK(instructions > 0))
        return 0;
    for (unsigned i = 0; i < 3; i++) {
        uint64_t start = rdtsc();
        run_decoded(listed, work, n);
        uint64_t each = (rdtsc() - start) / instructions;
        least = each < least ? each : least;
    }
    return least;
}

static void check_speed(bool listed)
{
    static const struct {
        const char *name;
        void (*work)(uint64_t);
        uint64_t n;
    } works[] = { { "a loop", lab_loop, 10000 },
                  { "loads and stores", lab_memory, 10000 },
                  { "branches", lab_branches, 10000 },
                  { "LOOP", loop_loads, 1000 },
                  { "much code", jump_far_and_wide, 4 },
                  { "compiled code", format_numbers, 500 },
                  { "system instructions", execute_system, 500 } };
    for (unsigned i = 0; i < ARRAY_SIZE(works); i++) {
        uint32_t before = cpuid(vpmu_leaf(1), 1).ebx;
        uint64_t each = ticks_each(listed, works[i].work, works[i].n);
        uint32_t steps = cpuid(vpmu_leaf(1), 1).ebx - before;
        CHECK(steps < 400); /* around interrupts and WRMSR alone */
        CHECK_BECAUSE(each, 4,
                      works[i].work == execute_system ? 2000
                      : cpu_count > 1                 ? 200
                      : listed                        ? 130
                                                      : 100,
                      "what the host executes for it; with several CPUs also for the others");
        test_note("%s: %lu instructions of the host for one of the guest", works[i].name, each);
    }
}

LAB_TEST(vpmu, decoded,
         "an instruction takes at most 100 times as long where a counter needs it decoded [slow]")
{
    SKIP_WITHOUT_VPMU();
    SKIP_IF_STEPPED();
    check_speed(false);
}

LAB_TEST(vpmu, listed,
         "an instruction takes at most 130 times as long while a list of branches is on, and the "
         "list is read in at most 100 accesses [slow]")
{
    const struct pmu_branches *b = pmu_branches_of(pmu_here());
    struct pmu_branch list[PMU_BRANCHES_MAX];
    SKIP_WITHOUT_VPMU();
    SKIP_IF_STEPPED();
    SKIP_IF(!b->depth, "no last-branch records");
    check_speed(true);
    uint32_t before = vpmu_accesses().rdmsr;
    pmu_branches_read(b, list);
    CHECK_BECAUSE(vpmu_accesses().rdmsr - before, 2 * b->depth, 100, "two or three an entry");
}

/* More code than there is space for that of hot blocks; each block adds another number. */
#define HOT_BLOCKS 4000u
#define HOT_TURNS 450u /* a block is hot after 400 */
static uint64_t hot_sum;
static __attribute__((noinline)) void add_far_and_wide(uint64_t n)
{
    static const uint64_t one = 1;
    uint64_t sum = 0;
    asm volatile("1: .set number_, 0\n\t.rept 4000\n\t.set number_, number_ + 1\n\t"
                 "add (%2), %0\n\tadd (%2), %0\n\tadd $number_, %0\n\tjmp . + 2\n\t.endr\n\t"
                 "dec %1\n\tjnz 1b"
                 : "+r"(sum), "+r"(n)
                 : "r"(&one));
    hot_sum = sum;
}

LAB_TEST(vpmu, much_hot_code,
         "code that is executed often does what it says, where there is too much of it to keep "
         "[slow]")
{
    SKIP_WITHOUT_VPMU();
    SKIP_IF_STEPPED();
    if (cpu_number() != 0) /* the blocks are all CPUs'; and it takes nearly a second */
        return;
    run_decoded(false, add_far_and_wide, HOT_TURNS);
    CHECK_EQ(hot_sum, HOT_TURNS * (2 * HOT_BLOCKS + HOT_BLOCKS * (HOT_BLOCKS + 1) / 2));
}

#define STORES 500u
#define PAGES 64u
static void store_often(uint64_t page)
{
    for (unsigned i = 0; i < STORES; i++)
        *(volatile uint64_t *)page += i;
}

static uint8_t *pages;
static void store_to_each(unsigned)
{
    if (cpu_number() != 0)
        return;
    uint64_t first = ticks_each(false, store_often, (uint64_t)pages),
             slack = cpu_count == 1 ? 1 + first / 16 : first / 4;
    for (unsigned i = 1; i < PAGES; i += test_long() ? 1 : 6)
        CHECK_BECAUSE(ticks_each(false, store_often, (uint64_t)pages + i * PAGE_SIZE), first / 2,
                      first + slack,
                      "the host executes nearly the same: two pages may share a place; other CPUs' "
                      "ticks add, to the first too");
}

TEST(vpmu, decoded_stores,
     "a decoded store takes as long wherever in memory it goes: no page of data is taken for one "
     "of code")
{
    SKIP_WITHOUT_VPMU();
    SKIP_IF_STEPPED();
    pages = phys_alloc(PAGES);
    REQUIRE(pages != NULL);
    lab_run(store_to_each, LAB_ANY);
    phys_free(pages, PAGES);
}
