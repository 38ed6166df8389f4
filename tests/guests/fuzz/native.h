/* SPDX-License-Identifier: MIT */
/* The host's processor, one instruction at a time, from any state of its general registers. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

struct native {
    uint64_t r[16], rip, flags; /* r: by number */
};

/* Executes from *s on, in this process. Before each instruction it calls step with the state, and
 * ends where that returns false. *s: the last state. Returns the signal that an instruction
 * raised, or 0. */
int native_run(struct native *s, bool (*step)(const struct native *s));
/* A new file in memory, of zeros; or -1. */
int native_file(uint64_t size);
/* The base of FS, which is the C library's, and a new one of GS. */
uint64_t native_fs(void);
void native_set_gs(uint64_t base);
