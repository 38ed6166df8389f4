/* SPDX-License-Identifier: MIT */
/* Memory for a guest that is not this kernel. We and the loader's modules move to the top of memory
 * below 4 GB; all below them is the guest's. One CPU, before the guest starts. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

struct boot_info;

/* Moves us, then the modules. `more`: bytes after us that are ours too. False, after a message:
 * there is no memory for it. */
bool space_make(struct boot_info *boot, uint64_t more);
/* Where those bytes are. */
uint8_t *space_more(void);
/* Copies bytes there and clears the rest of `whole`, if a guest may be put there; if not, a line
 * says why. `file`: the module it comes from, which must not be overwritten either. */
bool space_place(const struct boot_info *boot, const void *from, uint64_t size, uint64_t to,
                 uint64_t whole, unsigned file);
/* The n-th range of the guest's map: the loader's, but that what is ours is reserved. False: there
 * is none. */
struct space_range {
    uint64_t start, end;
    uint32_t type;
};
#define SPACE_RESERVED 2
bool space_range(unsigned n, struct space_range *range);
/* Where its memory ends, and we begin. */
uint64_t space_end(void);
/* What is at a physical address. */
uint8_t *space_at(uint64_t physical);
