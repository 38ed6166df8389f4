/* SPDX-License-Identifier: MIT */
/* The guest's registers while the host executes blocks of its code (blocks.c), with RSP here. */
#pragma once
#include <stdint.h>

/* Counts of the events from EVENT_BRANCHES on, 12 bits each; above them in the last word:
 * instructions. */
enum { SUM_WORDS = 2, SUM_FIELDS = 5, SUM_BITS = 12, SUM_MOST = 1 << SUM_BITS };
enum { SUM_INSTRUCTIONS = 48 };
struct sums {
    uint64_t word[SUM_WORDS];
};

enum { SLOT_ZERO = 16, SLOT_FS, SLOT_GS, SLOTS };
struct block_state {
    uint64_t flags;    /* as LAHF and SETO AL give them: OF is bit 0, SF ZF AF PF CF from bit 8;
                          in a hot block's code RFLAGS */
    uint64_t r[SLOTS]; /* by number; then those of addresses: 0, and the bases of FS and GS */
    uint64_t pointer;  /* the host's address of the memory operand */
    uint64_t host_rsp;
    struct block *block; /* that executes */
    struct sums sums;    /* of this run */
    int64_t left;        /* instructions that hot blocks may still execute */
    uint32_t pkru;       /* the guest's, for guest_page(); 0 without protection keys */
};
