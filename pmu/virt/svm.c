/* SPDX-License-Identifier: MIT */
/* Makes each CPU the guest of its own hypervisor: VMCB set-up, the loop of stretches and exits
 * (a stretch is the guest's run from an entry to the next exit). Host code runs with IF clear,
 * on the boot page tables, on its own stack; a struct vcpu belongs to its CPU. Exits cost about
 * 10 us under TCG. Source: AMD64 APM volume 2, "Secure Virtual Machine". */
#include "pmu/virt/svm.h"
#include "kernel/base/exit.h"
#include "kernel/base/layout.h"
#include "kernel/base/msr.h"
#include "kernel/base/print.h"
#include "kernel/base/string.h"
#include "kernel/base/x86.h"
#include "pmu/virt/quirk.h"
#include "pmu/virt/virt.h"

#define MSR_VM_HSAVE_PA 0xc0010117
#define MSR_VM_CR 0xc0010114
#define VM_CR_SVMDIS (1u << 4)

static struct vcpu vcpus[MAX_CPUS] __attribute__((aligned(HOST_STACK_SIZE)));
static uint8_t msr_map[2 * PAGE_SIZE] __attribute__((aligned(PAGE_SIZE)));
static struct {
    uint16_t low, selector;
    uint8_t stack, type;
    uint16_t middle;
    uint32_t high, reserved;
} host_idt[256] __attribute__((aligned(16)));
static unsigned vcpu_count; /* atomic */

bool virt_step;
static bool started;

uint64_t virt_physical(const void *p) { return (uint64_t)p - KERNEL_VMA; }

__attribute__((noreturn)) static void end_machine(void)
{
    exit_to_host(EXIT_DIED);
    for (;;)
        cli_hlt();
}

void virt_die(const struct vcpu *v, const char *why)
{
    print_break_lock();
    print("\n# vpmu: CPU %u: %s: exit %lx info %lx %lx, RIP %lx RSP %lx CR3 %lx, event %lx\n", v->number, why,
          v->vmcb.exit_code, v->vmcb.exit_info1, v->vmcb.exit_info2, v->vmcb.rip, v->vmcb.rsp, v->vmcb.cr3,
          v->vmcb.exit_int_info);
    end_machine();
}

void virt_host_fault(unsigned vector, const uint64_t *frame)
{
    print_break_lock();
    print("\n# vpmu: exception %u in the host, stack %lx %lx %lx, CR2 %lx\n", vector, frame[0], frame[1], frame[2],
          read_cr2());
    end_machine();
}

static void make_idt(void)
{
    for (unsigned i = 0; i < 256; i++) {
        uint64_t at = i == 2 ? (uint64_t)svm_nmi : (uint64_t)svm_stubs + 16 * i;
        host_idt[i].low = (uint16_t)at;
        host_idt[i].selector = SEL_KERNEL_CS;
        host_idt[i].type = 0x8e;
        host_idt[i].middle = (uint16_t)(at >> 16);
        host_idt[i].high = (uint32_t)(at >> 32);
    }
}

/* Two bits per MSR, three ranges of 2,000h. */
static void catch_msr(uint32_t msr)
{
    uint32_t bit = (msr & 0x1fff) * 2 + (msr >= 0xc0010000 ? 0x8000 : msr >= 0xc0000000 ? 0x4000 : 0);
    msr_map[bit / 8] |= (uint8_t)(3 << bit % 8);
}

static void make_msr_map(void)
{
    static const uint32_t bases[] = { 0, 0xc0000000, 0xc0010000 };
    for (unsigned i = 0; i < 3; i++)
        for (uint32_t n = 0; n < 0x2000; n++)
            if (count_owns(bases[i] + n))
                catch_msr(bases[i] + n);
    catch_msr(MSR_EFER);
    catch_msr(MSR_VM_HSAVE_PA);
    catch_msr(MSR_VM_CR);
}

static void set_segment(struct segment *s, uint16_t selector, uint16_t attributes)
{
    *s = (struct segment){ selector, attributes, 0xffffffff, 0 };
}

void virt_set_cpl(struct vcpu *v, uint16_t cs, uint16_t ss)
{
    bool user = cs & 3;
    uint16_t ring = user ? SEGMENT_RING3 : 0;
    set_segment(&v->vmcb.cs, cs, (uint16_t)(SEGMENT_CODE64 | ring));
    set_segment(&v->vmcb.ss, ss, (uint16_t)(SEGMENT_DATA | ring));
    v->vmcb.cpl = user ? 3 : 0;
}

/* The guest starts with the state that the host has now. */
static void make_vmcb(struct vcpu *v)
{
    struct vmcb *b = &v->vmcb;
    struct table_register table;
    b->intercept_svm = CATCH_SVM;
    b->msr_map = virt_physical(msr_map);
    b->io_map = platform_io_map();
    b->asid = 1;
    b->efer = rdmsr(MSR_EFER);
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
    set_segment(&b->es, 0, 0);
    set_segment(&b->ds, 0, 0);
    virt_set_cpl(v, SEL_KERNEL_CS, SEL_KERNEL_SS);
}

static void enable_svm(struct vcpu *v)
{
    static const struct table_register table = { sizeof host_idt - 1, (uint64_t)host_idt };
    lidt(&table);
    wrmsr(MSR_EFER, rdmsr(MSR_EFER) | EFER_SVME);
    wrmsr(MSR_VM_HSAVE_PA, virt_physical(v->host_save));
}

static bool has_svm(void)
{
    if (cpuid(0x80000000, 0).eax < 0x8000000a || !(cpuid(0x80000001, 0).ecx & 1u << 2))
        return false;
    return !(rdmsr(MSR_VM_CR) & VM_CR_SVMDIS);
}

/* Comes back as the guest. */
static void launch(struct vcpu *v)
{
    struct table_register guest_idt;
    sidt(&guest_idt);
    enable_svm(v);
    make_vmcb(v);
    v->vmcb.idtr = (struct segment){ 0, 0, guest_idt.limit, guest_idt.base };
    svm_launch(v, v->stack.bytes + sizeof v->stack.bytes, &v->vmcb.rsp, &v->vmcb.rip);
}

void virt_enter(struct vcpu *v)
{
    uint64_t unused;
    svm_launch(v, v->stack.bytes + sizeof v->stack.bytes, &unused, &unused);
    __builtin_unreachable();
}

static struct vcpu *next_vcpu(void)
{
    unsigned n = __atomic_fetch_add(&vcpu_count, 1, __ATOMIC_SEQ_CST);
    if (n >= MAX_CPUS)
        return NULL;
    vcpus[n].number = n;
    const struct model *m = vcpus[n].pmu.model = machine_model(n);
    /* Global control comes out of reset with the general-purpose counters enabled, all else is 0. */
    if (m->version >= 2)
        vcpus[n].pmu.global_control = m->gp_map;
    firmware_start(&vcpus[n]);
    return &vcpus[n];
}

struct vcpu *virt_start(const char *text)
{
    if (!machine_choose(text))
        return NULL;
    if (!has_svm()) {
        print("# vpmu: %s not started: this processor has no SVM\n", machine_text());
        return NULL;
    }
    started = true;
    make_idt();
    make_msr_map();
    virt_step = virt_quirks.step;
    return next_vcpu();
}

void virt_boot(const char *name)
{
    struct vcpu *v = virt_start(name);
    if (v)
        launch(v);
}

void virt_ap(void)
{
    struct vcpu *v = started ? next_vcpu() : NULL;
    if (!v)
        return;
    launch(v);
}

/* For clock.c: a VMCB that can run and is used for the measurement only. */
void virt_prepare_vmcb(struct vcpu *v)
{
    enable_svm(v);
    make_vmcb(v);
}

/* Sets the intercepts for the next stretch. See svm.h on the fields. */
static void set_intercepts(struct vcpu *v)
{
    bool counting = v->pmu.counting || v->stepping;
    uint32_t misc = CATCH_RDPMC | CATCH_CPUID | CATCH_INVLPGA | CATCH_MSR | CATCH_SHUTDOWN;
    if (counting)
        misc |= CATCH_INTR | CATCH_NMI | CATCH_IRET | CATCH_SOFT_INT | CATCH_HLT;
    if (!virt_step)
        misc |= CATCH_NMI | CATCH_PAUSE; /* alarms; a CPU that starts needs the holder's attention */
    if (baton_needed())
        misc |= CATCH_HLT;
    if (v->vmcb.io_map)
        misc |= CATCH_IO;
    if (virt_quirks.c1e)
        misc |= CATCH_HLT | CATCH_INTR;
    if (v->nmi_blocked)
        misc |= CATCH_IRET | CATCH_NMI;
    if (v->step_iret)
        misc &= ~CATCH_IRET;
    v->vmcb.intercept_misc = misc;
    v->vmcb.intercept_exceptions = counting || v->step_iret ? CATCH_EXCEPTIONS : 0;
    v->vmcb.efer &= ~(uint64_t)EFER_SCE;
    if (v->sce && !counting)
        v->vmcb.efer |= EFER_SCE;
}

/* The bits that the kernel sets, too. An emulator forgets its translations at each change of them: where guest and host
 * have the same, an exit takes half the time. */
static void set_control_registers(void)
{
    uint32_t features = cpuid(0, 0).eax >= 7 ? cpuid(7, 0).ebx : 0;
    write_cr0(read_cr0() | CR0_WP);
    write_cr4(read_cr4() | (features >> 7 & 1 ? CR4_SMEP : 0) | (features >> 20 & 1 ? CR4_SMAP : 0));
}

void virt_host(struct vcpu *v)
{
    set_control_registers();
    v->host_apic_id = host_apic_id();
    v->way_in = UINT64_MAX;
    if (v->number == 0)
        clock_start(v);
    baton_join(v);
    for (;;) {
        event_prepare(v);
        set_intercepts(v);
        uint64_t clock = svm_run(virt_physical(&v->vmcb), &v->r, &v->stack.nmis, v->nmis_seen);
        if (clock == SVM_NOT_RUN) {
            event_cancel(v);
            continue;
        }
        v->statistics.exits++;
        event_account(v, clock);
        if (!event_comes_first(v))
            exit_handle(v);
    }
}
