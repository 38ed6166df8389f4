/* SPDX-License-Identifier: MIT */
/* The last branch, for a debugger of ring 3; what stands below says of pmu/branches.h what may be
 * known above the HAL. On this CPU; interrupts are off. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

struct hal_branch {
    uint64_t from, to; /* 0: none */
};

/* As DEBUGCTL has them: what a CPU does of that. */
#define HAL_RECORDS_BRANCHES 1u
#define HAL_STEPS_BRANCHES 2u

/* Starts to record ring 3's branches, from none, and to step from branch to branch; returns what
 * of it this CPU can do. Each #DB may end both. Stops both. */
uint64_t hal_branches_watch(bool record, bool step);
void hal_branches_stop(void);
/* While stopped: the newest branch from and to addresses below; the one before the last interrupt
 * or exception, which may be of another thread. */
struct hal_branch hal_branches_last(uint64_t below);
struct hal_branch hal_branches_exception(void);
