/* SPDX-License-Identifier: MIT */
/* What a call does that is refused: one claim of its own after the other fails (refuse.h of the
 * kernel), and each other cause that a row names. After each, all that is counted (clean.h) is as
 * before, what was there before is still good, and the same call succeeds. */
#pragma once
#include <stdbool.h>
#include "kernel/nt/nt.h"

struct refused_call {
    NTSTATUS (*call)(void);
    NTSTATUS status;
};

#define REFUSED_OTHERS 5
#define REFUSE_MARK ((HANDLE)0x1234567)

struct refusal_row {
    const char *name;
    NTSTATUS (*call)(void);
    void (*undo)(void); /* what a call that succeeded has made */
    NTSTATUS may[3];    /* the statuses for want of something; success: it did without */
    unsigned least;     /* so many claims it has */
    bool in_process;    /* the caller is taken for a thread of a process of its own */
    bool clears;        /* a call that fails writes NULL, else nothing */
    /* What is there before the call, which `use` finds still good; each may be NULL. */
    void (*make)(void), (*unmake)(void), (*use)(void);
    /* Other causes, when the call has succeeded. */
    struct refused_call others[REFUSED_OTHERS];
};

/* Where calls put what they make: REFUSE_MARK before each. */
extern HANDLE refuse_made;

/* For `undo`. */
void refuse_close_made(void);
void refuse_undo_nothing(void);
/* Each claim, or, where there are many and the run is not `long`, the first, the last, and some
 * between. */
void refuse_each(const struct refusal_row *rows, unsigned count);
/* Each claim of a function of ring 3, which must make up for what is refused, for each argument
 * below `end`; with `end` itself it claims nothing. */
void refuse_ring3(void (*function)(uint64_t), uint64_t end);
