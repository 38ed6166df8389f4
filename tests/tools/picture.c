/* SPDX-License-Identifier: MIT */
/* For tests/tools/report.t, on the host: the QR code of its argument as a picture (PBM), four
 * pixels a module. */
#include "tests/harness/qr.h"
#include <stdio.h>

#define MODULE 4u
#define MARGIN 4u

int main(int argc, char **argv)
{
    uint64_t rows[QR_SIZE_MAX];
    unsigned version = argc == 2 ? qr_encode(argv[1], rows) : 0;
    unsigned size = QR_SIZE(version), side = (size + 2 * MARGIN) * MODULE;
    if (!version)
        return 1;
    printf("P1\n%u %u\n", side, side);
    for (unsigned i = 0; i < side * side; i++) {
        unsigned x = i % side / MODULE - MARGIN, y = i / side / MODULE - MARGIN;
        putchar(x < size && y < size && rows[y] >> x & 1 ? '1' : '0');
        if (i % side == side - 1)
            putchar('\n');
    }
    return 0;
}
