/* SPDX-License-Identifier: MIT */
/* Data, their Reed-Solomon codes, and where the standard puts each bit. */
#include "tests/harness/qr.h"
#include <stdbool.h>
#include "kernel/base/string.h"

#define CODEWORDS_MAX 292u /* of version 9, all */
#define CHECKS_MAX 30u     /* of a block */
#define FORMAT 0x77c4u     /* level L, mask 0, with its BCH code */
#define FINDER 4u          /* from a finder's centre to the light ring around it */

/* Versions 1 to 9 at level L: codewords of data; codewords of checks in each block; blocks. */
static const struct layout {
    uint8_t data, checks, blocks;
} layouts[] = { { 19, 7, 1 },   { 34, 10, 1 },  { 55, 15, 1 },  { 80, 20, 1 }, { 108, 26, 1 },
                { 136, 18, 2 }, { 156, 20, 2 }, { 194, 24, 2 }, { 232, 30, 2 } };
/* The version information of versions 7 to 9, with its BCH code. */
static const uint32_t version_bits[] = { 0x07c94, 0x085bc, 0x09a99 };

size_t qr_capacity(unsigned version)
{
    return version && version <= QR_VERSION_MAX ? layouts[version - 1].data - 2u : 0;
}

/* --- Codewords. --- */

/* Multiplies in the field of 256 elements, modulo x^8 + x^4 + x^3 + x^2 + 1. */
static uint8_t times(uint8_t a, uint8_t b)
{
    unsigned product = 0;
    for (unsigned bit = 8; bit--;)
        product = product << 1 ^ (product >> 7) * 0x11d ^ (b >> bit & 1u) * a;
    return (uint8_t)product;
}

/* The remainder of the data divided by (x - 1)(x - 2)(x - 4)... */
static void correction_of(const uint8_t *data, unsigned n, uint8_t *rest, unsigned degree)
{
    uint8_t divisor[CHECKS_MAX] = { 0 }, root = 1;
    divisor[degree - 1] = 1;
    for (unsigned i = 0; i < degree; i++, root = times(root, 2))
        for (unsigned j = 0; j < degree; j++)
            divisor[j] = times(divisor[j], root) ^ (j + 1 < degree ? divisor[j + 1] : 0);
    memset(rest, 0, degree);
    for (unsigned i = 0; i < n; i++) {
        uint8_t factor = data[i] ^ rest[0];
        for (unsigned j = 0; j < degree; j++)
            rest[j] = (j + 1 < degree ? rest[j + 1] : 0) ^ times(divisor[j], factor);
    }
}

/* The mode and the length have 12 bits, so that each byte lies across two codewords. */
static void fill_data(const char *text, size_t length, uint8_t *data, unsigned n)
{
    uint8_t before = (uint8_t)length;
    data[0] = (uint8_t)(0x40 | before >> 4);
    for (size_t i = 0; i <= length; i++) {
        uint8_t next = i < length ? (uint8_t)text[i] : 0;
        data[i + 1] = (uint8_t)(before << 4 | next >> 4);
        before = next;
    }
    for (unsigned i = (unsigned)length + 2, pad = 0xec; i < n; i++, pad ^= 0xec ^ 0x11)
        data[i] = (uint8_t)pad;
}

/* All codewords in their order: one from each block, again and again. Returns how many. */
static unsigned codewords(const struct layout *l, const uint8_t *data, uint8_t *all)
{
    uint8_t checks[2][CHECKS_MAX] = { 0 };
    unsigned each = l->data / l->blocks, n = 0;
    for (unsigned block = 0; block < l->blocks; block++)
        correction_of(data + block * each, each, checks[block], l->checks);
    for (unsigned i = 0; i < each + l->checks; i++)
        for (unsigned block = 0; block < l->blocks; block++)
            all[n++] = i < each ? data[block * each + i] : checks[block][i - each];
    return n;
}

/* --- Modules. --- */

static unsigned apart(unsigned a, unsigned b) { return a > b ? a - b : b - a; }

static unsigned distance(unsigned x, unsigned y, unsigned to_x, unsigned to_y)
{
    unsigned dx = apart(x, to_x), dy = apart(y, to_y);
    return dx > dy ? dx : dy;
}

/* Alignment patterns: their centres lie at 6, size - 7 and (from version 7 on) the middle, in all
 * pairs except those in a finder. */
static bool alignment(unsigned version, unsigned x, unsigned y, bool *dark)
{
    unsigned size = QR_SIZE(version), last = size - 7;
    unsigned centres[] = { 6, version < 7 ? last : size / 2, last };
    for (unsigned i = 0; version > 1 && i < 9; i++) {
        unsigned cx = centres[i % 3], cy = centres[i / 3], d = distance(x, y, cx, cy);
        if (d <= 2 && !(cx == 6 && (cy == 6 || cy == last)) && !(cx == last && cy == 6)) {
            *dark = d != 1;
            return true;
        }
    }
    return false;
}

/* The format's bit, where x is 8; its other copy lies along y = 8. */
static bool format_bit(unsigned size, unsigned y)
{
    if (y == size - 8)
        return true;
    unsigned bit = y < 6 ? y : y < 9 ? y - 1 : y + 15 - size;
    return FORMAT >> bit & 1;
}

/* Sets a module that does not depend on the data; false: this one does. */
static bool fixed(unsigned version, unsigned x, unsigned y, bool *dark)
{
    unsigned size = QR_SIZE(version), far = size - 4;
    unsigned d = distance(x, y, x < far - FINDER ? 3 : far, y < far - FINDER ? 3 : far);
    bool corner = x >= far - FINDER && y >= far - FINDER;
    if (d <= FINDER && !corner) {
        *dark = d != 2 && d != FINDER;
    } else if (alignment(version, x, y, dark)) {
        return true;
    } else if (x == 6 || y == 6) {
        *dark = (x + y) % 2 == 0;
    } else if (x == 8 && (y < 9 || y >= size - 8)) {
        *dark = format_bit(size, y);
    } else if (y == 8 && (x < 8 || x >= size - 8)) {
        *dark = FORMAT >> (x >= size - 8 ? size - 1 - x : x < 6 ? 14 - x : 15 - x) & 1;
    } else if (version >= 7 && x < 6 && y + 11 >= size && y + 8 < size) {
        *dark = version_bits[version - 7] >> (3 * x + y + 11 - size) & 1;
    } else if (version >= 7 && y < 6 && x + 11 >= size && x + 8 < size) {
        *dark = version_bits[version - 7] >> (3 * y + x + 11 - size) & 1;
    } else {
        return false;
    }
    return true;
}

/* Bits go up and down in columns of two modules, from the right, and skip the timing's column. */
static void place_bits(unsigned version, const uint8_t *all, unsigned n, uint64_t *rows)
{
    unsigned size = QR_SIZE(version), at = 0;
    memset(rows, 0, QR_SIZE_MAX * sizeof *rows);
    for (unsigned pair = 0; pair < size / 2; pair++)
        for (unsigned i = 0; i < 2 * size; i++) {
            unsigned x = size - 1 - 2 * pair - i % 2, y = pair % 2 ? i / 2 : size - 1 - i / 2;
            bool dark;
            x -= x <= 6;
            if (fixed(version, x, y, &dark))
                continue;
            dark = (x + y) % 2 == 0;
            if (at < 8 * n)
                dark ^= all[at / 8] >> (7 - at % 8) & 1;
            at++;
            rows[y] |= (uint64_t)dark << x;
        }
    for (unsigned i = 0; i < size * size; i++) {
        bool dark;
        if (fixed(version, i % size, i / size, &dark))
            rows[i / size] |= (uint64_t)dark << i % size;
    }
}

unsigned qr_encode(const char *text, uint64_t rows[QR_SIZE_MAX])
{
    uint8_t data[CODEWORDS_MAX] = { 0 }, all[CODEWORDS_MAX];
    size_t length = strlen(text);
    unsigned version = 1;
    while (version <= QR_VERSION_MAX && length > qr_capacity(version))
        version++;
    if (version > QR_VERSION_MAX)
        return 0;
    const struct layout *l = &layouts[version - 1];
    fill_data(text, length, data, l->data);
    place_bits(version, all, codewords(l, data, all), rows);
    return version;
}
