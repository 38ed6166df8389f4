/* SPDX-License-Identifier: MIT */
/* Which tests tests= asks for. */
#pragma once
#include <stdbool.h>

struct test;

/* Patterns are globs, separated by commas; one that begins with - takes out. Without one, all but
 * the tests that fail on purpose. vpmu.VP-49 chooses the tests whose meaning names that id, slow
 * those whose meaning ends with [slow]. */
bool test_chosen(const struct test *test, const char *patterns);
