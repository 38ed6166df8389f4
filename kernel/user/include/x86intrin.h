/* SPDX-License-Identifier: MIT */
/* What mingw-w64's headers get in place of gcc's: those of all vector extensions are half the time
 * that a file of ring 3 takes to compile, and none of them is used. */
#pragma once
#include <emmintrin.h>

#define __rdtsc() ((unsigned long long)__builtin_ia32_rdtsc())
#define __rdpmc(selector) ((unsigned long long)__builtin_ia32_rdpmc(selector))
