/* SPDX-License-Identifier: MIT */
/* The local APIC of this CPU: x2APIC where there is one, else memory-mapped. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#define APIC_PMI_VECTOR 0xfe
#define APIC_NOTED_VECTOR 0xfd /* with NMIs: there are notes */
#define APIC_LVT_MASKED (1u << 16)
#define APIC_LVT_NMI (4u << 8)

/* Turns this CPU's APIC on, everything masked. The first call decides the mode and says it. */
void apic_init_cpu(void);
uint32_t apic_id(void);
void apic_eoi(void);
/* The counter LVT. */
void apic_write_pmi_lvt(uint32_t value);
uint32_t apic_read_pmi_lvt(void);
/* Interrupts to other CPUs, by APIC id. */
void apic_send(uint32_t id, uint8_t vector);
/* To this CPU; from an NMI handler too: what it may have interrupted in the middle is not disturbed. */
void apic_send_self(uint8_t vector);
void apic_nmi_others(void);
void apic_send_init(uint32_t id);
void apic_send_startup(uint32_t id, uint8_t page);
/* Measures the timer against the PIT, on one CPU; ticks a second. Also the TSC's, into *tsc_hz. */
uint64_t apic_timer_calibrate(uint64_t *tsc_hz);
/* Periodic interrupts on this CPU. */
void apic_timer_start(uint8_t vector, uint64_t period_ns, uint64_t hz);
void apic_timer_stop(void);
/* What apic_timer_start was given last; and another period on this CPU, the rest as it was. */
uint64_t apic_timer_period(void);
void apic_timer_change(uint64_t period_ns);
