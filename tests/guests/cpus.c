/* SPDX-License-Identifier: MIT */
/* Starts the machine's second CPU in each way, again and again, and says in which state it begins.
 * tests/guests/transparent compares that with what the same image says on plain QEMU. With a word
 * on the command line: "each", it only starts the other; "count", both CPUs count what they
 * execute; "self", it does INIT to itself; "odd" and "near", it writes the end of ICR, or what
 * comes before ICR and a part of it, by an instruction that nobody sends by; "far", it reads where
 * no memory can be. Where there is an x2APIC it does all by that. */
#include "tests/guests/guest.h"

extern volatile struct {
    uint32_t dx, cr0, cr4, efer, di, dr7, debugctl, nmis, flags, sp;
    uint16_t cs, ds, gdt[4], idt[4];
    uint32_t count;
} began;
extern void (*volatile go_on)(void);
extern uint64_t pml4[];
void place(void);
void move_register(uint32_t icr), move_offset(uint32_t icr), move_wide(uint32_t icr);
void move_number(void), or_at(uint32_t at);
uint32_t change_priority(void), change_by_msr(void);
void loops(uint64_t n);

enum { INIT = 0x4500, STARTUP = 0x4608, NMI = 0x4400, FIXED = 0x4040, LOGICAL = 0x800 };
enum { SELF = 1 << 18, OTHERS = 3 << 18, ANY = 0xff };
enum { LOOPS = 100000, TURNS = 20, PATIENCE = 2000 };

static bool x2apic;
static volatile uint32_t taken; /* interrupts and NMIs by the other CPU */
static volatile bool nmi_stays; /* its handler does not return */

static void turn_on(void)
{
    if (x2apic)
        try_wrmsr(0x1b, read_msr(0x1b) | 1 << 10);
}

static void write_apic(uint32_t at, uint32_t value)
{
    if (x2apic)
        try_wrmsr(0x800 + at / 16, value);
    else
        APIC(at) = value;
}

static uint32_t read_apic(uint32_t at)
{
    return x2apic ? (uint32_t)read_msr(0x800 + at / 16) : APIC(at);
}

bool trap_handler(struct frame *f)
{
    bool interrupt = f->vector == 2 || f->vector >= 32;
    taken += interrupt;
    while (f->vector == 2 && nmi_stays)
        pause();
    if (f->vector >= 32)
        write_apic(0xb0, 0);
    return !interrupt && !expected_fault(f);
}

static void send_to(uint32_t id, void (*write)(uint32_t), uint32_t icr)
{
    if (x2apic) {
        try_wrmsr(0x830, (id == ANY ? ~0ul : id) << 32 | icr);
        return;
    }
    APIC(0x310) = id << 24;
    write(icr);
}

/* Whether the other one has begun n times. */
static bool has_begun(uint32_t n)
{
    for (unsigned i = 0; i < PATIENCE && began.count != n; i++)
        pause();
    return began.count == n;
}

static void say_began(const char *how, uint32_t n)
{
    bool has = has_begun(n);
    say(how);
    say_all(": began % times % dx the signature % cr0 % cr4 % efer % di % dr7 % debugctl %", has,
            began.count, began.dx == cpuid(1, 0).eax, began.cr0, began.cr4, began.efer, began.di,
            began.dr7, began.debugctl);
    say_all(" NMIs % flags % sp % cs % ds % gdt % idt %\n", began.nmis, began.flags, began.sp,
            began.cs, began.ds, began.gdt[0], began.idt[0]);
}

static void start_each_way(uint32_t other)
{
    static const struct {
        const char *name;
        void (*write)(uint32_t);
        uint32_t id, more;
    } ways[] = { { "to one", move_register, 1, 0 },
                 { "by an absolute address", move_offset, 1, 0 },
                 { "by R15D", move_wide, 1, 0 },
                 { "to all others", move_register, 0, OTHERS } };
    uint32_t n = began.count;
    for (unsigned i = 0; i < sizeof ways / sizeof *ways; i++) {
        send_to(ways[i].id ? other : 0, ways[i].write, INIT | ways[i].more);
        send_to(ways[i].id ? other : 0, ways[i].write, STARTUP | ways[i].more);
        say_began(ways[i].name, ++n);
    }
    if (x2apic)
        send_to(0, move_register, INIT | OTHERS);
    else
        move_number();
    send_to(other, move_register, STARTUP);
    say_began("INIT by a number", ++n);
    send_to(other, move_register, INIT);
    send_to(ANY, move_register, STARTUP);
    say_began("STARTUP to any", ++n);
}

/* What starts no CPU: STARTUP without INIT, of one that runs or halts; INIT's end; to nobody. */
static void start_in_vain(uint32_t other)
{
    uint32_t n = began.count, before = taken;
    send_to(other, move_register, STARTUP);
    send_to(other, move_register, 0x8500);
    send_to(other, move_register, STARTUP);
    send_to(other + 1, move_register, INIT);
    send_to(other + 1, move_register, STARTUP);
    say_hex("in vain: ", !has_begun(n + 1) && began.count == n);
    send_to(other, move_register, INIT);
    send_to(other, move_register, NMI); /* while it waits for STARTUP */
    send_to(0, move_register, STARTUP | SELF);
    say_hex(" waits: ", !has_begun(n + 1) && began.count == n && taken == before);
    send_to(other, move_register, STARTUP);
    say("\n");
    say_began("after that", n + 1);
}

/* --- Interrupts from one to the other, which halts; INIT while it does other things. --- */

static volatile bool takes;
static volatile uint32_t spurious, priority; /* the registers at the beginning */
static volatile uint32_t turns;

static void take_interrupts(void)
{
    turn_on();
    spurious = read_apic(0xf0);
    priority = read_apic(0x80);
    write_apic(0xf0, 0x1ff);
    write_apic(0x80, 0x10);
    if (!x2apic) {
        APIC(0xe0) = ~0u; /* flat: this is bit 1, as with an x2APIC */
        APIC(0xd0) = 2u << 24;
    }
    for (takes = true; takes;)
        sti_hlt();
    cli();
}

/* With state that INIT clears: SYSCALL, a breakpoint, a list of branches. */
static void spin(void)
{
    try_wrmsr(0xc0000080, read_msr(0xc0000080) | 1);
    try_wrmsr(0x1d9, 1);
    asm volatile("mov %0, %%dr7" : : "r"(0x403ul));
    for (;; turns++)
        pause();
}

static void init_itself(void)
{
    turn_on();
    send_to(1, move_register, INIT);
    spin();
}

/* Whether it waits for STARTUP: it makes no turns. */
static bool stands(void)
{
    uint32_t before = turns;
    has_begun(0);
    return turns == before;
}

static void begin(uint32_t other, void (*what)(void))
{
    uint32_t n = began.count;
    go_on = what;
    send_to(other, move_register, INIT);
    send_to(other, move_register, STARTUP);
    say_hex(" ", has_begun(n + 1));
}

/* What the other one has taken after `n` before. */
static void interrupt(uint32_t to, uint32_t command, uint32_t before)
{
    uint32_t n = taken;
    send_to(to, move_register, command);
    for (unsigned k = 0; k < PATIENCE && taken == n; k++)
        pause();
    say_hex(" ", taken - before);
}

static void interrupt_each_way(uint32_t other)
{
    static const uint32_t ways[][2] = {
        { 1, NMI }, { 1, FIXED }, { 2, FIXED | LOGICAL }, { 0, FIXED | OTHERS }, { 0, NMI | OTHERS }
    };
    uint32_t before = taken;
    say("interrupts:");
    for (unsigned turn = 0; turn < 2; turn++) { /* the second INIT comes in an NMI's handler */
        takes = false;
        begin(other, take_interrupts);
        for (unsigned k = 0; k < PATIENCE && !takes; k++)
            pause();
        say_all(" SVR % TPR %", spurious, priority);
        for (unsigned i = 0; i < sizeof ways / sizeof *ways; i++) {
            nmi_stays = turn == 0 && i == sizeof ways / sizeof *ways - 1;
            interrupt(ways[i][0], ways[i][1], before);
        }
    }
    say("\n");
}

/* A RET on each of more pages than nested paging knows: all are forgotten, but not the APIC's. */
static void call_pages(void)
{
    for (uint64_t page = 32 << 20; page < 40 << 20; page += 4096) {
        *(volatile uint8_t *)page = 0xc3;
        ((void (*)(void))page)();
    }
}

static void init_each_state(uint32_t other)
{
    call_pages();
    say("INIT:");
    begin(other, spin);
    say_hex(" it makes turns ", !stands());
    send_to(other, move_register, INIT);
    say_hex(" none ", stands());
    uint32_t n = began.count;
    go_on = 0;
    send_to(other, move_register, STARTUP);
    say_began(" then", n + 1);
    begin(other, init_itself);
    say_hex(" none by itself ", stands());
    begin(other, 0);
    say("\n");
}

/* --- Counts of both CPUs. --- */

static bool intel;
static volatile uint64_t counts[2];
static volatile uint32_t turn;

static uint64_t stop_counter(void)
{
    try_wrmsr(intel ? 0x186 : 0xc0010000, 0);
    return read_msr(intel ? 0xc1 : 0xc0010004);
}

static volatile uint64_t last_tsc;
static volatile unsigned went_back;

/* Time is the same on both, although the virtual PMU hides what it spends on each. */
static void look_at_tsc(void)
{
    uint64_t now = rdtsc();
    went_back += now < last_tsc;
    last_tsc = now;
}

static void count_here(unsigned cpu)
{
    look_at_tsc();
    start_event(intel, 2);
    loops(LOOPS);
    counts[cpu] = stop_counter();
    look_at_tsc();
}

static void count_there(void)
{
    for (uint32_t n = 1; n <= TURNS; n++) {
        while (turn < n)
            pause();
        count_here(1);
        turn = n + 0x10000;
        while (turn == n + 0x10000)
            pause();
    }
}

/* Each branch of 100,000 and those around: the same on both CPUs, each time. */
static void count_both(uint32_t other)
{
    volatile uint32_t *io_apic = (volatile uint32_t *)0xfec00000ul;
    uint32_t (*change)(void) = x2apic ? change_by_msr : change_priority;
    unsigned same = 0;
    *io_apic = 1; /* what it chose stays, wherever the alarm goes */
    go_on = count_there;
    send_to(other, move_register, INIT);
    send_to(other, move_register, STARTUP);
    for (uint32_t n = 1; n <= TURNS; n++) {
        turn = n;
        count_here(0);
        while (turn != n + 0x10000)
            pause();
        same += counts[0] == counts[1];
        turn = n;
    }
    start_event(intel, 1);
    uint64_t none = stop_counter();
    start_event(intel, 1);
    asm volatile("call *%0" : : "m"(change) : "rax", "rcx", "rdx", "rsi", "memory");
    uint64_t writes = stop_counter() - none;
    say_all("branches % the same on both % TSC back % IO-APIC % instructions of writes %\n",
            counts[0], same, went_back, *io_apic, writes);
}

static void read_at(uint64_t gigabyte)
{
    uint64_t *pdpt = (uint64_t *)(pml4[0] & -4096ul);
    pdpt[5] = gigabyte << 30 | 0x83;
    say_hex("it reads ", *(volatile uint8_t *)(5ul << 30));
}

/* The first letter of the command line's last word. */
static char read_word(uint32_t info)
{
    const char *line = (const char *)(uint64_t)((const uint32_t *)(uint64_t)info)[4], *word = line;
    for (; *line; line++)
        if (*line == ' ')
            word = line + 1;
    return *word;
}

/* The page where they begin is as the loader left it. */
static void say_page(void)
{
    uint32_t sum = 0;
    for (const uint8_t *at = (const uint8_t *)0x8000; at < (const uint8_t *)0x9000; at++)
        sum = sum * 31 + *at;
    say_all("page 8000h: %\n", sum);
}

void payload_main(uint32_t magic, uint32_t info)
{
    (void)magic;
    intel = is_intel();
    for (unsigned v = 0; v < 256; v++)
        set_gate(v, stubs[v], 8, 0, 0x8e);
    mask_pics();
    x2apic = cpuid(1, 0).ecx >> 21 & 1;
    turn_on();
    say_page();
    place();
    switch (read_word(info)) {
    case 'c': count_both(1); break;
    case 's': send_to(0, move_register, INIT); break;
    case 'o': or_at(0xfee0030c); break;
    case 'n': or_at(0xfee002fc); break;
    case 'e': start_each_way(1); break;
    case 'f': read_at(512); break;
    default:
        for (unsigned mode = 0; mode < 3; mode++) {
            start_event(intel, mode);
            start_each_way(1);
            start_in_vain(1);
            interrupt_each_way(1);
            init_each_state(1);
            say_all("priority: %\n", x2apic ? change_by_msr() : change_priority());
        }
    }
    end(0);
}
