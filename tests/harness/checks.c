/* SPDX-License-Identifier: MIT */
/* The checks of both rings. A test that fails prints few lines, and then only counts them. */
#include "tests/harness/checks.h"
#include "kernel/base/print.h"

#define LINE_MAX 256

/* Whether one line more is printed; after a failure they are counted. */
static bool may_print(struct test_report *r)
{
    if (!__atomic_load_n(&r->failures, __ATOMIC_RELAXED) &&
        !__atomic_load_n(&r->lines, __ATOMIC_RELAXED))
        return true;
    return __atomic_fetch_add(&r->lines, 1, __ATOMIC_RELAXED) < TEST_LINES_MAX;
}

static void print_line(const char *format, va_list args)
{
    char line[LINE_MAX];
    size_t n = print_to(line, sizeof line, "# ");
    n += print_to_va(line + n, sizeof line - n - 1, format, args);
    line[n] = '\n';
    line[n + 1] = 0;
    test_print(line);
}

__attribute__((format(printf, 1, 2))) static bool fail(const char *format, ...)
{
    struct test_report *r = test_report();
    va_list args;
    __atomic_fetch_add(&r->failures, 1, __ATOMIC_RELAXED);
    if (!may_print(r))
        return false;
    va_start(args, format);
    print_line(format, args);
    va_end(args);
    test_failed();
    return false;
}

static bool count_check(bool ok)
{
    __atomic_fetch_add(&test_report()->checks, 1, __ATOMIC_RELAXED);
    return ok;
}

static const char *place_of_check(char text[16])
{
    test_place(text, 16);
    return text;
}

bool test_check(bool ok, const char *file, int line, const char *text)
{
    char at[16];
    return count_check(ok) ||
           fail("%s:%d: not true: %s (%s)", file, line, text, place_of_check(at));
}

bool test_check_range(uint64_t found, uint64_t low, uint64_t high, const char *why,
                      const char *file, int line, const char *text)
{
    char at[16];
    const char *colon = why ? ": " : "", *reason = why ? why : "";
    if (count_check(found >= low && found <= high && (low || !high)))
        return true;
    if (low == high)
        return fail("%s:%d: %s = %lu (0x%lx), want %lu (0x%lx)%s%s (%s)", file, line, text, found,
                    found, low, low, colon, reason, place_of_check(at));
    return fail("%s:%d: %s = %lu, want %lu to %lu%s%s (%s)", file, line, text, found, low, high,
                colon, reason, place_of_check(at));
}

bool test_check_number(uint64_t found, uint64_t low, uint64_t high, const char *file, int line,
                       const char *text)
{
    return test_check_range(found, low, high, NULL, file, line, text);
}

bool test_check_status(NTSTATUS found, NTSTATUS wanted, const char *file, int line,
                       const char *text)
{
    char at[16];
    return count_check(found == wanted) ||
           fail("%s:%d: %s = 0x%08x, want 0x%08x (%s)", file, line, text, (unsigned)found,
                (unsigned)wanted, place_of_check(at));
}

bool test_long(void) { return test_report()->long_run; }

void test_skip(const char *reason) { test_report()->skip = reason; }

void test_note(const char *format, ...)
{
    va_list args;
    if (!may_print(test_report()))
        return;
    va_start(args, format);
    print_line(format, args);
    va_end(args);
}
