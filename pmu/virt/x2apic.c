/* SPDX-License-Identifier: MIT */
/* The quirk x2apic: IA32_APIC_BASE, and the registers of the local APIC as MSRs 800h to 8FFh, on
 * top of those in memory: QEMU's TCG has no others. They stay in memory for the guest too. The
 * quirk deadline: IA32_TSC_DEADLINE, done by the timer of QEMU's local APIC, which counts once in a
 * nanosecond, keeps the mode's bit, and takes it for one-shot. That the mode changes in memory is
 * not seen. L: the token. Sources: SDM volume 3, "Extended XAPIC (x2APIC)" with "x2APIC State
 * Transitions", "TSC-Deadline Mode". */
#include "pmu/virt/x2apic.h"
#include "kernel/base/bits.h"
#include "kernel/base/x86.h"
#include "pmu/virt/vcpu.h"

#define TURNED_ON 2                         /* x2apic= */
enum { OFF, INVALID, MEMORY, MSRS, MODES }; /* IA32_APIC_BASE[11:10] */
#define BASE_RESERVED 0x2fful               /* and what is no address */
/* Registers, as MSRs from 800h on; in memory each takes 16 bytes. */
enum {
    ID = 0x02,
    VERSION = 0x03,
    TPR = 0x08,
    LDR = 0x0d,
    DFR = 0x0e,
    SPURIOUS = 0x0f,
    ICR = 0x30,
    ICR2 = 0x31,
    LVT_TIMER = 0x32,
    LVT_LINT0 = 0x35,
    LVT_LINT1 = 0x36,
    LVT_ERROR = 0x37,
    TIMER_INITIAL = 0x38,
    TIMER_CURRENT = 0x39,
    TIMER_DIVIDE = 0x3e,
    SELF_IPI = 0x3f
};
#define LVT_LAST (LVT_ERROR - LVT_TIMER) /* as the version reports: there is none for CMCI */
#define LVT_MASKED (1u << 16)
#define LVT_MODE (3u << 17) /* the timer's */
#define LVT_DEADLINE (2u << 17)
#define LVT_EXTINT 0x700u
#define LVT_NMI 0x400u
#define ICR_BUSY (1u << 12)
#define ICR_LOGICAL (1u << 11)
#define ICR_SHORTHAND (3u << 18)
#define ICR_SELF (1u << 18)
#define ICR_MODE (7u << 8)
#define ICR_LOWEST (1u << 8)
#define TO_ANY 0xffu    /* in memory; as an MSR it has 32 bits */
#define UNDIVIDED 7u    /* as the register numbers the powers of two: 2, 4, .. 128, 1 */
#define FAR (1ul << 38) /* ns; divided by 128 it fits */

/* legal: what may be written, beside the destination in ICR's upper half; ignored: the part of it
 * that stays as it is. */
static const struct apic_register {
    uint8_t first, last;
    bool read, write;
    uint32_t legal, ignored;
} registers[] = {
    { ID, VERSION, true, false, 0, 0 },
    { TPR, TPR, true, true, 0xff, 0 },
    { 0x0a, 0x0a, true, false, 0, 0 }, /* PPR */
    { 0x0b, 0x0b, false, true, 0, 0 }, /* EOI */
    { LDR, LDR, true, false, 0, 0 },
    { SPURIOUS, SPURIOUS, true, true, 0x1ff, 0 },
    { 0x10, 0x27, true, false, 0, 0 }, /* ISR, TMR, IRR */
    { 0x28, 0x28, true, true, 0, 0 },  /* errors */
    { ICR, ICR, true, true, 0xcdfff, ICR_BUSY },
    { LVT_TIMER, LVT_TIMER, true, true, 0x710ff, 0x1000 },
    { 0x33, 0x34, true, true, 0x117ff, 0x1000 }, /* heat, PMI */
    { LVT_LINT0, LVT_LINT1, true, true, 0x1f7ff, 0x5000 },
    { LVT_ERROR, LVT_ERROR, true, true, 0x110ff, 0x1000 },
    { TIMER_INITIAL, TIMER_INITIAL, true, true, 0xffffffff, 0 },
    { TIMER_CURRENT, TIMER_CURRENT, true, false, 0, 0 },
    { TIMER_DIVIDE, TIMER_DIVIDE, true, true, 0xb, 0 },
    { SELF_IPI, SELF_IPI, false, true, 0xff, 0 },
};

static uint32_t read_memory(unsigned n) { return host_apic_read(16 * n); }
static void write_memory(unsigned n, uint32_t value) { host_apic_write(16 * n, value); }
static unsigned mode_of(uint64_t base) { return base >> 10 & 3; }

bool x2apic_is_off(const struct vcpu *v) { return mode_of(v->x2apic.base) == OFF; }

/* NULL: there is none. */
static const struct apic_register *find_register(const struct vcpu *v, unsigned n)
{
    for (unsigned i = 0; i < ARRAY_SIZE(registers) && mode_of(v->x2apic.base) == MSRS; i++)
        if (n >= registers[i].first && n <= registers[i].last)
            return &registers[i];
    return NULL;
}

bool x2apic_rdmsr(struct vcpu *v, uint32_t msr, uint64_t *value)
{
    unsigned n = msr - MSR_X2APIC, id = v->host_apic_id;
    const struct apic_register *r = msr == MSR_APIC_BASE ? NULL : find_register(v, n);
    if (msr == MSR_APIC_BASE)
        *value = v->x2apic.base;
    else if (!r || !r->read)
        return false;
    else
        *value = n == ID        ? id
                 : n == VERSION ? (read_memory(VERSION) & 0xff) | LVT_LAST << 16
                 : n == LDR     ? id >> 4 << 16 | 1u << (id & 15)
                 : n == ICR     ? v->x2apic.icr
                                : read_memory(n);
    return true;
}

/* A logical destination is a cluster of 16 ids and a bit for each of them. The lowest priority is
 * the first one's, and fixed: Bochs sends it to no single id. */
static void send(struct vcpu *v, uint64_t icr)
{
    uint32_t to = (uint32_t)(icr >> 32), command = (uint32_t)icr & ~ICR_LOGICAL;
    bool logical = icr & ICR_LOGICAL, lowest = (icr & ICR_MODE) == ICR_LOWEST;
    uint32_t first = logical ? to >> 16 << 4 : to, those = logical ? to & 0xffff : 1;
    v->x2apic.icr = icr;
    if (icr & ICR_SHORTHAND || to == UINT32_MAX) {
        startup_send(v, TO_ANY, command);
        return;
    }
    for (unsigned i = 0; i < 16 && first + i < TO_ANY; i++)
        if (those >> i & 1) {
            startup_send(v, first + i, lowest ? command & ~ICR_MODE : command);
            if (lowest)
                return;
        }
}

/* What comes from devices to a logical address of 8 bits is for cluster 0. */
static void turn_on(struct vcpu *v)
{
    v->x2apic.icr = read_memory(ICR) & ~ICR_BUSY;
    write_memory(ID, v->host_apic_id << 24);
    write_memory(DFR, UINT32_MAX);
    write_memory(LDR, v->host_apic_id < 8 ? 1u << (24 + v->host_apic_id) : 0);
}

/* QEMU's cannot be turned on again: the processor's stays on. One that is off has INTR and NMI. */
static void reset_registers(bool off)
{
    for (unsigned n = LVT_TIMER; n <= LVT_ERROR; n++)
        write_memory(n, LVT_MASKED);
    write_memory(SPURIOUS, 0xff);
    write_memory(TPR, 0);
    write_memory(LDR, 0);
    write_memory(DFR, UINT32_MAX);
    write_memory(ICR2, 0);
    write_memory(TIMER_INITIAL, 0);
    write_memory(TIMER_DIVIDE, 0);
    if (off) {
        write_memory(LVT_LINT0, LVT_EXTINT);
        write_memory(LVT_LINT1, LVT_NMI);
    }
}

void x2apic_init(struct vcpu *v)
{
    reset_registers(x2apic_is_off(v));
    if (mode_of(v->x2apic.base) == MSRS)
        turn_on(v);
    v->x2apic.icr = 0;
}

static bool write_base(struct vcpu *v, uint64_t value)
{
    static const uint8_t next[MODES] = { [OFF] = 1u << OFF | 1u << MEMORY,
                                         [MEMORY] = 1u << OFF | 1u << MEMORY | 1u << MSRS,
                                         [MSRS] = 1u << OFF | 1u << MSRS };
    unsigned from = mode_of(v->x2apic.base), to = mode_of(value);
    if (value & BASE_RESERVED || value >> (cpuid(0x80000008, 0).eax & 0xff) ||
        !(next[from] >> to & 1))
        return false;
    v->x2apic.base = value;
    if (from != to && to == MSRS)
        turn_on(v);
    else if (from != to)
        reset_registers(to == OFF);
    return true;
}

bool x2apic_wrmsr(struct vcpu *v, uint32_t msr, uint64_t value)
{
    unsigned n = msr - MSR_X2APIC;
    if (msr == MSR_APIC_BASE)
        return write_base(v, value);
    const struct apic_register *r = find_register(v, n);
    if (!r || !r->write || value & (n == ICR ? ~r->legal : ~(uint64_t)r->legal) ||
        (n == LVT_TIMER && value & LVT_DEADLINE && !virt_quirks.deadline))
        return false;
    value &= ~(uint64_t)r->ignored;
    if (n == ICR)
        send(v, value);
    else if (n == SELF_IPI)
        write_memory(ICR, ICR_SELF | (uint32_t)value);
    else
        write_memory(n, (uint32_t)value);
    return true;
}

void x2apic_start(struct vcpu *v)
{
    v->x2apic.base = rdmsr(MSR_APIC_BASE);
    if (virt_quirks.x2apic == TURNED_ON)
        write_base(v, v->x2apic.base | APIC_BASE_X2APIC);
}

static bool counts_to_deadline(void) { return (read_memory(LVT_TIMER) & LVT_MODE) == LVT_DEADLINE; }

bool x2apic_read_deadline(struct vcpu *v, uint32_t, uint64_t *value)
{
    *value = counts_to_deadline() && read_memory(TIMER_CURRENT) ? v->x2apic.deadline : 0;
    return true;
}

bool x2apic_write_deadline(struct vcpu *v, uint32_t, uint64_t value)
{
    uint64_t now = rdtsc() + v->vmcb.tsc_offset, left = value > now ? value - now : 0;
    uint64_t ns = left < FAR ? left * 1000 / clock_us + 1 : FAR;
    unsigned shift = 0;
    if (!counts_to_deadline())
        return true;
    v->x2apic.deadline = value;
    for (ns = ns < FAR ? ns : FAR; ns >> shift >= UINT32_MAX;)
        shift++;
    unsigned power = (shift + UNDIVIDED) % 8;
    write_memory(TIMER_DIVIDE, (power & 3) | (power & 4) << 1);
    write_memory(TIMER_INITIAL, value ? (uint32_t)(ns >> shift) + !!shift : 0);
    return true;
}
