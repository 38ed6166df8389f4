/* SPDX-License-Identifier: MIT */
/* Exceptions and interrupts. */
#pragma once
#include <stdint.h>
#include "kernel/base/vectors.h"

/* Drivers' deferred calls; NULL until one uses them. With interrupts off, at the
 * vector's IRQL. Atomic. */
extern void (*trap_dpc)(void);
/* Drivers' NMI callbacks; the same, but in the NMI handler. */
extern bool (*trap_nmi_callbacks)(void); /* whether one of them handled it */

/* Called from the tick after an NMI that nobody claims, not the line that says so. Atomic. */
extern void (*trap_stray_nmi)(void);

/* Called in each tick with the interrupted IRQL. Set before the first driver runs. */
struct trap_frame;
extern void (*trap_tick)(const struct trap_frame *frame, uint64_t irql);

/* Fills the IDT and loads it on the boot CPU; others: cpu_load_idt. */
void trap_init(void);

/* How often each vector came, all CPUs; for tests and reports. Atomic. */
extern uint64_t trap_counts[256];
