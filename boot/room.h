/* SPDX-License-Identifier: MIT */
/* Memory for a guest that is not this kernel: we and the loader's modules go to its top, below 4
 * GB, what is below is the guest's. One CPU, before the guest starts. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

struct boot_info;

/* Moves us, then the modules. False after one line: there is no room. */
bool room_make(struct boot_info *boot);
/* Whether a guest may be put there; else one line says why not. `file`: the module it comes from,
 * which must stay too. */
bool room_has(const struct boot_info *boot, uint64_t start, uint64_t end, unsigned file);
/* Copies bytes there and clears the rest of `whole`, if room_has. */
bool room_place(const struct boot_info *boot, const void *from, uint64_t size, uint64_t to,
                uint64_t whole, unsigned file);
/* The guest's map: n-th range; its type is 1 (memory) or 2 (ours). False: there are not so many. */
struct room_range {
    uint64_t start, end;
    uint32_t type;
};
bool room_range(const struct boot_info *boot, unsigned n, struct room_range *range);
/* The physical address of an object of this image, which has moved; and the other way. */
uint32_t room_physical(const void *p);
uint8_t *room_at(uint64_t physical);
