/* SPDX-License-Identifier: MIT */
/* Ring 3's half of an address space: ranges that are reserved, and the pages committed in them. */
#pragma once
#include "kernel/ke/mutex.h"
#include "kernel/nt/nt.h"

struct process;

#define MEMORY_LOWEST 0x10000ul      /* nothing is mapped below: NULL and its neighbours fault */
#define MEMORY_GRANULARITY 0x10000ul /* of addresses; sizes are of whole pages */

enum region_kind { REGION_PRIVATE, REGION_SYSTEM, REGION_STACK, REGION_IMAGE, REGION_VIEW };

struct region {
    uint64_t base, end;
    ULONG protect; /* what it was reserved with, PAGE_... */
    enum region_kind kind;
};

struct memory {
    struct mutex mutex; /* guards the rest, and the entries of the lower half of the page tables */
    struct region *regions; /* sorted by address */
    unsigned count, pages;  /* regions; pages of the array */
};

/* For a process whose pml4 stands. False without memory. */
bool memory_init(struct process *process);
/* The array only: pages go with the page tables. */
void memory_destroy(struct process *process);

/* Reserves [*base, *base + size), or wherever it fits if *base is 0. Sizes are rounded up to
 * pages. STATUS_CONFLICTING_ADDRESSES: not free, or not ring 3's; STATUS_NO_MEMORY. */
NTSTATUS memory_reserve(struct process *process, uint64_t *base, uint64_t size,
                        enum region_kind kind, ULONG protect);
/* Frees the region that begins there, with its pages. False: no region begins there. */
bool memory_release(struct process *process, uint64_t base);
/* Whole pages to read and write that ring 3 cannot free: where they are, or 0. */
uint64_t memory_system(struct process *process, uint64_t size);
/* A stack of whole pages: its top, or 0. Below what is committed is a guard page, below which
 * it grows. *base: for memory_release. */
uint64_t memory_stack(struct process *process, uint64_t reserve, uint64_t commit, uint64_t *base);
/* A page fault of the current process's ring 3, or of the kernel's copies there, at this address.
 * STATUS_SUCCESS: a guard page has become an ordinary page, and the access may be repeated; *limit
 * is the stack's new end, or 0. Also with *limit: STATUS_STACK_OVERFLOW.
 * STATUS_GUARD_PAGE_VIOLATION: the guard is gone. STATUS_ACCESS_VIOLATION. PASSIVE_LEVEL. */
NTSTATUS memory_fault(struct process *process, uint64_t address, uint64_t *limit);

/* L: memory.mutex, these. */
/* The region around an address; NULL if it is free. */
struct region *memory_region(const struct process *process, uint64_t address);
/* Where the region above an address begins. */
uint64_t memory_next_region(const struct process *process, uint64_t address);
NTSTATUS memory_reserve_locked(struct process *process, uint64_t *base, uint64_t size,
                               enum region_kind kind, ULONG protect);
/* Commits zeroed pages of a region, with the page table flags given (PTE_PRESENT among them).
 * STATUS_NO_MEMORY. */
NTSTATUS memory_commit_locked(struct process *process, uint64_t from, uint64_t end, uint64_t flags);
void memory_decommit_locked(struct process *process, uint64_t from, uint64_t end);
bool memory_release_locked(struct process *process, uint64_t base);
