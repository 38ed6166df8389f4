/* SPDX-License-Identifier: MIT */
#pragma once
#include "tests/harness/test.h"

struct summary {
    unsigned planned, passed, failed, skipped;
    uint64_t checks;
};

/* Before the first line: from here on lines have their colours, and failures are kept for the last
 * page. */
void summary_init(void);
/* Before and, if it takes long, during a test. */
void summary_progress(const struct test *test, const struct summary *summary);
/* The last page, with a QR code if it fits; bytes and CRC-32 are of the stream before the
 * verdict. */
void summary_show(const struct summary *summary, const char *verdict, uint64_t bytes, uint32_t crc);
