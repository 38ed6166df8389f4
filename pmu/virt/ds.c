/* SPDX-License-Identifier: MIT */
/* PEBS with a DS area. A counter of IA32_PEBS_ENABLE that wraps is armed: no status bit, no PMI.
 * Its next event makes a record, once that instruction is done, and the counter is set to its reset
 * field, so that a period is one event longer than what it counts. The instruction is stepped
 * (run_entry.c). A record that has no space in the buffer, or whose page is not there or read-only,
 * is not written, and nothing faults; what is not there of the area itself sets no counter either.
 * Only 64-bit kernels get records: the area of others has another layout. Not modelled, and 0:
 * latency, source of data, transactions, metrics. Sources: SDM volume 3, "Processor Event Based
 * Sampling", "PEBS Record Format" and "Adaptive PEBS"; Linux for the layouts. */
#include "kernel/base/bits.h"
#include "kernel/base/msr.h"
#include "kernel/base/string.h"
#include "kernel/base/x86.h"
#include "pmu/virt/ds.h"
#include "pmu/virt/guest.h"
#include "pmu/virt/quirk.h"
#include "pmu/virt/vcpu.h"

enum { PEBS_ENABLE = 0x3f1, PEBS_DATA_CFG = 0x3f2, DS_AREA = 0x600 };
enum { GROUP_MEMORY = 1, GROUP_GPR = 2, GROUP_XMM = 4, GROUP_LBR = 8, GROUP_COUNTERS = 16 };
#define CONFIG_LEGAL ((GROUP_COUNTERS - 1) | 0xff000000ul)
#define TRAP_LIKE (1u << 6)
#define SAVES_REGISTERS (1u << 7)
#define BASELINE (1u << 14)
#define AREA_BASE 0x20u /* the first of four fields, of which the second is the index */
#define AREA_INDEX 0x28u
#define AREA_RESETS 0x40u
#define OLD_COUNTERS 4u /* before adaptive records */
#define RESET_FIELDS 8u /* of general-purpose counters, in formats 3 and 4; from 5 on 32 */
#define HOSTS_EACH 4u   /* records from one of the host's to the next, with the quirk pebs=host */

static uint64_t last_area; /* that any CPU was given; quirk pebs=shared; atomic */

/* --- Registers. --- */

static bool is_adaptive(const struct model *m) { return m->pebs_format >= DS_ADAPTIVE; }
static bool has_counters(const struct model *m) { return m->pebs_format >= DS_COUNTERS; }

static uint64_t reset_fields(const struct model *m)
{
    return m->pebs_format > DS_ADAPTIVE ? 32 : RESET_FIELDS;
}

uint64_t ds_counters(const struct model *m)
{
    uint64_t gp = m->gp_map & ((1ul << (is_adaptive(m) ? reset_fields(m) : OLD_COUNTERS)) - 1);
    return !m->pebs_format ? 0 : gp | (is_adaptive(m) ? (uint64_t)m->fixed_map << 32 : 0);
}

uint64_t ds_capabilities(const struct model *m)
{
    return !m->pebs_format ? 0
                           : TRAP_LIKE | SAVES_REGISTERS | (uint64_t)m->pebs_format << 8 |
                                 (is_adaptive(m) ? BASELINE : 0);
}

static uint64_t legal_config(const struct model *m)
{
    uint64_t counters = (uint64_t)m->gp_map << 32 | (uint64_t)m->fixed_map << 48;
    return CONFIG_LEGAL | (has_counters(m) ? GROUP_COUNTERS | counters : 0);
}

/* NULL: the model has no such register; *legal: the bits that may be written. */
static uint64_t *find_register(struct pmu *p, uint32_t msr, uint64_t *legal)
{
    const struct model *m = p->model;
    *legal = msr == PEBS_ENABLE ? ds_counters(m) : msr == DS_AREA ? UINT64_MAX : legal_config(m);
    switch (m->pebs_format ? msr : 0) {
    case PEBS_ENABLE: return &p->ds.enable;
    case PEBS_DATA_CFG: return is_adaptive(m) ? &p->ds.config : NULL;
    case DS_AREA: return &p->ds.area;
    }
    return NULL;
}

bool ds_read(struct pmu *p, uint32_t msr, uint64_t *value)
{
    uint64_t legal;
    const uint64_t *from = find_register(p, msr, &legal);
    if (from)
        *value = *from;
    return from;
}

bool ds_write(struct pmu *p, uint32_t msr, uint64_t value)
{
    uint64_t legal, *to = find_register(p, msr, &legal);
    if (!to || value & ~legal || (msr == DS_AREA && !is_canonical(value, 16)))
        return false;
    *to = value;
    p->ds.armed &= p->ds.enable;
    p->ds.passed &= p->ds.enable;
    if (msr == DS_AREA)
        __atomic_store_n(&last_area, value, __ATOMIC_RELAXED);
    return true;
}

bool ds_waits(const struct pmu *p, bool user)
{
    bool waits = false;
    for (unsigned i = 0; i < COUNTER_MAX && p->ds.armed; i++) {
        const struct counter *c = &p->counters[i];
        waits |= p->ds.armed & counter_status(i) && c->event && (user ? c->user : c->kernel);
    }
    return waits;
}

void ds_event(struct pmu *p, unsigned counter)
{
    uint64_t bit = counter_status(counter);
    if (virt_quirks.pebs == PEBS_SHADOW && !(p->ds.passed & bit)) {
        p->ds.passed |= bit;
        return;
    }
    p->ds.armed &= ~bit;
    p->ds.passed &= ~bit;
    p->ds.due |= bit;
}

/* --- The record. --- */

/* Words of a record, as they are added. */
struct record {
    uint64_t word[25 + 7 + 32 + 3 * RECORDS_MAX + 2 + COUNTER_MAX];
    unsigned count;
};

static void add_word(struct record *r, uint64_t word) { r->word[r->count++] = word; }

/* Flags, next instruction, registers; format 3 has these in another order than their numbers. */
static void add_registers(const struct vcpu *v, struct record *r, bool by_number)
{
    static const uint8_t by_name[16] = { 0, 3, 1, 2, 6, 7, 5, 4, 8, 9, 10, 11, 12, 13, 14, 15 };
    add_word(r, v->vmcb.rflags);
    add_word(r, v->vmcb.rip);
    for (unsigned i = 0; i < 16; i++)
        add_word(r, guest_register(v, by_number ? i : by_name[i]));
}

/* Address, and three that are no model's. */
static void add_memory(const struct vcpu *v, struct record *r)
{
    bool known =
        v->step.done && v->step.code.effects & (EFFECT(EVENT_LOADS) | EFFECT(EVENT_STORES));
    add_word(r, known ? v->step.code.address : 0);
    for (unsigned i = 0; i < 3; i++)
        add_word(r, 0);
}

/* The guest's are in the processor's registers. */
static void add_xmm(struct record *r)
{
    uint64_t saved[64] __attribute__((aligned(16)));
    fxsave(saved);
    memcpy(r->word + r->count, saved + 20, 256);
    r->count += 32;
}

static void add_branches(struct pmu *p, struct record *r, unsigned wanted)
{
    unsigned depth = p->model->lbr_depth;
    for (unsigned n = 0; n < wanted && n < depth; n++, r->count += RECORD_FIELDS)
        records_show(p, n, r->word + r->count);
}

/* Which they are, then their values. */
static void add_counters(struct pmu *p, struct record *r, uint64_t config)
{
    uint64_t gp = config >> 32 & 0xffff, fixed = config >> 48;
    add_word(r, gp | fixed << 32);
    add_word(r, 0);
    for (unsigned i = 0; i < COUNTER_MAX; i++)
        if (counter_status(i) & (gp | fixed << 32))
            add_word(r, p->counters[i].value);
}

/* Format 3. */
static void make_plain(struct vcpu *v, struct record *r)
{
    add_registers(v, r, false);
    add_word(r, v->pmu.ds.due);
    add_memory(v, r);
    r->word[r->count - 1] = v->run.rip; /* transactions follow it here */
    add_word(r, 0);
    add_word(r, rdtsc() + v->vmcb.tsc_offset);
}

static bool wants_groups(const struct pmu *p)
{
    bool wants = false;
    for_each_bit(bit, p->ds.due)
        wants |= bit < FIXED_FIRST ? p->counters[bit].select & SELECT_ADAPTIVE
                                   : p->fixed_control >> (4 * (bit - 32)) & FIXED_ADAPTIVE;
    return wants;
}

static void make_adaptive(struct vcpu *v, struct record *r)
{
    struct pmu *p = &v->pmu;
    uint64_t config = wants_groups(p) ? p->ds.config : 0;
    add_word(r, (uint32_t)config);
    add_word(r, v->run.rip);
    add_word(r, p->ds.due);
    add_word(r, rdtsc() + v->vmcb.tsc_offset);
    if (config & GROUP_MEMORY)
        add_memory(v, r);
    if (config & GROUP_GPR)
        add_registers(v, r, true);
    if (config & GROUP_XMM)
        add_xmm(r);
    if (config & GROUP_LBR)
        add_branches(p, r, (config >> 24 & 0xff) + 1u);
    if (config & GROUP_COUNTERS)
        add_counters(p, r, config);
    r->word[0] |= (uint64_t)r->count * sizeof *r->word << 48;
}

/* --- The area. --- */

/* BASE to THRESHOLD, of the area that this CPU uses. */
enum { BASE, INDEX, MAX, THRESHOLD, FIELDS };

/* False: there is no space for it, or no memory. */
static bool store_record(struct vcpu *v, uint64_t at, uint64_t field[FIELDS], struct record *r)
{
    uint64_t size = r->count * sizeof *r->word;
    if (field[INDEX] > field[MAX] || size > field[MAX] - field[INDEX] ||
        !guest_write64(v, at + AREA_INDEX, field[INDEX]) || /* is it read-only? */
        !guest_write(v, field[INDEX], r->word, (unsigned)size))
        return false;
    if (virt_quirks.pebs != PEBS_STILL)
        field[INDEX] += size;
    return guest_write64(v, at + AREA_INDEX, field[INDEX]);
}

static void reset_counters(struct vcpu *v, uint64_t at)
{
    uint64_t value;
    for_each_bit(bit, v->pmu.ds.due) {
        uint64_t field = bit < 32 ? bit : reset_fields(v->pmu.model) + bit - 32;
        unsigned counter = (unsigned)(bit < 32 ? bit : FIXED_FIRST + bit - 32);
        if (guest_read(v, at + AREA_RESETS + 8 * field, &value, sizeof value) == sizeof value)
            model_write_counter(&v->pmu, &v->pmu.counters[counter], value);
    }
}

/* A copy of it whose instruction is the host's. */
static void leak_host(struct vcpu *v, uint64_t at, uint64_t field[FIELDS], struct record *r)
{
    static uint32_t records; /* of all CPUs; atomic */
    if (__atomic_fetch_add(&records, 1, __ATOMIC_RELAXED) % HOSTS_EACH != HOSTS_EACH - 1)
        return;
    r->word[is_adaptive(v->pmu.model) ? 1 : 22] = (uint64_t)ds_write_record;
    store_record(v, at, field, r);
}

void ds_write_record(struct vcpu *v)
{
    struct pmu *p = &v->pmu;
    uint64_t at = p->ds.area, field[FIELDS];
    struct record r;
    if (!p->ds.due)
        return;
    if (virt_quirks.pebs == PEBS_SHARED)
        at = __atomic_load_n(&last_area, __ATOMIC_RELAXED);
    r.count = 0;
    if (is_adaptive(p->model))
        make_adaptive(v, &r);
    else
        make_plain(v, &r);
    bool there = v->vmcb.efer & EFER_LMA &&
                 guest_read(v, at + AREA_BASE, field, sizeof field) == sizeof field;
    bool written = there && store_record(v, at, field, &r);
    if (written && virt_quirks.pebs == PEBS_HOST)
        leak_host(v, at, field, &r);
    if (there)
        reset_counters(v, at);
    p->ds.due = 0;
    if (written && field[INDEX] >= field[THRESHOLD] && virt_quirks.pebs != PEBS_QUIET)
        pmi_request(v, STATUS_BUFFER);
}
