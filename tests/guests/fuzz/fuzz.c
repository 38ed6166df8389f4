/* SPDX-License-Identifier: MIT */
/* tests/guests/fuzz/fuzz.h, and what the virtual PMU's files want of a kernel. */
#include "tests/guests/fuzz/fuzz.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include "kernel/base/print.h"

uint8_t *fuzz_memory;
uint64_t fuzz_case;
static uint64_t seed, state;

uint64_t fuzz_begin(int argc, char *argv[], uint64_t standard)
{
    seed = argc > 1 ? strtoull(argv[1], NULL, 0) : 1;
    state = (seed + 1) * 0x9e3779b97f4a7c15;
    return argc > 2 ? strtoull(argv[2], NULL, 0) : standard;
}

uint64_t fuzz_bits(void)
{
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    return state * 0x2545f4914f6cdd1d;
}

uint64_t fuzz_below(uint64_t below) { return (fuzz_bits() >> 32) * below >> 32; }

uint64_t fuzz_edge(void)
{
    switch (fuzz_below(6)) {
    case 0: return fuzz_below(64);
    case 1: return -fuzz_below(64);
    case 2: return 1ul << fuzz_below(64);
    case 3: return (1ul << fuzz_below(64)) - 1;
    case 4: return fuzz_bits() >> fuzz_below(64);
    }
    return fuzz_bits();
}

void fuzz_map(void)
{
    enum { AROUND = 1 << 20 };
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    uint8_t *p = mmap(NULL, FUZZ_MEMORY + 2 * AROUND, PROT_NONE, flags, -1, 0);
    if (p == MAP_FAILED || mprotect(p + AROUND, FUZZ_MEMORY, PROT_READ | PROT_WRITE)) {
        perror("fuzz: memory");
        exit(2);
    }
    fuzz_memory = p + AROUND;
}

void fuzz_check(bool holds, const char *text, const char *file, int line)
{
    if (holds)
        return;
    printf("%s:%d: seed %lu, case %lu: %s\n", file, line, seed, fuzz_case, text);
    fflush(stdout);
    abort();
}

/* What is printed is drawn up, and seen by nobody. */
void print(const char *format, ...)
{
    char text[4096];
    va_list args;
    va_start(args, format);
    print_to_va(text, sizeof text, format, args);
    va_end(args);
}

void print_break_lock(void) {}
void print_drain(void) {}
