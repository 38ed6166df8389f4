/* SPDX-License-Identifier: MIT */
/* Runs each probe of transparent.asm three times: with nothing counting, while an event counts that
 * the virtual PMU takes from its clock, and while one does for which it steps. Says of each trap
 * what the processor answered: tests/guests/transparent compares that with what the same image says
 * on plain QEMU, where those registers of a PMU do nothing. */
#include "tests/guests/guest.h"

struct probe {
    const char *name;
    uint64_t code, cs, flags;
};
struct note {
    const struct probe *probe;
    uint64_t cr2, dr6, cr8;
    struct frame frame;
};

extern uint64_t pml4[];
extern const struct probe probes[], probes_end[], silicon[], silicon_end[];
void run(const struct probe *p);
void real_mode(void);
extern uint16_t real_result[8], real_blocks[6];
extern uint32_t real_end_of_memory;
void lstar_entry(void);
void cstar_entry(void);
void sysenter_entry(void);

enum { DONE = 0x81, NOTES = 400, TRAPS = 30 };
#define SMAP 0x200000ul
uint8_t second_page[4096] __attribute__((aligned(4096)));
uint8_t scratch[4096] __attribute__((aligned(4096)));
uint64_t table_far[512] __attribute__((aligned(4096)));
static uint64_t pdpt_far[512] __attribute__((aligned(4096)));
static uint64_t dir_far[512] __attribute__((aligned(4096)));
static struct note notes[NOTES];
static unsigned count, traps;
static const struct probe *current;

/* Whether the probe is over. */
bool trap_handler(struct frame *f)
{
    struct note *n = &notes[count];
    if (expected_fault(f))
        return false;
    asm volatile("mov %%cr2,%0\nmov %%dr6,%1\nmov %%cr8,%2"
                 : "=r"(n->cr2), "=r"(n->dr6), "=r"(n->cr8));
    n->frame = *f;
    n->probe = current;
    if (count < NOTES - 1)
        count++;
    bool trap = f->vector == 1 || f->vector == 2 || f->vector == 3 || f->vector == 4 ||
                f->vector == 0x1e || f->vector == 0x88 || (f->vector >= 0x20 && f->vector < 0x80);
    if (f->vector == 0x1e || (f->vector >= 0x20 && f->vector < 0x80))
        APIC(0xb0) = 0;
    /* An execute breakpoint is a fault: RF, so that it is passed. */
    if (f->vector == 1 && n->dr6 & 1 && !(n->dr6 & 0x4000))
        f->rflags |= 1u << 16;
    if (f->vector == 1) {
        uint64_t clear = 0xffff0ff0 | (n->dr6 & 0x4000);
        asm volatile("mov %0,%%dr6" : : "r"(clear));
    }
    return !trap || ++traps > TRAPS;
}

static void say_note(const char *mode, const struct note *n)
{
    const struct frame *f = &n->frame;
    say(mode);
    say(n->probe->name);
    /* A fault pushes RF, which QEMU does not do. */
    say_all(": vector % error % at % cs % flags % rsp % ss %", f->vector, f->error,
            f->rip - n->probe->code, f->cs, f->rflags & ~(1ul << 16),
            f->rsp - (uint64_t)probe_stack_top, f->ss);
    say_all(" ax % bx % cx % dx % si % di %", f->rax, f->rbx, f->rcx, f->rdx, f->rsi, f->rdi);
    if (f->vector >= 0x100)
        say_hex(" r11 ", f->r11);
    if (f->vector == 14)
        say_hex(" cr2 ", n->cr2);
    if (f->vector == 1 || f->vector == DONE)
        say_hex(" dr6 ", n->dr6);
    say_hex(" cr8 ", n->cr8);
    say("\n");
}

static bool intel;

/* Where memory below 4 GB ends, by the loader's map. */
static uint32_t end_of_memory;
static void read_map(const uint32_t *info)
{
    const uint8_t *at = (const uint8_t *)(uint64_t)info[12], *end = at + info[11];
    for (; at < end; at += *(const uint32_t *)at + 4) {
        const uint32_t *range = (const uint32_t *)at; /* size, start, length, type */
        if (range[5] == 1 && !range[2])
            end_of_memory = range[1] + range[3];
    }
}

/* Memory by INT 12h, the screen by INT 10h, our own INT 60h: registers, IP and flags; memory by INT
 * 15h, which must be the loader's; flags by INT 15h. */
static void say_real_mode(unsigned mode, const char *name)
{
    start_event(intel, mode);
    real_mode();
    start_event(intel, 0);
    say(name);
    say("real mode:");
    for (unsigned i = 0; i < 7; i++)
        say_hex(" ", real_result[i]);
    uint32_t kb = (end_of_memory >> 10) - 1024;
    say_all(" 88h % E820h ends with the loader's map % E801h % %",
            real_result[7] == (kb < 63 << 10 ? kb : 63 << 10), real_end_of_memory == end_of_memory,
            real_blocks[0] == (end_of_memory >> 16) - 256, real_blocks[5] == real_blocks[0]);
    say_all(" % % % %\n", real_blocks[1], real_blocks[2], real_blocks[3], real_blocks[4]);
}

/* What some probes leave. */
static void end_smap(void)
{
    pml4[0] |= 4;
    if (read_cr4() & SMAP)
        write_cr4(read_cr4() & ~SMAP);
}

static void run_probes(unsigned mode, const struct probe *from, const struct probe *to)
{
    static const char *const names[] = { "idle: ", "counting: ", "stepping: " };
    for (const struct probe *p = from; p < to; p++) {
        current = p;
        count = traps = 0;
        start_event(intel, mode);
        run(p);
        start_event(intel, 0);
        end_smap();
        asm volatile("mov %0,%%dr7\nmov %1,%%dr6" : : "r"(0x400ul), "r"(0xffff0ff0ul));
        asm volatile("mov %0,%%cr8" : : "r"(0ul));
        for (unsigned i = 0; i < count; i++)
            say_note(names[mode], &notes[i]);
    }
    if (from == probes)
        say_real_mode(mode, names[mode]);
}

/* How many instructions of ring 3 a counter finds in each probe. */
static void count_all(const struct probe *from, const struct probe *to)
{
    uint32_t select = intel ? 0x186 : 0xc0010000, counter = intel ? 0xc1 : 0xc0010004;
    try_wrmsr(intel ? 0x38f : 0xc0000301, 1);
    for (current = from; current < to; current++) {
        traps = count = 0;
        try_wrmsr(counter, 0);
        try_wrmsr(select, 0x4100c0);
        run(current);
        try_wrmsr(select, 0);
        say("counted: ");
        say(current->name);
        say_all(": % in ring 3\n", read_msr(counter));
    }
}

/* Registers whose values stay: name and number. */
static void say_msrs(void)
{
    static const uint32_t msrs[] = { 0x1b,       0xfe,       0x277,      0x2ff,      0x174,
                                     0x175,      0x176,      0xc0000080, 0xc0000081, 0xc0000082,
                                     0xc0000083, 0xc0000084, 0xc0000100, 0xc0000102, 0xc0000103 };
    for (unsigned i = 0; i < sizeof msrs / sizeof *msrs; i++) {
        uint64_t value = 0, fault = try_rdmsr(msrs[i], &value);
        say_all("MSR % fault % value %\n", msrs[i], fault, value);
    }
}

/* What an MSR answers to a read, to a write, and to a read after that; it is written back. */
struct answer {
    uint64_t fault, value, write_fault, again;
};

static struct answer ask_msr(uint32_t msr)
{
    struct answer a = { 0, 0, 0, 0 };
    a.fault = try_rdmsr(msr, &a.value);
    a.write_fault = try_wrmsr(msr, 0x5555000012345679);
    if (!a.fault && try_rdmsr(msr, &a.again))
        a.again = 0xbad;
    if (!a.write_fault)
        try_wrmsr(msr, a.value);
    return a;
}

static void say_answer(uint32_t first, uint32_t last, const struct answer *a)
{
    say_all("MSRs % to %: fault % value % write % then %\n", first, last, a->fault, a->value,
            a->write_fault, a->again);
}

/* All of a range: those side by side that answer the same in one line. */
static void say_range(uint32_t first, uint32_t last)
{
    struct answer a = ask_msr(first), b;
    for (uint32_t msr = first + 1; msr <= last; msr++) {
        b = ask_msr(msr);
        if (b.fault == a.fault && b.value == a.value && b.write_fault == a.write_fault &&
            b.again == a.again)
            continue;
        say_answer(first, msr - 1, &a);
        first = msr;
        a = b;
    }
    say_answer(first, last, &a);
}

/* What firmware leaves: the PICs' masks, port 61h, registers of the APIC, the IO-APIC and the HPET.
 */
static void say_board(void)
{
    static const uint32_t apic[] = { 0x20,  0x30,  0x80,  0xd0,  0xe0,  0xf0,
                                     0x320, 0x340, 0x350, 0x360, 0x370, 0x3e0 };
    volatile uint32_t *io_apic = (volatile uint32_t *)0xfec00000ul;
    volatile uint64_t *hpet = (volatile uint64_t *)0xfed00000ul;
    say_all("PICs % % port 61h %\n", in8(0x21), in8(0xa1), in8(0x61) & 3);
    for (unsigned i = 0; i < sizeof apic / sizeof *apic; i++)
        say_all("APIC % is %\n", apic[i], APIC(apic[i]));
    for (unsigned at = 0x10; at < 0x168; at += at == 0x20 ? 0xd0 : 8)
        say_all("HPET % is %\n", at, hpet[at / 8]);
    for (unsigned pin = 0; pin < 24; pin++) {
        io_apic[0] = 0x10 + 2 * pin;
        say_all("IO-APIC % is %\n", pin, io_apic[4]);
    }
}

/* Whether the command line has it: "info": what the loader handed on; "silicon": the other list;
 * "msrs": all MSRs. */
static bool has_word(const char *line, const char *word)
{
    unsigned n = 0;
    for (; *line && word[n]; line++)
        n = *line == word[n] ? n + 1 : *line == *word;
    return !word[n];
}

static void say_modules(const uint32_t *info)
{
    const uint32_t *module = (const uint32_t *)(uint64_t)info[6];
    for (unsigned i = 0; i < info[5]; i++, module += 4) {
        say_hex("module ", i);
        say(" <");
        say((const char *)(uint64_t)module[0]);
        say("> line <");
        say((const char *)(uint64_t)module[2]);
        say(">\n");
    }
}

/* Where the loader's information lies, and its map; whether a kernel that maps the first 640 KB
 * reaches all of it. */
static void say_info(const uint32_t *info)
{
    const uint32_t *range = (const uint32_t *)(uint64_t)info[12], *end = range + info[11] / 4;
    uint32_t highest = (uint32_t)(uint64_t)info;
    for (unsigned i = 0; i < 4; i++) {
        static const unsigned addresses[] = { 4, 6, 12, 16 }; /* line, modules, map, name */
        highest = info[addresses[i]] > highest ? info[addresses[i]] : highest;
    }
    for (unsigned i = 0; i < info[5]; i++) {
        uint32_t line = ((const uint32_t *)(uint64_t)info[6])[4 * i + 2];
        highest = line > highest ? line : highest;
    }
    say_all("info: at % flags % lower % device % map at %\n", (uint64_t)info, info[0], info[1],
            info[3], info[12]);
    say_all("info: all of it is low %\ninfo: upper %\n", highest < 0xa0000, info[2]);
    for (; range < end; range += *range / 4 + 1)
        say_all("range % of % is %\n", range[1] | (uint64_t)range[2] << 32,
                range[3] | (uint64_t)range[4] << 32, range[5]);
}

void payload_main(uint32_t magic, uint32_t info)
{
    const uint32_t *words = (const uint32_t *)(uint64_t)info;
    const char *line = magic == 0x2badb002 && *words & 4 ? (const char *)(uint64_t)words[4] : "";
    if (has_word(line, "info")) {
        say_info(words);
        say_modules(words);
        end(0x10);
    }
    for (unsigned v = 0; v < 0xf0; v++)
        set_gate(v, stubs[v], 8, v == 2,
                 v == 3 || v == 4 || v == 5 || v == DONE || v == 0x88 ? 0xee : 0x8e);
    set_gate(0x83, stubs[0x83], 0x48, 0, 0xee);
    set_gate(0x84, stubs[0x84], 0, 0, 0xee);
    set_gate(0x85, stubs[0x85], 8, 0, 0x6e);
    set_gate(0x86, stubs[0x86], 0x4b, 0, 0xee);
    pdpt_far[0] = 0x87;
    pdpt_far[1] = (uint64_t)dir_far | 7;
    dir_far[0] = (uint64_t)table_far | 7;
    table_far[0] = (uint64_t)scratch | 0x65; /* READ_ONLY_PAGE, LAST_PAGE */
    table_far[1] = (uint64_t)scratch | 0x67;
    table_far[4] = (uint64_t)second_page | 0x67; /* PAIR */
    table_far[5] = (uint64_t)scratch | 0x67;
    pml4[1] = (uint64_t)pdpt_far | 7;
    say_board();
    mask_pics();
    try_wrmsr(0xc0000081, 0x1bull << 48 | 8ull << 32);
    try_wrmsr(0xc0000082, (uint64_t)lstar_entry);
    try_wrmsr(0xc0000083, (uint64_t)cstar_entry);
    try_wrmsr(0xc0000084, 0xbd5); /* also what QEMU clears unasked: the arithmetic flags */
    try_wrmsr(0x174, 8);
    try_wrmsr(0x175, (uint64_t)probe_stack_top - 256);
    try_wrmsr(0x176, (uint64_t)sysenter_entry);
    intel = is_intel();
    read_map(words);
    if (has_word(line, "msrs")) {
        say_range(0, 0xf);
        say_range(0x11, 0x1a); /* not the TSC, the APIC's base, EFER */
        say_range(0x1c, 0x3000);
        say_range(0x40000000, 0x40000200);
        say_range(0xc0000081, 0xc0012000);
        end(0x10);
    }
    bool other = has_word(line, "silicon");
    for (unsigned mode = 0; mode < 3; mode++)
        run_probes(mode, other ? silicon : probes, other ? silicon_end : probes_end);
    if (other)
        count_all(silicon, silicon_end);
    say_msrs();
    say("end\n");
    end(0x10);
}
