/* SPDX-License-Identifier: MIT */
/* Quirks of the board's timers: the PIT, whose ports are then intercepted, and the local APIC's
 * timer, which stops in C1E. */
#include "kernel/base/x86.h"
#include "pmu/virt/quirk.h"
#include "pmu/virt/svm.h"

enum { PIT_FIRST = 0x40, PIT_CHANNEL2 = 0x42, PIT_LAST = 0x43, PORT_61 = 0x61 };
#define PORT_61_OUTPUTS 0x30u /* of channels 2 and 1 */
#define PORT_61_OUTPUT2 0x20u
#define AWAY_US 4000u /* the longest delay by the quirk pitjitter */

/* SVM's exit_info1 of an I/O instruction. */
#define IO_IN 1u
#define IO_STRING (1u << 2)

enum { TIMER_LVT = 0x320, TIMER_INITIAL = 0x380, TIMER_CURRENT = 0x390 };
#define LVT_PERIODIC (1u << 17)
#define LVT_DEADLINE (1u << 18)

static uint8_t io_map[3 * 4096] __attribute__((aligned(4096)));

/* The map of intercepted ports: its physical address; 0: none. */
uint64_t platform_io_map(void)
{
    if (!virt_quirks.pit && !virt_quirks.pitjitter)
        return 0;
    for (unsigned port = PIT_FIRST; port <= PIT_LAST; port++)
        io_map[port / 8] |= (uint8_t)(1u << port % 8);
    io_map[PORT_61 / 8] |= (uint8_t)(1u << PORT_61 % 8);
    return virt_physical(io_map);
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
static void jitter(struct vcpu *v, uint8_t value)
{
    bool rose = value & PORT_61_OUTPUT2 && v->pit_armed;
    v->pit_armed &= !(value & PORT_61_OUTPUT2);
    if (rose && (v->pit_windows++ == 0 || virt_random(v) & 1))
        platform_spin((1 + virt_random(v) % AWAY_US) * clock_us);
}

static uint8_t port_in(struct vcpu *v, uint16_t port)
{
    if (virt_quirks.pit && port != PORT_61)
        return 0;
    uint8_t value = in8(port);
    if (virt_quirks.pit)
        return value & (uint8_t)~PORT_61_OUTPUTS;
    if (port == PORT_61)
        jitter(v, value);
    return value;
}

static void port_out(struct vcpu *v, uint16_t port, uint8_t value)
{
    v->pit_armed |= port == PIT_CHANNEL2;
    if (!virt_quirks.pit || port == PORT_61)
        out8(port, value);
}

/* Bytes; wider accesses touch the lowest only, and string instructions do nothing. */
void platform_io(struct vcpu *v)
{
    uint64_t info = v->vmcb.exit_info1;
    uint16_t port = (uint16_t)(info >> 16);
    if (info & IO_STRING)
        return;
    if (info & IO_IN)
        v->vmcb.rax = (v->vmcb.rax & ~0xfful) | port_in(v, port);
    else
        port_out(v, port, (uint8_t)v->vmcb.rax);
}

/* --- C1E. The timer stops and later continues from its count. A periodic timer gets its period
 * back at its next interrupt; until then the guest may read a smaller initial count. --- */

void platform_timer_stop(struct vcpu *v)
{
    uint32_t lvt = host_apic_read(TIMER_LVT), left = host_apic_read(TIMER_CURRENT);
    v->timer_left = 0;
    if (!virt_quirks.c1e || !left || lvt & LVT_DEADLINE)
        return;
    v->timer_left = left;
    if (!v->timer_period)
        v->timer_period = host_apic_read(TIMER_INITIAL);
    host_apic_write(TIMER_INITIAL, 0);
}

void platform_timer_go_on(struct vcpu *v)
{
    if (!v->timer_left)
        return;
    host_apic_write(TIMER_INITIAL, v->timer_left);
    if (!(host_apic_read(TIMER_LVT) & LVT_PERIODIC))
        v->timer_period = 0;
}

/* The guest takes this interrupt. */
void platform_interrupt(struct vcpu *v, uint32_t vector)
{
    if (!v->timer_period || vector != (host_apic_read(TIMER_LVT) & 0xff))
        return;
    if (host_apic_read(TIMER_INITIAL) == v->timer_left) /* else the guest has set it again */
        host_apic_write(TIMER_INITIAL, v->timer_period);
    v->timer_period = 0;
}
