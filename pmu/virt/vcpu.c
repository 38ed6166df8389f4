/* SPDX-License-Identifier: MIT */
/* For every part of the virtual PMU: raises an exception in a CPU's guest, or ends the guest. */
#include "kernel/base/boot_info.h"
#include "kernel/base/exit.h"
#include "kernel/base/layout.h"
#include "kernel/base/print.h"
#include "kernel/base/x86.h"
#include "pmu/virt/vcpu.h"

bool virt_foreign;
uint64_t virt_hidden;

uint64_t virt_physical(const void *p)
{
    bool of_image = (uint64_t)p >= KERNEL_VMA;
    return (uint64_t)p - (of_image ? KERNEL_VMA - boot_info.moved : DIRECT_MAP);
}

__attribute__((noreturn)) static void end_machine(void)
{
    exit_to_host(EXIT_DIED);
    for (;;)
        cli_hlt();
}

static void say_exit(const struct vcpu *v, const char *why)
{
    print_break_lock();
    print("\n# vpmu: CPU %u: %s: exit %lx info %lx %lx, RIP %lx RSP %lx CR3 %lx, injected %lx\n",
          v->number, why, v->vmcb.exit_code, v->vmcb.exit_info1, v->vmcb.exit_info2, v->vmcb.rip,
          v->vmcb.rsp, v->vmcb.cr3, v->vmcb.exit_int_info);
}

void virt_die(const struct vcpu *v, const char *why)
{
    say_exit(v, why);
    end_machine();
}

/* A foreign guest gets the reset that it would have without us: the host triple-faults. */
void virt_end_guest(const struct vcpu *v, const char *why)
{
    static const struct table_register none = { 0, 0 };
    say_exit(v, why);
    if (!virt_foreign)
        end_machine();
    print_drain();
    lidt(&none);
    asm volatile("int3");
    end_machine();
}

void virt_host_fault(unsigned vector, const uint64_t *frame)
{
    print_break_lock();
    print("\n# vpmu: exception %u in the host, stack %lx %lx %lx, CR2 %lx\n", vector, frame[0],
          frame[1], frame[2], read_cr2());
    end_machine();
}

void virt_set_segment(struct segment *s, uint16_t selector, uint16_t attributes)
{
    *s = (struct segment){ selector, attributes, 0xffffffff, 0 };
}

void virt_set_cpl(struct vcpu *v, uint16_t cs, uint16_t ss)
{
    bool user = cs & 3;
    uint16_t ring = user ? SEGMENT_RING3 : 0;
    virt_set_segment(&v->vmcb.cs, cs, (uint16_t)(SEGMENT_CODE64 | ring));
    virt_set_segment(&v->vmcb.ss, ss, (uint16_t)(SEGMENT_DATA | ring));
    v->vmcb.cpl = user ? 3 : 0;
}

void virt_raise(struct vcpu *v, unsigned vector, uint32_t code)
{
    bool has_code = vector == VECTOR_DF || (vector >= 10 && vector <= 14) || vector == 17;
    v->vmcb.inject = vector | INJECT_EXCEPTION | INJECT_VALID;
    if (has_code)
        v->vmcb.inject |= INJECT_HAS_CODE | (uint64_t)code << 32;
}

void virt_trap(struct vcpu *v)
{
    if (!(v->vmcb.rflags & RFLAGS_TF))
        return;
    v->vmcb.dr6 |= DR6_SINGLE_STEP;
    virt_raise(v, VECTOR_DB, 0);
}

uint64_t virt_random(struct vcpu *v)
{
    v->random = v->random * 6364136223846793005u + 1442695040888963407u;
    return v->random >> 33;
}
