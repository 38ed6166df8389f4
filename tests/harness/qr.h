/* SPDX-License-Identifier: MIT */
/* QR codes by ISO/IEC 18004: bytes, error correction level L, versions 1 to 9, mask 0. Readers take
 * any mask; choosing one would be half of the encoder. */
#pragma once
#include <stddef.h>
#include <stdint.h>

#define QR_VERSION_MAX 9u
#define QR_SIZE(version) (17 + 4 * (version)) /* modules of a side, without the margin */
#define QR_SIZE_MAX QR_SIZE(QR_VERSION_MAX)

/* How many bytes a version holds; 0: it is none of ours. */
size_t qr_capacity(unsigned version);
/* Encodes the text in the smallest version that holds it. Bit x of row y: that module is dark.
 * Returns the version; 0: the text is longer than QR_VERSION_MAX holds. Any IRQL. */
unsigned qr_encode(const char *text, uint64_t rows[QR_SIZE_MAX]);
