/* SPDX-License-Identifier: MIT */
/* Which MSRs exit, and what the guest's accesses do then. */
#include "pmu/virt/msr_table.h"
#include "kernel/base/bits.h"
#include "kernel/base/msr.h"
#include "kernel/base/x86.h"
#include "pmu/virt/quirk.h"
#include "pmu/virt/vcpu.h"
#include "pmu/virt/vmcb.h"

#define EFER_GUEST (EFER_SCE | EFER_LME | EFER_LMA | EFER_NXE)

static bool read_efer(struct vcpu *v, uint32_t, uint64_t *value)
{
    *value = (v->vmcb.efer & EFER_GUEST & ~(uint64_t)EFER_SCE) | (v->syscalls.sce ? EFER_SCE : 0);
    return true;
}

static bool write_efer(struct vcpu *v, uint32_t, uint64_t value)
{
    uint64_t now = v->vmcb.efer, changed = value ^ now;
    if (value & ~(uint64_t)EFER_GUEST || (changed & EFER_LME && v->vmcb.cr0 & CR0_PG))
        return false;
    v->syscalls.sce = value & EFER_SCE;
    v->vmcb.efer = (value & (EFER_NXE | EFER_LME)) | (now & EFER_LMA) | EFER_SVME;
    return true;
}

static bool read_pat(struct vcpu *v, uint32_t msr, uint64_t *value)
{
    *value = v->vmcb.pat = rdmsr(msr); /* of the VMCB with nested paging */
    return true;
}

/* The host's PAT is the guest's: Bochs' VMRUN keeps a guest's own only until the next exit. */
static bool write_pat(struct vcpu *v, uint32_t msr, uint64_t value)
{
    for (unsigned i = 0; i < 64; i += 8)
        if ((value >> i & 0xff) > 7 || (value >> i & 6) == 2)
            return false;
    wrmsr(msr, value);
    return read_pat(v, msr, &value);
}

/* Rows of a PMU: every register of any vendor or version. Those that the model lacks fault. */
#define PMU(first, last)                                                                           \
    {                                                                                              \
        first, last, count_rdmsr, count_wrmsr, NULL                                                \
    }

/* clang-format off */
static const struct msr_row rows[] = {
    PMU(0x40, 0x47), PMU(0x60, 0x67), PMU(0xc1, 0xcc), PMU(0xe7, 0xe8), PMU(0x186, 0x191),
    PMU(0x1a0, 0x1a0), PMU(0x1c8, 0x1c9), PMU(0x1d9, 0x1d9), PMU(0x1db, 0x1de),
    PMU(0x309, 0x30f), PMU(0x329, 0x329), PMU(0x345, 0x345), PMU(0x38d, 0x392),
    PMU(0x3f1, 0x3f2), PMU(0x4c1, 0x4cc), PMU(0x600, 0x600), PMU(0x680, 0x69f),
    PMU(0x6c0, 0x6df), PMU(0xdc0, 0xddf), PMU(0x1200, 0x121f), PMU(0x14ce, 0x14cf),
    PMU(0x1500, 0x151f), PMU(0x1600, 0x161f), PMU(0x1900, 0x19ff),
    PMU(0xc00000e7, 0xc00000e9), PMU(0xc000010e, 0xc000010f), PMU(0xc0000300, 0xc0000303),
    PMU(0xc0010000, 0xc0010007), PMU(0xc0010114, 0xc0010114), PMU(0xc0010117, 0xc0010117),
    PMU(0xc0010200, 0xc001020f), PMU(0xc0010230, 0xc001023b), PMU(0xc0010240, 0xc0010247),
    PMU(0xc0010280, 0xc0010280), PMU(0xc0010300, 0xc001031f), PMU(0xc0011029, 0xc0011029),
    { SMI_COUNT, SMI_COUNT, count_rdmsr, count_wrmsr, &virt_quirks.smi },
    { INT_PENDING, INT_PENDING, count_rdmsr, count_wrmsr, &virt_quirks.c1e },
    { MSR_EFER, MSR_EFER, read_efer, write_efer, NULL },
    { MSR_SYSENTER_CS, MSR_SYSENTER_CS, emulate_read_sysenter, emulate_write_sysenter, NULL },
    { MSR_PAT, MSR_PAT, read_pat, write_pat, NULL },
    { MSR_TSC, MSR_TSC, clock_rdmsr, clock_wrmsr, &virt_quirks.tsc },
    { MSR_TSC_ADJUST, MSR_TSC_ADJUST, clock_rdmsr, clock_wrmsr, &virt_quirks.tsc },
    { MSR_TSC, MSR_TSC, clock_rdmsr, clock_wrmsr, &virt_quirks.tsc_fixed },
    { MSR_TSC_ADJUST, MSR_TSC_ADJUST, clock_rdmsr, clock_wrmsr, &virt_quirks.tsc_fixed },
    { MSR_TSC_DEADLINE, MSR_TSC_DEADLINE,
      x2apic_read_deadline, x2apic_write_deadline, &virt_quirks.deadline },
    { MSR_APIC_BASE, MSR_APIC_BASE, x2apic_rdmsr, x2apic_wrmsr, &virt_quirks.x2apic },
    { MSR_X2APIC, MSR_X2APIC + 0xff, x2apic_rdmsr, x2apic_wrmsr, &virt_quirks.x2apic },
};
/* clang-format on */

static bool is_there(const struct msr_row *r) { return !r->quirk || *r->quirk; }

const struct msr_row *msr_find(uint32_t msr)
{
    for_each_in(r, rows)
        if (msr >= r->first && msr <= r->last && is_there(r))
            return r;
    return NULL;
}

void msr_catch(void)
{
    for_each_in(r, rows)
        for (uint32_t msr = r->first; is_there(r) && msr <= r->last; msr++)
            vmcb_catch_msr(msr);
}
