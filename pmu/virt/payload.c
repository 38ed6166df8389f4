/* SPDX-License-Identifier: MIT */
/* A guest that is not this kernel: one CPU in the state that multiboot 1 promises.
 * Source: Multiboot Specification 0.6.96, "I386 machine state". */
#include "kernel/base/layout.h"
#include "kernel/base/msr.h"
#include "kernel/base/x86.h"
#include "pmu/virt/svm.h"
#include "pmu/virt/virt.h"

#define BOOT_MAGIC 0x2badb002
#define CR0_PROTECTED 0x11 /* PE, ET */

/* VMRUN does not switch FS and GS: they are the guest's from here. */
static void load_flat_fs_gs(void)
{
    asm volatile("mov %0,%%fs\nmov %0,%%gs" : : "r"(SEL_KERNEL_SS));
}

void virt_boot_payload(const char *model, uint32_t entry, uint32_t info)
{
    struct vcpu *v = virt_start(model);
    if (!v)
        return;
    struct vmcb *b = &v->vmcb;
    virt_foreign = true;
    load_flat_fs_gs();
    vmcb_enable_svm(v);
    vmcb_make(v);
    b->efer = EFER_SVME;
    b->cr0 = CR0_PROTECTED;
    b->cr3 = 0;
    b->cr4 = 0;
    b->cs = (struct segment){ SEL_KERNEL_CS, SEGMENT_CODE32, 0xffffffff, 0 };
    b->ss = b->ds = b->es = (struct segment){ SEL_KERNEL_SS, SEGMENT_DATA, 0xffffffff, 0 };
    b->rax = BOOT_MAGIC;
    v->r.rbx = info;
    b->rip = entry;
    virt_enter(v);
}
