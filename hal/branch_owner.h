/* SPDX-License-Identifier: MIT */
/* The processors' lists of last branches; what stands below says of pmu/branches.h what may be
 * known above the HAL, for a trace session. On this CPU, interrupts off, unless it says
 * otherwise. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

struct hal_branch {
    uint64_t from, to; /* 0: none */
};

#define HAL_BRANCHES_MAX 32
/* What hides branches, as EVNTRACE_LBR_FLAGS have it; with the call stack, that too. */
#define HAL_BRANCHES_FILTER 0x1ffu
#define HAL_BRANCHES_CALL_STACK 0x200u

/* Whether every processor that runs has a list, and can hide that. Any CPU. */
bool hal_branches_can(uint32_t hidden);
/* All lists have one owner. False: they have one already. Any CPU. */
bool hal_branches_claim(void);
void hal_branches_release(void);

/* The owner only. Starts with an empty list; ends, and leaves it empty. */
void hal_branches_begin(uint32_t hidden);
void hal_branches_end(void);
/* In between: a pause. While it lasts: the branches, newest first; returns their number. The list
 * is empty then. */
void hal_branches_pause(void);
void hal_branches_resume(void);
unsigned hal_branches_take(struct hal_branch list[HAL_BRANCHES_MAX]);
