/* SPDX-License-Identifier: MIT */
/* The checks, ring-3 half: same macros, same lines on the console. */
#include "kernel/print.h"
#include "tests/test.h"
#include "windows.h"

extern struct test_report user_test_report;
struct test_report user_test_report;

static void say(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void say(const char *format, ...)
{
    char line[256];
    va_list args;
    va_start(args, format);
    size_t length = print_to_va(line, sizeof line, format, args);
    va_end(args);
    write_console(line, (ULONG)length);
}

static bool count(bool ok)
{
    __atomic_fetch_add(&user_test_report.checks, 1, __ATOMIC_RELAXED);
    if (!ok)
        __atomic_fetch_add(&user_test_report.failures, 1, __ATOMIC_RELAXED);
    return ok;
}

bool test_check(bool ok, const char *file, int line, const char *text)
{
    if (!count(ok))
        say("# %s:%d: not true: %s (ring 3)\n", file, line, text);
    return ok;
}

bool test_check_range(uint64_t found, uint64_t low, uint64_t high, const char *why, const char *file, int line,
                      const char *text)
{
    bool ok = count(found >= low && found <= high && (low || !high));
    if (!ok && low == high)
        say("# %s:%d: %s = %lu (0x%lx), want %lu (0x%lx) (ring 3)\n", file, line, text, found, found, low, low);
    else if (!ok)
        say("# %s:%d: %s = %lu, want %lu to %lu%s%s (ring 3)\n", file, line, text, found, low, high,
            why ? ": " : "", why ? why : "");
    return ok;
}

bool test_check_number(uint64_t found, uint64_t low, uint64_t high, const char *file, int line, const char *text)
{
    return test_check_range(found, low, high, NULL, file, line, text);
}

bool test_check_status(NTSTATUS found, NTSTATUS wanted, const char *file, int line, const char *text)
{
    bool ok = count(found == wanted);
    if (!ok)
        say("# %s:%d: %s = 0x%08x, want 0x%08x (ring 3)\n", file, line, text, (unsigned)found, (unsigned)wanted);
    return ok;
}

void test_skip(const char *reason) { user_test_report.skip = reason; }

void test_note(const char *format, ...)
{
    char line[160];
    va_list args;
    va_start(args, format);
    print_to_va(line, sizeof line, format, args);
    va_end(args);
    say("# %s\n", line);
}
