/* SPDX-License-Identifier: MIT */
/* Random 64-bit code of ring 3, for tests/guests/fuzz/blocks.c: such as blocks may have, with all
 * prefixes, and sometimes anything. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

enum { CODE_INSTRUCTION = 32 }; /* at most so many bytes for one */

struct code {
    bool gs;    /* operands are by GS */
    bool locks; /* LOCK and XCHG, of operands that are aligned: hosts slow down split ones */
    unsigned opcode;
    uint64_t data;  /* the address of some of it */
    uint64_t moved; /* what is to be added to the host's address of code */
};

/* Up to `most` bytes at `to`. Returns how many. */
unsigned code_make(struct code *c, uint8_t *to, unsigned most);
