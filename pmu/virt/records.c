/* SPDX-License-Identifier: MIT */
/* Last-branch records: a ring of entries, seen by registers of one of four forms. Branches come
 * from blocks (blocks.c), steps (run_entry.c), system calls (emulate.c) and events (deliver.c). Not
 * recorded: events that only the processor can deliver, which is none of 64-bit code's. LBR_INFO's
 * cycles are 0, which means not measured; leaf 1Ch reports neither cycles nor counters. A
 * conditional branch to the next instruction is never taken, as in all counts. Of a branch between
 * rings, the ring in which it ends decides; the manuals do not say which. In a call stack a call to
 * the next instruction is no entry. Sources: SDM volume 3, "Last Branch, Interrupt, and Exception
 * Recording", by processor, and "Last Branch Records"; AMD64 APM volume 2, "Debug and Performance
 * Resources". */
#include <stddef.h>
#include "kernel/base/bits.h"
#include "kernel/base/string.h"
#include "pmu/virt/guest.h"
#include "pmu/virt/quirk.h"
#include "pmu/virt/vcpu.h"

enum {
    LBR_SELECT = 0x1c8,
    LBR_TOS = 0x1c9,
    ARCH_CONTROL = 0x14ce,
    ARCH_DEPTH = 0x14cf,
    PAIR = 0x1db, /* AMD: the last branch; and, as Intel's MSR_LER, that before the last event */
    AMD_SELECT = 0xc000010e,
    DBG_EXTN_CFG = 0xc000010f,
};
#define CLASSES_AND_RINGS ((1ul << BRANCH_CLASSES) - 1)
#define CALL_STACK (1ul << BRANCH_CLASSES)
#define INFO_LEGAL (7ul << 61 | 0xffff) /* mispredicted, in a transaction, aborted; cycles */
#define ARCH_INFO_LEGAL (INFO_LEGAL | 0x1ful << 56) /* and whether cycles are valid, type */
#define MISPREDICTED (1ul << 63)
#define AMD_VALID (1ul << 63)
#define AMD_SPECULATIVE (1ul << 62)
#define AMD_ADDRESS ((1ul << 58) - 1)
#define AMD_ENABLE (1ul << 6)
#define TIME_CYCLES (5ul << 48)
#define ARCH_LEGAL 0x7f000ful
#define SHORT_CALL 5u /* bytes of a near call */
#define BRS_ENTRIES 16u

static enum lbr_form form_of(const struct model *m)
{
    if (!m->lbr_depth)
        return FORM_NONE;
    if (m->ops->vendor[0] == 'A')
        return FORM_AMD;
    return m->lbr_format == LBR_ARCHITECTURAL ? FORM_ARCH
           : m->lbr_format < LBR_FLAGS        ? FORM_OLD
                                              : FORM_STACK;
}

/* Where the fields of entries are, of each form. */
static const struct {
    uint32_t first[RECORD_FIELDS], stride;
} places[] = {
    [FORM_OLD] = { { 0x40, 0x60, 0 }, 1 },
    [FORM_STACK] = { { 0x680, 0x6c0, 0xdc0 }, 1 },
    [FORM_ARCH] = { { 0x1500, 0x1600, 0x1200 }, 1 },
    [FORM_AMD] = { { 0xc0010300, 0xc0010301, 0 }, 2 },
};

static unsigned depth_of(const struct pmu *p)
{
    return p->records.depth ? p->records.depth : p->model->lbr_depth;
}

/* Architectural: 6 and 7 are no types. */
static uint64_t arch_type(uint64_t class)
{
    static const uint8_t types[BRANCH_CLASSES] = { 0, 0, 0, 4, 3, 5, 1, 2, 8 };
    return (uint64_t)types[class] << 56;
}

/* As registers show it. */
static void show_entry(const struct model *m, uint64_t entry[])
{
    enum lbr_form form = form_of(m);
    uint64_t class = entry[RECORD_CLASS], wrong = entry[RECORD_INFO];
    bool in_from = form == FORM_AMD || (form == FORM_STACK && m->lbr_format != LBR_INFO);
    uint64_t flags = (in_from ? MISPREDICTED : 0) | (m->lbr_format == LBR_TSX ? 3ul << 61 : 0);
    if (!class)
        return;
    entry[RECORD_FROM] = (entry[RECORD_FROM] & ~flags) | (wrong & flags);
    if (form == FORM_AMD)
        entry[RECORD_TO] = (entry[RECORD_TO] & AMD_ADDRESS) | AMD_VALID;
    if (m->lbr_format == LBR_TIME)
        entry[RECORD_TO] = (entry[RECORD_TO] & ((1ul << 48) - 1)) | TIME_CYCLES;
    if (form == FORM_ARCH)
        entry[RECORD_INFO] |= arch_type(class);
    entry[RECORD_CLASS] = 0;
}

void records_show(struct pmu *p, unsigned n, uint64_t field[RECORD_FIELDS])
{
    uint64_t *entry = p->records.entries[(p->records.top - n) % depth_of(p)];
    show_entry(p->model, entry);
    memcpy(field, entry, RECORD_FIELDS * sizeof *field);
}

/* NULL: the model has no such register. */
static uint64_t *find_record(struct pmu *p, uint32_t msr, unsigned *field)
{
    enum lbr_form form = form_of(p->model);
    unsigned depth = depth_of(p), stride = places[form].stride;
    for (*field = 0; *field < RECORD_FIELDS && form; ++*field) {
        uint32_t first = places[form].first[*field], n = (msr - first) / stride;
        if (!first ||
            (form == FORM_STACK && *field == RECORD_INFO && p->model->lbr_format != LBR_INFO))
            continue;
        if (msr < first || (msr - first) % stride || n >= depth)
            continue;
        bool newest_first = form == FORM_ARCH || form == FORM_AMD;
        uint64_t *entry = p->records.entries[newest_first ? (p->records.top - n) % depth : n];
        show_entry(p->model, entry);
        return &entry[*field];
    }
    return 0;
}

/* The quirk brs: registers that keep everything, where there is no list. */
static uint64_t *find_sampled(struct pmu *p, uint32_t msr)
{
    unsigned n = msr - places[FORM_AMD].first[RECORD_FROM];
    if (!virt_quirks.brs || p->model->lbr_depth)
        return 0;
    return msr == DBG_EXTN_CFG   ? &p->records.control
           : n < 2 * BRS_ENTRIES ? &p->records.entries[n / 2][n % 2 ? RECORD_TO : RECORD_FROM]
                                 : 0;
}

/* Bits 4:3 of DBG_EXTN_CFG are always set; entries by their numbers. */
void records_leave_sampled(struct pmu *p)
{
    for (unsigned n = 0; n < 2 * BRS_ENTRIES; n++)
        p->records.entries[n / 2][n % 2 ? RECORD_TO : RECORD_FROM] = n + 1;
    p->records.control = 3u << 3;
}

/* The registers beside entries; *legal: their bits. */
static uint64_t *find_control(struct pmu *p, uint32_t msr, uint64_t *legal)
{
    static const struct {
        enum lbr_form form;
        uint32_t msr;
        unsigned at;
        uint64_t legal;
    } controls[] = {
        { FORM_STACK, LBR_SELECT, offsetof(struct records, select),
          CLASSES_AND_RINGS | CALL_STACK },
        { FORM_STACK, LBR_TOS, offsetof(struct records, top), RECORDS_MAX - 1 },
        { FORM_OLD, LBR_TOS, offsetof(struct records, top), RECORDS_MAX - 1 },
        { FORM_ARCH, ARCH_CONTROL, offsetof(struct records, control), ARCH_LEGAL },
        { FORM_ARCH, ARCH_DEPTH, offsetof(struct records, depth), UINT64_MAX },
        { FORM_AMD, AMD_SELECT, offsetof(struct records, select), CLASSES_AND_RINGS },
        { FORM_AMD, DBG_EXTN_CFG, offsetof(struct records, control), AMD_ENABLE },
    };
    for_each_in(c, controls)
        if (c->form == form_of(p->model) && c->msr == msr) {
            *legal = c->legal;
            if (msr == LBR_TOS)
                *legal = p->model->lbr_depth - 1u;
            if (msr == LBR_SELECT && p->model->lbr_format < LBR_TSX)
                *legal = CLASSES_AND_RINGS;
            return (uint64_t *)(void *)((uint8_t *)&p->records + c->at);
        }
    *legal = UINT64_MAX;
    return find_sampled(p, msr);
}

/* Whether DEBUGCTL starts the list, and MSR_LER is there. */
static bool is_legacy(const struct model *m)
{
    return form_of(m) == FORM_OLD || form_of(m) == FORM_STACK;
}

bool records_read(struct pmu *p, uint32_t msr, uint64_t *value)
{
    unsigned field;
    uint64_t legal;
    const uint64_t *record = find_record(p, msr, &field), *control = find_control(p, msr, &legal);
    bool pair = msr - PAIR < ARRAY_SIZE(p->records.pair) &&
                (p->model->ops->vendor[0] == 'A' || (is_legacy(p->model) && msr >= PAIR + 2));
    if (control)
        *value = msr == ARCH_DEPTH ? depth_of(p) : *control;
    else if (record)
        *value = *record;
    else if (pair)
        *value = p->records.pair[msr - PAIR];
    return control || record || pair;
}

/* Whether an entry keeps this. Some forms have flags in the address of the branch. */
static bool is_field(const struct model *m, unsigned field, uint64_t value)
{
    enum lbr_form form = form_of(m);
    unsigned flags = form != FORM_STACK || field != RECORD_FROM || m->lbr_format >= LBR_INFO ? 0
                     : m->lbr_format == LBR_TSX && !virt_quirks.lbrsign                      ? 3
                                                                                             : 1;
    if (field == RECORD_INFO)
        return !(value & ~(form == FORM_ARCH ? ARCH_INFO_LEGAL : INFO_LEGAL));
    return form == FORM_AMD || is_canonical((uint64_t)((int64_t)(value << flags) >> flags), 16);
}

/* The filter that IA32_LBR_CTL means: its bits let through. */
static uint64_t hidden_by(uint64_t control)
{
    static const uint8_t classes[] = { BRANCH_JCC,      BRANCH_REL_JMP,  BRANCH_IND_JMP,
                                       BRANCH_REL_CALL, BRANCH_IND_CALL, BRANCH_RET,
                                       BRANCH_FAR };
    uint64_t hidden = ~control >> 1 & 3;
    for (unsigned i = 0; i < ARRAY_SIZE(classes); i++)
        hidden |= (~control >> (16 + i) & 1) << classes[i];
    return hidden | (control >> 3 & 1) * CALL_STACK;
}

static bool is_depth(const struct model *m, uint64_t depth)
{
    return depth && depth <= m->lbr_depth && !(depth % 8) && LBR_DEPTHS >> (depth / 8 - 1) & 1;
}

bool records_write(struct pmu *p, uint32_t msr, uint64_t value)
{
    unsigned field;
    uint64_t legal, *record = find_record(p, msr, &field), *control = find_control(p, msr, &legal);
    if (msr == ARCH_DEPTH && control && !is_depth(p->model, value))
        return false;
    if (record ? !is_field(p->model, field, value) : !control || value & ~legal)
        return false;
    *(record ? record : control) = value;
    if (msr == ARCH_CONTROL)
        p->records.select = hidden_by(value);
    if (msr == ARCH_DEPTH)
        records_lose(p);
    return true;
}

void records_freeze(struct pmu *p)
{
    if (!(p->debugctl & DEBUGCTL_FREEZE_LBR) || !p->model->lbr_depth)
        return;
    if (p->model->version >= 4 || p->model->ops->vendor[0] == 'A')
        p->status |= STATUS_LBR_FROZEN;
    else
        p->debugctl &= ~(uint64_t)DEBUGCTL_LBR;
}

void records_lose(struct pmu *p)
{
    memset(p->records.entries, 0, sizeof p->records.entries);
    p->records.top = 0;
}

void records_leave_on(struct pmu *p)
{
    enum lbr_form form = form_of(p->model);
    if (form == FORM_ARCH || form == FORM_AMD)
        p->records.control = form == FORM_ARCH ? ARCH_LEGAL & ~8ul : AMD_ENABLE;
    else if (form || p->model->ops->vendor[0] == 'A')
        p->debugctl |= DEBUGCTL_LBR;
}

void records_refresh(struct pmu *p)
{
    struct records *r = &p->records;
    enum lbr_form form = form_of(p->model);
    bool frozen = p->status & STATUS_LBR_FROZEN;
    r->pair_on = p->model->ops->vendor[0] == 'A' && p->debugctl & DEBUGCTL_LBR;
    r->list_on = !frozen && (form == FORM_ARCH  ? r->control & 1
                             : form == FORM_AMD ? r->control & AMD_ENABLE
                                                : form && p->debugctl & DEBUGCTL_LBR);
    r->on = r->pair_on || r->list_on;
    r->counted = false;
    for (unsigned i = 0; i < COUNTER_MAX; i++)
        r->counted |= p->counters[i].event == EVENT_RECORDS;
    r->plain_if_right = r->list_on && !r->pair_on && !r->counted && !(r->select & CALL_STACK);
    r->plain = r->plain_if_right && !virt_quirks.wrongpath && !virt_quirks.fused;
    for (unsigned user = 0; user < 2; user++)
        r->hides[user] = r->select >> user & 1 ? UINT64_MAX : r->select;
    r->last = depth_of(p) - 1;
}

/* What AMD's processors leave of the path that a misprediction began; the branch itself was
 * speculative. */
static void add_wrong_path(struct pmu *p, uint64_t from)
{
    struct records *r = &p->records;
    show_entry(p->model, r->entries[r->top]);
    r->entries[r->top][RECORD_TO] |= AMD_SPECULATIVE;
    records_push(r, BRANCH_NONE, from, (from & AMD_ADDRESS) | AMD_SPECULATIVE, false);
}

void records_add(struct vcpu *v, enum branch class, uint64_t from, uint64_t to, bool mispredicted)
{
    struct records *r = &v->pmu.records;
    if (r->pair_on) {
        r->pair[0] = from;
        r->pair[1] = to;
    }
    if (!r->list_on || r->hides[v->vmcb.cpl == 3] >> class & 1)
        return;
    if (r->select & CALL_STACK && class == BRANCH_RET) {
        memset(r->entries[r->top], 0, sizeof r->entries[0]);
        r->top = (r->top - 1) & r->last;
        return;
    }
    if (r->select & CALL_STACK && class == BRANCH_REL_CALL && to == from + SHORT_CALL)
        return;
    records_push(r, class, from, to, mispredicted);
    r->gained = true;
    if (virt_quirks.wrongpath && mispredicted)
        add_wrong_path(&v->pmu, from);
}

uint64_t records_from(const struct records *r, uint64_t from)
{
    return virt_quirks.fused && r->compared && r->compared_end == from ? r->compared : from;
}

void records_add_step(struct vcpu *v, enum branch class, uint32_t effects)
{
    struct records *r = &v->pmu.records;
    uint64_t from = v->run.rip;
    if (instruction_fuses(&v->step.insn))
        from = records_from(r, from);
    if (r->on && effects & (EFFECT(EVENT_TAKEN) | EFFECT(EVENT_FAR)))
        records_add(v, class, from, v->vmcb.rip, effects & EFFECT(EVENT_MISPREDICTED));
    if (virt_quirks.fused) {
        r->compared = instruction_compares(&v->step.insn) ? v->run.rip : 0;
        r->compared_end = v->vmcb.rip;
    }
}

/* An interrupt or exception comes: the last branch, of a legacy list the newest entry, is kept. */
static void keep_last(struct pmu *p)
{
    struct records *r = &p->records;
    const uint64_t *last = r->pair_on                          ? r->pair
                           : r->list_on && is_legacy(p->model) ? r->entries[r->top]
                                                               : NULL;
    for (unsigned field = RECORD_FROM; last && field <= RECORD_TO; field++)
        r->pair[2 + field] = (uint64_t)((int64_t)(last[field] << 16) >> 16);
}

bool records_add_event(struct vcpu *v, uint64_t from)
{
    uint64_t type = v->vmcb.inject & INJECT_TYPE;
    struct records *r = &v->pmu.records;
    bool ends =
        type == INJECT_EXCEPTION && (v->vmcb.inject & 0xff) == VECTOR_DB && !virt_quirks.dbkeeps;
    if (ends) {
        v->pmu.debugctl &= ~(uint64_t)DEBUGCTL_LBR;
        r->pair_on = false;
        r->list_on &= !is_legacy(v->pmu.model) && !virt_quirks.dbends;
        if (virt_quirks.dbends)
            r->control &= ~(form_of(v->pmu.model) == FORM_ARCH ? 1ul : AMD_ENABLE);
    }
    if (type == INJECT_SOFT_INT)
        from -= v->run.soft_length;
    else
        keep_last(&v->pmu);
    records_add(v, BRANCH_FAR, from, v->vmcb.rip, false);
    return ends;
}
