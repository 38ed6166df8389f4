/* SPDX-License-Identifier: MIT */
#include "tests/harness/each.h"
#include "kernel/base/print.h"
#include "pmu/pmu.h"
#include "tests/harness/user.h"

extern const struct test *const tests_start[], *const tests_end[];

struct test_walk test_first(void) { return (struct test_walk){ .record = tests_start }; }

bool test_next(struct test_walk *walk, struct test *test)
{
    if (walk->record == tests_end)
        return false;
    *test = user_test(*walk->record);
    if (test->each) {
        walk->left = walk->left ? walk->left : test->counters();
        test->ctr = (unsigned)__builtin_ctzll(walk->left);
        walk->left &= walk->left - 1;
        print_to(walk->name, sizeof walk->name, "%s%u", test->ctr < PMU_FIXED ? "gp" : "fixed",
                 test->ctr % PMU_FIXED);
        test->name = walk->name;
    }
    if (!walk->left)
        walk->record++;
    return true;
}
