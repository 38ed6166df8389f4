/* SPDX-License-Identifier: MIT */
/* What tests/pmu/pmu_exact.c has ring 3 do. */
#include "tests/ring3/helpers.h"
#include "tests/ring3/work.h"

void user_exact_loop(uint64_t unused);

void user_exact_loop(uint64_t unused)
{
    for (unsigned i = 0; i < 1000; i++)
        work_1000();
}
