/* SPDX-License-Identifier: MIT */
#pragma once
#include <stdint.h>

/* Moves this image below `top` and goes on there; boot_info.moved says by how much. Its new
 * physical start, or 0: there is no room above where it is. */
uint64_t move_image(uint64_t top);
