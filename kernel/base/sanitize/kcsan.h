/* SPDX-License-Identifier: MIT */
/* The kernel's side of gcc's -fsanitize=thread: a build with KCSAN=1. In other builds nothing of
 * this is left. A race: two CPUs access the same bytes at the same time, one of them writes, and
 * not both accesses are marked, that is by __atomic builtins or volatile. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct race_side {
    uint64_t pc, caller; /* where it was, and from where that function was called */
    uint32_t cpu, size;  /* bytes */
    bool write, marked;
};

struct race {
    uint64_t address;
    struct race_side by[2]; /* by[1].pc == 0: code without instrumentation, or a device */
    bool reported;
};

/* Begins. All CPUs run, and each has its block. */
void race_init(void);
/* The access of code without instrumentation, before it takes place. */
void race_check(const void *start, size_t size, bool write);
/* Prints each race found since the last call, two lines each; returns how many. Any thread, below
 * DISPATCH_LEVEL, one CPU. */
unsigned race_tell(void);
/* For the test of KCSAN: takes a race that was found in [start, start + size) and not reported;
 * it is not reported any more. False if there is none. */
bool race_take(const void *start, size_t size, struct race *found);

/* kcsan_*: the same functions, which do nothing in other builds. */
static inline void kcsan_init(void)
{
    if (KCSAN_ON)
        race_init();
}
static inline void kcsan_check(const void *start, size_t size, bool write)
{
    if (KCSAN_ON)
        race_check(start, size, write);
}
static inline unsigned kcsan_tell(void) { return KCSAN_ON ? race_tell() : 0; }
