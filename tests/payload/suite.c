/* SPDX-License-Identifier: MIT */
/* What a hypervisor's suite of unit tests does at its start: the serial port, its command line,
 * fw_cfg, IDT, the local APIC, INIT and SIPI to all others; then a counter. Ends through
 * isa-debug-exit with the number that its command line says, or 1 if something is wrong. */
#include <stdbool.h>
#include <stdint.h>

struct gate {
    uint16_t low, selector;
    uint8_t ist, type;
    uint16_t middle;
    uint32_t high, zero;
};

extern struct gate idt[256];
void undefined(void);
void interrupt(void);
void counted(uint32_t msr, uint64_t on, uint64_t loops);
volatile uint32_t undefined_seen, interrupts_seen;
static unsigned failures;

#define APIC(offset) (*(volatile uint32_t *)(uint64_t)(0xfee00000 + (offset)))
enum { COM1 = 0x3f8, FW_CFG = 0x510, KEY_SIGNATURE = 0, KEY_RAM = 3, KEY_CPUS = 5, VECTOR = 0x40 };

static void out8(uint16_t port, uint8_t v) { asm volatile("outb %0,%1" : : "a"(v), "Nd"(port)); }
static uint8_t in8(uint16_t port)
{
    uint8_t v;
    asm volatile("inb %1,%0" : "=a"(v) : "Nd"(port));
    return v;
}

static void say(const char *s)
{
    for (; *s; s++) {
        while (!(in8(COM1 + 5) & 0x20))
            ;
        out8(COM1, (uint8_t)*s);
    }
}

static void check(const char *what, bool holds)
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

static void set_gate(unsigned v, void (*handler)(void))
{
    uint64_t at = (uint64_t)handler;
    idt[v] =
        (struct gate){ (uint16_t)at, 8, 0, 0x8e, (uint16_t)(at >> 16), (uint32_t)(at >> 32), 0 };
}

static uint64_t rdmsr(uint32_t msr)
{
    uint32_t low, high;
    asm volatile("rdmsr" : "=a"(low), "=d"(high) : "c"(msr));
    return low | (uint64_t)high << 32;
}

static void wrmsr(uint32_t msr, uint64_t v)
{
    asm volatile("wrmsr" : : "c"(msr), "a"((uint32_t)v), "d"((uint32_t)(v >> 32)));
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
    wrmsr(0x1b, (rdmsr(0x1b) & ~0x400ul) | 0x800);
    APIC(0xf0) = 0x1ff;
    set_gate(VECTOR, interrupt);
    APIC(0x300) = 0x44000 | VECTOR;
    asm volatile("sti\nnop\nnop\ncli");
    check("an interrupt by the local APIC", interrupts_seen == 1);
}

/* Counter 0, without global control, or as it is after reset. */
static void count(void)
{
    uint32_t ebx, eax = 0, ecx = 0, edx;
    asm volatile("cpuid" : "+a"(eax), "=b"(ebx), "+c"(ecx), "=d"(edx));
    bool intel = ebx == 0x756e6547;
    wrmsr(intel ? 0xc1 : 0xc0010004, 0);
    counted(intel ? 0x186 : 0xc0010000, 0x4200c0, 1000000);
    check("two million and two instructions, and WRMSR",
          rdmsr(intel ? 0xc1 : 0xc0010004) == 2000003);
}

/* The number behind the name. */
static uint32_t wanted_status(const char *line)
{
    uint32_t n = 0;
    while (*line && *line != ' ')
        line++;
    for (; *line; line++)
        n = *line >= '0' && *line <= '9' ? n * 10 + (uint32_t)(*line - '0') : n;
    return n;
}

void suite_main(const uint32_t *info);
void suite_main(const uint32_t *info)
{
    static const uint8_t port[][2] = {
        { 1, 0 }, { 3, 0x80 }, { 0, 1 }, { 1, 0 }, { 3, 3 }, { 2, 0 }
    };
    for (unsigned i = 0; i < sizeof port / sizeof *port; i++)
        out8((uint16_t)(COM1 + port[i][0]), port[i][1]);
    const char *line = (const char *)(uint64_t)info[4];
    out8(0x21, 0xff);
    out8(0xa1, 0xff);
    say("suite: ");
    say(line);
    say("\n");
    set_gate(6, undefined);
    asm volatile("ud2");
    check("#UD", undefined_seen == 1);
    check("fw_cfg's signature", fw_cfg(KEY_SIGNATURE, 4) == 0x554d4551);
    check("fw_cfg: one CPU", fw_cfg(KEY_CPUS, 2) == 1);
    check("fw_cfg: memory", fw_cfg(KEY_RAM, 8) >> 20 == 256);
    interrupt_self();
    start_others();
    count();
    asm volatile("outl %0,%1" : : "a"(failures ? 1 : wanted_status(line)), "Nd"((uint16_t)0xf4));
    for (;;)
        asm volatile("hlt");
}
