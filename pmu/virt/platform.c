/* SPDX-License-Identifier: MIT */
/* The board's timers. Quirks: the PIT, whose ports are then intercepted. The ACPI timer of a
 * foreign guest, which hides what virt_clock.c hides. Sources: data sheets of 82371AB (PIIX4),
 * register PMBA, and of I/O Controller Hub 9, PMBASE; ACPI 6.4, "Power Management Timer". */
#include "kernel/base/x86.h"
#include "pmu/virt/quirk.h"
#include "pmu/virt/vcpu.h"

enum { PIT_FIRST = 0x40, PIT_CHANNEL2 = 0x42, PIT_LAST = 0x43, PORT_61 = 0x61 };
#define PORT_61_OUTPUTS 0x30u /* of channels 2 and 1 */
#define PORT_61_OUTPUT2 0x20u
#define AWAY_US 4000u /* the longest delay by the quirk pitjitter */

/* SVM's exit_info1 of an I/O instruction. */
#define IO_IN 1u
#define IO_STRING (1u << 2)
#define IO_SIZE 4 /* 3 bits: bytes */

static uint8_t io_map[3 * 4096] __attribute__((aligned(4096)));

enum { PCI_ADDRESS = 0xcf8, PCI_DATA = 0xcfc, PCI_FUNCTIONS = 256, PM_BASE = 0x40 };
enum { PM_TIMER = 8, PM_TIMER_SIZE = 4 }; /* from the base on */
#define PCI_ENABLE (1u << 31)
#define PIIX4_POWER 0x71138086u
#define ICH9_LPC 0x29188086u
#define PM_BASE_MASK 0xffc0u
#define PM_TIMER_BITS 0xffffffu
#define PM_TIMER_HZ 3579545u
static uint16_t pm_timer;      /* its port; 0: none */
static uint32_t pm_timer_last; /* as the guest has read it */

static uint32_t pci_read(unsigned function, unsigned at)
{
    out32(PCI_ADDRESS, PCI_ENABLE | function << 8 | at);
    return in32(PCI_DATA);
}

void platform_find_pm_timer(void)
{
    uint32_t address = in32(PCI_ADDRESS), base = 0;
    for (unsigned f = 0; f < PCI_FUNCTIONS; f++) {
        uint32_t id = pci_read(f, 0);
        if (id == PIIX4_POWER || id == ICH9_LPC)
            base = pci_read(f, PM_BASE) & PM_BASE_MASK;
    }
    out32(PCI_ADDRESS, address);
    pm_timer = (uint16_t)(base ? base + PM_TIMER : 0);
}

static void catch_port(unsigned port) { io_map[port / 8] |= (uint8_t)(1u << port % 8); }

/* The map of intercepted ports: its physical address; 0: none. */
uint64_t platform_io_map(void)
{
    bool pit = virt_quirks.pit || virt_quirks.pitjitter;
    for (unsigned port = PIT_FIRST; pit && port <= PIT_LAST; port++)
        catch_port(port);
    if (pit)
        catch_port(PORT_61);
    for (unsigned i = 0; pm_timer && i < PM_TIMER_SIZE; i++)
        catch_port(pm_timer + i);
    return pit || pm_timer ? virt_physical(io_map) : 0;
}

void platform_spin(uint64_t clock)
{
    if (!clock)
        return;
    for (uint64_t end = rdtsc() + clock; rdtsc() < end;)
        asm volatile("");
}

/* The first read of an output after it rose is delayed: the first time always, then with
 * probability 1/2. */
static void pit_jitter(struct vcpu *v, uint8_t value)
{
    bool rose = value & PORT_61_OUTPUT2 && v->platform.pit_armed;
    v->platform.pit_armed &= !(value & PORT_61_OUTPUT2);
    if (rose && (v->platform.pit_windows++ == 0 || virt_random(v) & 1))
        platform_spin((1 + virt_random(v) % AWAY_US) * clock_us);
}

/* Ticks that are hidden are taken off; rounding both could lead back by one. */
static uint32_t read_pm_timer(const struct vcpu *v)
{
    uint64_t hidden = virt_hidden + (v->clock.hides ? rdtsc() - v->clock.left_at : 0);
    uint64_t us = hidden / clock_us, rest = hidden % clock_us;
    uint64_t ticks = (us * PM_TIMER_HZ + rest * PM_TIMER_HZ / clock_us) / 1000000;
    uint32_t value = (in32(pm_timer) - (uint32_t)ticks) & PM_TIMER_BITS;
    if (((value + 1) & PM_TIMER_BITS) != pm_timer_last)
        pm_timer_last = value;
    return pm_timer_last;
}

static bool in_pm_timer(uint16_t port)
{
    return pm_timer && port >= pm_timer && port < pm_timer + PM_TIMER_SIZE;
}

static bool in_pit(uint16_t port) { return port >= PIT_FIRST && port <= PIT_LAST; }

static uint8_t port_in(struct vcpu *v, uint16_t port)
{
    if (virt_quirks.pit && in_pit(port))
        return 0;
    uint8_t value = in8(port);
    if (virt_quirks.pit && port == PORT_61)
        return value & (uint8_t)~PORT_61_OUTPUTS;
    if (port == PORT_61)
        pit_jitter(v, value);
    return value;
}

static void port_out(struct vcpu *v, uint16_t port, uint8_t value)
{
    v->platform.pit_armed |= port == PIT_CHANNEL2;
    if (!(virt_quirks.pit && in_pit(port)) && !in_pm_timer(port)) /* which nobody can write */
        out8(port, value);
}

/* Byte by byte, but the ACPI timer at one time. */
static uint32_t ports_in(struct vcpu *v, uint16_t port, unsigned size)
{
    uint32_t value = 0, timer = 0;
    if (in_pm_timer(port) || in_pm_timer((uint16_t)(port + size - 1)))
        timer = read_pm_timer(v);
    for (unsigned i = 0; i < size; i++, port++) {
        uint32_t byte =
            in_pm_timer(port) ? timer >> 8 * (port - pm_timer) & 0xff : port_in(v, port);
        value |= byte << 8 * i;
    }
    return value;
}

bool platform_io(struct vcpu *v)
{
    uint64_t info = v->vmcb.exit_info1;
    uint16_t port = (uint16_t)(info >> 16);
    unsigned size = info >> IO_SIZE & 7;
    v->step.alone = info & IO_STRING;
    if (v->step.alone)
        return false;
    if (info & IO_IN) {
        uint64_t kept = size == 4 ? 0 : ~0ul << 8 * size;
        v->vmcb.rax = (v->vmcb.rax & kept) | ports_in(v, port, size);
    } else {
        for (unsigned i = 0; i < size; i++)
            port_out(v, (uint16_t)(port + i), (uint8_t)(v->vmcb.rax >> 8 * i));
    }
    return true;
}
