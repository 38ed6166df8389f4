/* SPDX-License-Identifier: MIT */
/* What checks.c, which is built for both rings, wants of its ring: test.c and ring3/check.c. */
#pragma once
#include <stddef.h>
#include "tests/harness/test.h"

/* Of the running test. */
struct test_report *test_report(void);
void test_print(const char *line);
/* Where the check is made: a processor, or ring 3. */
void test_place(char *text, size_t size);
/* After each failed check that was printed. */
void test_failed(void);
