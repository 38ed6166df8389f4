/* SPDX-License-Identifier: MIT */
/* Dying of an exception in ring 3, for tests/kernel/exceptions.c. */
#include "tests/ring3/exceptions.h"
#include "tests/ring3/helpers.h"

uint64_t user_exception_count; /* how often an instruction that must fault did not; data, not to be
                                  executed */

#define FUNCTION(name, code, ...)                                                                  \
    static void exception_##name(void)                                                             \
    {                                                                                              \
        asm volatile(code : : : "rax", "rcx", "rdx", "rsi", "rdi", "memory", "cc");                \
        user_exception_count++;                                                                    \
    }
EXCEPTIONS(FUNCTION)
EMULATED(FUNCTION)
CACHES(FUNCTION)
BASES(FUNCTION)

#define ROW(name, code, ...) exception_##name,
static void (*const functions[])(void) = { EXCEPTIONS(ROW) NULL,
                                           EMULATED(ROW) CACHES(ROW) BASES(ROW) };

void user_exception(uint64_t kind) { functions[kind](); }
