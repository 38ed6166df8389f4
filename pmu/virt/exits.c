/* SPDX-License-Identifier: MIT */
/* Handles each exit. What the guest executed before it is counted already (run_entry.c). An
 * instruction that the host executes here counts 1 after its effect; one that faults counts
 * nothing. */
#include "kernel/base/x86.h"
#include "pmu/virt/guests/bios.h"
#include "pmu/virt/guests/control.h"
#include "pmu/virt/cpuid.h"
#include "pmu/virt/debug.h"
#include "pmu/virt/guest.h"
#include "pmu/virt/msr_table.h"
#include "pmu/virt/quirk.h"
#include "pmu/virt/vcpu.h"

/* The intercepted instruction is complete: RIP moves after it. */
static void go_after(struct vcpu *v, unsigned length)
{
    v->vmcb.rip += length;
    v->vmcb.rflags &= ~(uint64_t)RFLAGS_RF;
    if (!(v->vmcb.cs.attributes & SEGMENT_LONG))
        v->vmcb.rip = (uint32_t)v->vmcb.rip;
    v->vmcb.shadow = 0;
}

/* What the host executes is no branch. */
static void trap_after(struct vcpu *v)
{
    if (!(v->pmu.debugctl & DEBUGCTL_BTF))
        virt_trap(v);
}

/* Counts an instruction that the host has executed for the guest; RIP moves after it. */
static void skip_instruction(struct vcpu *v, unsigned length)
{
    go_after(v, length);
    count_emulated(v, v->vmcb.cpl == 3);
    if (v->vmcb.exit_code != EXIT_RDPMC)
        early_serialize(v);
    trap_after(v);
}

/* A store of the guest's to a register of the local APIC, or a page that it may not execute yet. */
static void exit_page(struct vcpu *v)
{
    if (!startup_is_write(v)) {
        rep_fault(v);
        return;
    }
    apic_timer_set_back(v);
    unsigned length = startup_write(v);
    if (!length)
        return;
    go_after(v, length);
    count_one(v, v->vmcb.cpl == 3, EFFECT(EVENT_STORES));
    early_serialize(v);
    trap_after(v);
}

/* Length of an instruction: its prefixes, and `opcode` bytes after them. */
static unsigned length_of(const struct vcpu *v, unsigned opcode)
{
    struct insn i;
    guest_insn(v, &i);
    return i.prefixes + opcode;
}

static void set_result(struct vcpu *v, uint64_t value)
{
    v->vmcb.rax = (uint32_t)value;
    v->r.rdx = value >> 32;
}

static void exit_msr(struct vcpu *v)
{
    uint32_t msr = (uint32_t)v->r.rcx;
    uint64_t value = (uint32_t)v->vmcb.rax | v->r.rdx << 32;
    bool write = v->vmcb.exit_info1 & 1, done = virt_quirks.ignoremsrs;
    const struct msr_row *row = msr_find(msr);
    apic_timer_set_back(v); /* x2apic, deadline */
    if (row)
        done = write ? row->write(v, msr, value) : row->read(v, msr, &value);
    if (!done) {
        virt_raise(v, VECTOR_GP, 0);
        return;
    }
    if (!write)
        set_result(v, row ? value : 0);
    skip_instruction(v, length_of(v, 2));
}

static void exit_rdpmc(struct vcpu *v)
{
    uint64_t value;
    v->statistics.rdpmc++;
    if ((v->vmcb.cpl && !(v->vmcb.cr4 & CR4_PCE)) || !count_rdpmc(v, (uint32_t)v->r.rcx, &value)) {
        virt_raise(v, VECTOR_GP, 0);
        return;
    }
    set_result(v, value);
    skip_instruction(v, length_of(v, 2));
}

/* INT n, INT3 and INTO: injected with RIP after the instruction, as the processor delivers them. */
static void exit_soft_int(struct vcpu *v)
{
    struct insn i;
    guest_insn(v, &i);
    unsigned vector = i.op == 0xcd ? i.byte[i.modrm_at] : i.op == 0xcc ? VECTOR_BP : VECTOR_OF;
    v->run.soft_length = i.prefixes + (i.op == 0xcd ? 2u : 1u);
    v->run.soft_user = v->vmcb.cpl == 3;
    v->vmcb.rip += v->run.soft_length; /* entry_account counts it if it is delivered */
    v->vmcb.shadow = 0;
    v->vmcb.inject = vector | INJECT_SOFT_INT | INJECT_VALID;
}

/* Contributory exceptions: two of them, or a page fault and then one, make a double fault. */
static bool is_contributory(unsigned vector)
{
    return vector == 0 || (vector >= 10 && vector <= 13);
}

static unsigned combine_exceptions(struct vcpu *v, unsigned first, unsigned second)
{
    if (first == VECTOR_DF)
        virt_end_guest(v, "triple fault");
    bool both = is_contributory(first) && is_contributory(second);
    bool paging = first == VECTOR_PF && (second == VECTOR_PF || is_contributory(second));
    return both || paging ? VECTOR_DF : second;
}

static void exit_exception(struct vcpu *v, unsigned vector)
{
    if ((vector == VECTOR_UD || vector == VECTOR_GP) && !v->run.inject_failed && emulate_syscall(v))
        return;
    if (vector == VECTOR_DB && !debug_is_guests(v))
        return;
    if (vector == VECTOR_PF) {
        v->vmcb.cr2 = v->vmcb.exit_info2;
        write_cr2(v->vmcb.cr2); /* Bochs' VMRUN does not load it */
    }
    if (v->run.inject_failed && (v->run.injected & INJECT_TYPE) == INJECT_EXCEPTION)
        vector = combine_exceptions(v, v->run.injected & 0xff, vector);
    if (v->run.inject_failed && (v->run.injected & INJECT_TYPE) == INJECT_SOFT_INT)
        v->vmcb.rip -= v->run.soft_length;
    virt_raise(v, vector, vector == VECTOR_DF ? 0 : (uint32_t)v->vmcb.exit_info1);
}

/* ICEBP counts as INT n does. The #DB intercept does not see its #DB, on QEMU since version 8. */
static void exit_icebp(struct vcpu *v)
{
    go_after(v, length_of(v, 1));
    count_one(v, v->vmcb.cpl == 3, EFFECTS_SOFT_INT);
    exit_exception(v, VECTOR_DB);
}

static void exit_interrupt(struct vcpu *v)
{
    uint32_t taken = interrupt_take(v, 0);
    if (taken)
        interrupt_inject(v, taken);
}

/* PAUSE is F3 90. No other hypervisor intercepts it: it does not count as emulated. */
static void exit_pause(struct vcpu *v)
{
    go_after(v, length_of(v, 1));
    count_add(v, v->vmcb.cpl == 3, virt_quirks.uncounted != UNCOUNTED_PAUSE);
    trap_after(v);
    token_pause(v);
}

/* The guest's own single-step trap ends the halt at once. */
static void exit_hlt(struct vcpu *v)
{
    if (virt_quirks.lbrlost)
        records_lose(&v->pmu);
    skip_instruction(v, length_of(v, 1));
    if (!(v->vmcb.inject & INJECT_VALID))
        token_halt(v);
}

void exit_handle(struct vcpu *v)
{
    uint64_t code = v->vmcb.exit_code;
    v->run.reentry = code == EXIT_INTR || code == EXIT_MSR || code == EXIT_RDPMC ||
                     code == EXIT_CPUID || code == EXIT_HLT || code == EXIT_IO;
    if (code >= EXIT_EXCEPTION && code < EXIT_EXCEPTION + 32)
        exit_exception(v, (unsigned)(code - EXIT_EXCEPTION));
    else
        switch (code) {
        case EXIT_INTR: exit_interrupt(v); break;
        case EXIT_NMI: break; /* svm_nmi has counted it, entry_prepare handles it */
        case EXIT_IRET:
            v->step.iret = true;
            early_serialize(v);
            break;
        case EXIT_MSR: exit_msr(v); break;
        case EXIT_RDPMC: exit_rdpmc(v); break;
        case EXIT_SOFT_INT: exit_soft_int(v); break;
        case EXIT_ICEBP: exit_icebp(v); break;
        case EXIT_CPUID:
            virt_cpuid(v);
            skip_instruction(v, length_of(v, 2));
            break;
        case EXIT_IO:
            if (platform_io(v))
                skip_instruction(v, (unsigned)(v->vmcb.exit_info2 - v->vmcb.rip));
            break;
        case EXIT_NPF: exit_page(v); break;
        case EXIT_CR0:
        case EXIT_WRITE_CR4: control_write(v); break;
        case EXIT_WRITE_DR5:
        case EXIT_WRITE_DR7:
            if (debug_write_dr7(v, (unsigned)code & 7))
                skip_instruction(v, length_of(v, 3));
            break;
        case EXIT_PAUSE: exit_pause(v); break;
        case EXIT_HLT: exit_hlt(v); break;
        case EXIT_INVLPGA:
        case EXIT_MONITOR: /* CPUID does not offer them */
        case EXIT_MWAIT: virt_raise(v, VECTOR_UD, 0); break;
        default:
            if (code == EXIT_VMMCALL && bios_call(v))
                break;
            if (code >= EXIT_VMRUN && code <= EXIT_SKINIT)
                virt_raise(v, VECTOR_UD, 0);
            else if (code == EXIT_SHUTDOWN)
                virt_end_guest(v, "triple fault");
            else if ((uint32_t)code == EXIT_INVALID)
                virt_end_guest(v,
                               "the guest's control registers are none that this processor enters");
            else
                virt_die(v, "unexpected exit");
        }
}
