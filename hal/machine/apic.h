/* SPDX-License-Identifier: MIT */
/* The local APIC of this CPU: memory-mapped, or x2APIC where apic_choose says. */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include "kernel/base/layout.h"
#include "kernel/base/msr.h"
#include "kernel/base/x86.h"

#define APIC_PMI_VECTOR 0xfe
#define APIC_NOTED_VECTOR 0xfd /* with pmi=nmi: the NMI has queued samples */
#define APIC_LVT_PMI 0x340     /* its register */
#define APIC_LVT_MASKED (1u << 16)
#define APIC_LVT_NMI (4u << 8)

extern bool apic_x2; /* const once the boot CPU's is on */

static inline volatile uint32_t *apic_mmio(unsigned reg)
{
    return (volatile uint32_t *)(DIRECT_MAP + 0xfee00000ul + reg);
}

/* Inline, because every sample executes the two that call it. */
static inline void apic_write(unsigned reg, uint32_t value)
{
    if (__builtin_expect(apic_x2, 0))
        wrmsr(MSR_X2APIC + (reg >> 4), value);
    else
        *apic_mmio(reg) = value;
}
static inline void apic_eoi(void) { apic_write(0xb0, 0); }
/* The counter LVT. */
static inline void apic_write_pmi_lvt(uint32_t value) { apic_write(APIC_LVT_PMI, value); }

struct acpi_info;

/* x2APIC is used where firmware has turned it on, where a CPU's id needs it, and below a
 * hypervisor, whose exits are cheaper then; other firmware may rely on the registers in memory
 * (X2APIC_OPT_OUT of the DMAR). x2apic=on|off chooses; what firmware turned on stays. Once, before
 * apic_init_cpu. */
void apic_choose(const struct acpi_info *info);
/* Turns this CPU's APIC on, with every local interrupt masked but LINT1, the NMI. */
void apic_init_cpu(void);
const char *apic_mode(void);
uint32_t apic_id(void);
uint32_t apic_read_pmi_lvt(void);
/* Sends an interrupt to the CPU with this APIC id. */
void apic_send(uint32_t id, uint8_t vector);
/* To this CPU. An NMI handler may call it, even if the NMI interrupted one of these functions. */
void apic_send_self(uint8_t vector);
/* Whether an IPI can be sent to the id: without x2APIC only to ids below 255. */
bool apic_reaches(uint32_t id);
/* Whether the vector is pending (IRR) on this CPU. */
bool apic_is_pending(uint8_t vector);
/* Whether it was delivered here and has had no EOI yet. */
bool apic_is_in_service(uint8_t vector);
void apic_nmi_others(void); /* to the CPUs that run, but this one */
void apic_send_nmi(uint32_t id);
/* For a handler that never returns: writes an EOI for each interrupt in service on this CPU. */
void apic_finish_interrupts(void);
void apic_send_init(uint32_t id);
void apic_send_startup(uint32_t id, uint8_t page);
/* For clock.c: starts the timer from its highest value, one-shot, without an interrupt; and reads
 * how far it has counted. */
void apic_timer_count(void);
uint64_t apic_timer_elapsed(void);
/* Starts periodic interrupts on this CPU. */
void apic_timer_start(uint8_t vector, uint64_t period_ns);
/* Returns the last period given to apic_timer_start; changes the period on this CPU alone. */
uint64_t apic_timer_period(void);
void apic_timer_change(uint64_t period_ns);

/* Counts of the timer per second, undivided; written by clock_init. */
extern uint64_t apic_timer_hz;
