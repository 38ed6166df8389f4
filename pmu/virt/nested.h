/* SPDX-License-Identifier: MIT */
/* Nested paging: finds the guest's code that has repeated string instructions. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

struct vcpu;

/* Of one CPU. */
struct nested {
    bool inside;    /* the code at RIP must not run freely */
    bool once;      /* ... as the instruction there ends in such a page */
    unsigned stays; /* how much of other code does not either, until the next such page */
};

/* Foreign kernels have so many string instructions, or write to so many pages of code, that all
 * runs freely in ring 0, unless the boot option `rep` says otherwise. */
void nested_spare_payload(void);
/* Before the entry: which pages the guest may execute in this run. */
void nested_enter(struct vcpu *v);
/* The exit for a page. */
void nested_fault(struct vcpu *v);
/* After a search for blocks at RIP: whether code there must not run freely. */
void nested_decide(struct vcpu *v);
/* Whether this block must not; n: instructions of the run before it. */
bool nested_stays(struct vcpu *v, uint64_t physical, unsigned instructions);
/* The host is about to write there for the guest. */
void nested_written(uint64_t physical);
