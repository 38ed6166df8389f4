/* SPDX-License-Identifier: MIT */
/* The virtual PMU against a hostile guest, on the host: its page tables, its code at every exit,
 * its values in the PMU's registers, and the words of vpmu=. pmu/virt's own files, built with
 * sanitizers: guest SEED COUNT. Memory is all that a machine has below 4 GB, and nothing is mapped
 * around it. What pmu/virt does is compared with tests/guests/fuzz/walk.c where the processor would
 * walk page tables, with itself where it may count in one step or in several. */
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "kernel/base/boot_info.h"
#include "kernel/base/exit.h"
#include "kernel/base/layout.h"
#include "kernel/base/msr.h"
#include "kernel/base/x86.h"
#include "pmu/virt/blocks/blocks.h"
#include "pmu/virt/guests/virt_payload.h"
#include "tests/guests/fuzz/fuzz.h"
#include "tests/guests/fuzz/guest.h"

enum { PAGE = 4096, FRAMES = 24, TABLES = 8 };
#define CR4_LA57 (1u << 12)
#define PTE_A (1u << 5)
#define PTE_D (1u << 6)
#define PTE_NX (1ul << 63)

struct vcpu *v;
static jmp_buf ended;

/* --- What the machine would do. --- */
uint64_t clock_us = 1000, alarm_tick = 10, clock_cost;
bool virt_step, clock_dr6_stays;

uint64_t rdmsr(uint32_t msr) { return msr == MSR_STAR ? fuzz_bits() : fuzz_edge(); }
void wrmsr(uint32_t msr, uint64_t value) { (void)msr, (void)value; }
void exit_to_host(uint32_t code) { longjmp(ended, (int)code | 1); }
uint32_t svm_take_interrupt(void) { return 0; }
void svm_save(uint64_t vmcb) { v->vmcb.tr.base = vmcb ? fuzz_edge() : 0; }
void vmcb_catch_msr(uint32_t msr) { (void)msr; }
void platform_spin(uint64_t clock) { (void)clock; }
bool platform_io(struct vcpu *w)
{
    (void)w;
    return true;
}
uint64_t clock_look(struct vcpu *w) { return (void)w, fuzz_edge(); }
bool clock_rdmsr(struct vcpu *w, uint32_t msr, uint64_t *value)
{
    *value = 0;
    return (void)w, (void)msr, true;
}
bool clock_wrmsr(struct vcpu *w, uint32_t msr, uint64_t value)
{
    return (void)w, (void)msr, (void)value, true;
}
void token_pause(struct vcpu *w) { (void)w; }
void token_halt(struct vcpu *w) { (void)w; }
void host_apic_pmi(struct vcpu *w, bool mask) { (void)w, (void)mask; }
void host_apic_send(uint32_t id, uint32_t command) { (void)id, (void)command; }
void host_apic_send_self(uint32_t vector) { FUZZ_CHECK(vector <= UINT8_MAX); }
uint32_t host_apic_read(unsigned at) { return FUZZ_CHECK(at < PAGE), (uint32_t)fuzz_bits(); }
void host_apic_write(unsigned at, uint32_t value) { FUZZ_CHECK(at < PAGE && value <= UINT32_MAX); }
unsigned token_members(void) { return 1; }
struct vcpu *token_member(unsigned number) { return number ? NULL : v; }

/* --- A guest. --- */

/* Frames of all kinds: low, around 640 KB and 1 MB, the last below 4 GB, and none at all. The first
 * of them hold tables. */
static const uint64_t frames[FRAMES] = {
    0x0,        0x1000,     0x2000,     0x9f000,     0xa0000,        0x100000,
    0x101000,   0xfffff000, 0x3000,     0x4000,      0xff000,        0x102000,
    0x200000,   0x40000000, 0x80000000, 0xbffff000,  0xc0000000,     0xfee00000,
    0xfffff000, 0xfffe000,  0x1ff000,   0x100000000, 0xfffffffff000, 0xffffffffff000,
};

static uint64_t some_frame(void) { return frames[fuzz_below(fuzz_below(4) ? TABLES : FRAMES)]; }

static bool is_table(uint64_t physical)
{
    for (unsigned i = 0; i < TABLES; i++)
        if ((physical & ~(PAGE - 1ul)) == frames[i])
            return true;
    return false;
}

static uint64_t some_entry(void)
{
    uint64_t e = some_frame() | (fuzz_below(4) ? 0x67 : fuzz_below(256));
    e |= fuzz_below(6) ? 0 : 0x80;
    e |= fuzz_below(8) ? 0 : PTE_NX;
    return fuzz_below(16) ? e : e ^ 1ul << fuzz_below(64);
}

/* Each frame of RAM that a table may be in. */
static void make_any_tables(void)
{
    for (unsigned i = 0; i < TABLES; i++)
        for (unsigned n = 0; n < 24; n++) {
            uint64_t e = some_entry(), at = frames[i] + 8 * (n < 8 ? n : fuzz_below(512));
            memcpy(fuzz_memory + at, &e, 8);
        }
}

/* Indices that make_tables has filled, in each level; seldom anything. */
uint64_t guest_some_address(void)
{
    uint64_t a = fuzz_below(3) ? fuzz_below(PAGE) : PAGE - 1 - fuzz_below(16);
    for (unsigned shift = 12; shift < 57; shift += 9)
        a |= fuzz_below(8) << shift;
    if (!fuzz_below(8))
        a ^= 1ul << fuzz_below(64);
    if (fuzz_below(4))
        a = (uint64_t)((int64_t)(a << 16) >> 16);
    return fuzz_below(3) ? a : fuzz_below(2) ? (uint32_t)a : a | -(1ul << 47);
}

void guest_make_mode(void)
{
    static const uint32_t cr4s[] = { CR4_PAE, CR4_PAE | 0x10, CR4_PAE | CR4_SMEP | CR4_SMAP,
                                     CR4_PAE | CR4_LA57 };
    struct vmcb *g = &v->vmcb;
    unsigned mode = (unsigned)fuzz_below(8); /* real, 32 bits, PAE, compatibility, 64 bits */
    bool wide = mode > 3;
    g->cr0 = CR0_PE | (mode ? CR0_PG : 0) | (fuzz_below(2) ? CR0_WP : 0);
    g->cr4 = mode == 1 ? (fuzz_below(2) ? 0x10 : 0) : cr4s[fuzz_below(mode == 2 ? 2 : 4)];
    g->efer = EFER_SVME | (mode > 2 ? EFER_LMA | EFER_LME : 0) | (fuzz_below(4) ? EFER_NXE : 0);
    g->cr3 = fuzz_below(16) ? some_frame() : fuzz_edge();
    if (mode < 3)
        g->cr3 = (uint32_t)g->cr3 | (mode == 2 ? fuzz_below(128) << 5 : 0);
    g->cpl = fuzz_below(2) ? 3 : 0;
    uint16_t ring = g->cpl ? SEGMENT_RING3 : 0;
    g->cs = (struct segment){ 8, (uint16_t)((wide ? SEGMENT_CODE64 : SEGMENT_CODE32) | ring),
                              0xffffffff, wide || fuzz_below(2) ? 0 : (uint32_t)fuzz_edge() };
    g->ss = (struct segment){ 16, (uint16_t)(SEGMENT_DATA | ring), 0xffffffff, 0 };
    g->gdtr = (struct segment){ 0, 0, (uint32_t)fuzz_below(256), guest_some_address() };
    g->idtr = (struct segment){ 0, 0, (uint32_t)fuzz_below(8192), guest_some_address() };
    g->dr7 = fuzz_below(4) ? 0x400 : (uint32_t)fuzz_bits() | 0x400;
}

/* --- Page tables. --- */

static bool is_ram(uint64_t physical)
{
    return physical < 0xa0000 || (physical >= 0x100000 && physical < 0xc0000000);
}

/* Whether the processor lets the guest access it so, and changes no entry then. */
static bool may(const struct walk *w, enum access access)
{
    bool user = v->vmcb.cpl == 3, user_page = w->all & 4, nx = w->some & PTE_NX;
    if (!w->present || w->reserved || (nx && !(v->vmcb.efer & EFER_NXE)) || !(w->all & PTE_A))
        return false;
    if (user && !user_page)
        return false;
    bool smap = v->vmcb.cr4 & CR4_SMAP && !(v->vmcb.rflags & RFLAGS_AC);
    if (!user && user_page && (access == ACCESS_EXECUTE ? v->vmcb.cr4 & CR4_SMEP : smap))
        return false;
    if (access == ACCESS_EXECUTE)
        return !nx;
    return access == ACCESS_READ || (w->all & 2 && w->leaf & PTE_D);
}

static void check_page(uint64_t address)
{
    bool plain = v->vmcb.efer & EFER_LMA && !(v->vmcb.cr4 & CR4_LA57);
    struct walk w = walk(v, address);
    for (enum access a = 0; plain && a < ACCESSES; a++) {
        const uint8_t *p = guest_page(v, address, a);
        FUZZ_CHECK(!p == !(may(&w, a) && is_ram(w.physical)));
        FUZZ_CHECK(!p || p == fuzz_memory + (w.physical & ~(PAGE - 1ul)));
    }
    uint64_t physical = guest_physical(v, address);
    FUZZ_CHECK(physical == (w.present && !w.reserved ? w.physical : UINT64_MAX));
}

static void check_read(uint64_t address)
{
    uint8_t bytes[32], before[sizeof bytes];
    memset(bytes, 0x5a, sizeof bytes);
    memcpy(before, bytes, sizeof bytes);
    unsigned size = (unsigned)fuzz_below(16), n = guest_read(v, address, bytes + 8, size);
    FUZZ_CHECK(n <= size && !memcmp(bytes + 8 + n, before, sizeof bytes - 8 - n));
    for (unsigned i = 0; i < n; i++) {
        struct walk w = walk(v, address + i);
        FUZZ_CHECK(w.present && bytes[8 + i] == fuzz_memory[w.physical]);
    }
}

/* What is written is as if ring 0 had: to writable pages, unless CR0.WP is 0. They are accessed and
 * dirty then. */
static void check_write(uint64_t address)
{
    struct walk w[8];
    bool all = true, any = !(v->vmcb.cr0 & CR0_PG && v->vmcb.cr0 & CR0_WP);
    for (unsigned i = 0; i < 8; i++) {
        w[i] = walk(v, address + i);
        all &= w[i].present && !w[i].reserved && (any || w[i].all & 2);
        if (all && is_table(w[i].physical)) /* would change what is compared */
            return;
    }
    uint64_t value = fuzz_bits();
    FUZZ_CHECK(guest_write64(v, address, value) == all);
    for (unsigned i = 0; all && i < 8; i++) {
        struct walk now = walk(v, address + i);
        FUZZ_CHECK(fuzz_memory[w[i].physical] == (uint8_t)(value >> 8 * i));
        FUZZ_CHECK(!(v->vmcb.cr0 & CR0_PG) || (now.all & PTE_A && now.leaf & PTE_D));
    }
}

static void try_tables(void)
{
    uint64_t address = guest_some_address();
    guest_make_mode();
    check_page(address);
    check_read(address);
    check_write(address);
}

int main(int argc, char *argv[])
{
    static void (*const tries[])(void) = { try_tables,     try_tables,         guest_try_exit,
                                           guest_try_exit, guest_try_counting, guest_try_block };
    uint64_t count = fuzz_begin(argc, argv, 100000), ends = 0;
    fuzz_map();
    v = aligned_alloc(HOST_STACK_SIZE, sizeof *v);
    memset(v, 0, sizeof *v);
    boot_info.memory[0] = (struct boot_memory){ 0, 0xc0000000 };
    boot_info.memory_count = 1;
    boot_info.mapped_end = 1ul << 32;
    startup_plan(&(struct virt_payload){ .cpu_count = 2 });
    for (fuzz_case = 0; fuzz_case < count; fuzz_case++) {
        if (fuzz_case % 64 == 0) {
            make_any_tables();
            guest_try_words();
        }
        if (setjmp(ended)) {
            ends++;
            continue;
        }
        tries[fuzz_below(sizeof tries / sizeof *tries)]();
    }
    printf("%lu cases, %lu ended the guest\n", count, ends);
    free(v);
    return 0;
}
