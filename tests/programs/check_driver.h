/* SPDX-License-Identifier: MIT */
/* Checks of a driver, which prints those that fail. */
#pragma once

static ULONG checks, wrong;

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        checks++;                                                                                  \
        if (!(condition)) {                                                                        \
            wrong++;                                                                               \
            DbgPrint("line %d: %s\n", __LINE__, #condition);                                       \
        }                                                                                          \
    } while (0)
