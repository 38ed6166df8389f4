/* SPDX-License-Identifier: MIT */
/* The tests of the image, one after the other. */
#pragma once
#include "tests/harness/test.h"

struct test_walk {
    const struct test *const *record;
    uint64_t left; /* of a test of each counter: those to come */
    char name[12];
};

/* From the first one on. */
struct test_walk test_first(void);
/* The next test, with a name that holds until the one after it; false: there is none. */
bool test_next(struct test_walk *walk, struct test *test);
