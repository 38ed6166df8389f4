/* SPDX-License-Identifier: MIT */
/* The virtual PMU's exits, with any code and any registers: tests/guests/fuzz/guest.c. */
#include <string.h>
#include "kernel/base/msr.h"
#include "kernel/base/vectors.h"
#include "kernel/base/x86.h"
#include "pmu/virt/guest.h"
#include "pmu/virt/quirk.h"
#include "pmu/virt/vcpu.h"
#include "tests/guests/fuzz/fuzz.h"
#include "tests/guests/fuzz/guest.h"

/* Mostly one that is mapped. */
static uint64_t mapped_address(void)
{
    uint64_t a = guest_some_address();
    for (unsigned tries = (unsigned)fuzz_below(60); tries && !walk(v, a).present; tries--)
        a = guest_some_address();
    return a;
}

static void make_registers(void)
{
    uint64_t *r = (uint64_t *)(void *)&v->r;
    for (unsigned i = 0; i < 16; i++)
        r[i] = fuzz_below(2) ? guest_some_address() : fuzz_edge();
    v->vmcb.rax = fuzz_edge();
    v->vmcb.rsp = mapped_address();
    v->vmcb.rip = mapped_address();
    v->vmcb.rflags = 2 | (fuzz_bits() & 0x240dd5);
}

/* Opcodes that cause exits, with prefixes of all kinds; or anything. */
static unsigned make_exit_code(uint8_t *code)
{
    static const uint8_t prefixes[] = { 0x26, 0x2e, 0x36, 0x3e, 0x64, 0x65, 0x66,
                                        0x67, 0xf0, 0xf2, 0xf3, 0x48, 0x4f, 0x40 };
    static const char *const opcodes[] = { "\x0f\x30",     "\x0f\x32",     "\x0f\x33", "\x0f\xa2",
                                           "\x0f\x05",     "\x0f\x07",     "\x0f\x34", "\x0f\x35",
                                           "\x0f\x23\xf8", "\x0f\x23\xef", "\xcd\x80", "\xcc",
                                           "\xf4",         "\x90",         "\xcf",     "\x9d",
                                           "\x89\x06",     "\xc7\x07",     "\xa3",     "\x89" };
    unsigned n = 0, most = fuzz_below(4) ? (unsigned)fuzz_below(4) : 15;
    for (unsigned i = 0; i < 15; i++)
        code[i] = (uint8_t)(fuzz_below(4) ? fuzz_below(256) : 0x0f);
    while (n < most && n < 14)
        code[n++] = prefixes[fuzz_below(sizeof prefixes)];
    if (fuzz_below(4))
        memcpy(code + n, opcodes[fuzz_below(20)], n < 13 ? 2 : 1);
    return n;
}

/* At RIP; where its pages end so does the code. */
static void put_guest(uint64_t address, const void *bytes, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        struct walk w = walk(v, address + i);
        if (w.present)
            fuzz_memory[w.physical] = ((const uint8_t *)bytes)[i];
    }
}

static uint64_t linear_rip(void)
{
    bool wide = v->vmcb.cs.attributes & SEGMENT_LONG;
    return wide ? v->vmcb.rip : (uint32_t)(v->vmcb.cs.base + v->vmcb.rip);
}

static void put_code(void)
{
    uint8_t code[15];
    make_exit_code(code);
    put_guest(linear_rip(), code, sizeof code);
}

/* A gate for what is injected, and its code segment; seldom a bit of them is wrong. */
static void put_gate(void)
{
    struct gate g = { .selector = 8, .ist = (uint8_t)fuzz_below(3), .type = 0xee };
    uint64_t code = 0x00af9b000000ffff;
    v->vmcb.gdtr.base = mapped_address();
    v->vmcb.idtr.base = mapped_address();
    v->vmcb.gdtr.limit = 0xff;
    v->vmcb.idtr.limit = 0xfff;
    if (!fuzz_below(3))
        ((uint8_t *)&g)[fuzz_below(sizeof g)] ^= (uint8_t)(1 << fuzz_below(8));
    if (!fuzz_below(6))
        code ^= 1ul << fuzz_below(64);
    put_guest(v->vmcb.idtr.base + 16 * (v->vmcb.inject & 0xff), &g, sizeof g);
    put_guest(v->vmcb.gdtr.base + 8, &code, sizeof code);
}

static void check_decode(void)
{
    struct instruction i;
    struct insn insn;
    uint64_t linear = linear_rip();
    uint32_t both = EFFECT(EVENT_LOADS) | EFFECT(EVENT_STORES);
    uint32_t branches = EFFECT(EVENT_BRANCHES) | EFFECT(EVENT_CONDITIONAL) | EFFECT(EVENT_TAKEN) |
                        EFFECT(EVENT_FAR);
    uint8_t bytes[INSN_MAX];
    unsigned there = guest_read(v, linear, bytes, sizeof bytes);
    guest_insn(v, &insn);
    FUZZ_CHECK(insn.length == there && insn.prefixes <= there);
    for (unsigned at = 0; at < sizeof insn.byte; at++)
        FUZZ_CHECK(insn.byte[at] == (at < there ? bytes[at] : 0));
    instruction_decode(v, &insn, &i);
    FUZZ_CHECK(!(i.effects & ~(branches | both)));
    FUZZ_CHECK(!(i.effects & branches) || i.effects & EFFECT(EVENT_BRANCHES));
    if (i.effects & EFFECT(EVENT_CONDITIONAL))
        FUZZ_CHECK(i.next - v->vmcb.rip >= 2 && i.next - v->vmcb.rip <= 20);
}

/* What ends with the machine may do so; all else leaves a guest that can be entered. */
void guest_try_exit(void)
{
    static const uint16_t codes[] = { EXIT_WRITE_DR5, EXIT_WRITE_DR7, EXIT_INTR,    EXIT_NMI,
                                      EXIT_RDPMC,     EXIT_CPUID,     EXIT_IRET,    EXIT_SOFT_INT,
                                      EXIT_PAUSE,     EXIT_HLT,       EXIT_INVLPGA, EXIT_MSR,
                                      EXIT_VMRUN,     EXIT_SKINIT,    EXIT_MONITOR, EXIT_MWAIT,
                                      EXIT_NPF };
    guest_make_mode();
    make_registers();
    guest_make_pmu();
    put_code();
    check_decode();
    struct vmcb *g = &v->vmcb;
    g->exit_code = fuzz_below(2)   ? codes[fuzz_below(17)]
                   : fuzz_below(2) ? EXIT_EXCEPTION + (fuzz_below(2) ? VECTOR_UD : VECTOR_GP)
                                   : EXIT_EXCEPTION + fuzz_below(32);
    if (fuzz_below(2))
        g->rax = (fuzz_below(2) << 31) + (fuzz_below(3) ? 0 : 0x40000000) + fuzz_below(40);
    v->syscalls.sce = fuzz_below(4);
    v->syscalls.sysenter_cs = fuzz_below(4) ? 8 : (uint16_t)fuzz_edge();
    g->exit_info1 = g->exit_code == EXIT_MSR ? fuzz_below(2) : fuzz_edge();
    g->exit_info2 = fuzz_edge();
    virt_quirks.x2apic = fuzz_below(2);
    virt_quirks.deadline = fuzz_below(2);
    v->x2apic.base = fuzz_below(4) << 10;
    if (g->exit_code == EXIT_MSR && virt_quirks.x2apic)
        v->r.rcx = fuzz_below(16)  ? 0x7fc + fuzz_below(0x108)
                   : fuzz_below(2) ? MSR_TSC_DEADLINE
                                   : MSR_APIC_BASE;
    if (g->exit_code == EXIT_NPF) { /* a write of the local APIC's registers */
        g->exit_info1 |= 2;
        g->exit_info2 = HOST_APIC + fuzz_below(0x1000);
    }
    v->run.inject_failed = !fuzz_below(4);
    v->run.injected = fuzz_below(32) | INJECT_EXCEPTION | INJECT_VALID;
    v->step.done = v->step.active = false;
    g->inject = 0;
    uint64_t rip = g->rip;
    exit_handle(v);
    FUZZ_CHECK(g->cpl == 0 || g->cpl == 3);
    FUZZ_CHECK(!(g->inject & INJECT_VALID) || (g->inject & INJECT_TYPE) != INJECT_EXCEPTION ||
               (g->inject & 0xff) < 32);
    bool raised = g->inject & INJECT_VALID && (g->inject & INJECT_TYPE) == INJECT_EXCEPTION;
    if (g->exit_code == EXIT_MSR || g->exit_code == EXIT_RDPMC || g->exit_code == EXIT_CPUID)
        FUZZ_CHECK(raised || (g->rip - rip >= 2 && g->rip - rip <= 17) ||
                   !(g->cs.attributes & SEGMENT_LONG));
    if (!(g->inject & INJECT_VALID))
        return;
    put_gate();
    g->rsp = mapped_address();
    if (deliver_in_software(v))
        FUZZ_CHECK(!(g->inject & INJECT_VALID) && g->cpl == 0 && !(g->rflags & RFLAGS_TF));
    FUZZ_CHECK(g->cpl == 0 || g->cpl == 3);
}
