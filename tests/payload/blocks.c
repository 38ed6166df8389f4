/* SPDX-License-Identifier: MIT */
/* Does the virtual PMU execute what the processor would? Random sequences of instructions in ring
 * 3, some with a byte of them changed, run three times from the same state: with nothing counting,
 * which is the processor alone; with eight events counting that need each instruction decoded; and
 * again with the guest's own TF, by which the virtual PMU steps each. The first two end with equal
 * registers, flags, memory and trap, the last two with the same counts. For PMU=intel-v5. */
#include "tests/payload/guest.h"

#define PAGE 4096u
enum { COUNTERS = 8, TIMER = 0x40, DONE = 0x81 };
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
static bool has_avx2, with_vectors;
static uint32_t pkru;
static uint64_t user = 0x8000000000, cr0;
/* Seed 4: comparisons end SCAS at the end of a cache line; a prefix follows REX. */
static uint64_t seed = 4, ended[256], undefined;

static void copy_code(void *to, const void *from, uint64_t n)
{
    asm volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(n) : : "memory");
}

static uint32_t rnd(uint32_t n)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(seed >> 33) % n;
}

/* --- Sequences --- */
static uint8_t *at, rex;

static void b(unsigned byte) { *at++ = (uint8_t)byte; }

static void bytes(unsigned n)
{
    while (n--)
        b(rnd(4) ? rnd(16) * 8 : rnd(256));
}

/* A register for data, mostly one that holds no pointer; never R15, which counts iterations. */
static unsigned data_register(void)
{
    static const uint8_t plain[] = { 0, 1, 2, 9, 10, 11 };
    return rnd(16) ? plain[rnd(6)] : rnd(2) ? 4 : rnd(15);
}

static const uint8_t pointers[] = { 3, 5, 6, 7, 8, 12, 13, 4 };

/* Prefixes and REX for reg and rm; then opcode and ModRM. lock: where memory may have it. */
static void modrm(unsigned opcode, int group, bool memory_only, bool lock, unsigned immediate)
{
    unsigned reg = group >= 0 ? (unsigned)group : data_register(), mod = rnd(4), rm, index = 4;
    bool small = !rnd(6), with_rex = rnd(2);
    if (memory_only && mod == 3)
        mod = 1;
    rm = mod == 3 ? data_register() : pointers[rnd(8)];
    if (mod != 3 && !rnd(3))
        index = 14;
    with_rex |= reg >= 8 || rm >= 8 || (index == 14 && mod != 3);
    if (mod != 3 && !rnd(24))
        b(0x64 + rnd(2));
    if (small && !rnd(16))
        b(0x40 + rnd(16)); /* ignored */
    if (small)
        b(0x66);
    if (mod != 3 && lock && !rnd(4))
        b(0xf0);
    rex = with_rex ? (uint8_t)(0x40 | rnd(2) << 3 | (reg >> 3) << 2 |
                               (mod != 3 && index == 14 ? 2 : 0) | rm >> 3)
                   : 0;
    if (rex)
        b(rex);
    if (opcode >> 8)
        b(0x0f);
    b(opcode);
    bool sib = mod != 3 && ((rm & 7) == 4 || index == 14);
    bool relative = mod == 0 && (rm & 7) == 5 && !sib;
    if (mod == 0 && (rm & 7) == 5 && sib)
        mod = 1;
    b(mod << 6 | (reg & 7) << 3 | (sib ? 4 : rm & 7));
    if (sib)
        b(rnd(4) << 6 | (index & 7) << 3 | (rm & 7));
    if (mod == 1)
        b(rnd(32) * 8 - 64 + (rnd(4) ? 0 : rnd(8)));
    if (mod == 2 || relative) {
        int displacement = (int)(rnd(8) ? rnd(512) : rnd(8192)) - 256;
        displacement += relative ? (int)(memory + DATA * PAGE + 1024 - at) : 0;
        for (unsigned i = 0; i < 32; i += 8)
            b((unsigned)displacement >> i);
    }
    bytes(immediate == 4 && small && !(rex & 8) ? 2 : immediate);
}

static void with_rex(unsigned opcode, unsigned reg, bool wide)
{
    if (reg >= 8 || wide)
        b(0x40 | (wide ? 8 : 0) | reg >> 3);
    b(opcode | (reg & 7));
}

static void instruction(void);

/* LOOPNE, LOOPE, LOOP, JRCXZ, by RCX or ECX: mostly after MOV ECX; back to itself, or forward. */
static void loop(void)
{
    unsigned op = 0xe0 + rnd(4);
    bool moved = rnd(4);
    if (moved)
        b(0xb9), b(1 + rnd(8)), b(0), b(0), b(0);
    uint8_t *first = at;
    if (!rnd(3))
        b(0x67);
    if (!rnd(8))
        b(0x48);
    b(op);
    uint8_t *from = at++;
    if (moved && op < 0xe3 && rnd(2)) {
        *from = (uint8_t)(first - at);
        return;
    }
    if (rnd(4))
        instruction();
    *from = (uint8_t)(at - from - 1);
}

/* A jump forward, over a few instructions; or a call of them. */
static void forward(void)
{
    unsigned kind = rnd(6);
    uint8_t *from;
    if (kind == 0) { /* CALL over a jump to code that ends with RET */
        b(0xe8), b(2), b(0), b(0), b(0), b(0xeb);
        from = at++;
        instruction();
        rnd(4) ? b(0xc3) : (b(0xc2), b(rnd(2) * 8), b(rnd(4) ? 0 : 0x80));
    } else if (kind == 1) { /* LEA RAX, [RIP + n]; PUSH; JMP or CALL by register or memory */
        unsigned how = rnd(4);
        b(0x48), b(0x8d), b(0x05);
        from = at;
        at += 4;
        b(0x50), b(0xff);
        b(how == 0 ? 0xe0 : how == 1 ? 0xd0 : how == 2 ? 0x24 : 0x14);
        if (how > 1)
            b(0x24);
        instruction();
        *from = (uint8_t)(at - from - 4);
        from[1] = from[2] = from[3] = 0;
        return;
    } else {
        if (kind == 2) {
            b(0x0f), b(0x80 + rnd(16));
            from = at;
            at += 4;
            instruction();
            *from = (uint8_t)(at - from - 4);
            from[1] = from[2] = from[3] = 0;
            return;
        }
        b(kind == 3 ? 0xeb : 0x70 + rnd(16));
        from = at++;
        instruction();
    }
    *from = (uint8_t)(at - from - 1);
}

/* SSE and AVX, on registers 0 to 3 and memory. */
static void vector(void)
{
    /* Bits 16: an immediate; 12 on: 66, F3, F2; 8 on: the map. */
    static const uint32_t codes[] = { 0x110,   0x111,   0x1128, 0x129,  0x1116, 0x113,  0x157,
                                      0x1160,  0x116c,  0x116e, 0x116f, 0x216f, 0x216f, 0x11170,
                                      0x11173, 0x11172, 0x1174, 0x1176, 0x117e, 0x217e, 0x117f,
                                      0x217f,  0x11d4,  0x11d6, 0x11d7, 0x11da, 0x11e7, 0x11eb,
                                      0x11ef,  0x11f8,  0x1200, 0x1229, 0x1237, 0x1258, 0x1278,
                                      0x1130f, 0x11363, 0x177,  0x3110, 0x158 };
    static const uint8_t prefixes[] = { 0, 0x66, 0xf3, 0xf2 };
    uint32_t code = codes[rnd(sizeof codes / sizeof *codes)], prefix = code >> 12 & 3,
             map = code >> 8 & 3, op = code & 255;
    bool vex = rnd(2), three = map > 1 || rnd(2);
    unsigned base = pointers[rnd(vex && !three ? 4 : 8)], mod = rnd(3) ? 1 : 3;
    unsigned high = mod == 1 && base >= 8,
             last = (rnd(6) ? 0x78 : (~rnd(4) & 15) << 3) | !rnd(3) << 2 | prefix;
    if (vex) {
        b(three ? 0xc4 : 0xc5);
        if (three)
            b((high ? 0xc0 : 0xe0) | map);
        b(three ? last : 0x80 | last);
    } else {
        if (prefix)
            b(prefixes[prefix]);
        if (high || !rnd(4))
            b(0x40 | high | (rnd(4) ? 0 : 8));
        b(0x0f);
        if (map > 1)
            b(map == 2 ? 0x38 : 0x3a);
    }
    b(op);
    if (op == 0x77)
        return;
    b(mod << 6 | rnd(4) << 3 | (mod == 3 ? rnd(4) : base & 7));
    if (mod == 1 && (base & 7) == 4)
        b(0x24);
    if (mod == 1)
        b(rnd(8) * 16 - 64 + (rnd(4) ? 0 : rnd(16)));
    if (code >> 16)
        b(rnd(4) ? rnd(24) : rnd(256));
}

static void instruction(void)
{
    static const uint16_t plain[] = { 0x63,  0x84,  0x85,  0x88,  0x89,  0x8a,  0x8b,  0x1af,
                                      0x1b6, 0x1b7, 0x1be, 0x1bf, 0x1bc, 0x1bd, 0x1a5, 0x1ad,
                                      0x1a3, 0x1ab, 0x1b3, 0x1bb, 0x11f, 0x86,  0x87 };
    static const uint16_t locked[] = { 0x86, 0x87, 0x1b0, 0x1b1, 0x1c0, 0x1c1 };
    static const uint8_t strings[] = { 0xa4, 0xa6, 0xaa, 0xac, 0xae };
    static const uint8_t alone[] = { 0x98, 0x99, 0xf5, 0xf8, 0xf9, 0x90, 0xc9 };
    unsigned group = rnd(8), reg = data_register();
    switch (rnd(28)) {
    case 0:
    case 1:
    case 2: modrm(rnd(8) << 3 | rnd(4), -1, false, false, 0); break;
    case 3: modrm((rnd(7) << 3) | rnd(2), -1, true, true, 0); break;
    case 4: modrm(0x80 + (rnd(2) ? 3 : 0), (int)group, false, group != 7, 1); break;
    case 5: modrm(0x81, (int)group, false, group != 7, 4); break;
    case 6: modrm(0xc0 + rnd(2), (int)group, false, false, 1); break;
    case 7: modrm(0xd0 + rnd(4), (int)group, false, false, 0); break;
    case 8:
        if (!rnd(8)) /* MOV RDX, RCX: the quotient is one bit too long */
            b(0x48), b(0x89), b(0xca), b(0x48), b(0xf7), b(0xf1);
        modrm(0xf6 + rnd(2), rnd(4) ? 2 + (int)rnd(4) : 6 + (int)rnd(2), false, false, 0);
        break;
    case 9: modrm(0xf6, 0, false, false, 1); break;
    case 10:
        rnd(4) ? modrm(0xfe + rnd(2), (int)rnd(2), false, true, 0) : modrm(0xff, 6, true, false, 0);
        break;
    case 11: modrm(plain[rnd(sizeof plain / 2)], -1, false, false, 0); break;
    case 12: modrm(locked[rnd(sizeof locked / 2)], -1, true, true, 0); break;
    case 13: modrm(rnd(2) ? 0x140 + rnd(16) : 0x190 + rnd(16), -1, false, false, 0); break;
    case 14: modrm(0x8d, -1, true, false, 0); break;
    case 15:
        rnd(2) ? modrm(0x1ba, 4 + (int)rnd(4), false, true, 1) : modrm(0xc6, 0, false, false, 1);
        break;
    case 16:
        if (rnd(2))
            with_rex(rnd(2) ? 0x50 : 0x58, reg, false);
        else
            b(0x6a), b(rnd(256));
        break;
    case 17:
        if (rnd(2)) {
            bool wide = rnd(2), byte = !rnd(4); /* SPL among them */
            byte && !rnd(3) ? (b(0x40), b(0xb4)) : with_rex(byte ? 0xb0 : 0xb8, reg, wide);
            bytes(byte ? 1 : wide ? 8 : 4);
        } else if (rnd(2)) {
            b(0x0f), b(0xc8 + (reg & 7));
        } else {
            modrm(rnd(2) ? 0x6b : 0x1a4 + 8 * rnd(2), -1, false, false, 1);
        }
        break;
    case 18: b(alone[rnd(rnd(8) ? 6 : 7)]); break;
    case 19:
    case 25: /* MOV ECX; REP MOVS or STOS, REPE or REPNE with CMPS or SCAS, REP LODS */
        if (rnd(4))
            b(0xb9), b(rnd(256)), b(rnd(4)), b(0), b(0);
        b(0xf2 + rnd(2)), b(0x48 - 8 * rnd(2)), b(strings[rnd(sizeof strings)] + rnd(2));
        break;
    case 20: loop(); break;
    case 21: b(0xf3), modrm(0x1bc + rnd(2), -1, false, false, 0); break; /* TZCNT, LZCNT */
    case 22:
    case 23:
    case 24: with_vectors || !rnd(16) ? vector() : forward(); break;
    default: forward();
    }
}

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
    *(uint32_t *)(xsave_area[0] + 24) = 0x1f80;
    xsave_area[0][512] = 7; /* XSTATE_BV */
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
    asm volatile("mov %%cr3,%%rax\nmov %%rax,%%cr3" : : : "rax", "memory");
}

/* Branches, conditional, taken, mispredicted; loads, stores; references and misses of caches. */
static const uint16_t events[COUNTERS] = { 0xc4,   0x11c4, 0x20c4, 0xc5,
                                           0x81d0, 0x82d0, 0x4f2e, 0x412e };

static void run_code(struct state *s, bool counting, uint64_t counts[COUNTERS])
{
    copy_code(memory, before, sizeof memory);
    map_all();
    for (unsigned i = 0; i < COUNTERS; i++) {
        try_wrmsr(0xc1 + i, 0);
        try_wrmsr(0x186 + i, counting ? events[i] | 0x410000u : 0);
    }
    try_wrmsr(0x38f, counting ? 0xff : 0);
    APIC(0x380) = 20000000;
    asm volatile("mov %0,%%cr0" : : "r"(with_vectors ? cr0 : cr0 | 8)); /* TS */
    if (with_vectors)
        asm volatile("xrstor64 %0" : : "m"(xsave_area[0]), "a"(7), "d"(0));
    run_state(s);
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
    try_wrmsr(0x38f, 0);
    for (unsigned i = 0; i < COUNTERS; i++)
        counts[i] = rdmsr(0xc1 + i);
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

static bool try_block(void)
{
    struct state start, plain, counted, again;
    uint64_t none[COUNTERS], first[COUNTERS], second[COUNTERS];
    make_registers(&start);
    make_block(&start);
    copy_code(before, memory, sizeof memory);
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
    for (unsigned i = 0; i < COUNTERS; i++) {
        say_hex(i ? ", " : "counts ", first[i]);
        say_hex(" stepped ", second[i]);
    }
    say("\n");
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
    asm volatile("mov %%cr0,%0\nmov %%cr4,%1" : "=r"(cr0), "=r"(cr4));
    cr0 |= 0x10000;                                /* WP */
    asm volatile("mov %0,%%cr4" : : "r"(cr4 | 4)); /* TSD */
    uint32_t r[4];
    cpuid(7, r);
    has_avx2 = r[1] >> 5 & 1;
    if (has_avx2) /* OSFXSR, OSXSAVE; all of it on */
        asm volatile("mov %0,%%cr4\n\txsetbv" : : "r"(cr4 | 4 | 0x40600), "c"(0), "a"(7), "d"(0));
    user |= (cr4 & 0x1000) << 37; /* LA57 */
}

#define SEQUENCES 300
void payload_main(uint32_t magic, uint32_t info)
{
    unsigned failed = 0;
    make_machine();
    for (unsigned i = 0; magic && info && i < SEQUENCES && failed < 5; i++)
        failed += !try_block();
    for (unsigned v = 0; v < 256; v++)
        if (ended[v]) {
            say_hex("ended by vector ", v);
            say_hex(": ", ended[v]);
            say("\n");
        }
    say_hex("flags as when stepped: ", undefined);
    say_hex(failed ? "\ndiffer: " : "\nthe same: ", failed ? failed : SEQUENCES);
    say("\n");
    end(failed ? 1 : 0x10);
}
