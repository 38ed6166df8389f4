/* SPDX-License-Identifier: MIT */
/* The machine's interrupt hardware, as far as the virtual PMU uses it: the local APIC for PMIs, one HPET comparator
 * through the IO-APIC as alarm. Everything at its physical address, mapped by the boot page tables.
 * Sources: SDM volume 3, "Advanced Programmable Interrupt Controller"; IA-PC HPET 1.0a. */
#include "kernel/layout.h"
#include "pmu/virt/svm.h"

#define APIC 0xfee00000
enum { APIC_ID = 0x20, APIC_ICR = 0x300, APIC_ICR2 = 0x310, APIC_LVT_PMI = 0x340 };
#define ICR_SELF (1u << 18)
#define LVT_MODE (7u << 8)
#define LVT_FIXED (0u << 8)
#define LVT_NMI (4u << 8)
#define LVT_MASKED (1u << 16)

static volatile uint32_t *apic(unsigned at) { return (volatile uint32_t *)(DIRECT_MAP + APIC + at); }

uint32_t host_apic_id(void) { return *apic(APIC_ID) >> 24; }

void apic_pmi(struct vcpu *v, bool mask)
{
    uint32_t lvt = *apic(APIC_LVT_PMI);
    if (lvt & LVT_MASKED)
        return;
    if (mask)
        *apic(APIC_LVT_PMI) = lvt | LVT_MASKED;
    if ((lvt & LVT_MODE) == LVT_NMI)
        v->nmi_pending = true;
    else if ((lvt & LVT_MODE) == LVT_FIXED)
        *apic(APIC_ICR) = ICR_SELF | (lvt & 0xff); /* ICR2 stays the guest's */
}

bool alarm_init(void) { return true; }
