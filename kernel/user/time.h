/* SPDX-License-Identifier: MIT */
/* NT: the time since the machine started; there is no calendar. */
#pragma once
#include "windows.h"

#define CLOCKS_PER_SEC 1000
typedef LONG clock_t;

static inline clock_t clock(void) { return (clock_t)GetTickCount(); }
