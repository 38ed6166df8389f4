/* SPDX-License-Identifier: MIT */
/* Physical pages. They are reached through the direct map; each has a count of users. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "kernel/base/layout.h"

struct boot_info;
struct boot_memory;

static inline void *phys_to_virt(uint64_t physical) { return (void *)(DIRECT_MAP + physical); }
static inline uint64_t virt_to_phys(const void *direct) { return (uint64_t)direct - DIRECT_MAP; }

/* Takes the loader's map. Memory above 4 GB and below 1 MB is left alone. */
void phys_init(const struct boot_info *info);
/* The pages of a region below 4 GB that are RAM from first byte to last: from *start up to *end,
 * physical; none where *end is not above. */
void phys_pages_of(const struct boot_memory *region, uint64_t *start, uint64_t *end);
/* Whether all of it is memory by one region of the loader's map. */
bool phys_is_memory(uint64_t address, uint64_t size);
/* `count` pages in a row, zeroed, one user each; NULL if there are none. Any IRQL up to
 * DISPATCH_LEVEL. */
void *phys_alloc(unsigned count);
/* Drops one user of each page; pages without users are free. */
void phys_free(void *pages, unsigned count);
/* One more user of the page at this physical address, which must be RAM of ours. */
void phys_hold(uint64_t physical);
/* The next search begins at this page; else where the last one ended. */
void phys_search_from(const void *page);
size_t phys_free_pages(void);
size_t phys_total_pages(void);
