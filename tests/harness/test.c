/* SPDX-License-Identifier: MIT */
/* What the checks want of ring 0, and what only ring 0 may ask. */
#include "tests/harness/checks.h"
#include "tests/harness/kernel.h"

static struct test_report report;

void (*test_on_failure)(void);

struct test_report *test_report(void) { return &report; }
void test_print(const char *line) { print("%s", line); }
void test_place(char *text, size_t size) { print_to(text, size, "CPU %u", cpu_number()); }

void test_failed(void)
{
    if (test_on_failure)
        test_on_failure();
}

void test_adopt(const struct test_report *theirs)
{
    __atomic_fetch_add(&report.checks, theirs->checks, __ATOMIC_RELAXED);
    __atomic_fetch_add(&report.failures, theirs->failures, __ATOMIC_RELAXED);
    __atomic_fetch_add(&report.lines, theirs->lines - theirs->lines_before, __ATOMIC_RELAXED);
    if (theirs->skip)
        report.skip = theirs->skip;
}

bool test_has_pmu(void) { return hal_counter_count() > 0; }

/* The verdict says once why there is none. */
bool test_skip_without_pmu(void)
{
    if (hal_counter_count())
        return false;
    test_skip("no PMU");
    return true;
}

bool test_skip_without_rdpmc(void)
{
    if (test_skip_without_pmu())
        return true;
    if (!thread_profiling_pce)
        test_skip("rdpmc=off");
    return !thread_profiling_pce;
}

bool test_skip_below_cpus(unsigned count)
{
    static char reason[40];
    if (cpu_count >= count)
        return false;
    print_to(reason, sizeof reason, "needs %u CPUs", count);
    test_skip(reason);
    return true;
}

uint64_t test_word(const char *name)
{
    char text[16] = "";
    uint64_t n = 0;
    boot_option(name, text, sizeof text);
    for (const char *c = text; *c >= '0' && *c <= '9'; c++)
        n = n * 10 + (uint64_t)(*c - '0');
    return n;
}

uint64_t test_seed(void) { return test_word("fuzz") % 100000000; }

uint64_t test_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state >> 11;
}

void test_run_on(unsigned cpu)
{
    sched_set_affinity(thread_current(), cpu_set_one(cpu));
    while (cpu_number() != cpu)
        sched_switch(WrYieldExecution);
}

void test_run_anywhere(void) { sched_set_affinity(thread_current(), cpu_all()); }

bool test_run_on_each(unsigned cpu)
{
    if (cpu < cpu_count)
        test_run_on(cpu);
    else
        test_run_anywhere();
    return cpu < cpu_count;
}
