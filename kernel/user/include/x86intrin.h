/* SPDX-License-Identifier: MIT */
/* What mingw-w64's headers get in place of gcc's: those of all vector extensions are half the time
 * that a file of ring 3 takes to compile, and hardly any of them is used. */
#pragma once
#define _MMINTRIN_H_INCLUDED
#define _XMMINTRIN_H_INCLUDED
#define _PMMINTRIN_H_INCLUDED
#define _MM3DNOW_H_INCLUDED

typedef float __m128 __attribute__((vector_size(16), may_alias));
typedef double __m128d __attribute__((vector_size(16), may_alias));
typedef long long __m128i __attribute__((vector_size(16), may_alias));

#define __rdtsc() ((unsigned long long)__builtin_ia32_rdtsc())
#define __rdpmc(selector) ((unsigned long long)__builtin_ia32_rdpmc(selector))
#define _mm_pause() __builtin_ia32_pause()
#define _mm_lfence() __builtin_ia32_lfence()
