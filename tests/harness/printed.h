/* SPDX-License-Identifier: MIT */
/* For tests of what the kernel prints: it must be this text, and nothing else was printed
 * meanwhile. */
#pragma once
#include "kernel/base/crc32.h"
#include "kernel/base/print.h"
#include "kernel/base/string.h"
#include "tests/harness/test.h"

struct printed {
    uint64_t bytes;
    uint32_t sum;
};

static inline struct printed printed_now(void)
{
    struct printed now;
    now.sum = print_checksum(&now.bytes);
    return now;
}

static inline void check_printed(struct printed before, const char *text)
{
    struct printed now = printed_now();
    CHECK_EQ(now.bytes - before.bytes, strlen(text));
    CHECK_EQ(now.sum, crc32(before.sum, text, strlen(text)));
}
