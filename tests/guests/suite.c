/* SPDX-License-Identifier: MIT */
/* What a hypervisor's suite of unit tests does at its start: the serial port, its command line,
 * fw_cfg, IDT, the local APIC, INIT and SIPI to all others; then a counter. Ends through
 * isa-debug-exit with the number that its command line says, or 1 if something is wrong. */
#include "tests/guests/guest.h"

void counted(uint32_t msr, uint64_t on, uint64_t loops);
static volatile unsigned undefined_seen, interrupts_seen;
static unsigned failures;

enum { COM1 = 0x3f8, FW_CFG = 0x510, KEY_SIGNATURE = 0, KEY_RAM = 3, KEY_CPUS = 5, VECTOR = 0x40 };

static void check_that(const char *what, bool holds)
{
    say(holds ? "PASS: " : "FAIL: ");
    say(what);
    say("\n");
    failures += !holds;
}

static uint64_t fw_cfg(uint16_t key, unsigned bytes)
{
    uint64_t value = 0;
    asm volatile("outw %0,%1" : : "a"(key), "Nd"((uint16_t)FW_CFG));
    for (unsigned i = 0; i < bytes; i++)
        value |= (uint64_t)in8(FW_CFG + 1) << 8 * i;
    return value;
}

bool trap_handler(struct frame *frame)
{
    if (frame->vector == 6) {
        undefined_seen++;
        frame->rip += 2; /* UD2 */
    } else if (frame->vector == VECTOR) {
        interrupts_seen++;
        APIC(0xb0) = 0;
    }
    return false;
}

/* All CPUs but this one: there is none. */
static void start_others(void)
{
    APIC(0x310) = 0;
    APIC(0x300) = 0xc4500;
    APIC(0x300) = 0xc4600 | 0x10;
    APIC(0x300) = 0xc4600 | 0x10;
}

static void interrupt_self(void)
{
    try_wrmsr(0x1b, (rdmsr(0x1b) & ~0x400ul) | 0x800);
    APIC(0xf0) = 0x1ff;
    set_gate(VECTOR, stubs[VECTOR], 8, 0, 0x8e);
    APIC(0x300) = 0x44000 | VECTOR;
    asm volatile("sti\nnop\nnop\ncli");
    check_that("an interrupt by the local APIC", interrupts_seen == 1);
}

/* Counter 0, without global control, or as it is after reset. */
static void count_code(void)
{
    bool intel = is_intel();
    try_wrmsr(intel ? 0xc1 : 0xc0010004, 0);
    counted(intel ? 0x186 : 0xc0010000, 0x4200c0, 1000000);
    check_that("two million and two instructions, and WRMSR",
               rdmsr(intel ? 0xc1 : 0xc0010004) == 2000003);
}

static uint64_t rdtsc(void)
{
    uint32_t low, high;
    asm volatile("rdtsc" : "=a"(low), "=d"(high));
    return low | (uint64_t)high << 32;
}

static uint32_t in32(uint16_t port)
{
    uint32_t value;
    asm volatile("inl %1,%0" : "=a"(value) : "Nd"(port));
    return value;
}

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

#define HPET(offset) (*(volatile uint32_t *)(uint64_t)(0xfed00000 + (offset)))
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
               inside >= 2 * LOOPS && inside < 2 * LOOPS + SLACK);
    check_that("by the HPET", hpet_inside + SLACK > inside && hpet_inside < inside + SLACK);
    check_that("and both agree afterwards", hpet + SLACK > before && hpet < before + SLACK);
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
    check_that("by the ACPI timer", ns + 2 * 280 > inside && ns < outside + 2 * 280);
    check_that("which never goes back", !back);
    check_that("a string instruction reads it", by_string - last < 0x7fffff);
}

/* The number after the name. */
static uint32_t wanted_status(const char *line)
{
    uint32_t n = 0;
    while (*line && *line != ' ')
        line++;
    for (; *line; line++)
        n = *line >= '0' && *line <= '9' ? n * 10 + (uint32_t)(*line - '0') : n;
    return n;
}

void payload_main(uint32_t magic, uint32_t at)
{
    (void)magic;
    static const uint8_t port[][2] = {
        { 1, 0 }, { 3, 0x80 }, { 0, 1 }, { 1, 0 }, { 3, 3 }, { 2, 0 }
    };
    for (unsigned i = 0; i < sizeof port / sizeof *port; i++)
        out8((uint16_t)(COM1 + port[i][0]), port[i][1]);
    const uint32_t *info = (const uint32_t *)(uint64_t)at;
    const char *line = (const char *)(uint64_t)info[4];
    mask_pics();
    say("suite: ");
    say(line);
    say("\n");
    set_gate(6, stubs[6], 8, 0, 0x8e);
    asm volatile("ud2");
    check_that("#UD", undefined_seen == 1);
    check_that("fw_cfg's signature", fw_cfg(KEY_SIGNATURE, 4) == 0x554d4551);
    check_that("fw_cfg: one CPU", fw_cfg(KEY_CPUS, 2) == 1);
    check_that("fw_cfg: memory", fw_cfg(KEY_RAM, 8) >> 20 == 256);
    interrupt_self();
    start_others();
    count_code();
    HPET(0x10) = 1;
    time_of_steps();
    acpi_time_of_steps();
    end(failures ? 1 : wanted_status(line));
}
