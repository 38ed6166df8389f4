/* SPDX-License-Identifier: MIT */
/* What the checks want of ring 3. The runner fetches the report, and writes how many lines were
 * printed before. */
#include "kernel/base/print.h"
#include "kernel/base/string.h"
#include "tests/harness/checks.h"
#include "tests/ring3/services.h"

extern struct test_report user_test_report;
struct test_report user_test_report __attribute__((aligned(64))); /* in one page */

struct test_report *test_report(void) { return &user_test_report; }
void test_print(const char *line) { write_console(line, (ULONG)strlen(line)); }
void test_place(char *text, size_t size) { print_to(text, size, "ring 3"); }
void test_failed(void) {}
