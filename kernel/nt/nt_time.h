/* SPDX-License-Identifier: MIT */
/* What the kernel and ring 3 take for the date, in units of 100 ns since 1601. NT: nobody reads the
 * machine's clock: it starts at 2020-01-01. */
#pragma once
#define SYSTEM_TIME_AT_BOOT 132223104000000000
