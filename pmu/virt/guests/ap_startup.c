/* SPDX-License-Identifier: MIT */
/* The other CPUs of a foreign guest. Their hosts start before the guest runs, and wait. In the
 * nested map the local APIC's registers cannot be written; the guest's writes are done for it, but
 * for INIT and STARTUP, which never leave the virtual PMU: they let a host wait, or begin. QEMU 7.2
 * has no nested paging while the guest's paging is off: such a guest must start no CPU but by an
 * x2APIC. L: the token. Sources: SDM volume 3, "Multiple-Processor Initialization", "Interrupt
 * Command Register", "Processor State After Reset" (the column of INIT). */
#include "pmu/virt/guests/ap_startup.h"
#include "kernel/base/boot_info.h"
#include "kernel/base/layout.h"
#include "kernel/base/print.h"
#include "kernel/base/string.h"
#include "kernel/base/x86.h"
#include "pmu/virt/guest.h"
#include "pmu/virt/vcpu.h"
#include "pmu/virt/guests/virt_payload.h"

#define START_PAUSES 2000000u /* two are enough for QEMU */
enum { APIC_ICR = 0x300, APIC_ICR2 = 0x310 };
enum { INIT = 5, STARTUP = 6 };
#define ICR_LOGICAL (1u << 11)
#define ICR_ASSERT (1u << 14)
enum { TO_ONE, TO_SELF, TO_ALL, TO_OTHERS };
#define TO_ANY 0xffu /* the destination that all have */
#define FAULT_WRITE 2u
#define OPERAND_MOST 8u            /* bytes, of stores_operand() */
#define CR0_AFTER_INIT 0x60000010u /* caches off, ET */
#define REAL_CODE 0x9bu
#define REAL_DATA 0x93u
#define MSR_DEBUGCTL 0x1d9u

static const struct virt_payload *plan; /* NULL: one CPU */
static struct vcpu *cpus[MAX_CPUS];     /* the boot CPU first */
static unsigned cpu_count;
static uint8_t start_stack[PAGE_SIZE] __attribute__((aligned(16))); /* until token_join() */

void startup_plan(const struct virt_payload *payload) { plan = payload; }

/* It begins in `page`, comes to virt_ap(), and waits in token_join(). QEMU needs no time between
 * INIT and STARTUP. */
static bool start_host(uint32_t id, uint8_t *page, uint8_t *pages)
{
    unsigned before = token_members();
    memset(pages, 0, plan->cpu_size);
    boot_put_ap(page, (uint64_t)start_stack + sizeof start_stack, pages);
    host_apic_send(id, ICR_STARTUP | plan->start_page / PAGE_SIZE);
    for (unsigned i = 0; i < START_PAUSES && token_members() == before; i++)
        pause();
    if (token_members() == before) {
        host_apic_send(id, ICR_INIT); /* if it starts late, it waits for a STARTUP */
        return false;
    }
    cpus[cpu_count++] = token_member(before);
    return true;
}

void startup_hosts(struct vcpu *v)
{
    static uint8_t saved[PAGE_SIZE]; /* the guest's */
    if (!plan)
        return;
    uint8_t *page = (uint8_t *)(DIRECT_MAP + plan->start_page), *pages = plan->cpu_pages;
    memcpy(saved, page, PAGE_SIZE);
    cpus[cpu_count++] = v;
    for (unsigned i = 0; i < plan->cpu_count; i++) {
        uint32_t id = plan->apic_ids[i];
        if (id == v->host_apic_id)
            continue;
        host_apic_send(id, ICR_INIT);
        if (virt_step || !plan->start_page || !start_host(id, page, pages))
            print("# vpmu: the CPU with APIC id %u does not start%s\n", id,
                  virt_step ? ": stepping" : "");
        pages += plan->cpu_size;
    }
    memcpy(page, saved, PAGE_SIZE);
}

/* `one`: the destination where no shorthand is used. */
static bool is_meant(const struct vcpu *v, const struct vcpu *to, uint32_t icr, uint32_t one)
{
    switch (icr >> 18 & 3) {
    case TO_ONE: return one == TO_ANY || one == to->host_apic_id;
    case TO_SELF: return to == v;
    case TO_OTHERS: return to != v;
    default: return true;
    }
}

static void init_cpu(struct vcpu *v)
{
    if (v == cpus[0])
        virt_end_guest(v, "INIT of the boot CPU");
    v->token.parked = true;
}

static void start_cpu(struct vcpu *v, uint8_t page)
{
    if (!v->token.parked)
        return;
    v->startup = (struct startup){ true, page };
    v->token.parked = false;
    v->token.awake = true;
}

/* What is for none of its CPUs goes nowhere: an NMI would start the firmware's code on a CPU that
 * has not begun. */
void startup_send(struct vcpu *v, uint32_t one, uint32_t icr)
{
    unsigned mode = icr >> 8 & 7, reached = 0;
    for (unsigned i = 0; i < cpu_count; i++) {
        if (!is_meant(v, cpus[i], icr, one))
            continue;
        reached++;
        if (mode == STARTUP)
            start_cpu(cpus[i], (uint8_t)icr);
        else if (mode == INIT && icr & ICR_ASSERT)
            init_cpu(cpus[i]);
    }
    if (!plan || (mode != INIT && mode != STARTUP && (reached || icr & ICR_LOGICAL)))
        host_apic_send(one, icr);
}

bool startup_is_write(const struct vcpu *v)
{
    return plan && v->vmcb.exit_info2 / PAGE_SIZE == HOST_APIC / PAGE_SIZE &&
           v->vmcb.exit_info1 & FAULT_WRITE;
}

/* The 32 bits that a MOV stores, and the length of the instruction; 0: it is none. */
static unsigned stored_value(const struct vcpu *v, const struct insn *i, uint32_t *value)
{
    struct insn_memory unused;
    if (i->map != MAP_ONE || i->operand16 || i->rex & REX_W)
        return 0;
    unsigned after = i->op == 0xa3 ? i->modrm_at + (i->wide && !i->address32 ? 8u : 4u)
                                   : insn_memory(i, &unused);
    unsigned reg = i->op == 0xa3 ? 0 : insn_reg(i) | (i->rex & REX_R ? 8 : 0);
    *value = i->op == 0xc7 ? (uint32_t)insn_number(i, after, 4) : (uint32_t)guest_register(v, reg);
    return i->op == 0x89 || i->op == 0xa3 ? after : i->op == 0xc7 ? after + 4 : 0;
}

/* Whether it stores one operand, of at most OPERAND_MOST bytes: ADD to XOR, their kin with a
 * number, XCHG, MOV, shifts, NOT, NEG, INC, DEC. */
static bool stores_operand(const struct insn *i)
{
    uint8_t op = i->op;
    return i->map == MAP_ONE &&
           ((op < 0x40 && !(op & 6)) || (op >= 0x80 && op <= 0x83) || (op >= 0x86 && op <= 0x89) ||
            (op & 0xfe) == 0xc0 || (op & 0xfe) == 0xc6 || (op & 0xfc) == 0xd0 ||
            (op & 0xfe) == 0xf6 || ((op & 0xfe) == 0xfe && insn_reg(i) < 2));
}

/* QEMU's registers are 16 bytes wide. */
unsigned startup_write(struct vcpu *v)
{
    uint32_t value, at = (uint32_t)v->vmcb.exit_info2 % PAGE_SIZE;
    struct insn i;
    guest_insn(v, &i);
    unsigned length = stored_value(v, &i, &value);
    bool near = at + OPERAND_MOST > APIC_ICR && at < APIC_ICR2;
    if (!length && (near || !stores_operand(&i)))
        virt_end_guest(v, "writes the local APIC's registers by an instruction that could "
                          "send INIT unseen");
    if (!length)
        v->step.alone = true;
    else if (at / 16 == APIC_ICR / 16)
        startup_send(v, host_apic_read(APIC_ICR2) >> 24, value);
    else
        host_apic_write(at, value);
    return length;
}

/* Real mode at the page's first byte. Counters stay as they are. */
static void begin_at(struct vcpu *v, uint8_t page)
{
    const struct segment data = { 0, REAL_DATA, 0xffff, 0 };
    struct vmcb *b = &v->vmcb;
    b->efer = EFER_SVME;
    b->cr0 = CR0_AFTER_INIT;
    b->cr2 = b->cr3 = b->cr4 = 0;
    b->dr6 = 0xffff0ff0;
    b->dr7 = 0x400;
    b->rflags = 2;
    b->rip = b->rsp = b->rax = b->inject = b->shadow = b->cpl = 0;
    b->cs = (struct segment){ (uint16_t)(page << 8), REAL_CODE, 0xffff, (uint64_t)page << 12 };
    b->ss = b->ds = b->es = data;
    b->gdtr = b->idtr = (struct segment){ 0, 0, 0xffff, 0 };
    v->r = (struct registers){ .rdx = v->pmu.model->signature };
    v->syscalls.sce = false;
    v->nmi.pending = v->nmi.blocked = false;
    v->step.iret = v->step.alone = v->rep.inside = false;
    count_wrmsr(v, MSR_DEBUGCTL, 0);
    asm volatile("mov %0,%%fs\nmov %0,%%gs" : : "r"(SEL_KERNEL_SS)); /* VMRUN does not load them */
}

bool startup_enter(struct vcpu *v)
{
    if (v->token.parked)
        token_halt(v);
    bool begins = v->startup.due;
    if (begins)
        begin_at(v, v->startup.page);
    v->startup.due = false;
    return begins;
}
