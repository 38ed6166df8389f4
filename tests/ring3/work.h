/* SPDX-License-Identifier: MIT */
#pragma once
#include <stdint.h>

/* work.asm: work_N retires N instructions more than work_0. */
void work_0(void);
void work_1(void);
void work_10(void);
void work_1000(void);
void work_100000(void);
void work_1000000(void);
void work_pages(char *at, uint64_t n);
uint64_t work_pmc_pair(uint32_t selector);
