/* SPDX-License-Identifier: MIT */
/* A repeated string instruction counts 1: code that has any does not run freely. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

struct vcpu;

/* What executes in blocks after such a page, rather than with an exit to the next one. */
enum { REP_STAYS = 20000 };

/* Of one CPU. */
struct rep {
    bool inside;    /* the code at RIP must not run freely */
    bool once;      /* ... as the instruction there ends in a page that has such instructions */
    unsigned stays; /* how much of other code does not either, until the next such page */
};

/* What runs with string instructions is some 50 times slower while instructions are counted. With
 * the boot option rep=off it runs freely, and a line says what they count then. */
void rep_start(void);
/* Whether such an instruction counts 1 in this ring now, rather than its iterations. */
bool rep_counts_one(const struct vcpu *v, bool user);
/* Before the entry: which pages the guest may execute in this run. */
void rep_enter(struct vcpu *v);
/* The exit for a page. */
void rep_fault(struct vcpu *v);
/* After a search for blocks at RIP: whether code there must not run freely. */
void rep_decide(struct vcpu *v);
/* Whether the block there must not; instructions: its number of them. */
bool rep_stays(struct vcpu *v, uint64_t physical, unsigned instructions);
