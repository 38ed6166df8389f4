/* SPDX-License-Identifier: MIT */
/* Functions that run on other CPUs by IPI. */
#include "tests/harness/causes.h"
#include "tests/harness/kernel.h"

#define TEAM 8

struct called {
    struct cpu_set cpus; /* atomic */
    unsigned waiting;    /* atomic: CPUs that say that they are in smp_call */
    bool wrong_level;
};

static void note_call(void *argument)
{
    struct called *called = argument;
    unsigned cpu = cpu_number();
    for (unsigned i = 0; i < 4; i++)
        pause(); /* the caller runs, and must wait */
    __atomic_fetch_or(&called->cpus.bits[cpu / 64], 1ul << cpu % 64, __ATOMIC_RELAXED);
    __atomic_fetch_add(&called->waiting, smp_waits(), __ATOMIC_RELAXED);
    if (irql_current() != IPI_LEVEL)
        called->wrong_level = true;
}

static void call_all_cpus(void)
{
    struct called called = { .wrong_level = false };
    smp_call(SMP_ALL, note_call, &called);
    CHECK(cpu_set_equal(called.cpus, cpu_all()));
    CHECK_EQ(called.waiting, 1);
    CHECK(!called.wrong_level);
}

static void call_often(void *)
{
    for (unsigned i = 0; i < 20; i++)
        call_all_cpus();
}

/* Linux' "mtrr: your CPUs had inconsistent MTRR settings": firmware forgot those of a CPU. */
TEST(smp, memory, "on no CPU memory is so slow as where its MTRRs make it uncached")
{
    SKIP_WITH_ONE_CPU();
    for_all_cpus(cpu)
        CHECK(!causes_slow_memory(cpu));
}

TEST(smp, calls_cross,
     "all CPUs call all CPUs at once: a call runs on each, at IPI_LEVEL, and waits for all")
{
    team_run(call_often, TEAM);
}

TEST(smp, start_page,
     "other CPUs start in a page of the loader's memory below 640 KB that no module has")
{
    static const struct {
        uint64_t start, size;
        uint32_t module, module_end, page;
    } cases[] = {
        { 0, 0x9fc00, 0, 0, 0x8000 },
        { 0x8000, 0x1000, 0, 0, 0x8000 },
        { 0x8001, 0x3000, 0, 0, 0x9000 },
        { 0, 0x8fff, 0, 0, 0x1000 },
        { 0, 0x1000, 0, 0, 0 },
        { 0, 0x1fff, 0, 0, 0 },
        { 0x9f000, 0x1000, 0, 0, 0x9f000 },
        { 0xa0000, 0x100000, 0, 0, 0 },
        { 0, 0x9fc00, 0x8fff, 0x9000, 0x1000 },
        { 0, 0x9fc00, 0x9000, 0xa000, 0x8000 },
        { 0, 0x9fc00, 0x7000, 0x8000, 0x8000 },
        { 0x8000, 0x2000, 0x7000, 0x8001, 0x9000 },
        { 1, ~0ul - 1, 0x100, 0x9fc00, 0 },
    };
    static struct boot_info info;
    for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
        info.memory[0] = (struct boot_memory){ cases[i].start, cases[i].size };
        info.memory_count = 1;
        info.modules[0].start = cases[i].module;
        info.modules[0].end = cases[i].module_end;
        info.module_count = cases[i].module != 0;
        CHECK_EQ(smp_free_page(&info), cases[i].page);
    }
}
