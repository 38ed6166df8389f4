/* SPDX-License-Identifier: MIT */
/* Page tables: the kernel's own, and one lower half per process. */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include "kernel/base/cpu_set.h"
#include "kernel/nt/nt.h"

#define PTE_PRESENT (1ul << 0)
#define PTE_WRITE (1ul << 1)
#define PTE_USER (1ul << 2)
#define PTE_COMBINED (1ul << 3) /* write-combining, by cpu.c's PAT */
#define PTE_UNCACHED (3ul << 3)
#define PTE_LARGE (1ul << 7)
#define PTE_GUARD (1ul << 9)   /* ours: the entry is not present until the first access */
#define PTE_VIEW (1ul << 11)   /* ours: physical memory as it is; nobody counts its users */
#define PTE_SHARED (1ul << 10) /* ours: the page belongs to an image; a writer gets a copy */
#define PTE_NX (1ul << 63)
#define PTE_ADDRESS 0x000ffffffffff000ul

/* From here to 4 GB there are devices, between memory: large pages that are not all memory are
 * uncached in our tables, whatever the MTRRs say, and what memory is in them is not used. */
#define VM_DEVICES 0xc0000000ul

/* Two pages of kernel address space per thread slot, for a ring-3 block that the kernel writes. */
#define VM_WINDOW 0xffffff0000000000ul
#define VM_WINDOW_PAGES 2

/* Where drivers run, 4 GB. It shares the windows' entry of the top-level table, which all address
 * spaces have. */
#define VM_DRIVERS 0xffffff4000000000ul

/* The kernel's tables: image W^X, direct map without execute, the loader's framebuffer
 * write-combining, or uncached on a CPU without PAT. Loaded here and, by vm_init_cpu, on other
 * CPUs. */
void vm_init(void);
void vm_init_cpu(void);
/* At boot: sets how a function runs on CPUs, to flush their TLBs. Until then there is one CPU. */
void vm_call_by(void (*call)(struct cpu_set among, void (*function)(void *), void *argument));

/* Adds physical memory above 4 GB to the direct map, in pages of 2 MB; what lies below is mapped
 * already and stays so. Before there are processes. `flags`: PTE_WRITE, PTE_UNCACHED,
 * PTE_COMBINED. False: the CPU or the direct map cannot address it, or no memory. */
bool vm_map_physical(uint64_t physical, uint64_t size, uint64_t flags);

/* A top-level table with the kernel's half; NULL without memory. vm_destroy drops a user of each
 * page mapped. */
uint64_t *vm_create(void);
void vm_destroy(uint64_t *pml4);
/* Maps one page; the tables between are made as needed. False without memory. */
bool vm_map(uint64_t *pml4, uint64_t address, uint64_t physical, uint64_t flags);
/* Unmaps one page, in every TLB too; its physical address, or 0 if there was none. IRQL <
 * DISPATCH_LEVEL. */
uint64_t vm_unmap(uint64_t *pml4, uint64_t address);
/* The entry of a 4 KB page, 0 if there is none. */
uint64_t vm_entry(const uint64_t *pml4, uint64_t address);
/* The entry of a 4 KB page, present or not: an entry with an address and without PTE_PRESENT keeps
 * a page that nobody may touch. vm_put sets a page's entry and flushes no TLB; false: no memory for
 * tables. */
uint64_t vm_raw(const uint64_t *pml4, uint64_t address);
bool vm_put(uint64_t *pml4, uint64_t address, uint64_t entry);
/* The first page of [from, end) that has an entry, which goes to *entry; `end` if none has. */
uint64_t vm_next(const uint64_t *pml4, uint64_t from, uint64_t end, uint64_t *entry);
/* Empties the TLB of each CPU that runs with the table, after present entries were changed. IRQL <
 * DISPATCH_LEVEL. */
void vm_flush(const uint64_t *pml4);
/* One more user of a page that ring 3 may write; its physical address, or 0. */
uint64_t vm_hold_writable(const uint64_t *pml4, uint64_t address);
/* Whether ring 3 may write every page of [address, address + size). */
bool vm_user_writable(const uint64_t *pml4, uint64_t address, size_t size);
/* IRQL >= DISPATCH_LEVEL, or interrupts off: the next thread switch loads that thread's own. */
void vm_switch(const uint64_t *pml4);
extern uint64_t *vm_kernel_pml4;

/* Maps two pages into a slot's window (physical2 may be 0); returns where the window begins. */
void *vm_window_map(unsigned slot, uint64_t physical1, uint64_t physical2);
void vm_window_unmap(unsigned slot);
/* Whether [user, user + size) lies in user space at all. */
bool user_range(const void *user, size_t size);
