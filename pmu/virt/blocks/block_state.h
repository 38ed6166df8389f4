/* SPDX-License-Identifier: MIT */
/* The guest's registers while the host executes blocks of its code (blocks.c), with RSP here. */
#pragma once
#include <stdint.h>

enum { SLOT_ZERO = 16, SLOT_FS, SLOT_GS, SLOTS };
struct block_state {
    uint64_t r[SLOTS]; /* by number; then those of addresses: 0, and the bases of FS and GS */
    uint64_t flags;    /* as LAHF and SETO AL give them: OF is bit 0, SF ZF AF PF CF from bit 8 */
    uint64_t pointer;  /* the host's address of the memory operand */
    uint64_t host_rsp;
    uint32_t pkru; /* the guest's, for guest_page(); 0 without protection keys */
};
