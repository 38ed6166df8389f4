/* SPDX-License-Identifier: MIT */
/* Exceptions and interrupts. */
#pragma once
#include <stdint.h>
#include "kernel/base/vectors.h"

struct trap_frame;

/* Fills the IDT and loads it on the boot CPU; others: cpu_load_idt. */
void trap_init(void);

/* How often each vector came, all CPUs; for tests and reports. Atomic. */
extern uint64_t trap_counts[256];
