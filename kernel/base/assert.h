/* SPDX-License-Identifier: MIT */
/* ASSERT is for our own mistakes only; a caller's mistake is an NTSTATUS. */
#pragma once

__attribute__((noreturn, format(printf, 1, 2))) void panic(const char *format, ...);

#define ASSERT(condition)                                                                          \
    do {                                                                                           \
        if (!(condition))                                                                          \
            panic("%s:%d: ASSERT(%s)", __FILE__, __LINE__, #condition);                            \
    } while (0)
