/* SPDX-License-Identifier: MIT */
/* Does the virtual PMU execute what the processor would? Random sequences of instructions in ring
 * 3, some with a byte of them changed, run three times from the same state: with nothing counting,
 * which is the processor alone; with eight events counting that need each instruction decoded; and
 * again with the guest's own TF, by which the virtual PMU steps each. The first two end with equal
 * registers, flags, memory and trap, the last two with the same counts. A fourth has a list of
 * branches on, whose hash is printed: the virtual PMU that steps everything prints the same; with
 * the word lists it is all that runs. la57: page tables of five levels, and a third of the
 * sequences. For PMU=intel-v5. */
#include "tests/guests/guest.h"

#define PAGE 4096u
enum { COUNTERS = 8, COUNTS, TIMER = 0x40, DONE = 0x81 };
/* Pages: code, from 0; plain data, read only, of ring 0, such whose entry says neither accessed nor
 * written. With protection keys, in every other sequence, each has the key of its number, or 0. */
enum { CODE_PAGES = 2, DATA = 4, READ_ONLY = 8, KERNEL = 9, FRESH = 10, PAGES = 12 };

struct state {
    uint64_t r[16], flags, rip, vector, error; /* run_state */
    uint64_t cr2, pages, vectors; /* accessed and dirty bits; a hash of what XSAVE stores */
};
extern const uint8_t block_stubs[256][16];
extern uint64_t pml4[512], pdpt_user[512], dir_user[512], user_table[512];
void run_state(struct state *s);
void set_keys(uint32_t pkru); /* 0: no protection keys */

static uint8_t memory[PAGES * PAGE] __attribute__((aligned(4096)));
static uint8_t before[PAGES * PAGE], after[PAGES * PAGE];
static uint8_t xsave_area[2][1024] __attribute__((aligned(64))); /* before, after */
static bool has_avx2, with_vectors, only_lists;
static uint32_t pkru;
static uint64_t user = 0x8000000000, cr0;
/* Seed 18: no CMOVcc or jump by flags that BT leaves undefined. */
static uint64_t seed = 18, ended[256], undefined;

static void copy_code(void *to, const void *from, uint64_t n)
{
    asm volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(n) : : "memory");
}

static uint32_t rnd(uint32_t n)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(seed >> 33) % n;
}

#include "tests/guests/sequences.h"

/* Sometimes across the end of a page. */
static void make_block(struct state *s)
{
    for (unsigned i = 0; i < CODE_PAGES * PAGE; i++)
        memory[i] = 0x90;
    uint8_t *first = &memory[rnd(2) ? rnd(2048) : PAGE - 1 - rnd(100)];
    at = first;
    for (unsigned n = 2 + rnd(24); n; n--)
        instruction();
    uint8_t *end = at;
    if (rnd(2)) { /* DEC R15; JNZ */
        b(0x49), b(0xff), b(0xcf), b(0x0f), b(0x85);
        int back = (int)(first - at - 4);
        for (unsigned i = 0; i < 32; i += 8)
            b((unsigned)back >> i);
    }
    b(0xcd), b(DONE);
    if (!rnd(4))
        first[rnd((uint32_t)(end - first))] = (uint8_t)rnd(256);
    s->rip = user + (uint64_t)(first - memory);
    if (!rnd(4))
        s->r[3 + rnd(2) * 10] = s->rip + rnd(48); /* may write its own code */
}

/* Two bits a key: neither read nor written, not written. Few keys of data forbid anything. */
static void make_registers(struct state *s)
{
    pkru = rnd(2) ? 0x80000000 | rnd(16) : 0;
    for (unsigned key = DATA; pkru && key < PAGES; key++)
        pkru |= rnd(6) ? 0 : rnd(4) << 2 * key;
    for (unsigned i = 0; i < 16; i++) {
        uint64_t page = rnd(8) ? DATA + rnd(3) : rnd(2) ? FRESH : rnd(PAGES), offset = rnd(512) * 8;
        s->r[i] = user + page * PAGE + (rnd(8) ? offset : rnd(2) ? rnd(PAGE) : PAGE - rnd(16));
    }
    for (unsigned i = 0; i < 12; i = i == 2 ? 9 : i + 1)
        s->r[i] = rnd(3) ? rnd(256) : (uint64_t)rnd(1u << 31) << 33 | rnd(1u << 31);
    s->r[4] = user + (DATA + 2) * PAGE - rnd(64) * 8;
    s->r[14] = rnd(32);
    s->r[15] = 1 + rnd(12);
    s->flags = 0x202 | (rnd(256) & 0xd5) | rnd(2) << 11;
    for (unsigned i = DATA * PAGE; i < PAGES * PAGE; i++)
        memory[i] = (uint8_t)(rnd(3) ? i : rnd(256));
    with_vectors = has_avx2 && rnd(2);
    for (unsigned i = 0; i < sizeof xsave_area[0]; i++) /* XMM0 to XMM15, and what is above them */
        xsave_area[0][i] =
            (i >= 160 && i < 416) || (i >= 576 && i < 832) ? (uint8_t)(rnd(3) ? 0 : rnd(256)) : 0;
    *(uint16_t *)xsave_area[0] = 0x37f;
    *(uint32_t *)(xsave_area[0] + 24) = rnd(4) ? 0x1f80 : rnd(0x10000); /* MXCSR */
    xsave_area[0][512] = 7;                                             /* XSTATE_BV */
}

/* --- Runs --- */
static void map_all(void)
{
    set_keys(pkru);
    for (unsigned i = 0; i < PAGES; i++)
        user_table[i] = ((uint64_t)memory + i * PAGE) | (i == READ_ONLY ? 0x65
                                                         : i == KERNEL  ? 0x63
                                                         : i == FRESH   ? 7
                                                                        : 0x67);
    for (unsigned i = 0; pkru && i < PAGES; i++)
        user_table[i] |= (uint64_t)i << 59;
    user_table[3] = user_table[DATA + 3] = 0;
    uint64_t second = user_table[DATA + 1]; /* what is side by side is not so in memory */
    user_table[DATA + 1] = user_table[DATA + 2];
    user_table[DATA + 2] = second;
    write_cr3(read_cr3());
}

/* Of ring 3, near ones: the list does not depend on how the code was executed. */
enum { DEBUGCTL = 0x1d9, LBR_SELECT = 0x1c8, TOS = 0x1c9, FROM = 0x680, TO = 0x6c0, DEPTH = 32 };
#define NEAR_OF_RING3 0x101u

static bool listing;

static void start_list(void)
{
    for (unsigned i = 0; i < DEPTH; i++) {
        try_wrmsr(FROM + i, 0);
        try_wrmsr(TO + i, 0);
    }
    try_wrmsr(LBR_SELECT, NEAR_OF_RING3);
    try_wrmsr(DEBUGCTL, 1);
}

/* A hash of the entries, newest first; 0: there are none. */
static uint64_t hash_list(void)
{
    uint64_t hash = 0, top = read_msr(TOS);
    for (unsigned i = 0; i < DEPTH; i++) {
        uint32_t entry = (uint32_t)(top - i) % DEPTH;
        hash = (hash * 31 + read_msr(FROM + entry)) * 31 + read_msr(TO + entry);
    }
    return hash;
}

/* Branches, conditional, taken, mispredicted; loads, stores; references and misses of caches. The
 * last count is of instructions. */
static const uint16_t events[COUNTERS] = { 0xc4,   0x11c4, 0x20c4, 0xc5,
                                           0x81d0, 0x82d0, 0x4f2e, 0x412e };

static void run_code(struct state *s, bool counting, uint64_t counts[COUNTS])
{
    copy_code(memory, before, sizeof memory);
    map_all();
    for (unsigned i = 0; i < COUNTERS; i++) {
        try_wrmsr(0xc1 + i, 0);
        try_wrmsr(0x186 + i, counting ? events[i] | 0x410000u : 0);
    }
    try_wrmsr(0x309, 0);
    try_wrmsr(0x38d, counting ? 2 : 0);
    APIC(0x380) = 20000000;
    asm volatile("mov %0,%%cr0" : : "r"(with_vectors ? cr0 : cr0 | 8)); /* TS */
    if (with_vectors)
        asm volatile("xrstor64 %0" : : "m"(xsave_area[0]), "a"(7), "d"(0));
    if (listing)
        start_list();
    try_wrmsr(0x38f, counting ? 1ul << 32 | 0xff : 0);
    run_state(s);
    try_wrmsr(0x38f, 0);
    if (listing)
        try_wrmsr(DEBUGCTL, 0);
    s->vectors = 0;
    if (with_vectors) {
        asm volatile("xsave64 %0" : "+m"(xsave_area[1]) : "a"(7), "d"(0));
        for (unsigned i = 0; i < 832; i += i == 504 ? 72 : 8)
            s->vectors = s->vectors * 31 + *(uint64_t *)(xsave_area[1] + i);
    }
    asm volatile("mov %%cr2,%0" : "=r"(s->cr2));
    APIC(0x380) = 0;
    if (s->vector == TIMER)
        APIC(0xb0) = 0;
    s->pages = 0;
    for (unsigned i = 0; i < PAGES; i++)
        s->pages = s->pages << 2 | (user_table[i] >> 5 & 3);
    for (unsigned i = 0; i < COUNTERS; i++)
        counts[i] = read_msr(0xc1 + i);
    counts[COUNTERS] = read_msr(0x309);
}

static bool differ(const void *a, const void *c, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++)
        if (((const uint8_t *)a)[i] != ((const uint8_t *)c)[i])
            return true;
    return false;
}

static void say_state(const char *how, const struct state *s)
{
    say(how);
    for (unsigned i = 0; i < sizeof *s / 8; i++)
        say_hex(" ", ((const uint64_t *)s)[i]);
    say("\n");
}

/* The hash of the list that the sequence makes; of one that the timer ends it says nothing. */
static void say_list(unsigned number, struct state s)
{
    uint64_t none[COUNTS];
    listing = true;
    run_code(&s, false, none);
    listing = false;
    if (s.vector == TIMER)
        return;
    say_all("list % %\n", number, hash_list());
}

static bool try_block(unsigned number)
{
    struct state start, plain, counted, again;
    uint64_t none[COUNTS], first[COUNTS], second[COUNTS];
    make_registers(&start);
    make_block(&start);
    copy_code(before, memory, sizeof memory);
    if (only_lists) {
        say_list(number, start);
        return true;
    }
    plain = counted = again = start;
    run_code(&plain, false, none);
    copy_code(after, memory, sizeof memory);
    run_code(&counted, true,
             first); /* whatever it found in predictor and caches, the next find this */
    bool late = plain.vector == TIMER || counted.vector == TIMER;
    bool same =
        late || !(differ(&plain, &counted, sizeof plain) || differ(after, memory, sizeof memory));
    struct state trained = start;
    run_code(&trained, true, first);
    copy_code(after, memory, sizeof memory);
    again.flags |= 0x100;
    run_code(&again, true, second);
    again.flags &= ~0x100ul;
    late |= again.vector == TIMER;
    bool alike = late || !differ(first, second, sizeof first);
    same |= late;
    if (!same && !differ(&counted, &again, sizeof again) && !differ(after, memory, sizeof memory))
        same = ++undefined;
    say_list(number, start);
    ended[plain.vector & 255]++;
    if (same && alike)
        return true;
    say(same ? "counts differ:" : "states differ:");
    say_hex(" code at ", start.rip);
    for (unsigned i = 0; i < 160; i++)
        say_hex(" ", before[(start.rip & 8191) + i]);
    say_state("\nstart  ", &start);
    say_state("alone  ", &plain);
    say_state("counted", &counted);
    say_state("stepped", &again);
    for (unsigned i = 0; i < COUNTS; i++)
        say_all("count % stepped %\n", first[i], second[i]);
    return false;
}

bool trap_handler(struct frame *frame) { return frame; }

/* Ring 3 reaches the pages of user_table alone; no TSC, no registers beside the general ones. */
static void make_machine(void)
{
    uint64_t cr4;
    for (unsigned v = 0; v < 256; v++)
        set_gate(v, block_stubs[v], 8, 0, v == DONE ? 0xee : 0x8e);
    mask_pics();
    APIC(0x3e0) = 11; /* each tick of its clock */
    APIC(0x320) = TIMER;
    pml4[0] &= ~4ul;
    pml4[1] = (uint64_t)pdpt_user | 7;
    pdpt_user[0] = (uint64_t)dir_user | 7;
    dir_user[0] = (uint64_t)user_table | 7;
    try_wrmsr(0xc0000080, 0xd00); /* NXE LMA LME */
    try_wrmsr(0xc0000100, 0x18);  /* FS_BASE */
    try_wrmsr(0xc0000101, 0x28);  /* GS_BASE */
    asm volatile("mov %%cr0,%0\nmov %%cr4,%1" : "=r"(cr0), "=r"(cr4));
    cr0 |= 0x10000;                                /* WP */
    asm volatile("mov %0,%%cr4" : : "r"(cr4 | 4)); /* TSD */
    has_avx2 = cpuid(7, 0).ebx >> 5 & 1;
    if (has_avx2) /* OSFXSR, OSXSAVE; all of it on */
        asm volatile("mov %0,%%cr4\n\txsetbv" : : "r"(cr4 | 4 | 0x40600), "c"(0), "a"(7), "d"(0));
    user |= (cr4 & 0x1000) << 37; /* LA57 */
}

void payload_main(uint32_t magic, uint32_t info)
{
    unsigned failed = 0, sequences;
    const char *line = (const char *)(uint64_t)((const uint32_t *)(uint64_t)info)[4];
    while (*line)
        line++;
    only_lists = line[-1] == 's';
    sequences = line[-1] == '7' ? 100 : 300;
    make_machine();
    for (unsigned i = 0; magic && i < sequences && failed < 5; i++)
        failed += !try_block(i);
    for (unsigned v = 0; v < 256; v++)
        if (ended[v])
            say_all("ended by vector %: %\n", v, ended[v]);
    say_all("flags as when stepped: %\n", undefined);
    say_all(failed ? "differ: %\n" : "the same: %\n", failed ? failed : sequences);
    end(failed ? 1 : 0x10);
}
