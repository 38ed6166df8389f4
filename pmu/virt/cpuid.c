/* SPDX-License-Identifier: MIT */
/* CPUID of the model's processor: the real processor's features, less what the model lacks. */
#include "kernel/base/string.h"
#include "kernel/base/x86.h"
#include "pmu/virt/cpuid.h"
#include "pmu/virt/quirk.h"
#include "pmu/virt/vcpu.h"

enum { A, B, C, D };

static void vendor_leaf(const struct model *m, uint32_t r[4])
{
    memcpy(&r[B], m->ops->vendor, 4);
    memcpy(&r[D], m->ops->vendor + 4, 4);
    memcpy(&r[C], m->ops->vendor + 8, 4);
}

static void basic_leaf(const struct model *m, uint32_t leaf, uint32_t subleaf, uint32_t r[4])
{
    switch (leaf) {
    case 0:
        r[A] = m->max_leaf;
        vendor_leaf(m, r);
        break;
    case 1:
        r[A] = m->signature;
        r[C] &= ~(1u << 15 | 1u << 21 | 1u << 3); /* PDCM, x2APIC, MONITOR */
        r[C] = (r[C] & ~(1u << 31)) | (virt_quirks.nohyper ? 0 : 1u << 31); /* hypervisor */
        r[C] |= (virt_quirks.x2apic ? 1u << 21 : 0) | (virt_quirks.deadline ? 1u << 24 : 0);
        r[D] &= ~(1u << 21); /* DS */
        break;
    case 6:
        if (virt_quirks.c1e)
            r[A] &= ~(1u << 2); /* ARAT: the APIC timer runs in every state */
        break;
    case 7:
        if (subleaf == 0) {
            r[B] &= ~(1u << 4 | 1u << 11); /* HLE, RTM */
            if (virt_quirks.tsc && virt_quirks.tsc_fixed != TSC_FAULTS && m->version >= 4)
                r[B] |= 1u << 1;                       /* TSC_ADJUST */
            r[D] &= ~(1u << 26 | 1u << 15 | 1u << 19); /* IBPB, hybrid, LBR */
        }
        break;
    case 0xa: memset(r, 0, 16); break;
    default:
        if (leaf > 0xd) /* none of these describes a feature of the model */
            memset(r, 0, 16);
    }
}

/* The n-th 16 characters of 48. */
static void brand_leaf(const struct model *m, uint32_t n, uint32_t r[4])
{
    char text[48] = { 0 };
    memcpy(text, m->brand, strlen(m->brand));
    memcpy(r, text + 16 * n, 16);
}

static void extended_leaf(const struct model *m, uint32_t leaf, uint32_t r[4])
{
    switch (leaf) {
    case 0x80000000:
        r[A] = m->max_extended_leaf;
        r[B] = r[C] = r[D] = 0;
        if (m->ops->vendor[0] == 'A')
            vendor_leaf(m, r);
        break;
    case 0x80000001:
        r[A] = m->ops->vendor[0] == 'A' ? m->signature : 0;
        /* SVM, IBS, core counters, northbridge counters, PTSC, L3 counters */
        r[C] &= ~(1u << 2 | 1u << 10 | 1u << 23 | 1u << 24 | 1u << 27 | 1u << 28);
        break;
    case 0x80000002:
    case 0x80000003:
    case 0x80000004:
        if (m->brand)
            brand_leaf(m, leaf - 0x80000002, r);
        break;
    case 0x80000008:
        r[B] &= ~(1u << 12 | 1u << 1 | 1u << 31); /* IBPB, IRPERF, BRS */
        r[B] |= (uint32_t)virt_quirks.brs << 31;
        break;
    case 0x8000000a:
    case 0x8000001b:
    case 0x80000022: memset(r, 0, 16); break;
    }
}

void virt_cpuid(struct vcpu *v)
{
    uint32_t leaf = (uint32_t)v->vmcb.rax, subleaf = (uint32_t)v->r.rcx, r[4];
    const struct model *m = v->pmu.model;
    if (!own_leaf(v, leaf, subleaf, r)) {
        /* Out of range: the highest basic leaf on Intel, zeros on AMD. */
        bool extended = leaf >= 0x80000000;
        bool beyond = extended ? leaf > m->max_extended_leaf : leaf > m->max_leaf;
        if (beyond && m->ops->vendor[0] == 'G')
            leaf = m->max_leaf, extended = false;
        struct cpuid real = cpuid(leaf, subleaf);
        memcpy(r, &real, sizeof real);
        if (beyond && m->ops->vendor[0] == 'A')
            memset(r, 0, sizeof r);
        else if (extended)
            extended_leaf(m, leaf, r);
        else
            basic_leaf(m, leaf, subleaf, r);
        m->ops->leaf(m, leaf, subleaf, r);
    }
    /* OSXSAVE and OSPKE: the guest's CR4, not the host's. */
    if (leaf == 7 && subleaf == 0)
        r[C] = (r[C] & ~(1u << 4)) | (v->vmcb.cr4 & CR4_PKE ? 1u << 4 : 0);
    if (leaf == 1 && x2apic_is_off(v))
        r[D] &= ~(1u << 9); /* APIC */
    if (leaf == 1)
        r[C] = (r[C] & ~(1u << 27)) | (v->vmcb.cr4 & CR4_OSXSAVE ? 1u << 27 : 0);
    v->vmcb.rax = r[A];
    v->r.rbx = r[B];
    v->r.rcx = r[C];
    v->r.rdx = r[D];
}
