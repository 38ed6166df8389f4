/* SPDX-License-Identifier: MIT */
/* The runner: the tests chosen, each in a watched thread of its own, and TAP 13. */
#include "kernel/base/exit.h"
#include "kernel/base/sanitize/kcsan.h"
#include "kernel/console/screen.h"
#include "kernel/image/image.h"
#include "kernel/init/init.h"
#include "tests/cost/bench.h"
#include "tests/harness/checks.h"
#include "tests/harness/choose.h"
#include "tests/harness/clean.h"
#include "tests/harness/cover.h"
#include "tests/harness/each.h"
#include "tests/harness/lab.h"
#include "tests/harness/causes.h"
#include "tests/harness/summary.h"
#include "tests/harness/watchdog.h"

BOOT_OPTIONS("tests= fuzz= phase= list long verbose watchdog=");

/* The runner's own checks of each test: its thread started; how it came back, or its exit status.
 */
#define CHECKS_AROUND 3u
#define CHECKS_AROUND_RING3 2u

static struct summary sum;
static const struct test *running;
static bool verbose, long_run;
static uint64_t phase;    /* 0: none is asked for */
static bool only_verdict; /* a slow machine without a PMU: no test would prove anything in time */

static void run_body(void *argument)
{
    const struct test *test = argument;
    if (test->each)
        test->each(test->ctr);
    else
        test->function();
    CHECK_EQ(irql_current(), PASSIVE_LEVEL);
    CHECK(read_flags() & RFLAGS_IF);
}

static void show_progress(void) { summary_progress(running, &sum); }

/* One more failure, of the runner's own finding. */
__attribute__((format(printf, 1, 2))) static void complain(const char *format, ...)
{
    char line[160];
    va_list args;
    va_start(args, format);
    print_to_va(line, sizeof line, format, args);
    va_end(args);
    print("# %s\n", line);
    test_report()->failures++;
}

static struct thread *start_test(const struct test *test, struct process *process)
{
    if (!test->ring3)
        return thread_create(test->name, run_body, (void *)test, SMP_ALL);
    return user_start(process, (void (*)(uint64_t))test->function, 0);
}

static void finish_user(struct process *process, const struct thread *thread)
{
    if (!CHECK_OK(thread->exit_status))
        print("# at %lx, address %lx\n", thread->fault_rip, thread->fault_address);
    user_report(process);
}

static const char *state_name(const struct thread *thread)
{
    return thread->state == THREAD_RUNNING ? "running"
           : thread->state == THREAD_READY ? "ready"
                                           : "waiting";
}

static void run_watched(const struct test *test)
{
    struct process *process = test->ring3 ? user_process() : NULL;
    struct thread *thread = start_test(test, process);
    struct watchdog_took took;
    CHECK(thread != NULL);
    if (thread && !watchdog_wait(thread, show_progress, &took)) {
        complain("watchdog: %s.%s is stuck on CPU %u, %s, after %lu ms, %u s on the wall",
                 test->group, test->name, thread->cpu, state_name(thread), took.ns / 1000000,
                 took.wall_seconds);
        clean_threads();
    }
    if (thread && process)
        finish_user(process, thread);
    if (thread)
        object_release(&thread->object);
    if (process)
        object_release(&process->object);
}

static void print_result(const struct test *test, unsigned number)
{
    const struct test_report *r = test_report();
    if (r->lines > TEST_LINES_MAX)
        print("# and %u more like it\n", r->lines - TEST_LINES_MAX);
    if (r->failures) {
        sum.failed++;
        causes_print();
        print("# what does not hold: %s\nnot ok %u - %s.%s\n", test->meaning, number, test->group,
              test->name);
    } else if (r->skip) {
        sum.skipped++;
        print("ok %u - %s.%s # SKIP %s\n", number, test->group, test->name, r->skip);
    } else {
        sum.passed++;
        print("ok %u - %s.%s\n", number, test->group, test->name);
    }
    sum.checks += r->checks;
}

/* The word phase=N: each test begins somewhere between two ticks, another N elsewhere. An emulator
 * that counts instructions lets all happen at the same moment in each run. */
static void wait_for_phase(void)
{
    if (!phase)
        return;
    uint64_t end = clock_ns() + test_random(&phase) % (2 * sched_tick_ns());
    while (clock_ns() < end)
        pause();
}

static void run_one(const struct test *test, unsigned number)
{
    struct test_report *r = test_report();
    if (verbose)
        print("# %s.%s: %s\n", test->group, test->name, test->meaning);
    running = test;
    show_progress();
    clean_begin();
    causes_begin();
    wait_for_phase();
    *r = (struct test_report){ .long_run = long_run };
    uint64_t begun = clock_ns();
    run_watched(test);
    if (verbose)
        print("# took %lu us\n", (clock_ns() - begun) / 1000);
    if (!clean_end(r->failures))
        r->failures++;
    r->failures += kcsan_tell();
    if (r->checks <= (test->ring3 ? CHECKS_AROUND_RING3 : CHECKS_AROUND) && !r->failures &&
        !r->skip)
        complain("nothing was checked");
    print_result(test, number);
    if (cover_tell)
        cover_tell(test->group, test->name);
}

static void print_scrolls(void)
{
    unsigned scrolls;
    uint64_t stores;
    screen_scrolled(&scrolls, &stores);
    if (stores)
        print("# screen: %u scrolls, %lu stores of 8 bytes each\n", scrolls, stores / scrolls);
}

/* The end of the stream: totals, then the verdict with a checksum of all that came before it. */
static unsigned conclude_run(void)
{
    char verdict[240];
    print_scrolls();
    unsigned end = EXIT_PASS, all = sum.passed + sum.failed + sum.skipped;
    print("# %u passed, %u failed, %u skipped, %lu checks\n", sum.passed, sum.failed, sum.skipped,
          sum.checks);
    if (sum.failed) {
        end = EXIT_FAIL;
        print_to(verdict, sizeof verdict, "# FAIL %u of %u tests", sum.failed, all);
    } else if (!all && !only_verdict) {
        end = EXIT_NOTHING;
        print_to(verdict, sizeof verdict, "# NONE no test has such a name");
    } else if (!hal_counter_count()) {
        end = EXIT_NOTHING;
        print_to(verdict, sizeof verdict, "# NONE no test that counts could run: %s",
                 verdict_of_kinds());
    } else {
        print_to(verdict, sizeof verdict, "# PASS %u tests", sum.passed);
    }
    uint64_t bytes;
    print_end();
    uint32_t crc = print_checksum(&bytes);
    print("%s [%lu bytes, crc32 %08x]\n", verdict, bytes, crc);
    summary_show(&sum, verdict, bytes, crc);
    return end;
}

static void calibrate(bool chosen_by_name)
{
    uint64_t ms = watchdog_calibrate();
    only_verdict = ms && !hal_counter_count() && !chosen_by_name;
    if (only_verdict)
        print("# slow: %lu ms for a short loop, and no PMU: only the verdict, unless tests= is "
              "given\n",
              ms);
}

static void run_all(const char *patterns, bool only_list)
{
    unsigned count = 0, number = 0;
    struct test test;
    for (struct test_walk walk = test_first(); test_next(&walk, &test);)
        count += !only_verdict && test_chosen(&test, patterns);
    sum.planned = count;
    if (!only_list)
        print("TAP version 13\n1..%u\n", count);
    for (struct test_walk walk = test_first(); test_next(&walk, &test);) {
        if (only_verdict || !test_chosen(&test, patterns))
            continue;
        if (only_list)
            print("%s.%s - %s\n", test.group, test.name, test.meaning);
        else
            run_one(&test, ++number);
    }
}

/* The boot option hal=1809 is for drivers: nearly every test takes some of the counters. */
static void since_1903(void)
{
    if (hal_counters_1809)
        print("# hal=1809 is for drivers: tests allocate as since Windows 10 1903\n");
    hal_counters_1809 = false;
}

bool init_tests(unsigned *code)
{
    char patterns[BOOT_LINE_MAX] = "";
    summary_init();
    if (boot_flag("program")) {
        bool measured = bench_is(image_module(0));
        if (measured)
            *code = bench_run();
        return measured;
    }
    boot_option("tests", patterns, sizeof patterns);
    verbose = boot_flag("verbose");
    long_run = boot_flag("long");
    phase = test_word("phase") * UINT64_C(0x9e3779b97f4a7c15);
    user_init();
    *code = EXIT_PASS;
    if (boot_flag("list")) {
        run_all(patterns, true);
        return true;
    }
    calibrate(*patterns);
    since_1903();
    clean_init();
    causes_init();
    measured_init();
    if (cover_tell)
        cover_tell("boot", "boot");
    run_all(patterns, false);
    *code = conclude_run();
    return true;
}
