/* SPDX-License-Identifier: MIT */
/* The lengths in printf's formats are Windows': ll is 64 bits, no letter is 32. */
#pragma once
#include <stdint.h>

#define PRId32 "d"
#define PRIu32 "u"
#define PRIx32 "x"
#define PRIX32 "X"
#define PRId64 "lld"
#define PRIu64 "llu"
#define PRIx64 "llx"
#define PRIX64 "llX"
