/* SPDX-License-Identifier: MIT */
/* The drivers' pool, for what the kernel makes on their behalf. */
#pragma once
#include <stdint.h>

/* Zeroed memory, aligned to 16 bytes, or to a page if it is a page or more; NULL: there is none.
 * IRQL <= DISPATCH_LEVEL. */
void *pool_allocate(uint64_t size);
void pool_free(void *p);
/* How many blocks are in use, those of drivers among them. */
unsigned pool_blocks(void);
/* Memory for the driver that called the exported routine, which must give it back. */
void *pool_allocate_for(uint64_t size, uint32_t tag);
void pool_free_for(void *p, uint32_t tag);
