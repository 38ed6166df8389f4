/* SPDX-License-Identifier: MIT */
/* For boot.c, and for tests of it. */
#pragma once
#include "kernel/base/boot_info.h"

/* Adds to `info` what the loader left at that physical address, in the format that its magic number
 * names. For an unknown number it adds only no_screen. What does not fit is left out. */
void loader_read(struct boot_info *info, uint32_t magic, uint32_t physical);
