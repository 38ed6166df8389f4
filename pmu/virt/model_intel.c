/* SPDX-License-Identifier: MIT */
/* Intel's registers: architectural performance monitoring, versions 1 to 6.
 * Source: SDM volume 3, "Architectural Performance Monitoring". */
#include "kernel/base/bits.h"
#include "kernel/base/rdpmc.h"
#include "pmu/virt/model.h"
#include "pmu/virt/quirk.h"

/* clang-format off */
enum {
    PMC = 0xc1, PERFEVTSEL = 0x186, MISC_ENABLE = 0x1a0, FIXED_CTR = 0x309,
    PERF_CAPABILITIES = 0x345, FIXED_CTR_CTRL = 0x38d, GLOBAL_STATUS = 0x38e, GLOBAL_CTRL = 0x38f,
    GLOBAL_OVF_CTRL = 0x390, GLOBAL_STATUS_SET = 0x391, GLOBAL_INUSE = 0x392, A_PMC = 0x4c1, PERF_METRICS = 0x329,
    V6_GP = 0x1900, V6_FIXED = 0x1980,
};
/* clang-format on */
#define MISC_PMU (1u << 7) /* is there; cannot be changed */
#define MISC_NO_PEBS (1u << 12)
#define MISC_UNAVAILABLE (1u << 11 | MISC_NO_PEBS) /* BTS too; a change is #GP */
#define MISC_ENABLE_VALUE (1u | MISC_PMU | MISC_UNAVAILABLE)
#define STATUS_CHANGED (1ul << 63)   /* CondChgd */
#define STATUS_ELSEWHERE (3ul << 62) /* OvfBuffer, CondChgd: legal to clear */
#define SELECT_LEGAL 0xffdffffful    /* all but ANY and 63:32 */
#define SELECT_ANY_THREAD (1u << 21)
#define SELECT_PIN (1u << 19)
#define FREEZES_IN_SMM (1u << 12)
#define FW_WRITE (1u << 13)
#define HAS_METRICS (1u << 15)
#define GLOBAL_METRICS (1ul << 48)

/* Whether this MSR is a counter's, in a window from `base`. */
static bool is_counter(uint32_t msr, uint32_t base, uint32_t map)
{
    return msr >= base && msr - base < 32 && map >> (msr - base) & 1;
}

/* Version 6 has four registers for each counter. Present here: the first, and the second of
 * general-purpose counters. */
static bool is_v6_register(const struct model *m, uint32_t msr, uint32_t base, uint32_t map,
                           unsigned which)
{
    return m->version >= 6 && msr >= base && (msr - base) % 4 == which &&
           is_counter(base + (msr - base) / 4, base, map);
}

/* The general-purpose or fixed counter that this MSR is, or NULL; *full: bits above its width
 * fault. */
static struct counter *find_counter(struct pmu *p, uint32_t msr, bool *full)
{
    *full = msr >= A_PMC;
    if (is_v6_register(p->model, msr, V6_GP, p->model->gp_map, 0))
        return &p->counters[(msr - V6_GP) / 4];
    if (is_v6_register(p->model, msr, V6_FIXED, p->model->fixed_map, 0))
        return &p->counters[FIXED_FIRST + (msr - V6_FIXED) / 4];
    if (is_counter(msr, PMC, p->model->gp_map))
        return &p->counters[msr - PMC];
    if (p->model->full_width && is_counter(msr, A_PMC, p->model->gp_map))
        return &p->counters[msr - A_PMC];
    if (is_counter(msr, FIXED_CTR, p->model->fixed_map))
        return &p->counters[FIXED_FIRST + msr - FIXED_CTR];
    return 0;
}

static struct counter *find_select(struct pmu *p, uint32_t msr)
{
    if (is_counter(msr, PERFEVTSEL, p->model->gp_map))
        return &p->counters[msr - PERFEVTSEL];
    if (is_v6_register(p->model, msr, V6_GP, p->model->gp_map, 1))
        return &p->counters[(msr - V6_GP) / 4];
    return 0;
}

static uint64_t counters_in_use(const struct pmu *p)
{
    uint64_t bits = 0;
    for (unsigned n = 0; n < GP_MAX; n++) {
        bits |= (p->counters[n].select & 0xff ? 1ul : 0) << n;
        bits |= p->counters[n].select & SELECT_PMI ? 1ul << 63 : 0;
    }
    for (unsigned n = 0; n < FIXED_MAX; n++) {
        bits |= (p->fixed_control >> 4 * n & 3 ? 1ul : 0) << (32 + n);
        bits |= p->fixed_control >> 4 * n & 8 ? 1ul << 63 : 0;
    }
    return bits;
}

static uint64_t perf_capabilities(const struct model *m)
{
    return (m->full_width ? FW_WRITE : 0) | (m->metrics ? HAS_METRICS : 0) |
           (virt_quirks.smi ? FREEZES_IN_SMM : 0) | m->lbr_format | ds_capabilities(m);
}

static bool read_global(const struct pmu *p, uint32_t msr, uint64_t *value)
{
    switch (msr) {
    case GLOBAL_STATUS: *value = p->status; return true;
    case GLOBAL_OVF_CTRL: *value = 0; return true;
    case GLOBAL_STATUS_SET: *value = 0; return p->model->version >= 4;
    case GLOBAL_INUSE: *value = counters_in_use(p); return p->model->version >= 4;
    }
    return false;
}

static uint64_t misc_at_reset(const struct model *m)
{
    return virt_quirks.misc ? virt_quirks.misc
                            : MISC_ENABLE_VALUE & ~(m->pebs_format ? MISC_NO_PEBS : 0ul);
}

static uint64_t adaptive_bit(const struct model *m, uint64_t bit)
{
    return m->pebs_format >= DS_ADAPTIVE ? bit : 0;
}

/* Four bits a counter: OS, USR, AnyThread if the model has it, PMI. */
static uint64_t fixed_control_legal(const struct model *m)
{
    uint64_t legal = 0, each = m->any_thread ? 0xful : 0xbul;
    for_each_bit(n, m->fixed_map)
        legal |= (each | adaptive_bit(m, FIXED_ADAPTIVE)) << 4 * n;
    return legal;
}

static uint64_t legal_of_select(const struct model *m)
{
    uint64_t legal = SELECT_LEGAL | m->select_extra | (m->any_thread ? SELECT_ANY_THREAD : 0) |
                     adaptive_bit(m, SELECT_ADAPTIVE);
    return (m->version >= 6 ? legal & ~(uint64_t)SELECT_PIN : legal) | virt_quirks.sticky;
}

static uint64_t global_legal(const struct model *m)
{
    return model_counters(m) | (m->metrics ? GLOBAL_METRICS : 0);
}

/* A register that reads what was written, or NULL; *legal: its bits, others fault. The uncore's are
 * there from Nehalem to Broadwell; later processors have two of the PMU's there. */
static uint64_t *find_plain(struct pmu *p, uint32_t msr, uint64_t *legal)
{
    const struct model *m = p->model;
    struct counter *selected = find_select(p, msr);
    bool uncore = virt_quirks.uncore && m->version < 4;
    *legal = selected                ? legal_of_select(m)
             : msr == FIXED_CTR_CTRL ? fixed_control_legal(m)
             : msr == GLOBAL_CTRL    ? global_legal(m)
                                     : UINT64_MAX;
    switch (msr) {
    case FIXED_CTR_CTRL: return m->version >= 2 ? &p->fixed_control : 0;
    case GLOBAL_CTRL: return m->version >= 2 ? &p->global_control : 0;
    case PERF_METRICS: return m->metrics ? &p->metrics : 0;
    case GLOBAL_STATUS_SET:
    case GLOBAL_INUSE: return uncore ? &p->uncore[msr - GLOBAL_STATUS_SET] : 0;
    }
    return selected ? &selected->select : 0;
}

static bool intel_read(struct pmu *p, uint32_t msr, uint64_t *value)
{
    bool full;
    uint64_t legal;
    const uint64_t *plain = find_plain(p, msr, &legal);
    const struct counter *c = find_counter(p, msr, &full);
    if (c)
        *value = c->value;
    else if (plain)
        *value = *plain;
    else if (msr == MISC_ENABLE)
        *value = misc_at_reset(p->model) ^ p->misc;
    else if (msr == DEBUGCTL)
        *value = p->debugctl;
    else if (msr == PERF_CAPABILITIES && perf_capabilities(p->model))
        *value = perf_capabilities(p->model);
    else if (msr == SMI_COUNT && virt_quirks.smi)
        *value = p->smis;
    else if (!records_read(p, msr, value) && !ds_read(p, msr, value))
        return p->model->version >= 2 && read_global(p, msr, value);
    return true;
}

static uint64_t intel_frozen(const struct model *m)
{
    return m->version < 4 ? 0 : STATUS_FROZEN | (m->lbr_depth ? STATUS_LBR_FROZEN : 0);
}

static bool write_status(struct pmu *p, uint32_t msr, uint64_t value)
{
    const struct model *m = p->model;
    uint64_t legal = global_legal(m) | intel_frozen(m);
    switch (msr) {
    case GLOBAL_OVF_CTRL:
        if (m->version < 2 || value & ~(legal | STATUS_ELSEWHERE))
            return false;
        p->status &= ~value;
        return true;
    case GLOBAL_STATUS_SET:
        if (m->version < 4 || value & ~(legal | (m->pebs_format ? STATUS_BUFFER : 0)))
            return false;
        p->status |= value;
        return true;
    }
    return false; /* GLOBAL_STATUS and GLOBAL_INUSE are read-only */
}

static bool write_counter(struct pmu *p, struct counter *c, uint64_t value, bool full)
{
    if (full && value & ~counter_mask(p->model))
        return false;
    model_write_counter(p, c, value);
    return true;
}

/* The quirk stale: errata AAK100 and BD53 of Nehalem and Westmere. Three events that count nothing,
 * in any selects, let all counters forget what they counted. */
static void remember_event(struct pmu *p, struct counter *c, uint16_t event)
{
    enum { ALL = 7 };
    unsigned bit = event == 0xb5 ? 1 : event == 0xd2 ? 2 : event == 0xb1 ? 4 : 0;
    p->forgetting |= bit;
    for (unsigned n = 0; n < GP_MAX && p->forgetting == ALL; n++)
        p->counters[n].forgets = true;
    p->forgetting = p->forgetting == ALL ? 0 : p->forgetting;
    if (!event || bit)
        return;
    c->stale = !c->forgets && event != c->remembered;
    c->remembered = c->stale ? c->remembered : event;
    c->forgets = false;
}

static bool intel_write(struct pmu *p, uint32_t msr, uint64_t value)
{
    bool full;
    uint64_t legal, *plain = find_plain(p, msr, &legal);
    struct counter *c = find_counter(p, msr, &full), *selected = find_select(p, msr);
    if (c && is_counter(msr, PMC, p->model->gp_map))
        value = (uint64_t)(int32_t)value;
    if (c)
        return write_counter(p, c, value, full);
    if (plain && value & ~legal)
        return false;
    if (plain)
        *plain = value;
    if (selected && virt_quirks.stale)
        remember_event(p, selected, (uint16_t)value);
    if (msr == MISC_ENABLE) {
        uint64_t changed = value ^ misc_at_reset(p->model);
        p->misc = changed & MISC_UNAVAILABLE ? p->misc : changed & ~(uint64_t)MISC_PMU;
        return !(changed & MISC_UNAVAILABLE);
    }
    if (msr == DEBUGCTL)
        return model_write_debugctl(p, value, DEBUGCTL_FREEZE_LBR | DEBUGCTL_FREEZE | DEBUGCTL_SMM);
    return plain || write_status(p, msr, value) || records_write(p, msr, value) ||
           ds_write(p, msr, value);
}

static void refresh_fixed(struct pmu *p, unsigned n, bool running)
{
    static const enum event fixed_events[FIXED_MAX] = { EVENT_INSTRUCTIONS, EVENT_CYCLES,
                                                        EVENT_CYCLES, EVENT_SLOTS }; /* and none */
    struct counter *c = &p->counters[FIXED_FIRST + n];
    unsigned nibble = p->fixed_control >> 4 * n & 15;
    c->kernel = nibble & 1;
    c->user = nibble & 2;
    c->pmi = nibble & 8;
    c->event =
        running && nibble & 3 && p->global_control >> (32 + n) & 1 ? fixed_events[n] : EVENT_NONE;
    if (n == 2 && c->event && virt_quirks.refrate)
        c->event = EVENT_BUS_CYCLES;
}

/* A simple model: one of a cycle's slots retires, the others wait for the back end. */
static void refresh_metrics(struct pmu *p)
{
    unsigned retiring = 0xff / (p->model->slots ? p->model->slots : 1);
    if (p->global_control & GLOBAL_METRICS && p->counters[FIXED_FIRST + 3].event == EVENT_SLOTS)
        p->metrics = retiring | (0xff - retiring) << 24;
}

static void intel_refresh(struct pmu *p)
{
    bool running = !(p->status & STATUS_FROZEN);
    for (unsigned n = 0; n < GP_MAX; n++) {
        struct counter *c = &p->counters[n];
        bool enabled = running && (p->model->version < 2 || p->global_control >> n & 1);
        uint64_t mask2 = p->model->select_extra >> 40 & c->select >> 40 & 0xff;
        model_refresh(p->model, c, (uint16_t)((c->select & 0xff) | mask2 << 8), enabled);
        if (c->stale && enabled && c->select & SELECT_ENABLE && (c->user || c->kernel))
            c->event = EVENT_CYCLES;
        c->equal = c->select & p->model->select_extra & SELECT_EQUAL;
    }
    for (unsigned n = 0; n < FIXED_MAX; n++)
        refresh_fixed(p, n, running);
    if (p->model->metrics)
        refresh_metrics(p);
}

/* Freeze on PMI: the legacy form clears global control, the streamlined one sets a status bit. */
static void intel_pmi(struct pmu *p)
{
    if (virt_quirks.condchg && p->model->version >= 2)
        p->status |= STATUS_CHANGED;
    records_freeze(p);
    if (!(p->debugctl & DEBUGCTL_FREEZE))
        return;
    if (p->model->version >= 4)
        p->status |= STATUS_FROZEN;
    else
        p->global_control = 0;
}

/* ECX[31:16] is a type, ECX[15:0] the index. */
static bool intel_rdpmc(struct pmu *p, uint32_t ecx, uint64_t *value)
{
    bool fast = virt_quirks.fastrdpmc && ecx & RDPMC_FAST;
    unsigned type = (fast ? ecx & ~RDPMC_FAST : ecx) >> 16, index = ecx & 0xffff;
    const struct model *m = p->model;
    if (type == 0 && index < GP_MAX && m->gp_map >> index & 1)
        *value = counter_show(&p->counters[index]);
    else if (type == RDPMC_FIXED >> 16 && index < FIXED_MAX && m->fixed_map >> index & 1)
        *value = counter_show(&p->counters[FIXED_FIRST + index]);
    else if (type == RDPMC_METRICS >> 16 && index == 0 && m->metrics)
        *value = p->metrics;
    else
        return false;
    if (fast)
        *value = (uint32_t)*value;
    return true;
}

static void pmu_extended_leaf(const struct model *m, uint32_t subleaf, uint32_t r[4])
{
    const uint32_t words[4][4] = {
        { 1u << 0 | 1u << 1 | 1u << 3,
          (m->select_extra & SELECT_UMASK2 ? 1 : 0) | (m->select_extra & SELECT_EQUAL ? 2 : 0) },
        { m->gp_map, m->fixed_map },
        { 0 },
        { m->slots ? 0xff : 0x7f }, /* architectural events; a bit set: it is there */
    };
    for (unsigned i = 0; i < 4; i++)
        r[i] = subleaf < 4 ? words[subleaf][i] : 0;
}

static void intel_leaf(const struct model *m, uint32_t leaf, uint32_t subleaf, uint32_t r[4])
{
    if (leaf == 1 && perf_capabilities(m))
        r[2] |= 1u << 15; /* PDCM */
    if (leaf == 1 && m->pebs_format) {
        r[2] |= 1u << 2;  /* DTES64 */
        r[3] |= 1u << 21; /* DS */
    }
    if (leaf == 7 && subleaf == 0 && virt_quirks.hybrid)
        r[3] |= 1u << 15; /* hybrid */
    if (leaf == 0x1a && subleaf == 0 && m->core_type)
        r[0] = (uint32_t)m->core_type << 24 | 1;
    if (leaf == 7 && subleaf == 1 && m->max_leaf >= LEAF_PMU_EXTENDED)
        r[0] |= 1u << 8; /* leaf 23h */
    bool records = m->lbr_format == LBR_ARCHITECTURAL;
    if (leaf == 7 && subleaf == 0 && records)
        r[3] |= 1u << 19;
    if (leaf == 0x1c && subleaf == 0 && records) {
        r[0] = LBR_DEPTHS & ((1u << m->lbr_depth / 8) - 1);
        r[0] |= 1u << 31 /* linear addresses */ | (uint32_t)virt_quirks.lbrlost << 30;
        r[1] = 7;           /* filters by ring and class, call stacks */
        r[2] = 1 | 1u << 2; /* mispredictions, types */
    }
    if (leaf == LEAF_PMU_EXTENDED && m->max_leaf >= leaf)
        pmu_extended_leaf(m, subleaf, r);
    if (leaf != 0xa)
        return;
    uint32_t length = m->version >= 6 ? 13 : m->slots && m->fixed > 3 ? 8 : 7;
    r[0] = m->version | (uint32_t)m->gp << 8 | (uint32_t)m->width << 16 | length << 24;
    r[1] = m->version >= 6 ? 0x280 : 0; /* slots are missing here; leaf 23h has them */
    r[2] = m->version >= 5 ? (1u << m->fixed) - 1 : 0;
    /* EDX[15] says nothing on processors of version 2, which have no AnyThread. KVM sets it. */
    bool deprecated = !m->any_thread && (m->version > 2 || m->full_width);
    r[3] = m->version >= 2 ? m->fixed | (uint32_t)m->width << 5 | (deprecated ? 1u << 15 : 0) : 0;
}

static bool intel_fences(const struct pmu *) { return true; }

const struct model_ops intel_ops = {
    "GenuineIntel", intel_read, intel_write,  intel_rdpmc,  intel_refresh,
    intel_pmi,      intel_leaf, intel_frozen, intel_fences,
};
