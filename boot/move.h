/* SPDX-License-Identifier: MIT */
#pragma once
#include <stdbool.h>
#include <stdint.h>

/* Moves this image to just below `top` and continues there; boot_info.moved is the distance.
 * Returns its new physical start; 0: no free memory above its old place. */
uint64_t move_image(uint64_t top);

struct screen;
/* Adds a framebuffer above 4 GB to the page tables in use, which are the boot page tables or
 * move_image's. False: it lies higher than this CPU or the direct map reach. */
bool move_reach(const struct screen *screen);
