/* SPDX-License-Identifier: MIT */
/* The virtual PMU as a foreign kernel sees it. Its own tables, handlers and drivers; nothing of
 * ntpmu's. It reports on COM1 and ends through isa-debug-exit. What the PMU is, it takes from
 * CPUID. */
#include "tests/guests/guest.h"
#include "tests/harness/questions.h"

/* What one vendor calls things. */
struct pmu {
    uint32_t select, counter, stride, gate, status, clear;
    uint64_t instructions; /* event select: retired instructions, EN */
    unsigned counters, width;
    bool fixed, masks_lvt;
};

uint64_t try_rdpmc(uint32_t selector, uint64_t *value);
void gate_loop(uint32_t msr, uint64_t on, uint64_t off, uint64_t loops);
void gate_pauses(uint32_t msr, uint64_t on, uint64_t off, uint64_t loops);
extern uint64_t pml4[];
extern const uint8_t filling[], filling_end[];
void gate_code(uint32_t msr, uint64_t on, uint64_t off, const void *code);
void run_user(uint64_t loops);
extern const uint8_t user_loop[];
void recover(void);
uint64_t rewritten(void);
uint64_t on_clean_stack(uint64_t top, uint32_t msr, uint64_t on, const uint64_t *entry);
extern const uint8_t clean_interrupt[];
extern uint64_t dirs[];

#define USER (1u << 16)
#define KERNEL (1u << 17)
#define INT (1u << 20)
#define EN (1u << 22)
#define HPET(offset) (*(volatile uint32_t *)(uint64_t)(0xfed00000 + (offset)))
#define PMI_VECTOR 0x60
#define CLEAN_VECTOR 0x61
#define ID (1u << 21) /* of RFLAGS; set throughout a loop */
#define MARKS 0x60u   /* of a page table's entry: accessed, dirty */

static unsigned failures;
static struct pmu pmu;
static volatile unsigned interrupts;
static volatile uint64_t hit_rip, fault_flags;

static void check_that(const char *name, uint64_t found, uint64_t wanted)
{
    if (found != wanted) {
        failures++;
        say_all("# found %, want %\nnot ", found, wanted);
    }
    say("ok - payload: ");
    say(name);
    say("\n");
}

static void finish_run(void)
{
    say(failures ? "# FAIL payload\n" : "# PASS payload\n");
    end(failures ? 0x11 : 0x10);
}

/* --- The machine. --- */

bool trap_handler(struct frame *frame)
{
    fault_flags = frame->rflags;
    if (frame->vector == 2 || frame->vector == PMI_VECTOR) {
        interrupts++;
        hit_rip = frame->rip;
    } else if (!expected_fault(frame)) {
        say_all("# unexpected exception % at %\n", frame->vector, frame->rip);
        failures++;
        finish_run();
    }
    if (frame->vector >= 32)
        APIC(0xb0) = 0;
    return false;
}

static void find_intel(void)
{
    uint32_t eax = cpuid(0xa, 0).eax;
    pmu = (struct pmu){ 0x186, 0xc1, 1, 0, 0, 0x390, 0xc0 | EN, 0, 0, false, true };
    pmu.fixed = (eax & 0xff) >= 2;
    pmu.gate = pmu.fixed ? 0x38f : 0;
    pmu.status = pmu.fixed ? 0x38e : 0;
    pmu.counters = eax >> 8 & 0xff;
    pmu.width = eax >> 16 & 0xff;
}

static void find_amd(void)
{
    pmu = (struct pmu){ 0xc0010000, 0xc0010004, 1, 0, 0, 0, 0xc0 | EN, 4, 48, false, false };
    if (cpuid(0x80000001, 0).ecx >> 23 & 1)
        pmu = (struct pmu){ 0xc0010200, 0xc0010201, 2, 0, 0, 0, 0xc0 | EN, 6, 48, false, false };
    if (cpuid(0x80000000, 0).eax < 0x80000022 || !(cpuid(0x80000022, 0).eax & 1))
        return;
    pmu.gate = 0xc0000301;
    pmu.status = 0xc0000300;
    pmu.clear = 0xc0000302;
    pmu.counters = cpuid(0x80000022, 0).ebx & 15;
}

static uint32_t select_of(unsigned n) { return pmu.select + n * pmu.stride; }
static uint32_t counter_msr(unsigned n) { return pmu.counter + n * pmu.stride; }
static uint64_t counter_mask(void) { return (1ul << pmu.width) - 1; }

/* The WRMSR that starts and stops counter n, programmed with `flags`; without global control its
 * own select. */
static uint32_t arm_counter(unsigned n, uint64_t flags, uint64_t start, uint64_t *on, uint64_t *off)
{
    try_wrmsr(select_of(n), pmu.gate ? pmu.instructions | flags : 0);
    try_wrmsr(counter_msr(n), start);
    *on = pmu.gate ? 1ul << n : pmu.instructions | flags;
    *off = 0;
    return pmu.gate ? pmu.gate : select_of(n);
}

static void disarm(unsigned n)
{
    try_wrmsr(select_of(n), 0);
    if (pmu.gate)
        try_wrmsr(pmu.gate, 0);
    if (pmu.clear)
        try_wrmsr(pmu.clear, 1ul << n);
}

/* --- Checks. --- */

#define FREE (32ul << 20) /* memory from here on is nobody's */

/* The first range of memory above 4 GB; 0: there is none. */
static uint64_t far_memory;

static void check_map(const uint32_t *info)
{
    uint64_t highest = 0;
    for (uint64_t at = info[12], end = at + info[11]; at < end; at += 4 + *(uint32_t *)at) {
        const uint64_t *range = (uint64_t *)(at + 4);
        bool ram = *(const uint32_t *)(range + 2) == 1;
        if (ram && range[0] + range[1] > highest)
            highest = range[0] + range[1];
        if (ram && range[0] >> 32 && !far_memory)
            far_memory = range[0];
    }
    check_that("memory above 1 MB", highest > 1 << 20, 1);
}

static void put_filling(uint8_t *page)
{
    for (unsigned n = 0; n < (unsigned)(filling_end - filling); n++)
        page[n] = filling[n];
}

/* Its instructions; ~0: it wrote nothing. */
static uint64_t count_filling(uint8_t *page)
{
    uint64_t on, off;
    page[0x1fff] = 0;
    uint32_t msr = arm_counter(0, KERNEL, 0, &on, &off);
    gate_code(msr, on, off, page);
    disarm(0);
    return page[0x1fff] == 0x5a ? read_msr(counter_msr(0)) : ~0ul;
}

/* Code on so many of the pages that lie `step` bytes apart from `from` on, in a wild order; then on
 * the first hundred again, of which nothing is known any more. */
static void check_filling(const char *name, uint64_t from, uint64_t step, unsigned pages,
                          unsigned times)
{
    unsigned right = 0, again = times < 100 ? times : 100;
    for (unsigned i = 0; i < times + again; i++) {
        uint8_t *page = (uint8_t *)(from + i % times * 40503ul % pages * step);
        put_filling(page); /* where it is again after it was executed */
        right += count_filling(page) == 11;
    }
    check_that(name, right, times + again);
}

/* A string instruction below and above 4 GB, where QEMU maps it by a page of 1 GB; on more pages,
 * and in more ranges of 2 MB, than the virtual PMU knows at a time. */
static void check_far_memory(void)
{
    check_filling("a string instruction counts 1", FREE, 4096, 3, 3);
    check_filling("... on each of 4,500 pages", FREE, 4096, 40000, 4500);
    if (!far_memory)
        return;
    uint64_t *pdpt = (uint64_t *)(pml4[0] & -4096ul);
    pdpt[far_memory >> 30] = (far_memory & -(1ul << 30)) | 0x83;
    check_filling("... above 4 GB too", far_memory, 2 << 20, 200, 200);
}

/* Nothing has written a register of the PMU yet. */
static void check_reset(void)
{
    for (unsigned n = 0; n < pmu.counters; n++) {
        check_that("a select after reset", read_msr(select_of(n)), 0);
        check_that("a counter after reset", read_msr(counter_msr(n)), 0);
    }
    check_that("global control after reset", pmu.gate ? read_msr(pmu.gate) : 0,
               pmu.gate ? (1ul << pmu.counters) - 1 : 0);
    check_that("global status after reset", pmu.status ? read_msr(pmu.status) : 0, 0);
}

/* --- Times. --- */

/* Reads a port by INS, a string instruction. */
static uint32_t in32_string(uint16_t port)
{
    uint32_t value, *to = &value;
    asm volatile("insl" : "+D"(to) : "d"(port) : "memory");
    return value;
}

/* By the RSDP of the BIOS, the RSDT and the FADT: ACPI 6.4, "Fixed ACPI Description Table". */
static uint16_t pm_timer_port(void)
{
    const char *rsdp = (const char *)0xe0000;
    while (*(const uint64_t *)rsdp != 0x2052545020445352) /* "RSD PTR " */
        rsdp += 16;
    const uint32_t *root = (const uint32_t *)(uint64_t) * (const uint32_t *)(rsdp + 16);
    for (unsigned i = 9; i < root[1] / 4; i++) {
        const uint32_t *table = (const uint32_t *)(uint64_t)root[i];
        if (*table == 0x50434146) /* "FACP" */
            return (uint16_t)table[19];
    }
    return 0;
}

enum { LOOPS = 2000, SLACK = 300 };

/* An event for which the virtual PMU steps: by the TSC, which advances by one with each
 * instruction, and by the HPET a loop takes as long as it has instructions. The slack: what stands
 * beside the loop, two ticks of the HPET, the ways in and out. */
static void time_of_steps(void)
{
    bool intel = is_intel();
    uint32_t select = intel ? 0x186 : 0xc0010000, ns = HPET(4) / 1000000;
    uint64_t loops = LOOPS, before = rdtsc(), hpet = HPET(0xf0);
    try_wrmsr(select, intel ? 0x4200c4 : 0x4200c2);
    uint64_t hpet_inside = HPET(0xf0), inside = rdtsc();
    asm volatile("1: dec %0\n\tjnz 1b" : "+r"(loops));
    inside = rdtsc() - inside;
    hpet_inside = (HPET(0xf0) - hpet_inside) * ns;
    try_wrmsr(select, 0);
    hpet = (HPET(0xf0) - hpet) * ns;
    before = rdtsc() - before;
    check_that("stepped code takes the time of its instructions by the TSC",
               inside >= 2 * LOOPS && inside < 2 * LOOPS + SLACK, 1);
    check_that("by the HPET", hpet_inside + SLACK > inside && hpet_inside < inside + SLACK, 1);
    check_that("and both agree afterwards", hpet + SLACK > before && hpet < before + SLACK, 1);
}

/* Stepped code takes its time by the ACPI timer too: each of its readings lies between two of the
 * TSC, but for a tick of 279 ns and one by rounding. Where it is read all the time it never goes
 * back. */
static void acpi_time_of_steps(void)
{
    uint16_t port = pm_timer_port();
    uint32_t select = is_intel() ? 0x186 : 0xc0010000, from, last, now, back = 0;
    uint64_t loops = LOOPS, outside = rdtsc();
    last = from = in32(port);
    uint64_t inside = rdtsc();
    try_wrmsr(select, is_intel() ? 0x4200c4 : 0x4200c2);
    asm volatile("1: dec %0\n\tjnz 1b" : "+r"(loops));
    for (unsigned i = 0; i < LOOPS; i++, last = now) {
        now = in32(port);
        back += ((now - last) & 0xffffff) > 0x7fffff;
    }
    uint32_t by_string = in32_string(port); /* real time: doc/virtual-pmu.md */
    try_wrmsr(select, 0);
    inside = rdtsc() - inside;
    uint64_t ns = (uint64_t)((in32(port) - from) & 0xffffff) * 1000000000 / 3579545;
    outside = rdtsc() - outside;
    check_that("by the ACPI timer", ns + 2 * 280 > inside && ns < outside + 2 * 280, 1);
    check_that("which never goes back", !back, 1);
    check_that("a string instruction reads it", by_string - last < 0x7fffff, 1);
}

/* The local APIC's timer counts by the TSC, and comes when it is due, at once or a period later, in
 * stepped code as in code that runs freely. The slack: two runs of blocks, in which nobody looks,
 * and twice the way into the guest. */
static void check_timer(uint64_t event, bool periodic, const char *name)
{
    const uint64_t due = 200000, times = periodic ? 2 : 1, slack = 6000;
    uint64_t on, off;
    uint32_t msr = arm_counter(0, KERNEL | event, 0, &on, &off);
    interrupts = 0;
    APIC(0x3e0) = periodic ? 0 : 0xb; /* divided by 2, or not */
    APIC(0x320) = PMI_VECTOR | (periodic ? 0x20000 : 0);
    try_wrmsr(msr, on);
    uint64_t from = rdtsc();
    APIC(0x380) = (uint32_t)(due / times / times);
    for (volatile unsigned i = 0; i < 10000; i++)
        ;
    uint64_t left = APIC(0x390) * times + rdtsc() - from;
    asm volatile("sti");
    while (interrupts < times)
        ;
    from = rdtsc() - from;
    asm volatile("cli");
    APIC(0x320) = 0x10000;
    APIC(0x380) = 0;
    try_wrmsr(msr, off);
    disarm(0);
    bool counts = left + slack > due / times && left < due / times + slack;
    check_that(name, counts && from + slack > due && from < due + slack, 1);
}

/* Who waits with PAUSE for a time by the TSC sees as many cycles: an exit for each takes 2,000
 * units, for 1,000 more two million; an instruction one. The steps before an overflow on the way
 * are some tens, more or fewer. */
static void check_pauses(void)
{
    uint64_t on, off, spent[2];
    for (unsigned i = 0; i < 2; i++) {
        uint32_t msr = arm_counter(0, KERNEL | INT, -2000 & counter_mask(), &on, &off);
        uint64_t before = rdtsc();
        gate_pauses(msr, on, off, 1000 + 1000 * i);
        spent[i] = rdtsc() - before;
        check_that("loop of PAUSE", read_msr(counter_msr(0)), 1004 + 3000 * i);
        disarm(0);
    }
    check_that("PAUSE takes no time", spent[1] < spent[0] + 200000, 1);
}

/* QEMU 7.2's CMPXCHG16B makes its flags of the number that was subtracted last. The PIT interrupts
 * QEMU, not the guest, at each place of the loop. */
static void check_flags(uint64_t bits, bool counting, const char *name)
{
    static uint64_t two[2] __attribute__((aligned(16)));
    uint64_t on, off, n = 20000, left = n, flags = 0; /* what differs */
    uint32_t msr = arm_counter(0, KERNEL, 0, &on, &off);
    out8(0x43, 0x34);
    out8(0x40, 9);
    out8(0x40, 0);
    write_flags(ID | 2);
    try_wrmsr(msr, counting ? on : off);
    asm volatile("1: sub %2, %%rdi\ncmpxchg16b %3\nnop\nnop\nnop\nxor %%eax, %%eax\npushfq\n"
                 "pop %%rax\nxor $0x200046, %%rax\nor %%rax, %1\nmov %%ss, %%eax\n"
                 "mov %%rsp, %%rsi\npush %%rax\npush %%rsi\npush $0x200002\nmov %%cs, %%eax\n"
                 "push %%rax\nlea 2f(%%rip), %%rax\npush %%rax\niretq\n2: dec %0\njnz 1b"
                 : "+r"(left), "+r"(flags)
                 : "r"(bits), "m"(*two)
                 : "rax", "rbx", "rcx", "rdx", "rsi", "rdi", "memory");
    try_wrmsr(msr, off);
    check_that(name, flags & ID, 0);
    check_that("... and all are counted", read_msr(counter_msr(0)), counting ? 22 * n + 14 : 0);
    disarm(0);
}

/* As rr asks all leaves of a hypervisor. */
static void check_questions(void)
{
    uint64_t on, off;
    uint32_t msr = arm_counter(0, KERNEL, 0, &on, &off);
    try_wrmsr(msr, on);
    struct questions q = questions_ask(0);
    try_wrmsr(msr, off);
    disarm(0);
    check_that("a question has one answer", q.answers[1], q.answers[0]);
    check_that("which changes no count", q.exact[1], q.exact[0]);
    check_that("nor how early RDPMC may look", q.lacking[1], q.lacking[0]);
}

/* A ring-3 loop that overflows after `after` instructions: one PMI, at that very instruction. */
static void check_overflow(uint32_t lvt, uint64_t after)
{
    uint64_t on, off;
    uint32_t msr = arm_counter(0, USER | INT, -after & counter_mask(), &on, &off);
    interrupts = 0;
    hit_rip = 0;
    APIC(0x340) = lvt;
    try_wrmsr(msr, on);
    run_user(after);
    try_wrmsr(msr, off);
    check_that("one PMI", interrupts, 1);
    check_that("at the very instruction", hit_rip, (uint64_t)user_loop + (after & 1 ? 3 : 0));
    check_that("the counter went on", read_msr(counter_msr(0)), after + 1);
    if (pmu.status) {
        check_that("status bit", read_msr(pmu.status), 1);
        try_wrmsr(pmu.clear, 1);
        check_that("status cleared", read_msr(pmu.status), 0);
    }
    check_that("LVT masked as the vendor does", APIC(0x340) >> 16 & 1, pmu.masks_lvt);
    disarm(0);
}

/* The processor, or a hypervisor in its place, stores an interrupt's frame. */
static void check_frame(void)
{
    uint64_t on, off, *entry = &dirs[FREE >> 21];
    uint32_t msr = arm_counter(0, KERNEL | INT, -100ul & counter_mask(), &on, &off);
    set_gate(CLEAN_VECTOR, clean_interrupt, 8, 0, 0x8e);
    *entry &= ~(uint64_t)MARKS;
    asm volatile("invlpg (%0)" : : "r"(FREE) : "memory");
    APIC(0x340) = CLEAN_VECTOR;
    uint64_t found = on_clean_stack(FREE + 4096, msr, on, entry);
    try_wrmsr(msr, off);
    check_that("an interrupt's frame marks its page", found & MARKS, MARKS);
    disarm(0);
}

/* What decoding must not change. */
static void check_decoded(void)
{
    uint64_t value, on, off, branches = is_intel() ? 0xc4 : 0xc2;
    try_wrmsr(select_of(0), EN | KERNEL | branches);
    if (pmu.gate)
        try_wrmsr(pmu.gate, 1);
    uint64_t vector = try_rdpmc(31, &value), flags = fault_flags, returned = rewritten();
    disarm(0);
    check_that("a fault while branches count", vector, 13);
    check_that("... has RF in its frame", flags >> 16 & 1, 1);
    check_that("code that a PUSH has written is read again", returned, 012);
    uint32_t msr = arm_counter(0, KERNEL | 0xeeff, 0, &on, &off);
    gate_loop(msr, on, off, 10);
    check_that("an event that is not modelled counts 0", read_msr(counter_msr(0)), 0);
    disarm(0);
}

/* An operating system owns the board: it masks every pin of the IO-APIC, and stops the HPET, sets
 * it to 0 and starts it. What the virtual PMU has its alarm from must not be missed, and an access
 * to the IO-APIC in two steps not be disturbed. */
#define IO_APIC(offset) (*(volatile uint32_t *)(uint64_t)(0xfec00000 + (offset)))
static void take_the_board(void)
{
    for (unsigned pin = 0; pin < 24; pin++) {
        IO_APIC(0) = 0x10 + 2 * pin;
        IO_APIC(0x10) = 0x10000;
    }
    HPET(0x10) = 0;
    for (unsigned timer = 0; timer < 3; timer++)
        HPET(0x100 + 32 * timer) = 0;
    HPET(0xf0) = 0;
    HPET(0xf4) = 0;
    HPET(0x10) = 1;
    IO_APIC(0) = 1;
}

static void set_up_machine(void)
{
    for (unsigned v = 0; v < 256; v++)
        set_gate(v, stubs[v], 8, v == 2, 0x8e);
    mask_pics();
    out8(0x3fb, 0x03);
    try_wrmsr(0xc0000081, 8ul << 32);
    try_wrmsr(0xc0000082, (uint64_t)recover);
    try_wrmsr(0xc0000084, 0x200);
    if (is_intel())
        find_intel();
    else
        find_amd();
}

void payload_main(uint32_t magic, uint32_t info)
{
    static const uint64_t periods[] = { 77, 300, 301, 5000, 50001, 1000000 };
    set_up_machine();
    check_that("multiboot magic", magic, 0x2badb002);
    check_that("a memory map", *(uint32_t *)(uint64_t)info >> 6 & 1, 1);
    check_map((uint32_t *)(uint64_t)info);
    check_that("counters", pmu.counters > 0, 1);
    check_reset();
    HPET(0x10) = 1;
    time_of_steps();
    acpi_time_of_steps();
    if (pmu.gate)
        try_wrmsr(pmu.gate, 0);
    check_far_memory();
    check_pauses();
    for (unsigned stepped = 0; stepped < 2; stepped++) {
        uint64_t event = !stepped ? 0 : is_intel() ? 0xc4 : 0xc2;
        check_timer(event, false, stepped ? "the timer, stepped" : "the timer is on time");
        check_timer(event, true, stepped ? "periodic, stepped" : "... a periodic one too");
    }
    check_flags(1 << 14 | 1 << 22, false, "NT by chance, and IRET");
    check_flags(1 << 14 | 1 << 22, true, "... while it counts");
    check_flags(1 << 8 | 1 << 22, true, "TF by chance");
    check_questions();
    for (unsigned i = 0; i < sizeof periods / sizeof periods[0]; i++) {
        check_overflow(PMI_VECTOR, periods[i]);
        check_overflow(0x400, periods[i]);
    }
    check_frame();
    check_decoded();
    uint32_t version = (IO_APIC(0) = 1, IO_APIC(0x10));
    for (unsigned i = 0; i < sizeof periods / sizeof periods[0]; i++) {
        take_the_board();
        check_overflow(0x400, periods[i]);
        check_that("the IO-APIC's register that was chosen", IO_APIC(0x10), version);
        check_overflow(PMI_VECTOR, periods[i]);
    }
    finish_run();
}
