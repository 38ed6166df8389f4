/* SPDX-License-Identifier: MIT */
/* What the fuzzers on the host share: chance by a seed, a machine's memory, and the end. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#define FUZZ_MEMORY (1ul << 32) /* bytes of physical memory */

extern uint8_t *fuzz_memory;
/* The case that runs, for what is said of a failure. */
extern uint64_t fuzz_case;

/* Takes seed and number of cases from the command line: 1 and `standard` where they are missing. */
uint64_t fuzz_begin(int argc, char *argv[], uint64_t standard);
/* A number below `below`, at most 2^32; any 64 bits. */
uint64_t fuzz_below(uint64_t below);
uint64_t fuzz_bits(void);
/* Any 64 bits, more often such as break something: small, large, one bit. */
uint64_t fuzz_edge(void);
/* Maps fuzz_memory, zeros, with nothing around it. */
void fuzz_map(void);
/* Ends the program unless it holds. */
#define FUZZ_CHECK(condition) fuzz_check((condition), #condition, __FILE__, __LINE__)
void fuzz_check(bool holds, const char *text, const char *file, int line);
