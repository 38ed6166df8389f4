/* SPDX-License-Identifier: MIT */
/* QEMU's processor takes bits of CR0 and CR4 that no processor takes, and its VMRUN refuses them:
 * with the guest's next exit the guest would end. Sources: AMD64 APM volume 2, "System-Control
 * Registers", "Canonicalization and Consistency Checks"; SDM volume 2, "MOV, Move to/from Control
 * Registers". */
#include "kernel/base/msr.h"
#include "kernel/base/x86.h"
#include "pmu/virt/guests/control.h"
#include "pmu/virt/guest.h"
#include "pmu/virt/vcpu.h"

enum { OP_MOV_TO_CR = 0x22 }; /* after 0F */
#define CR0_NW (1u << 29)
#define CR0_CD (1u << 30)
#define CR4_OLD 0x7ffu /* VME to OSXMMEXCPT */

static unsigned if_bit(uint32_t word, unsigned bit, unsigned number)
{
    return (word >> bit & 1) << number;
}

/* The bits of CR4 whose feature CPUID reports. */
static unsigned legal_of_cr4(void)
{
    struct cpuid none = { 0, 0, 0, 0 }, one = cpuid(1, 0),
                 seven = cpuid(0, 0).eax >= 7 ? cpuid(7, 0) : none;
    return CR4_OLD | if_bit(seven.ecx, 2, 11) | if_bit(seven.ecx, 16, 12) |
           if_bit(seven.ebx, 0, 16) | if_bit(one.ecx, 17, 17) | if_bit(one.ecx, 26, 18) |
           if_bit(seven.ebx, 7, 20) | if_bit(seven.ebx, 20, 21) | if_bit(seven.ecx, 3, 22) |
           if_bit(seven.ecx, 31, 24);
}

static bool cr0_is_refused(const struct vmcb *b, uint64_t value)
{
    if ((value & (CR0_NW | CR0_CD)) == CR0_NW || (value & (CR0_PG | CR0_PE)) == CR0_PG)
        return true;
    if (value & CR0_PG)
        return !(b->cr0 & CR0_PG) && b->efer & EFER_LME && !(b->cr4 & CR4_PAE);
    return b->efer & EFER_LMA && b->cs.attributes & SEGMENT_LONG;
}

static bool cr4_is_refused(const struct vmcb *b, uint64_t value)
{
    uint64_t changed = b->efer & EFER_LMA ? value ^ b->cr4 : 0;
    return value & ~(uint64_t)legal_of_cr4() || changed & (CR4_PAE | CR4_LA57);
}

void control_write(struct vcpu *v)
{
    struct insn i;
    guest_insn(v, &i);
    uint64_t value = guest_register(v, insn_rm(&i));
    if (!guest_in_long_mode(v))
        value = (uint32_t)value;
    bool refused = v->vmcb.exit_code == EXIT_WRITE_CR4 ? cr4_is_refused(&v->vmcb, value)
                                                       : cr0_is_refused(&v->vmcb, value);
    if (insn_is(&i, MAP_0F, OP_MOV_TO_CR) && refused)
        virt_raise(v, VECTOR_GP, 0);
    else
        v->step.alone = true;
}
