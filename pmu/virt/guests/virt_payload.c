/* SPDX-License-Identifier: MIT */
/* A guest that is not this kernel: one CPU in the state that multiboot 1 promises, or Linux' 64-bit
 * boot protocol. Source: Multiboot Specification 0.6.96, "I386 machine state"; Linux documentation,
 * "The Linux/x86 Boot Protocol". */
#include "kernel/base/layout.h"
#include "kernel/base/msr.h"
#include "kernel/base/x86.h"
#include "pmu/virt/guests/bios.h"
#include "pmu/virt/host.h"
#include "pmu/virt/blocks/nested.h"
#include "pmu/virt/guests/virt_payload.h"

#define BOOT_MAGIC 0x2badb002
#define LINUX_CS 0x10
#define LINUX_SS 0x18
#define CR0_PROTECTED 0x11 /* PE, ET */

/* VMRUN does not switch FS and GS: they are the guest's from here. */
static void load_flat_fs_gs(void)
{
    asm volatile("mov %0,%%fs\nmov %0,%%gs" : : "r"(SEL_KERNEL_SS));
}

/* Multiboot 1: 32-bit protected mode without paging. */
static void start_multiboot(struct vcpu *v, const struct virt_payload *p)
{
    struct vmcb *b = &v->vmcb;
    b->efer = EFER_SVME;
    b->cr0 = CR0_PROTECTED;
    b->cr3 = 0;
    b->cr4 = 0;
    b->cs = (struct segment){ SEL_KERNEL_CS, SEGMENT_CODE32, 0xffffffff, 0 };
    b->ss = b->ds = b->es = (struct segment){ SEL_KERNEL_SS, SEGMENT_DATA, 0xffffffff, 0 };
    b->rax = BOOT_MAGIC;
    v->r.rbx = p->info;
}

/* Linux: long mode on the loader's tables. */
static void start_linux(struct vcpu *v, const struct virt_payload *p)
{
    struct vmcb *b = &v->vmcb;
    b->efer = EFER_SVME | EFER_LME | EFER_LMA;
    b->cr0 = CR0_PROTECTED | CR0_PG;
    b->cr3 = p->tables;
    b->cr4 = CR4_PAE;
    b->gdtr = (struct segment){ 0, 0, p->gdt_limit, p->gdt };
    b->cs = (struct segment){ LINUX_CS, SEGMENT_CODE64, 0xffffffff, 0 };
    b->ss = b->ds = b->es = (struct segment){ LINUX_SS, SEGMENT_DATA, 0xffffffff, 0 };
    v->r.rsi = p->info;
}

void virt_boot_payload(const char *model, const struct virt_payload *payload)
{
    struct vcpu *v = virt_start(model);
    if (!v)
        return;
    virt_foreign = true;
    platform_find_pm_timer();
    bios_hide(payload->end);
    if (payload->cpu_count > 1) {
        startup_plan(payload);
        nested_guard(HOST_APIC);
    }
    load_flat_fs_gs();
    vmcb_enable_svm(v);
    vmcb_make(v);
    if (payload->tables)
        start_linux(v, payload);
    else
        start_multiboot(v, payload);
    v->vmcb.rip = payload->entry;
    virt_enter(v);
}
