/* SPDX-License-Identifier: MIT */
/* AMD models: the four K7 counters, the six extended ones, PerfMonV2.
 * Source: APM volume 2, "Performance Monitoring Counters"; pmu-hardware.md 1.4, 2.2, 2.3, 2.9. */
#include "pmu/virt/model.h"

enum {
    K7_SELECT = 0xc0010000, K7_COUNTER = 0xc0010004, EXTENDED = 0xc0010200, DEBUGCTL = 0x1d9,
    GLOBAL_STATUS = 0xc0000300, GLOBAL_CONTROL = 0xc0000301, STATUS_CLEAR = 0xc0000302, STATUS_SET = 0xc0000303,
};
#define K7_COUNTERS 4u
#define SELECT_LEGAL 0x0000000fffd7ffffull /* 63:36, 21 and 19 are dropped without a fault */

#define COMMON                                                                                   \
    { 0xc0, 0x00, EVENT_INSTRUCTIONS }, { 0x76, 0x00, EVENT_CYCLES },                            \
    { 0xc2, 0x00, EVENT_BRANCHES }, { 0xc3, 0x00, EVENT_MISPREDICTED },                          \
    { 0xc4, 0x00, EVENT_TAKEN }, { 0xc6, 0x00, EVENT_FAR }
#define END { 0, 0, EVENT_NONE }

static const struct event_code family10_events[] = {
    COMMON, { 0x7d, 0x07, EVENT_REFERENCES }, { 0x7e, 0x07, EVENT_MISSES }, END,
};
static const struct event_code zen_events[] = {
    COMMON, { 0x60, 0xff, EVENT_REFERENCES }, { 0x64, 0x09, EVENT_MISSES }, { 0xd1, 0x00, EVENT_CONDITIONAL },
    { 0x29, 0x05, EVENT_LOADS }, { 0x29, 0x06, EVENT_STORES }, END,
};

/* Which counter, and whether its select, an MSR is: K7's alias the first four extended ones. */
static struct counter *find(struct pmu *p, uint32_t msr, bool *select)
{
    if (msr - K7_SELECT < 2 * K7_COUNTERS) {
        *select = msr < K7_COUNTER;
        return &p->counters[msr % K7_COUNTERS];
    }
    if (virt_model->gp <= K7_COUNTERS || msr < EXTENDED || msr >= EXTENDED + 2u * virt_model->gp)
        return 0;
    *select = !(msr & 1);
    return &p->counters[(msr - EXTENDED) / 2];
}

static bool is_global(uint32_t msr) { return virt_model->version >= 2 && msr >= GLOBAL_STATUS && msr <= STATUS_SET; }
static uint64_t global_mask(void) { return (1ull << virt_model->gp) - 1; }

static bool amd_read(struct pmu *p, uint32_t msr, uint64_t *value)
{
    bool select;
    const struct counter *c = find(p, msr, &select);
    if (c)
        *value = select ? c->select : c->value;
    else if (is_global(msr))
        *value = msr == GLOBAL_STATUS ? p->status : msr == GLOBAL_CONTROL ? p->global_control : 0;
    else if (msr == DEBUGCTL)
        *value = 0;
    else
        return false;
    return true;
}

static void write_global(struct pmu *p, uint32_t msr, uint64_t value)
{
    value &= global_mask(); /* the rest is dropped; a write to the status register altogether */
    if (msr == GLOBAL_CONTROL)
        p->global_control = value;
    else if (msr == STATUS_CLEAR)
        p->status &= ~value;
    else if (msr == STATUS_SET)
        p->status |= value;
}

static bool amd_write(struct pmu *p, uint32_t msr, uint64_t value)
{
    bool select;
    struct counter *c = find(p, msr, &select);
    if (c && select)
        c->select = value & SELECT_LEGAL;
    else if (c)
        c->value = value & counter_mask(virt_model);
    else if (is_global(msr))
        write_global(p, msr, value);
    else
        return msr == DEBUGCTL && value == 0;
    return true;
}

static void amd_refresh(struct pmu *p)
{
    for (unsigned n = 0; n < virt_model->gp; n++) {
        uint64_t select = p->counters[n].select;
        bool enabled = virt_model->version < 2 || p->global_control >> n & 1;
        model_refresh(&p->counters[n], (uint16_t)((select & 0xff) | (select >> 24 & 0xf00)), enabled);
    }
}

static bool amd_selector(uint32_t ecx, unsigned *counter)
{
    *counter = ecx;
    return ecx < virt_model->gp;
}

static void amd_leaf(uint32_t leaf, uint32_t subleaf, uint32_t r[4])
{
    (void)subleaf;
    if (leaf == 0x80000001 && virt_model->gp > K7_COUNTERS)
        r[2] |= 1u << 23;
    if (leaf == 0x80000022 && virt_model->version >= 2) {
        r[0] = 1;
        r[1] = virt_model->gp;
    }
}

#define AMD                                                                                      \
    .vendor = "AuthenticAMD", .read = amd_read, .write = amd_write,                               \
    .refresh = amd_refresh, .selector = amd_selector, .leaf = amd_leaf, .max_leaf = 0xd, .width = 48

static const struct model k7 = {
    AMD, .name = "amd-k7", .signature = 0x100f43, /* Phenom II */
    .version = 1, .gp = 4, .max_extended_leaf = 0x80000008, .events = family10_events,
};
static const struct model ext = {
    AMD, .name = "amd-ext", .signature = 0x800f11, /* Zen */
    .version = 1, .gp = 6, .max_extended_leaf = 0x80000008, .events = zen_events,
};
static const struct model v2 = {
    AMD, .name = "amd-v2", .signature = 0xa10f11, /* Zen 4 */
    .version = 2, .gp = 6, .max_extended_leaf = 0x80000022, .events = zen_events,
};

const struct model *const amd_models[] = { &k7, &ext, &v2, 0 };
