/* SPDX-License-Identifier: MIT */
/* Makes each CPU the guest of its own hypervisor: the loop of entries and exits. Host code runs
 * with IF clear, on the boot page tables, on its own stack; a struct vcpu belongs to its CPU. Exits
 * cost about 10 us under TCG. Source: AMD64 APM volume 2, "Secure Virtual Machine". */
#include "kernel/base/layout.h"
#include "kernel/base/msr.h"
#include "kernel/base/print.h"
#include "kernel/base/x86.h"
#include "pmu/virt/debug.h"
#include "pmu/virt/host.h"
#include "pmu/virt/machine.h"
#include "pmu/virt/msr_table.h"
#include "pmu/virt/quirk.h"
#include "pmu/virt/blocks/blocks.h"
#include "pmu/virt/blocks/rep.h"
#include "pmu/virt/virt.h"

static struct vcpu first;   /* the boot CPU's; others have pages of the kernel's */
static unsigned vcpu_count; /* atomic */

static bool started;

/* Sets the intercepts for the next run; vcpu.h explains the fields. */
static void set_intercepts(struct vcpu *v)
{
    bool counting = v->pmu.counting || v->step.active;
    uint32_t misc = CATCH_RDPMC | CATCH_CPUID | CATCH_INVLPGA | CATCH_MSR | CATCH_SHUTDOWN;
    if (counting)
        misc |= CATCH_INTR | CATCH_NMI | CATCH_IRET | CATCH_SOFT_INT | CATCH_HLT;
    if (!virt_step)
        misc |= CATCH_NMI; /* alarms */
    /* Others may run at a PAUSE: what they execute is not this guest's. QEMU forgets TF there. */
    if (v->step.active || (!virt_step && ((counting && !virt_foreign) || token_needed())))
        misc |= CATCH_PAUSE;
    if (token_needed())
        misc |= CATCH_HLT;
    bool alone = v->step.active && v->step.alone;
    if (v->vmcb.io_map && !alone)
        misc |= CATCH_IO;
    if (virt_foreign && !alone)
        misc |= CATCH_CR0;
    v->vmcb.intercept_cr = virt_foreign && !alone ? CATCH_CR4 : 0;
    if (virt_quirks.c1e || virt_quirks.lbrlost)
        misc |= CATCH_HLT | CATCH_INTR;
    if (v->nmi.blocked)
        misc |= CATCH_IRET | CATCH_NMI;
    if (v->step.iret)
        misc &= ~CATCH_IRET;
    v->vmcb.intercept_misc = misc;
    uint32_t faults = emulate_hide_syscalls(v, counting);
    v->vmcb.intercept_exceptions = counting || v->step.iret ? CATCH_EXCEPTIONS
                                   : virt_foreign           ? faults
                                                            : 0;
}

/* Sets the bits that the kernel also sets. An emulator drops its translations at each change of
 * them: while guest and host agree, an exit takes half the time. PKE: blocks.c reads PKRU; and
 * it executes SSE, and AVX where there is AVX2: Opteron_G5 did not survive OSXSAVE. */
static void set_host_control(void)
{
    bool leaf7 = cpuid(0, 0).eax >= 7;
    uint32_t features = leaf7 ? cpuid(7, 0).ebx : 0, keys = leaf7 ? cpuid(7, 0).ecx >> 3 & 1 : 0;
    write_cr0((read_cr0() | CR0_WP) & ~(uint64_t)(CR0_EM | CR0_TS));
    write_cr4(read_cr4() | (features >> 7 & 1 ? CR4_SMEP : 0) |
              (features >> 20 & 1 ? CR4_SMAP : 0) | (keys ? CR4_PKE : 0) | CR4_OSFXSR |
              (features >> 5 & 1 ? CR4_OSXSAVE : 0));
}

/* The host of one CPU, on its own stack. */
static __attribute__((noreturn)) void host(struct vcpu *v)
{
    set_host_control();
    v->host_apic_id = host_apic_id();
    x2apic_start(v);
    v->alarm.way_in = UINT64_MAX;
    if (v->number == 0)
        clock_start(v);
    token_join(v);
    if (v->number == 0)
        startup_hosts(v);
    for (;;) {
        entry_prepare(v);
        set_intercepts(v);
        /* QEMU's SYSENTER sets D too, and VMRUN refuses that. */
        if (v->vmcb.cs.attributes & SEGMENT_LONG)
            v->vmcb.cs.attributes &= (uint16_t)~SEGMENT_BIG;
        rep_enter(v);
        if (!v->step.active || step_touches(&v->step, HOST_APIC))
            apic_timer_set_back(v);
        clock_enter(v);
        debug_enter(v);
        uint64_t clock = svm_run(virt_physical(&v->vmcb), &v->r, &v->stack.nmis, v->nmi.seen);
        debug_leave(v);
        if (clock == SVM_NOT_RUN) {
            entry_cancel(v);
            continue;
        }
        v->statistics.exits++;
        entry_account(v, clock);
        clock_leave(v, clock);
        if (!entry_pmi_first(v))
            exit_handle(v);
        apic_timer_note(v);
    }
}

/* Comes back as the guest. */
static void launch_guest(struct vcpu *v)
{
    struct table_register guest_idt;
    sidt(&guest_idt);
    vmcb_enable_svm(v);
    vmcb_make(v);
    v->vmcb.idtr = (struct segment){ 0, 0, guest_idt.limit, guest_idt.base };
    svm_launch(v, v->stack.bytes + sizeof v->stack.bytes, &v->vmcb.rsp, &v->vmcb.rip, host);
}

void virt_enter(struct vcpu *v)
{
    uint64_t unused;
    svm_launch(v, v->stack.bytes + sizeof v->stack.bytes, &unused, &unused, host);
    __builtin_unreachable();
}

static struct vcpu *next_vcpu(struct vcpu *v)
{
    unsigned n = __atomic_fetch_add(&vcpu_count, 1, __ATOMIC_SEQ_CST);
    if (n >= MAX_CPUS)
        return NULL;
    v->number = n;
    const struct model *m = v->pmu.model = machine_model(n);
    /* After reset, global control enables the general-purpose counters, and all else is 0. */
    if (m->version >= 2)
        v->pmu.global_control = m->gp_map;
    v->syscalls.sysenter_cs = (uint16_t)rdmsr(MSR_SYSENTER_CS);
    firmware_start(v);
    clock_start_tsc(v);
    return v;
}

struct vcpu *virt_start(const char *text)
{
    if (!machine_choose(text))
        return NULL;
    if (!vmcb_has_svm()) {
        print("# vpmu: %s not started: this processor has no SVM\n", machine_text());
        return NULL;
    }
    started = true;
    vmcb_init();
    msr_catch();
    rep_start();
    blocks_start();
    virt_step = virt_quirks.step;
    return next_vcpu(&first);
}

void virt_boot(const char *name)
{
    struct vcpu *v = virt_start(name);
    if (v)
        launch_guest(v);
}

/* One stack more than needed: pages are not aligned as stacks are. */
unsigned virt_cpu_pages(void)
{
    return (sizeof(struct vcpu) + HOST_STACK_SIZE - PAGE_SIZE) / PAGE_SIZE;
}

unsigned virt_ap_pages(void) { return started ? virt_cpu_pages() : 0; }

void virt_ap(void *pages)
{
    uint64_t aligned = ((uint64_t)pages + HOST_STACK_SIZE - 1) & -(uint64_t)HOST_STACK_SIZE;
    struct vcpu *v = started ? next_vcpu((struct vcpu *)aligned) : NULL;
    if (!v)
        return;
    if (!virt_foreign) {
        launch_guest(v);
        return;
    }
    v->token.parked = true;
    vmcb_enable_svm(v);
    vmcb_make(v);
    virt_enter(v);
}
