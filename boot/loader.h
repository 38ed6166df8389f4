/* SPDX-License-Identifier: MIT */
/* For boot.c, and for tests of it. */
#pragma once
#include "kernel/base/boot_info.h"

/* Adds to `info` what the loader left at that physical address, by the magic number that it gave;
 * of another magic number nothing but that there is no screen. What there is no room for is left
 * out. */
void loader_read(struct boot_info *info, uint32_t magic, uint32_t physical);
