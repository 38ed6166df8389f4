/* SPDX-License-Identifier: MIT */
/* AMD's registers: the four K7 counters, the six extended ones, PerfMonV2.
 * Source: APM volume 2, "Performance Monitoring Counters". */
#include "kernel/base/rdpmc.h"
#include "pmu/virt/model.h"
#include "pmu/virt/quirk.h"

/* clang-format off */
enum {
    K7_SELECT = 0xc0010000, K7_COUNTER = 0xc0010004, EXTENDED = 0xc0010200,
    GLOBAL_STATUS = 0xc0000300, GLOBAL_CONTROL = 0xc0000301, STATUS_CLEAR = 0xc0000302, STATUS_SET = 0xc0000303,
    INTEL_STATUS = 0x38e, INTEL_STATUS_RESET = 0x390,
    DE_CFG = 0xc0011029, LEAF_FEATURES_2 = 0x80000021,
};
/* clang-format on */
#define K7_COUNTERS 4u
#define LFENCE_SERIALIZE (1u << 1)  /* of DE_CFG */
#define ALWAYS_SERIALIZES (1u << 2) /* LFENCE: EAX of that leaf */
#define C1E_ON_HALT (1u << 28)
#define STATUS_JUNK (1ul << 63) /* quirk v2status; Linux masks what is not a counter's, and warns */
#define SELECT_LEGAL 0x0000000fffd7fffful /* 63:36, 21 and 19 are dropped without a fault */

/* The counter of this MSR; *select: its event select. K7's MSRs alias the first four. */
static struct counter *find_amd_counter(struct pmu *p, uint32_t msr, bool *select)
{
    if (msr - K7_SELECT < 2 * K7_COUNTERS) {
        *select = msr < K7_COUNTER;
        return &p->counters[msr % K7_COUNTERS];
    }
    if (p->model->gp <= K7_COUNTERS || msr < EXTENDED || msr >= EXTENDED + 2u * p->model->gp)
        return 0;
    *select = !(msr & 1);
    return &p->counters[(msr - EXTENDED) / 2];
}

/* The global register that an MSR is, by AMD's number; 0: none. KVM has them at Intel's numbers
 * too. */
static uint32_t global_register(const struct pmu *p, uint32_t msr)
{
    if (virt_quirks.v2alias && msr >= INTEL_STATUS && msr <= INTEL_STATUS_RESET)
        msr += (uint32_t)GLOBAL_STATUS - (uint32_t)INTEL_STATUS;
    bool there = msr >= GLOBAL_STATUS && msr <= (virt_quirks.noset ? STATUS_CLEAR : STATUS_SET);
    return p->model->version >= 2 && there ? msr : 0;
}

static bool amd_read(struct pmu *p, uint32_t msr, uint64_t *value)
{
    bool select;
    const struct counter *c = find_amd_counter(p, msr, &select);
    uint32_t number = global_register(p, msr);
    if (c)
        *value = select ? c->select : c->value;
    else if (number)
        *value = number == GLOBAL_STATUS    ? p->status
                 : number == GLOBAL_CONTROL ? p->global_control
                                            : 0;
    else if (msr == DEBUGCTL)
        *value = p->debugctl;
    else if (msr == DE_CFG)
        *value = p->de_cfg;
    else if (msr == INT_PENDING && virt_quirks.c1e)
        *value = C1E_ON_HALT;
    else
        return records_read(p, msr, value);
    return true;
}

static uint64_t amd_frozen(const struct model *m)
{
    return m->freezes ? STATUS_FROZEN | (m->lbr_depth ? STATUS_LBR_FROZEN : 0) : 0;
}

static bool write_amd_global(struct pmu *p, uint32_t msr, uint32_t number, uint64_t value)
{
    /* By Intel's numbers Intel's rules hold: the status is read-only, and absent bits fault. By
     * AMD's numbers such a write and such bits are dropped. */
    uint64_t status = p->model->gp_map | amd_frozen(p->model);
    uint64_t there = number == GLOBAL_CONTROL ? p->model->gp_map : status;
    if (msr != number && (value & ~there || number == GLOBAL_STATUS))
        return false;
    if (virt_quirks.v2bits == V2BITS_FAULT && value & ~there)
        return false;
    if (virt_quirks.v2bits != V2BITS_KEEP || number != GLOBAL_CONTROL)
        value &= there;
    if (number == GLOBAL_CONTROL)
        p->global_control = value;
    else if (number == STATUS_CLEAR)
        p->status &= ~(value | STATUS_JUNK);
    else if (number == STATUS_SET)
        p->status |= value;
    return true;
}

/* The K8 has no event numbers above FFh. */
static uint64_t select_legal(const struct model *m)
{
    return m->signature >> 20 ? SELECT_LEGAL : SELECT_LEGAL & UINT32_MAX;
}

static bool amd_write(struct pmu *p, uint32_t msr, uint64_t value)
{
    bool select;
    struct counter *c = find_amd_counter(p, msr, &select);
    uint32_t number = global_register(p, msr);
    if (number)
        return write_amd_global(p, msr, number, value);
    if (msr == DEBUGCTL)
        return model_write_debugctl(p, value, DEBUGCTL_FREEZE_LBR | DEBUGCTL_FREEZE);
    if (msr == DE_CFG) {
        p->de_cfg = value & (virt_quirks.nofence ? ~(uint64_t)LFENCE_SERIALIZE : UINT64_MAX);
        return true;
    }
    if (!c)
        return (msr == INT_PENDING && virt_quirks.c1e) /* writes are ignored */ ||
               records_write(p, msr, value);
    if (select) {
        c->select = value & (select_legal(p->model) | virt_quirks.sticky);
        return true;
    }
    model_write_counter(p, c, value);
    return true;
}

static void amd_refresh(struct pmu *p)
{
    for (unsigned n = 0; n < p->model->gp; n++) {
        uint64_t select = p->counters[n].select;
        bool running = !(p->status & STATUS_FROZEN);
        bool enabled = running && (p->model->version < 2 || p->global_control >> n & 1);
        uint64_t high = virt_quirks.bug == BUG_EVENT8 ? 0 : select >> 24 & 0xf00;
        model_refresh(p->model, &p->counters[n], (uint16_t)((select & 0xff) | high), enabled);
    }
}

static void amd_pmi(struct pmu *p)
{
    records_freeze(p);
    if (p->debugctl & DEBUGCTL_FREEZE)
        p->status |= STATUS_FROZEN;
    if (virt_quirks.v2status && p->model->version >= 2)
        p->status |= STATUS_JUNK;
}

static bool amd_rdpmc(struct pmu *p, uint32_t ecx, uint64_t *value)
{
    uint32_t index = virt_quirks.fastrdpmc ? ecx & ~(RDPMC_FAST | RDPMC_FIXED) : ecx;
    if (index >= p->model->gp)
        return false;
    *value = counter_show(&p->counters[index]);
    if (virt_quirks.fastrdpmc && ecx & RDPMC_FAST)
        *value = (uint32_t)*value;
    return true;
}

/* Zen 3 and later. */
static bool always_fences(const struct model *m)
{
    return m->max_extended_leaf >= LEAF_FEATURES_2 && !virt_quirks.nofence;
}

static void amd_leaf(const struct model *m, uint32_t leaf, uint32_t, uint32_t r[4])
{
    if (leaf == 0x80000001 && m->gp > K7_COUNTERS)
        r[2] |= 1u << 23;
    if (leaf == LEAF_FEATURES_2 && m->max_extended_leaf >= leaf)
        r[0] = (r[0] & ~ALWAYS_SERIALIZES) | (always_fences(m) ? ALWAYS_SERIALIZES : 0);
    if (leaf == 0x80000022 && m->version >= 2) {
        r[0] = 1 | (m->lbr_depth ? 1u << 1 : 0) | (m->freezes ? 1u << 2 : 0);
        r[1] = m->gp | (uint32_t)m->lbr_depth << 4;
    }
}

static bool amd_fences(const struct pmu *p)
{
    return always_fences(p->model) || p->de_cfg & LFENCE_SERIALIZE;
}

const struct model_ops amd_ops = {
    "AuthenticAMD", amd_read, amd_write,  amd_rdpmc,  amd_refresh,
    amd_pmi,        amd_leaf, amd_frozen, amd_fences,
};
