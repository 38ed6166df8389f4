/* SPDX-License-Identifier: MIT */
/* Switches SVM on, and makes the VMCB of a guest that goes on where this CPU is. Boot CPU first;
 * the tables are const from then on. Source: AMD64 APM volume 2, "Secure Virtual Machine". */
#include "kernel/base/layout.h"
#include "kernel/base/msr.h"
#include "kernel/base/vectors.h"
#include "kernel/base/x86.h"
#include "pmu/virt/vcpu.h"

#define MSR_VM_HSAVE_PA 0xc0010117
#define MSR_VM_CR 0xc0010114
#define VM_CR_SVMDIS (1u << 4)

static uint8_t msr_map[2 * PAGE_SIZE] __attribute__((aligned(PAGE_SIZE)));
static struct gate host_idt[256] __attribute__((aligned(16)));

bool vmcb_has_svm(void)
{
    if (cpuid(0x80000000, 0).eax < 0x8000000a || !(cpuid(0x80000001, 0).ecx & 1u << 2))
        return false;
    return !(rdmsr(MSR_VM_CR) & VM_CR_SVMDIS);
}

void vmcb_init(void)
{
    for (unsigned i = 0; i < 256; i++) {
        uint64_t at = i == 2 ? (uint64_t)svm_nmi : (uint64_t)svm_stubs + 8 * i;
        host_idt[i] = (struct gate){ .selector = SEL_KERNEL_CS, .type = GATE_RING0 };
        gate_set(&host_idt[i], at);
    }
}

/* Two bits per MSR, three ranges of 2,000h. */
void vmcb_catch_msr(uint32_t msr)
{
    uint32_t bit = (msr & 0x1fff) * 2 + (msr >= 0xc0010000   ? 0x8000
                                         : msr >= 0xc0000000 ? 0x4000
                                                             : 0);
    msr_map[bit / 8] |= (uint8_t)(3 << bit % 8);
}

void vmcb_make(struct vcpu *v)
{
    struct vmcb *b = &v->vmcb;
    struct table_register table;
    b->intercept_svm = CATCH_SVM;
    b->intercept_dr = CATCH_DR7;
    b->msr_map = virt_physical(msr_map);
    b->io_map = platform_io_map();
    b->asid = 1;
    b->pat = rdmsr(MSR_PAT);
    b->efer = rdmsr(MSR_EFER) & ~(uint64_t)EFER_NXE; /* nested paging needs the host's */
    b->cr0 = read_cr0();
    b->cr3 = read_cr3();
    b->cr4 = read_cr4();
    b->dr6 = 0xffff0ff0;
    b->dr7 = 0x400;
    b->rflags = 2;
    sgdt(&table);
    b->gdtr = (struct segment){ 0, 0, table.limit, table.base };
    sidt(&table);
    b->idtr = (struct segment){ 0, 0, table.limit, table.base };
    virt_set_segment(&b->es, 0, 0);
    virt_set_segment(&b->ds, 0, 0);
    virt_set_cpl(v, SEL_KERNEL_CS, SEL_KERNEL_SS);
}

void vmcb_enable_svm(struct vcpu *v)
{
    static const struct table_register table = { sizeof host_idt - 1, (uint64_t)host_idt };
    lidt(&table);
    wrmsr(MSR_EFER, rdmsr(MSR_EFER) | EFER_SVME | EFER_NXE);
    wrmsr(MSR_VM_HSAVE_PA, virt_physical(v->host_save));
}
