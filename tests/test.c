/* SPDX-License-Identifier: MIT */
/* The runner: the tests chosen, each in a watched thread of its own, TAP 13, and what each leaves behind. */
#include "tests/test.h"
#include "boot/multiboot.h"
#include "hal/hal.h"
#include "kernel/cpu.h"
#include "kernel/irql.h"
#include "kernel/main.h"
#include "kernel/phys.h"
#include "kernel/print.h"
#include "kernel/sched.h"
#include "kernel/string.h"
#include "kernel/smp.h"
#include "kernel/thread.h"
#include "kernel/thread_profiling.h"
#include "pmu/pmu.h"
#include "tests/program.h"
#include "tests/summary.h"
#include "tests/user.h"

#define WATCHDOG_NS 2000000000u      /* of a test, unless the machine is slow */
#define WATCHDOG_LOOPS 4000000u      /* or the time for so many turns of a loop, whatever is more */
#define WATCHDOG_SECONDS 30          /* by the clock on the wall: an emulator's time may creep in a wait loop */
#define WATCH_NS 10000000u           /* from look to look */
#define GRACE_NS 100000000u          /* for a stuck thread to die */

extern const struct test *const tests_start[], *const tests_end[];

static struct test_report report; /* of the running test; atomic */
static struct summary sum;
static bool verbose;
static uint64_t watchdog_ns = WATCHDOG_NS;
static bool only_verdict; /* a slow machine without a PMU: no test would prove anything in time */

void (*test_on_failure)(void);

/* --- Checks, ring 0. --- */

static bool fail(void)
{
    __atomic_fetch_add(&report.failures, 1, __ATOMIC_RELAXED);
    if (test_on_failure)
        test_on_failure();
    return false;
}

bool test_check(bool ok, const char *file, int line, const char *text)
{
    __atomic_fetch_add(&report.checks, 1, __ATOMIC_RELAXED);
    if (ok)
        return true;
    print("# %s:%d: not true: %s (CPU %u)\n", file, line, text, cpu_number());
    return fail();
}

bool test_check_range(uint64_t found, uint64_t low, uint64_t high, const char *why, const char *file, int line,
                      const char *text)
{
    __atomic_fetch_add(&report.checks, 1, __ATOMIC_RELAXED);
    if (found >= low && found <= high && (low || !high))
        return true;
    if (low == high)
        print("# %s:%d: %s = %lu (0x%lx), want %lu (0x%lx)%s%s (CPU %u)\n", file, line, text, found, found, low, low,
              why ? ": " : "", why ? why : "", cpu_number());
    else
        print("# %s:%d: %s = %lu, want %lu to %lu%s%s (CPU %u)\n", file, line, text, found, low, high,
              why ? ": " : "", why ? why : "", cpu_number());
    return fail();
}

bool test_check_number(uint64_t found, uint64_t low, uint64_t high, const char *file, int line, const char *text)
{
    return test_check_range(found, low, high, NULL, file, line, text);
}

bool test_check_status(NTSTATUS found, NTSTATUS wanted, const char *file, int line, const char *text)
{
    __atomic_fetch_add(&report.checks, 1, __ATOMIC_RELAXED);
    if (found == wanted)
        return true;
    print("# %s:%d: %s = 0x%08x, want 0x%08x\n", file, line, text, (unsigned)found, (unsigned)wanted);
    return fail();
}

void test_skip(const char *reason) { report.skip = reason; }

void test_adopt(const struct test_report *theirs)
{
    __atomic_fetch_add(&report.checks, theirs->checks, __ATOMIC_RELAXED);
    __atomic_fetch_add(&report.failures, theirs->failures, __ATOMIC_RELAXED);
    if (theirs->skip)
        report.skip = theirs->skip;
}

void test_note(const char *format, ...)
{
    char line[160];
    va_list args;
    va_start(args, format);
    print_to_va(line, sizeof line, format, args);
    va_end(args);
    print("# %s\n", line);
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

bool test_skip_below_cpus(unsigned count)
{
    static char reason[40];
    if (cpu_count >= count)
        return false;
    print_to(reason, sizeof reason, "needs %u CPUs", count);
    test_skip(reason);
    return true;
}

void test_run_on(unsigned cpu)
{
    sched_set_affinity(thread_current(), 1ul << cpu);
    while (cpu_number() != cpu)
        sched_switch(WrYieldExecution);
}

void test_run_anywhere(void) { sched_set_affinity(thread_current(), ~0ul); }

/* --- Choosing. --- */

static bool glob(const char *pattern, const char *end, const char *text)
{
    while (pattern < end && *pattern != '*') {
        if (!*text || (*pattern != '?' && *pattern != *text))
            return false;
        pattern++, text++;
    }
    if (pattern == end)
        return !*text;
    for (;; text++)
        if (glob(pattern + 1, end, text))
            return true;
        else if (!*text)
            return false;
}

/* A test of what every PMU must do is chosen by that too: VP-49 in brackets is vpmu.VP-49. */
static bool names_id(const char *meaning, const char *pattern, const char *end)
{
    for (char id[24] = "vpmu."; *meaning; meaning++) {
        unsigned n = 5;
        while (*meaning > ' ' && *meaning != '[' && *meaning != ']' && n < sizeof id - 1)
            id[n++] = *meaning++;
        id[n] = 0;
        if (memcmp(id + 5, "VP-", 3) == 0 && glob(pattern, end, id))
            return true;
    }
    return false;
}

/* Patterns are separated by commas; one that begins with - takes out. Without one, all but the tests that fail on purpose. */
static bool chosen(const struct test *test, const char *patterns)
{
    char name[96];
    bool on_purpose = strcmp(test->group, "selfcheck") == 0;
    if (!*patterns)
        return !on_purpose;
    if (on_purpose && memcmp(patterns, "selfcheck", 9) != 0)
        return false;
    print_to(name, sizeof name, "%s.%s", test->group, test->name);
    bool matched = false;
    for (const char *p = patterns, *end;; p = end + 1) {
        for (end = p; *end && *end != ',';)
            end++;
        if (*p == '-' && glob(p + 1, end, name))
            return false;
        matched |= *p != '-' && (glob(p, end, name) || names_id(test->meaning, p, end));
        if (!*end)
            return matched;
    }
}

/* --- Running. --- */

struct left_over {
    size_t free_pages;
    unsigned threads, owners, profiled;
    ULONG configured;
};

static struct left_over look(void)
{
    HARDWARE_COUNTER array[MAX_HW_COUNTERS];
    struct left_over now = { phys_free_pages(), thread_count(), hal_counters_owned(), counter_config_users(), 0 };
    KeQueryHardwareCounterConfiguration(array, MAX_HW_COUNTERS, &now.configured);
    return now;
}

static bool same(const struct left_over *a, const struct left_over *b)
{
    return a->free_pages == b->free_pages && a->threads == b->threads && a->owners == b->owners &&
           a->profiled == b->profiled && a->configured == b->configured;
}

/* Threads that end give their pages back a little after they signal. */
static void check_left_over(const struct left_over *before)
{
    struct left_over after = look();
    for (unsigned tries = 0; tries < 50 && !same(before, &after); tries++) {
        sched_wait(NULL, sched_time_ns() + sched_tick_ns(), DelayExecution);
        after = look();
    }
    if (same(before, &after))
        return;
    report.failures++;
    print("# left behind: pages %ld, threads %d, counter owners %d, profiled threads %d, configured counters %d\n",
          (int64_t)(before->free_pages - after.free_pages), (int)(after.threads - before->threads),
          (int)(after.owners - before->owners), (int)(after.profiled - before->profiled),
          (int)(after.configured - before->configured));
    if (after.configured != before->configured)
        KeSetHardwareCounterConfiguration(NULL, 0);
}

static void run_body(void *argument)
{
    const struct test *test = argument;
    test->function();
    CHECK_EQ(irql_current(), PASSIVE_LEVEL);
}

/* Names the stuck test and where it is, and ends it, so that the run goes on. */
static void end_stuck(const struct test *test, struct thread *thread)
{
    report.failures++;
    print("# watchdog: %s.%s is stuck on CPU %u\n", test->group, test->name, thread->cpu);
    if (thread->process)
        thread_terminate(thread, STATUS_TIMEOUT);
    else
        thread_kill(thread);
    sched_wait(&thread->object, sched_time_ns() + GRACE_NS, Executive);
}

/* Seconds of the real-time clock's minute; constant where there is none. */
static unsigned wall_second(void)
{
    out8(0x70, 0x80);
    unsigned bcd = in8(0x71);
    return (bcd >> 4 & 7) * 10 + (bcd & 15);
}

/* False when the thread is stuck. */
static bool wait_watched(const struct test *test, struct thread *thread)
{
    uint64_t end = sched_time_ns() + watchdog_ns;
    unsigned last = wall_second(), seconds = 0;
    while (sched_wait(&thread->object, sched_time_ns() + WATCH_NS, Executive) == STATUS_TIMEOUT) {
        unsigned now = wall_second();
        seconds += (now + 60 - last) % 60;
        if (now != last)
            summary_progress(test, &sum);
        last = now;
        if (sched_time_ns() > end || seconds > WATCHDOG_SECONDS)
            return false;
    }
    return true;
}

static void run_watched(const struct test *test)
{
    struct process *process = test->ring3 ? process_create() : NULL;
    struct thread *thread = test->ring3 ? process ? user_start(process, test->function, 0) : NULL
                                        : thread_create(test->name, run_body, (void *)test, SMP_ALL);
    if (!thread) {
        CHECK(thread != NULL);
        return;
    }
    if (!wait_watched(test, thread))
        end_stuck(test, thread);
    if (test->ring3) {
        if (!CHECK_STATUS(thread->exit_status, STATUS_SUCCESS))
            print("# at %lx, address %lx\n", thread->fault_rip, thread->fault_address);
        user_report(process, &report);
        object_release(&process->object);
    }
    object_release(&thread->object);
}

static void run_one(const struct test *test, unsigned number)
{
    if (verbose)
        print("# %s.%s: %s\n", test->group, test->name, test->meaning);
    summary_progress(test, &sum);
    struct left_over before = look();
    report = (struct test_report){ 0 };
    run_watched(test);
    check_left_over(&before);
    if (!report.checks && !report.failures && !report.skip) {
        report.failures++;
        print("# nothing was checked\n");
    }
    if (report.failures) {
        sum.failed++;
        print("# what does not hold: %s\nnot ok %u - %s.%s\n", test->meaning, number, test->group, test->name);
    } else if (report.skip) {
        sum.skipped++;
        print("ok %u - %s.%s # SKIP %s\n", number, test->group, test->name, report.skip);
    } else {
        sum.passed++;
        print("ok %u - %s.%s\n", number, test->group, test->name);
    }
    sum.checks += report.checks;
}

/* The end of the stream: totals, then the verdict with a checksum of all that came before it. */
static unsigned conclude(void)
{
    char verdict[240];
    unsigned end = EXIT_PASS, all = sum.passed + sum.failed + sum.skipped;
    print("# %u passed, %u failed, %u skipped, %lu checks\n", sum.passed, sum.failed, sum.skipped, sum.checks);
    if (sum.failed) {
        end = EXIT_FAIL;
        print_to(verdict, sizeof verdict, "# FAIL %u of %u tests", sum.failed, all);
    } else if (!all && !only_verdict) {
        end = EXIT_NOTHING;
        print_to(verdict, sizeof verdict, "# NONE no test has such a name");
    } else if (!hal_counter_count()) {
        end = EXIT_NOTHING;
        print_to(verdict, sizeof verdict, "# NONE no test that counts could run: %s", pmu_verdict_text(pmu_verdict()));
    } else {
        print_to(verdict, sizeof verdict, "# PASS %u tests", sum.passed);
    }
    uint64_t bytes;
    uint32_t crc = print_checksum(&bytes);
    print("%s [%lu bytes, crc32 %08x]\n", verdict, bytes, crc);
    summary_show(&sum, verdict);
    return end;
}

/* A machine may be a thousand times slower than we think: it gets more time, not a failure. */
static void calibrate_watchdog(bool chosen_by_name)
{
    uint64_t start = sched_time_ns();
    for (unsigned i = 0; i < WATCHDOG_LOOPS / 200; i++)
        asm volatile("");
    uint64_t ns = (sched_time_ns() - start) * 200;
    watchdog_ns = ns > WATCHDOG_NS ? ns : WATCHDOG_NS;
    only_verdict = watchdog_ns > WATCHDOG_NS && !hal_counter_count() && !chosen_by_name;
    if (only_verdict)
        print("# slow: %lu ms for %u turns of a loop, and no PMU: the verdict only, unless tests= names some\n",
              ns / 1000000, WATCHDOG_LOOPS);
}

static void run_all(const char *patterns, bool only_list)
{
    unsigned count = 0, number = 0;
    for (const struct test *const *t = tests_start; t < tests_end; t++) {
        struct test test = user_test(*t);
        count += !only_verdict && chosen(&test, patterns);
    }
    sum.planned = count;
    if (!only_list)
        print("TAP version 13\n1..%u\n", count);
    for (const struct test *const *t = tests_start; t < tests_end; t++) {
        struct test test = user_test(*t);
        if (only_verdict || !chosen(&test, patterns))
            continue;
        if (only_list)
            print("%s.%s - %s\n", test.group, test.name, test.meaning);
        else
            run_one(&test, ++number);
    }
}

void init_thread(void *unused)
{
    char patterns[BOOT_LINE_MAX] = "";
    (void)unused;
    boot_option(kernel_boot_info, "tests", patterns, sizeof patterns);
    verbose = boot_word(kernel_boot_info, "verbose");
    if (boot_word(kernel_boot_info, "list")) {
        run_all(patterns, true);
        machine_exit(EXIT_PASS);
    }
    if (!hal_pmi_prove())
        pmu_complain(PMU_PMI_LOST, pmu_caps.counters);
    if (boot_word(kernel_boot_info, "program"))
        machine_exit(program_run());
    calibrate_watchdog(*patterns);
    run_all(patterns, false);
    machine_exit(conclude());
}
