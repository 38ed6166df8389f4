/* SPDX-License-Identifier: MIT */
#pragma once
#include <stdint.h>

/* Moves this image to just below `top` and continues there; boot_info.moved is the distance.
 * Returns its new physical start; 0: no free memory above its old place. */
uint64_t move_image(uint64_t top);
