/* SPDX-License-Identifier: MIT */
/* CPUID as the model's processor answers it: the real one's features less what the model lacks, and the virtual
 * PMU's own leaves at 4000_0000h. Source: pmu-hardware.md "Detection". */
#include "kernel/string.h"
#include "kernel/x86.h"
#include "pmu/virt/svm.h"

#define LEAF_OWN 0x40000000
#define LEAF_OWN_LAST 0x40000002
enum { A, B, C, D };

static uint32_t word(const char *text)
{
    uint32_t w;
    memcpy(&w, text, sizeof w);
    return w;
}

static void vendor(uint32_t r[4])
{
    r[B] = word(virt_model->vendor);
    r[D] = word(virt_model->vendor + 4);
    r[C] = word(virt_model->vendor + 8);
}

static void own_leaf(const struct vcpu *v, uint32_t leaf, uint32_t subleaf, uint32_t r[4])
{
    const struct statistics *s = &v->statistics;
    char name[16] = { 0 };
    memcpy(name, virt_model->name, strlen(virt_model->name));
    if (leaf == LEAF_OWN) {
        r[A] = LEAF_OWN_LAST, r[B] = word("ntpm"), r[C] = word("u-vp"), r[D] = word("mu\0");
    } else if (leaf == LEAF_OWN + 1 && subleaf == 0) {
        r[A] = (uint32_t)s->rdpmc, r[B] = (uint32_t)s->rdmsr, r[C] = (uint32_t)s->wrmsr, r[D] = (uint32_t)s->pmi;
    } else if (leaf == LEAF_OWN + 1 && subleaf == 2) {
        r[A] = (uint32_t)v->retired[0], r[B] = (uint32_t)(v->retired[0] >> 32);
        r[C] = (uint32_t)v->retired[1], r[D] = (uint32_t)(v->retired[1] >> 32);
    } else if (leaf == LEAF_OWN + 1 && subleaf == 3) {
        r[A] = virt_step, r[B] = r[C] = r[D] = 0;
    } else if (leaf == LEAF_OWN + 1) {
        r[A] = (uint32_t)s->exits, r[B] = (uint32_t)s->steps, r[C] = (uint32_t)s->alarms, r[D] = (uint32_t)s->passes;
    } else {
        memcpy(r, name, sizeof name);
    }
}

static void basic_leaf(uint32_t leaf, uint32_t subleaf, uint32_t r[4])
{
    switch (leaf) {
    case 0:
        r[A] = virt_model->max_leaf;
        vendor(r);
        break;
    case 1:
        r[A] = virt_model->signature;
        r[C] &= ~(1u << 15 | 1u << 21 | 1u << 3); /* PDCM, x2APIC, MONITOR */
        r[C] |= 1u << 31;                         /* hypervisor */
        r[D] &= ~(1u << 21);                      /* DS */
        break;
    case 7:
        if (subleaf == 0) {
            r[B] &= ~(1u << 4 | 1u << 11);          /* HLE, RTM */
            r[C] &= ~(1u << 16);                    /* LA57: guest.c knows four levels */
            r[D] &= ~(1u << 26 | 1u << 15 | 1u << 19); /* IBPB, hybrid, LBR */
        }
        break;
    case 0xa:
        memset(r, 0, 16);
        break;
    }
}

static void extended_leaf(uint32_t leaf, uint32_t r[4])
{
    switch (leaf) {
    case 0x80000000:
        r[A] = virt_model->max_extended_leaf;
        r[B] = r[C] = r[D] = 0;
        if (virt_model->vendor[0] == 'A')
            vendor(r);
        break;
    case 0x80000001:
        r[A] = virt_model->vendor[0] == 'A' ? virt_model->signature : 0;
        /* SVM, IBS, core counters, northbridge counters, PTSC, L3 counters */
        r[C] &= ~(1u << 2 | 1u << 10 | 1u << 23 | 1u << 24 | 1u << 27 | 1u << 28);
        break;
    case 0x80000008:
        r[B] &= ~(1u << 12 | 1u << 1 | 1u << 31); /* IBPB, IRPERF, BRS */
        break;
    case 0x8000000a:
    case 0x8000001b:
    case 0x80000022:
        memset(r, 0, 16);
        break;
    }
}

void virt_cpuid(struct vcpu *v)
{
    uint32_t leaf = (uint32_t)v->vmcb.rax, subleaf = (uint32_t)v->r.rcx, r[4];
    if (leaf >= LEAF_OWN && leaf <= LEAF_OWN_LAST) {
        own_leaf(v, leaf, subleaf, r);
    } else {
        /* Out of range: the highest basic leaf on Intel, zeros on AMD. */
        bool extended = leaf >= 0x80000000;
        bool beyond = extended ? leaf > virt_model->max_extended_leaf : leaf > virt_model->max_leaf;
        if (beyond && virt_model->vendor[0] == 'G')
            leaf = virt_model->max_leaf, extended = false;
        struct cpuid real = cpuid(leaf, subleaf);
        memcpy(r, &real, sizeof real);
        if (beyond && virt_model->vendor[0] == 'A')
            memset(r, 0, sizeof r);
        else if (extended)
            extended_leaf(leaf, r);
        else
            basic_leaf(leaf, subleaf, r);
        virt_model->leaf(leaf, subleaf, r);
    }
    v->vmcb.rax = r[A];
    v->r.rbx = r[B];
    v->r.rcx = r[C];
    v->r.rdx = r[D];
}
