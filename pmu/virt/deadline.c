/* SPDX-License-Identifier: MIT */
/* The quirk deadline: IA32_TSC_DEADLINE, done by the timer of QEMU's local APIC, which counts once
 * in a nanosecond, keeps the mode's bit, and takes it for one-shot. That the mode changes in memory
 * is not seen. L: the token. Source: SDM volume 3, "TSC-Deadline Mode". */
#include "pmu/virt/deadline.h"
#include "kernel/base/x86.h"
#include "pmu/virt/vcpu.h"

enum { LVT_TIMER = 0x320, INITIAL = 0x380, CURRENT = 0x390, DIVIDE = 0x3e0 };
#define LVT_MODE (3u << 17)
#define LVT_DEADLINE (2u << 17)
#define UNDIVIDED 7u    /* as the register numbers the powers of two: 2, 4, .. 128, 1 */
#define FAR (1ul << 38) /* ns; divided by 128 it fits */

static bool is_on(void) { return (host_apic_read(LVT_TIMER) & LVT_MODE) == LVT_DEADLINE; }

bool deadline_rdmsr(struct vcpu *v, uint32_t, uint64_t *value)
{
    *value = is_on() && host_apic_read(CURRENT) ? v->deadline : 0;
    return true;
}

bool deadline_wrmsr(struct vcpu *v, uint32_t, uint64_t value)
{
    uint64_t now = rdtsc() + v->vmcb.tsc_offset, left = value > now ? value - now : 0;
    uint64_t ns = left < FAR ? left * 1000 / clock_us + 1 : FAR;
    unsigned shift = 0;
    if (!is_on())
        return true;
    v->deadline = value;
    for (ns = ns < FAR ? ns : FAR; ns >> shift >= UINT32_MAX;)
        shift++;
    unsigned power = (shift + UNDIVIDED) % 8;
    host_apic_write(DIVIDE, (power & 3) | (power & 4) << 1);
    host_apic_write(INITIAL, value ? (uint32_t)(ns >> shift) + !!shift : 0);
    return true;
}
