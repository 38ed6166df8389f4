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

/* Fills the IDT and loads it on the boot CPU; others: cpu_load_idt. */
void trap_init(void);

/* How often each vector came, all CPUs; for tests and reports. Atomic. */
extern uint64_t trap_counts[256];
