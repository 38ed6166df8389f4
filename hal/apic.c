/* SPDX-License-Identifier: MIT */
/* The local APIC. Each CPU touches its own; no lock. Any IRQL; ICR writes with interrupts off.
 * Source: Intel SDM vol. 3 "Advanced Programmable Interrupt Controller". */
#include "hal/apic.h"
#include "kernel/cpu.h"
#include "kernel/msr.h"
#include "kernel/print.h"
#include "kernel/x86.h"

enum {
    ID = 0x20, TPR = 0x80, EOI = 0xb0, SPURIOUS = 0xf0, ICR = 0x300, ICR_HIGH = 0x310, LVT_TIMER = 0x320,
    LVT_THERMAL = 0x330, LVT_PMI = 0x340, LVT_LINT0 = 0x350, LVT_LINT1 = 0x360, LVT_ERROR = 0x370,
    TIMER_INITIAL = 0x380, TIMER_CURRENT = 0x390, TIMER_DIVIDE = 0x3e0, VERSION = 0x30
};
#define APIC_PHYSICAL 0xfee00000ul
#define ICR_BUSY (1u << 12)
#define ICR_NMI 0x4400u
#define ICR_OTHERS (3u << 18)
#define ICR_SELF (1u << 18 | 1u << 14)
#define TIMER_PERIODIC (1u << 17)
#define SPURIOUS_VECTOR 0xff
#define APIC_ENABLE (1u << 8)
#define BUSY_LIMIT 100000 /* PAUSEs */

static bool x2apic;

static volatile uint32_t *mmio(unsigned reg) { return (volatile uint32_t *)(DIRECT_MAP + APIC_PHYSICAL + reg); }

static uint32_t read(unsigned reg) { return x2apic ? (uint32_t)rdmsr(MSR_X2APIC + (reg >> 4)) : *mmio(reg); }

static void write(unsigned reg, uint32_t value)
{
    if (x2apic)
        wrmsr(MSR_X2APIC + (reg >> 4), value);
    else
        *mmio(reg) = value;
}

static void write_icr(uint32_t id, uint32_t low)
{
    uint64_t flags = read_flags();
    cli();
    if (x2apic) {
        wrmsr(MSR_X2APIC + (ICR >> 4), (uint64_t)id << 32 | low);
    } else {
        for (unsigned i = 0; (*mmio(ICR) & ICR_BUSY) && i < BUSY_LIMIT; i++)
            pause();
        *mmio(ICR_HIGH) = id << 24;
        *mmio(ICR) = low;
    }
    if (flags & RFLAGS_IF)
        sti();
}

void apic_init_cpu(void)
{
    static bool announced;
    uint64_t base = rdmsr(MSR_APIC_BASE);

    x2apic = cpu_features.x2apic;
    wrmsr(MSR_APIC_BASE, base | APIC_BASE_ENABLE);
    if (x2apic)
        wrmsr(MSR_APIC_BASE, base | APIC_BASE_ENABLE | APIC_BASE_X2APIC);
    write(SPURIOUS, APIC_ENABLE | SPURIOUS_VECTOR);
    write(TPR, 0);
    unsigned lvt_last = read(VERSION) >> 16 & 0xff;
    write(LVT_TIMER, APIC_LVT_MASKED);
    write(LVT_LINT0, APIC_LVT_MASKED);
    write(LVT_LINT1, APIC_LVT_NMI);
    write(LVT_ERROR, APIC_LVT_MASKED);
    if (lvt_last >= 4)
        write(LVT_PMI, APIC_LVT_MASKED);
    if (lvt_last >= 5)
        write(LVT_THERMAL, APIC_LVT_MASKED);
    if (!announced)
        print("# apic: %s, %u LVT entries\n", x2apic ? "x2APIC" : "xAPIC", lvt_last + 1);
    announced = true;
}

uint32_t apic_id(void) { return x2apic ? read(ID) : read(ID) >> 24; }
void apic_eoi(void) { write(EOI, 0); }
void apic_write_pmi_lvt(uint32_t value) { write(LVT_PMI, value); }
uint32_t apic_read_pmi_lvt(void) { return read(LVT_PMI); }
void apic_send(uint32_t id, uint8_t vector) { write_icr(id, 0x4000u | vector); }
void apic_send_self(uint8_t vector)
{
    if (x2apic) {
        wrmsr(MSR_X2APIC + (ICR >> 4), ICR_SELF | vector);
        return;
    }
    for (unsigned i = 0; (*mmio(ICR) & ICR_BUSY) && i < BUSY_LIMIT; i++)
        pause();
    *mmio(ICR) = ICR_SELF | vector; /* ICR_HIGH stays that of an interrupted write_icr */
}

void apic_nmi_others(void) { write_icr(0, ICR_NMI | ICR_OTHERS); }
void apic_send_init(uint32_t id) { write_icr(id, 0x4500); }
void apic_send_startup(uint32_t id, uint8_t page) { write_icr(id, 0x4600u | page); }

/* PIT channel 2, one shot, its output read at port 61h bit 5: works on every PC, and needs no interrupt.
 * Between two looks at the port there is a spin, because a port read may cost a thousand instructions. */
#define PIT_HZ 1193182
#define PIT_MS 2

static void pit_start(void)
{
    unsigned count = PIT_HZ * PIT_MS / 1000;
    out8(0x61, (in8(0x61) & 0xfc) | 1); /* gate on, speaker off */
    out8(0x43, 0xb0);                   /* channel 2, low and high byte, mode 0 */
    out8(0x42, count & 0xff);
    out8(0x42, (uint8_t)(count >> 8));
}

static bool pit_wait(void)
{
    for (unsigned i = 0; i < 1000000; i++) {
        if (in8(0x61) & 0x20)
            return true;
        for (unsigned spin = 0; spin < 500; spin++)
            asm volatile("");
    }
    return false;
}

uint64_t apic_timer_calibrate(uint64_t *tsc_hz)
{
    write(TIMER_DIVIDE, 0xb); /* by 1 */
    write(LVT_TIMER, APIC_LVT_MASKED);
    pit_start();
    write(TIMER_INITIAL, 0xffffffff);
    uint64_t tsc = rdtsc();
    bool seen = pit_wait();
    tsc = rdtsc() - tsc;
    uint32_t ticks = 0xffffffff - read(TIMER_CURRENT);
    write(TIMER_INITIAL, 0);
    if (!seen || !ticks || !tsc) {
        print("# apic: the PIT does not answer: taking 1 GHz for the timer and the TSC\n");
        *tsc_hz = 1000000000;
        return 1000000000;
    }
    *tsc_hz = tsc * 1000 / PIT_MS;
    return (uint64_t)ticks * 1000 / PIT_MS;
}

static struct {
    uint8_t vector;
    uint64_t period_ns, hz;
} timer; /* the same on every CPU */

uint64_t apic_timer_period(void) { return timer.period_ns; }

void apic_timer_change(uint64_t period_ns)
{
    uint64_t ticks = timer.hz / 1000 * period_ns / 1000000;
    write(TIMER_DIVIDE, 0xb);
    write(LVT_TIMER, TIMER_PERIODIC | timer.vector);
    write(TIMER_INITIAL, ticks > 0xffffffff ? 0xffffffff : ticks ? (uint32_t)ticks : 1);
}

void apic_timer_start(uint8_t vector, uint64_t period_ns, uint64_t hz)
{
    timer.vector = vector;
    timer.period_ns = period_ns;
    timer.hz = hz;
    apic_timer_change(period_ns);
}

void apic_timer_stop(void)
{
    write(LVT_TIMER, APIC_LVT_MASKED);
    write(TIMER_INITIAL, 0);
}
