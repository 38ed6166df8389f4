/* SPDX-License-Identifier: MIT */
/* Intel models: architectural performance monitoring, versions 1, 2, 4 and 5.
 * Source: SDM volume 3, "Architectural Performance Monitoring"; pmu-hardware.md 1.1, 2.1 to 2.10. */
#include "pmu/virt/model.h"

enum {
    PMC = 0xc1, PERFEVTSEL = 0x186, MISC_ENABLE = 0x1a0, DEBUGCTL = 0x1d9, FIXED_CTR = 0x309,
    PERF_CAPABILITIES = 0x345, FIXED_CTR_CTRL = 0x38d, GLOBAL_STATUS = 0x38e, GLOBAL_CTRL = 0x38f,
    GLOBAL_OVF_CTRL = 0x390, GLOBAL_STATUS_SET = 0x391, GLOBAL_INUSE = 0x392, A_PMC = 0x4c1,
};
#define MISC_ENABLE_VALUE (1u | 1u << 7 | 1u << 11 | 1u << 12) /* PMU there, BTS and PEBS not */
#define DEBUGCTL_FREEZE_LBR (1u << 11)
#define DEBUGCTL_FREEZE (1u << 12)
#define DEBUGCTL_SMM (1u << 14)
#define STATUS_FROZEN (1ull << 59)
#define STATUS_ELSEWHERE (3ull << 62) /* buffer, condition changed: legal to clear, never set */
#define SELECT_LEGAL 0xffdfffffull    /* all but ANY and 63:32 */
#define FW_WRITE (1u << 13)

/* Numbers and unit masks that all models have; reference cycles have the same clock as the others. */
#define ARCHITECTURAL                                                                            \
    { 0xc0, 0x00, EVENT_INSTRUCTIONS }, { 0x3c, 0x00, EVENT_CYCLES }, { 0x3c, 0x01, EVENT_CYCLES }, \
    { 0x2e, 0x4f, EVENT_REFERENCES }, { 0x2e, 0x41, EVENT_MISSES },                              \
    { 0xc4, 0x00, EVENT_BRANCHES }, { 0xc5, 0x00, EVENT_MISPREDICTED }
#define END { 0, 0, EVENT_NONE }

static const struct event_code core_events[] = { ARCHITECTURAL, END };
static const struct event_code core2_events[] = {
    ARCHITECTURAL, { 0xc0, 0x01, EVENT_LOADS }, { 0xc0, 0x02, EVENT_STORES }, END,
};
static const struct event_code skylake_events[] = {
    ARCHITECTURAL, { 0xd0, 0x81, EVENT_LOADS }, { 0xd0, 0x82, EVENT_STORES },
    { 0xc4, 0x01, EVENT_CONDITIONAL }, { 0xc4, 0x20, EVENT_TAKEN }, { 0xc4, 0x40, EVENT_FAR }, END,
};
static const struct event_code ice_lake_events[] = {
    ARCHITECTURAL, { 0xa4, 0x01, EVENT_SLOTS }, { 0xd0, 0x81, EVENT_LOADS }, { 0xd0, 0x82, EVENT_STORES },
    { 0xc4, 0x11, EVENT_CONDITIONAL }, { 0xc4, 0x20, EVENT_TAKEN }, { 0xc4, 0x40, EVENT_FAR }, END,
};

static uint64_t ones(unsigned n) { return (1ull << n) - 1; }

/* Bits of the counters that there are, as 38Eh and 38Fh number them. */
static uint64_t global_mask(void) { return ones(virt_model->gp) | ones(virt_model->fixed) << 32; }

/* Which counter this MSR is: GP by the given base, or fixed; false if there is none. */
static bool is_counter(uint32_t msr, uint32_t base, unsigned count) { return msr >= base && msr < base + count; }

static uint64_t inuse(const struct pmu *p)
{
    uint64_t bits = 0;
    for (unsigned n = 0; n < virt_model->gp; n++) {
        bits |= (p->counters[n].select & 0xff ? 1ull : 0) << n;
        bits |= p->counters[n].select & SELECT_PMI ? 1ull << 63 : 0;
    }
    for (unsigned n = 0; n < virt_model->fixed; n++) {
        bits |= (p->fixed_control >> 4 * n & 3 ? 1ull : 0) << (32 + n);
        bits |= p->fixed_control >> 4 * n & 8 ? 1ull << 63 : 0;
    }
    return bits;
}

static bool read_global(const struct pmu *p, uint32_t msr, uint64_t *value)
{
    switch (msr) {
    case FIXED_CTR_CTRL: *value = p->fixed_control; return true;
    case GLOBAL_STATUS: *value = p->status; return true;
    case GLOBAL_CTRL: *value = p->global_control; return true;
    case GLOBAL_OVF_CTRL: *value = 0; return true;
    case GLOBAL_STATUS_SET: *value = 0; return virt_model->version >= 4;
    case GLOBAL_INUSE: *value = inuse(p); return virt_model->version >= 4;
    }
    return false;
}

static bool intel_read(struct pmu *p, uint32_t msr, uint64_t *value)
{
    if (is_counter(msr, PMC, virt_model->gp))
        *value = p->counters[msr - PMC].value;
    else if (is_counter(msr, PERFEVTSEL, virt_model->gp))
        *value = p->counters[msr - PERFEVTSEL].select;
    else if (is_counter(msr, FIXED_CTR, virt_model->fixed))
        *value = p->counters[FIXED_FIRST + msr - FIXED_CTR].value;
    else if (virt_model->full_width && is_counter(msr, A_PMC, virt_model->gp))
        *value = p->counters[msr - A_PMC].value;
    else if (msr == MISC_ENABLE)
        *value = MISC_ENABLE_VALUE;
    else if (msr == DEBUGCTL)
        *value = p->debugctl;
    else if (msr == PERF_CAPABILITIES && virt_model->full_width)
        *value = FW_WRITE;
    else
        return virt_model->version >= 2 && read_global(p, msr, value);
    return true;
}

/* One nibble a counter: OS, USR, PMI; AnyThread is not there. */
static bool write_fixed_control(struct pmu *p, uint64_t value)
{
    uint64_t legal = 0;
    for (unsigned n = 0; n < virt_model->fixed; n++)
        legal |= 0xbull << 4 * n;
    if (value & ~legal)
        return false;
    p->fixed_control = value;
    return true;
}

static bool write_global(struct pmu *p, uint32_t msr, uint64_t value)
{
    uint64_t frozen = virt_model->version >= 4 ? STATUS_FROZEN : 0;
    switch (msr) {
    case FIXED_CTR_CTRL:
        return write_fixed_control(p, value);
    case GLOBAL_CTRL:
        if (value & ~global_mask())
            return false;
        p->global_control = value;
        return true;
    case GLOBAL_OVF_CTRL:
        if (value & ~(global_mask() | STATUS_ELSEWHERE | frozen))
            return false;
        p->status &= ~value;
        return true;
    case GLOBAL_STATUS_SET:
        if (virt_model->version < 4 || value & ~(global_mask() | frozen))
            return false;
        p->status |= value;
        return true;
    }
    return false; /* GLOBAL_STATUS and GLOBAL_INUSE are read-only */
}

static bool write_debugctl(struct pmu *p, uint64_t value)
{
    uint64_t legal = virt_model->version >= 2 ? DEBUGCTL_FREEZE_LBR | DEBUGCTL_FREEZE | DEBUGCTL_SMM : 0;
    if (value & ~legal)
        return false;
    p->debugctl = value;
    return true;
}

static bool intel_write(struct pmu *p, uint32_t msr, uint64_t value)
{
    uint64_t mask = counter_mask(virt_model);
    if (is_counter(msr, PMC, virt_model->gp)) {
        p->counters[msr - PMC].value = (uint64_t)(int32_t)value & mask;
    } else if (is_counter(msr, PERFEVTSEL, virt_model->gp)) {
        if (value & ~SELECT_LEGAL)
            return false;
        p->counters[msr - PERFEVTSEL].select = value;
    } else if (is_counter(msr, FIXED_CTR, virt_model->fixed)) {
        p->counters[FIXED_FIRST + msr - FIXED_CTR].value = value & mask;
    } else if (virt_model->full_width && is_counter(msr, A_PMC, virt_model->gp)) {
        if (value & ~mask)
            return false;
        p->counters[msr - A_PMC].value = value;
    } else if (msr == MISC_ENABLE) {
        return !((value ^ MISC_ENABLE_VALUE) & (1u << 11 | 1u << 12)); /* others are read-only here */
    } else if (msr == DEBUGCTL) {
        return write_debugctl(p, value);
    } else {
        return virt_model->version >= 2 && write_global(p, msr, value);
    }
    return true;
}

static void refresh_fixed(struct pmu *p, unsigned n, bool running)
{
    static const enum event fixed_events[FIXED_MAX] = { EVENT_INSTRUCTIONS, EVENT_CYCLES, EVENT_CYCLES, EVENT_SLOTS };
    struct counter *c = &p->counters[FIXED_FIRST + n];
    unsigned nibble = p->fixed_control >> 4 * n & 15;
    c->kernel = nibble & 1;
    c->user = nibble & 2;
    c->pmi = nibble & 8;
    c->event = running && nibble & 3 && p->global_control >> (32 + n) & 1 ? fixed_events[n] : EVENT_NONE;
}

static void intel_refresh(struct pmu *p)
{
    bool running = !(p->status & STATUS_FROZEN);
    for (unsigned n = 0; n < virt_model->gp; n++) {
        bool enabled = running && (virt_model->version < 2 || p->global_control >> n & 1);
        model_refresh(&p->counters[n], (uint16_t)(p->counters[n].select & 0xff), enabled);
    }
    for (unsigned n = 0; n < virt_model->fixed; n++)
        refresh_fixed(p, n, running);
}

/* Freeze on PMI: the legacy form stops all counters, the streamlined one says so in the status. */
static void intel_pmi(struct pmu *p)
{
    if (!(p->debugctl & DEBUGCTL_FREEZE))
        return;
    if (virt_model->version >= 4)
        p->status |= STATUS_FROZEN;
    else
        p->global_control = 0;
}

/* ECX[31:16] is a type, ECX[15:0] the index. */
static bool intel_selector(uint32_t ecx, unsigned *counter)
{
    unsigned index = ecx & 0xffff;
    *counter = ecx >> 16 ? FIXED_FIRST + index : index;
    return ecx >> 16 == 0 ? index < virt_model->gp : ecx >> 16 == 0x4000 && index < virt_model->fixed;
}

static void intel_leaf(uint32_t leaf, uint32_t subleaf, uint32_t r[4])
{
    (void)subleaf;
    const struct model *m = virt_model;
    if (leaf == 1 && m->full_width)
        r[2] |= 1u << 15; /* PDCM */
    if (leaf != 0xa)
        return;
    r[0] = m->version | (uint32_t)m->gp << 8 | (uint32_t)m->width << 16 | (m->slots ? 8u : 7u) << 24;
    r[1] = 0; /* none of these events is missing */
    r[2] = m->version >= 5 ? (uint32_t)ones(m->fixed) : 0;
    r[3] = m->version >= 2 ? m->fixed | (uint32_t)m->width << 5 | 1u << 15 : 0;
}

#define INTEL                                                                                    \
    .vendor = "GenuineIntel", .read = intel_read, .write = intel_write,                           \
    .refresh = intel_refresh, .on_pmi = intel_pmi, .selector = intel_selector,                   \
    .leaf = intel_leaf, .max_leaf = 0xd, .max_extended_leaf = 0x80000008, .auto_mask = true

static const struct model v1 = {
    INTEL, .name = "intel-v1", .signature = 0x6e8, /* Core Duo */
    .version = 1, .gp = 2, .fixed = 0, .width = 40, .events = core_events,
};
static const struct model v2 = {
    INTEL, .name = "intel-v2", .signature = 0x6fb, /* Core 2 */
    .version = 2, .gp = 2, .fixed = 3, .width = 40, .events = core2_events,
};
static const struct model v4 = {
    INTEL, .name = "intel-v4", .signature = 0x506e3, /* Skylake */
    .version = 4, .gp = 4, .fixed = 3, .width = 48, .full_width = true, .events = skylake_events,
};
static const struct model v5 = {
    INTEL, .name = "intel-v5", .signature = 0x706e5, /* Ice Lake */
    .version = 5, .gp = 8, .fixed = 4, .width = 48, .full_width = true, .events = ice_lake_events,
    .slots = 5,
};

const struct model *const intel_models[] = { &v1, &v2, &v4, &v5, 0 };
