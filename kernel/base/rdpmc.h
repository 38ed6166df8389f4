/* SPDX-License-Identifier: MIT */
/* The selectors of RDPMC: general-purpose counters by their numbers, and these. They are in
 * HARDWARE_COUNTER.Index, too. Source: SDM volume 2, "RDPMC". */
#pragma once

#define RDPMC_METRICS (1u << 29) /* PERF_METRICS */
#define RDPMC_FIXED (1u << 30)   /* + n: fixed counter n */
#define RDPMC_FAST (1u << 31)    /* of old processors: the low half alone */
