/* SPDX-License-Identifier: MIT */
/* Blocks of guest code that the virtual PMU executes itself, on the host, with sanitizers: blocks
 * SEED COUNT. Random code of ring 3 runs once by pmu/virt/blocks, up to an instruction that must
 * be stepped, and then as many instructions by the host's processor alone
 * (tests/guests/fuzz/native.c), where the pages have the guest's own addresses: registers, flags,
 * RIP and memory are the same, and the counters and the list of branches what they are when each
 * instruction is decoded and counted for itself. Whether they are is the same on every host: code
 * is not compared where the host's ring 3 cannot go on, with an RSP that is not canonical, or
 * where an emulator below the host is free: BT and its like leave flags that depend on the
 * instruction before, unless that is CMC, which code.c puts there. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include "kernel/base/boot_info.h"
#include "kernel/base/layout.h"
#include "kernel/base/msr.h"
#include "kernel/base/x86.h"
#include "pmu/virt/blocks/blocks.h"
#include "pmu/virt/machine.h"
#include "pmu/virt/quirk.h"
#include "tests/guests/fuzz/code.h"
#include "tests/guests/fuzz/fuzz.h"
#include "tests/guests/fuzz/native.h"

enum { PAGE = 4096, USER = 0x20000000, RAM = 0x400000, NEAR = 0x1000, ITERATIONS = 64 * 4096 };
/* Pages: code, none, data, read only, of ring 0, such whose entry says neither accessed nor
 * written. */
enum { CODE_PAGES = 2, DATA = 3, READ_ONLY = 7, KERNEL = 8, FRESH = 9, PAGES = 10 };
enum { PML4 = 0x1000, PDPT = 0x2000, DIRECTORY = 0x3000, TABLE = 0x4000 };
/* What is side by side is not so in memory. */
static const uint8_t frame[PAGES] = { 0, 1, 2, 5, 3, 4, 6, 7, 8, 9 };

static struct vcpu *v, *stepped;
static uint8_t before[PAGES * PAGE], after[PAGES * PAGE];
static uint64_t instructions, left_out, fs, gs;
static bool executed[0x200];

/* --- What the machine would do. --- */
uint64_t clock_us = 1000, alarm_tick = 10;
bool virt_step;

uint64_t rdmsr(uint32_t msr) { return msr == MSR_FS_BASE ? fs : gs; }
void wrmsr(uint32_t msr, uint64_t value) { (void)msr, (void)value; }
void exit_to_host(uint32_t code) { FUZZ_CHECK(!code && "the guest is ended"); }
uint32_t svm_take_interrupt(void) { return 0; }
void platform_spin(uint64_t clock) { (void)clock; }
void platform_interrupt(struct vcpu *w, uint32_t vector) { (void)w, (void)vector; }
void host_apic_pmi(struct vcpu *w, bool mask) { (void)w, (void)mask; }

/* --- The guest. --- */

static uint8_t *guest_memory(void) { return fuzz_memory + RAM; }

static void put_entry(uint64_t table, unsigned index, uint64_t entry)
{
    memcpy(fuzz_memory + table + 8 * index, &entry, 8);
}

/* Entries that an access changes must be new for each case; so is the rest. */
static void map_guest(void)
{
    put_entry(PML4, 0, PDPT | 7 | 0x20);
    put_entry(PDPT, USER >> 30, DIRECTORY | 7 | 0x20);
    put_entry(DIRECTORY, USER >> 21 & 511, TABLE | 7 | 0x20);
    for (unsigned i = 0; i < PAGES; i++)
        put_entry(TABLE, i,
                  (RAM + frame[i] * PAGE) | (i == READ_ONLY ? 0x65
                                             : i == KERNEL  ? 0x63
                                             : i == FRESH   ? 7
                                             : i == 2       ? 0
                                                            : 0x67));
}

/* Maps the guest's memory at the guest's addresses, for the processor alone. */
static void map_native(void)
{
    int file = native_file(PAGES * PAGE), all = PROT_READ | PROT_WRITE | PROT_EXEC;
    bool mapped = file >= 0 && mmap(guest_memory(), PAGES * PAGE, PROT_READ | PROT_WRITE,
                                    MAP_SHARED | MAP_FIXED, file, 0) != MAP_FAILED;
    for (unsigned i = 0; mapped && i < PAGES; i++)
        mapped = mmap((void *)(USER + (uint64_t)i * PAGE), PAGE,
                      i == 2           ? PROT_NONE
                      : i == READ_ONLY ? PROT_READ | PROT_EXEC
                                       : all,
                      MAP_SHARED | MAP_FIXED_NOREPLACE, file,
                      frame[i] * PAGE) == (void *)(USER + (uint64_t)i * PAGE);
    if (!mapped) {
        perror("fuzz: the guest's pages");
        exit(2);
    }
}

/* blocks.c has its code among the variables of this program. */
static void make_executable(void)
{
    extern char __bss_start[], _end[];
    uint64_t start = (uint64_t)__bss_start & ~(PAGE - 1ul);
    if (mprotect((void *)start, (uint64_t)_end - start, PROT_READ | PROT_WRITE | PROT_EXEC)) {
        perror("fuzz: code");
        exit(2);
    }
}

static uint64_t some_pointer(const struct code *c)
{
    uint64_t first = c->locks ? DATA : 0; /* a lock across lines of a cache may be forbidden */
    uint64_t page = fuzz_below(8) ? DATA + fuzz_below(4) : first + fuzz_below(PAGES - first);
    uint64_t at = fuzz_below(6) ? fuzz_below(512) * 8 : PAGE - 8 * fuzz_below(8);
    at += c->locks || fuzz_below(4) ? 0 : fuzz_below(8);
    return USER + page * PAGE + at - (c->gs ? gs : 0);
}

static void make_guest_state(const struct code *c, struct native *s)
{
    for (unsigned i = 0; i < 16; i++)
        s->r[i] = some_pointer(c);
    for (unsigned i = 0; i < 12; i = i == 2 ? 9 : i + 1)
        s->r[i] = fuzz_edge();
    if (fuzz_below(2))
        s->r[RDX] = fuzz_below(3) - 1;
    if (fuzz_below(2))
        s->r[RCX] = fuzz_below(64);
    s->r[14] = fuzz_below(16) * 8;
    s->flags = 0x202 | (fuzz_bits() & 0x8d5);
}

static void make_guest_code(struct code *c, struct native *s)
{
    memset(guest_memory(), 0xcc, CODE_PAGES * PAGE); /* INT3 is stepped */
    uint64_t at = fuzz_below(2) ? fuzz_below(2048) : PAGE - 1 - fuzz_below(60);
    c->data = USER + DATA * PAGE + PAGE / 2 - (c->gs ? gs : 0);
    c->moved = USER - (uint64_t)guest_memory();
    unsigned length = code_make(c, guest_memory() + at, 8 * CODE_INSTRUCTION);
    s->rip = USER + at;
    if (!c->locks && !fuzz_below(8)) /* may write its own code */
        s->r[RBX] = s->rip + fuzz_below(length) - (c->gs ? gs : 0);
}

/* Each of the events that are decoded, from anywhere; of ring 3. */
static void make_pmu(void)
{
    static const uint16_t events[] = { 0xc4, 0x11c4, 0x20c4, 0xc5, 0x81d0, 0x82d0, 0x4f2e, 0x412e };
    const struct model *m = v->pmu.model;
    memset(&v->pmu, 0, sizeof v->pmu);
    v->pmu.model = m;
    for (unsigned i = 0; i < 8; i++) {
        FUZZ_CHECK(count_wrmsr(v, 0x186 + i, events[i] | 0x410000u));
        FUZZ_CHECK(count_wrmsr(v, 0xc1 + i, fuzz_below(2) ? 0 : -50 - fuzz_below(100)));
    }
    FUZZ_CHECK(count_wrmsr(v, 0x38f, 0xff) && v->pmu.decoding[1]);
    FUZZ_CHECK(count_wrmsr(v, 0x1c8, fuzz_bits() & fuzz_bits() & 0x1fc));
    FUZZ_CHECK(count_wrmsr(v, DEBUGCTL, fuzz_below(4) > 0));
}

static void load_native(struct vcpu *w, const struct native *s)
{
    memcpy(&w->r, s->r, sizeof s->r);
    w->vmcb.rax = s->r[RAX];
    w->vmcb.rsp = s->r[RSP];
    w->vmcb.rip = s->rip;
    w->vmcb.rflags = s->flags;
}

static void make_guest(const struct native *s)
{
    struct vmcb *g = &v->vmcb;
    g->cr0 = CR0_PE | CR0_WP | 1u << 31;
    g->cr4 = CR4_PAE;
    g->efer = EFER_SVME | EFER_LMA | EFER_LME | EFER_NXE;
    g->cr3 = PML4;
    g->cpl = 3;
    g->cs = (struct segment){ 0x2b, SEGMENT_CODE64 | SEGMENT_RING3, 0xffffffff, 0 };
    g->ss = (struct segment){ 0x33, SEGMENT_DATA | SEGMENT_RING3, 0xffffffff, 0 };
    g->dr7 = 0x400;
    load_native(v, s);
    make_pmu();
    map_guest();
}

/* --- The processor alone. --- */

static struct native start, end; /* end: what the blocks have made of it */
static uint64_t left, iterations;
static bool begun, comparable;
static struct insn insn;
static struct instruction decoded;

static bool tests_bit(void)
{
    return insn.map == MAP_0F && ((insn.op & ~0x18u) == 0xa3 || insn.op == 0xba);
}

static bool is_canonical(uint64_t address)
{
    return (uint64_t)((int64_t)(address << 16) >> 16) == address;
}

static void note_opcode(void)
{
    bool cmc = begun && insn.map == MAP_ONE && insn.op == 0xf5;
    guest_insn(stepped, &insn);
    comparable &= cmc || !tests_bit();
    if (stepped->vmcb.rip >> 20 == USER >> 20 && insn.map <= MAP_0F)
        executed[(unsigned)insn.map << 8 | insn.op] = true;
}

/* Before each instruction: counts the one before it; a string instruction's iteration is none. */
static bool step_native(const struct native *s)
{
    bool string = insn.map == MAP_ONE && insn_op_is_string(insn.op);
    bool iteration = begun && s->rip == stepped->vmcb.rip && string;
    bool compares = (insn.op & 6) == 6, equal = s->flags >> 6 & 1; /* ZF */
    stepped->run.rip = stepped->vmcb.rip;
    load_native(stepped, s);
    if (iteration) {
        iterations++;
    } else if (begun) {
        /* QEMU adds a step with RCX 0, unless a comparison ended the instruction. */
        if (string && (insn.repeat || insn.repeat_not) && !(compares && equal == insn.repeat_not))
            instruction_decode(stepped, &insn, &decoded);
        uint32_t effects = instruction_effects(stepped, &decoded);
        records_add_step(stepped, decoded.branch, effects);
        count_record(stepped);
        count_one(stepped, true, effects);
        left--;
    }
    if (!left && (s->rip != end.rip || s->r[RCX] == end.r[RCX] || iterations == ITERATIONS))
        return false;
    note_opcode();
    begun = true;
    comparable &= is_canonical(s->r[RSP]);
    instruction_decode(stepped, &insn, &decoded);
    return comparable;
}

static void print_state(const char *what, const struct native *s)
{
    printf("%s:", what);
    for (unsigned i = 0; i < 16; i++)
        printf(" %lx", s->r[i]);
    printf(" RIP %lx flags %lx\n", s->rip, s->flags & 0x8d5);
}

static void compare_ends(const struct native *found, int raised)
{
    bool same = !raised && !memcmp(found->r, end.r, sizeof end.r) && found->rip == end.rip &&
                !((found->flags ^ end.flags) & 0x8d5) &&
                !memcmp(after, guest_memory(), sizeof after);
    for (unsigned i = 0; same && i < COUNTER_MAX; i++)
        same = v->pmu.counters[i].value == stepped->pmu.counters[i].value;
    same &= v->pmu.status == stepped->pmu.status && v->retired[1] == stepped->retired[1];
    same &= !memcmp(&v->pmu.records, &stepped->pmu.records, sizeof v->pmu.records);
    left_out += !comparable;
    if (same || !comparable)
        return;
    printf("code:");
    for (unsigned i = 0; i < 64; i++)
        printf(" %02x", before[(start.rip - USER + i) % sizeof before]);
    printf("\n%lu instructions, signal %d\n", v->retired[1], raised);
    print_state("before", &start);
    print_state("blocks", &end);
    print_state("alone ", found);
    for (unsigned i = 0; i < sizeof after; i++)
        if (after[i] != guest_memory()[i])
            printf("memory %x: %02x alone %02x\n", i, after[i], guest_memory()[i]);
    for (unsigned i = 0; i < 8; i++)
        printf("counter %u: %lx alone %lx\n", i, v->pmu.counters[i].value,
               stepped->pmu.counters[i].value);
    FUZZ_CHECK(!"blocks and the processor differ");
}

static void try_code(void)
{
    struct code c = { .gs = !fuzz_below(8), .locks = fuzz_below(2) };
    gs = c.gs ? fuzz_below(1ul << 30) * PAGE : NEAR;
    native_set_gs(gs);
    for (unsigned i = CODE_PAGES * PAGE; i < PAGES * PAGE; i += 8) {
        uint64_t value = fuzz_below(3) ? fuzz_bits() : fuzz_edge();
        memcpy(guest_memory() + i, &value, 8);
    }
    make_guest_state(&c, &start);
    make_guest_code(&c, &start);
    make_guest(&start);
    v->retired[1] = 0;
    memcpy(before, guest_memory(), sizeof before);
    memcpy(stepped, v, sizeof *v);
    blocks_run(v);
    memcpy(after, guest_memory(), sizeof after);
    end = (struct native){ .rip = v->vmcb.rip, .flags = v->vmcb.rflags };
    memcpy(end.r, &v->r, sizeof end.r);
    end.r[RAX] = v->vmcb.rax;
    end.r[RSP] = v->vmcb.rsp;
    left = v->retired[1];
    instructions += left;
    iterations = 0;
    begun = false;
    comparable = true;
    memcpy(guest_memory(), before, sizeof before);
    struct native s = start;
    compare_ends(&s, native_run(&s, step_native));
}

/* Code that must be stepped is no reason to step what stands at its place later. */
static void check_new_code(void)
{
    /* HLT, NOP, NOP after a prefix, and INT3, which is stepped. */
    static const uint8_t codes[][3] = {
        { 0xf4, 0xcc }, { 0x90, 0xcc }, { 0x48, 0xf4, 0xcc }, { 0x48, 0x90, 0xcc }, { 0xf4, 0xcc }
    };
    struct code c = { .gs = false };
    make_guest_state(&c, &start);
    start.rip = USER;
    for (unsigned i = 0; i < 5; i++) {
        memcpy(guest_memory(), codes[i], sizeof codes[i]);
        make_guest(&start);
        v->retired[1] = 0;
        blocks_run(v);
        FUZZ_CHECK(v->retired[1] == i % 2);
    }
}

int main(int argc, char *argv[])
{
    uint64_t count = fuzz_begin(argc, argv, 100000), opcodes = 0;
    fuzz_map();
    map_native();
    make_executable();
    fs = native_fs();
    v = aligned_alloc(HOST_STACK_SIZE, sizeof *v);
    stepped = aligned_alloc(HOST_STACK_SIZE, sizeof *v);
    memset(v, 0, sizeof *v);
    boot_info.memory[0] = (struct boot_memory){ 0, 0xc0000000 };
    boot_info.memory_count = 1;
    boot_info.mapped_end = 1ul << 32;
    FUZZ_CHECK(machine_choose("intel-v5"));
    v->pmu.model = machine_model(0);
    check_new_code();
    for (fuzz_case = 0; fuzz_case < count; fuzz_case++)
        try_code();
    for (unsigned i = 0; i < sizeof executed; i++)
        opcodes += executed[i];
    printf("%lu pieces of code, %lu left out: %lu instructions, %lu opcodes\n", count, left_out,
           instructions, opcodes);
    free(v);
    free(stepped);
    return 0;
}
