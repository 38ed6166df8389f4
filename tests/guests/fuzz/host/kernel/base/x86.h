/* SPDX-License-Identifier: MIT */
/* kernel/base/x86.h for the fuzzers on the host: what only ring 0 may execute is theirs. */
#pragma once
#include <stdint.h>
#define rdmsr real_rdmsr
#define wrmsr real_wrmsr
#define write_cr2 real_write_cr2
#define lidt real_lidt
#include_next "kernel/base/x86.h"
#undef rdmsr
#undef wrmsr
#undef write_cr2
#undef lidt
uint64_t rdmsr(uint32_t msr);
void wrmsr(uint32_t msr, uint64_t value);
static inline void write_cr2(uint64_t value) { (void)value; }
static inline void lidt(const struct table_register *r) { (void)r; }
