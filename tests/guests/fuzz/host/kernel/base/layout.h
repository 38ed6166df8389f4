/* SPDX-License-Identifier: MIT */
/* kernel/base/layout.h for the fuzzers on the host: physical memory lies where they put it. */
#pragma once
#include <stdint.h>
#include_next "kernel/base/layout.h"
#undef DIRECT_MAP
#define DIRECT_MAP ((uint64_t)fuzz_memory)
extern uint8_t *fuzz_memory;
