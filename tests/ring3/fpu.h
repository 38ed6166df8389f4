/* SPDX-License-Identifier: MIT */
/* Ring 3's half of tests/kernel/fpu.c; its argument is XCR0, 0 without XSAVE, and USER_BASES where
 * ring 3 may write the bases of FS and GS. */
#pragma once
#include <stdint.h>

#define USER_BASES (UINT64_C(1) << 63)

void user_fpu_features(uint64_t xcr0);
void user_fpu_survives(uint64_t xcr0);
void user_fpu_new_threads(uint64_t xcr0);
void user_fpu_entries(uint64_t unused);
