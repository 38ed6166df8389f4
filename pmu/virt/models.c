/* SPDX-License-Identifier: MIT */
/* The tables of models and machines, from names.def, and the codes of the models' events. */
#include <stddef.h>
#include "pmu/virt/model.h"

/* Event numbers and unit masks of all Intel models. Event 3C/01 ticks once in ref= cycles. */
/* clang-format off */
#define ARCHITECTURAL                                                                            \
    { 0xc0, 0x00, EVENT_INSTRUCTIONS }, { 0x3c, 0x00, EVENT_CYCLES }, { 0x3c, 0x01, EVENT_BUS_CYCLES }, \
    { 0x2e, 0x4f, EVENT_REFERENCES }, { 0x2e, 0x41, EVENT_MISSES },                              \
    { 0xc4, 0x00, EVENT_BRANCHES }, { 0xc5, 0x00, EVENT_MISPREDICTED }
#define PRECISE { 0xc0, 0x01, EVENT_INSTRUCTIONS } /* INST_RETIRED.PREC_DIST */
#define END { 0, 0, EVENT_NONE }

static const struct event_code core_events[] = { ARCHITECTURAL, END };
static const struct event_code core2_events[] = {
    ARCHITECTURAL, { 0xc0, 0x01, EVENT_LOADS }, { 0xc0, 0x02, EVENT_STORES }, END,
};
static const struct event_code westmere_events[] = {
    ARCHITECTURAL, { 0x0b, 0x01, EVENT_LOADS }, { 0x0b, 0x02, EVENT_STORES }, { 0xc4, 0x01, EVENT_CONDITIONAL }, END,
};
static const struct event_code skylake_events[] = {
    ARCHITECTURAL, PRECISE, { 0xd0, 0x81, EVENT_LOADS }, { 0xd0, 0x82, EVENT_STORES },
    { 0xc4, 0x01, EVENT_CONDITIONAL }, { 0xc4, 0x10, EVENT_NOT_TAKEN }, { 0xc5, 0x01, EVENT_MISPREDICTED },
    { 0xc4, 0x20, EVENT_TAKEN }, { 0xc4, 0x40, EVENT_FAR }, { 0xcc, 0x20, EVENT_RECORDS }, END,
};
#define COND_MASKS { 0xc4, 0x01, EVENT_COND_TAKEN }, { 0xc4, 0x10, EVENT_NOT_TAKEN }, { 0xc5, 0x11, EVENT_MISPREDICTED }
static const struct event_code ice_lake_events[] = {
    ARCHITECTURAL, { 0xa4, 0x01, EVENT_SLOTS }, { 0xd0, 0x81, EVENT_LOADS }, { 0xd0, 0x82, EVENT_STORES },
    { 0xc4, 0x11, EVENT_CONDITIONAL }, COND_MASKS, { 0xc4, 0x20, EVENT_TAKEN }, { 0xc4, 0x40, EVENT_FAR }, { 0xcc, 0x20, EVENT_RECORDS }, END,
};

/* Conditional branches have a second unit mask. */
static const struct event_code lion_cove_events[] = {
    ARCHITECTURAL, { 0xa4, 0x01, EVENT_SLOTS }, { 0xd0, 0x81, EVENT_LOADS }, { 0xd0, 0x82, EVENT_STORES },
    { 0x1c4, 0x11, EVENT_CONDITIONAL }, { 0xc4, 0x10, EVENT_NOT_TAKEN }, { 0xc4, 0x20, EVENT_TAKEN }, { 0xc4, 0x40, EVENT_FAR }, { 0xe4, 0x01, EVENT_RECORDS }, END,
};

#define COMMON                                                                                   \
    { 0xc0, 0x00, EVENT_INSTRUCTIONS }, { 0x76, 0x00, EVENT_CYCLES },                            \
    { 0xc2, 0x00, EVENT_BRANCHES }, { 0xc3, 0x00, EVENT_MISPREDICTED },                          \
    { 0xc4, 0x00, EVENT_TAKEN }, { 0xc6, 0x00, EVENT_FAR }, { 0x2b, 0x00, EVENT_SMIS }

static const struct event_code family10_events[] = {
    COMMON, { 0x7d, 0x07, EVENT_REFERENCES }, { 0x7e, 0x07, EVENT_MISSES }, END,
};
static const struct event_code zen4_events[] = {
    COMMON, { 0x60, 0xff, EVENT_REFERENCES }, { 0x64, 0x09, EVENT_MISSES }, { 0xd1, 0x00, EVENT_CONDITIONAL },
    { 0x29, 0x05, EVENT_LOADS }, { 0x29, 0x06, EVENT_STORES }, { 0x120, 0x01, EVENT_CYCLES }, END,
};
static const struct event_code zen_events[] = {
    COMMON, { 0x60, 0xff, EVENT_REFERENCES }, { 0x64, 0x09, EVENT_MISSES }, { 0xd1, 0x00, EVENT_CONDITIONAL },
    { 0x29, 0x05, EVENT_LOADS }, { 0x29, 0x06, EVENT_STORES }, END,
};

#define INTEL_CPU .ops = &intel_ops, .max_leaf = 0xd, .max_extended_leaf = 0x80000008, .auto_mask = true
#define AMD_CPU .ops = &amd_ops, .max_leaf = 0xd, .width = 48
/* clang-format on */

/* Gracemont's events; counters as on Alder, Meteor or Lunar Lake. */
void model_small_core(struct model *m)
{
    /* clang-format off */
    static const struct event_code small_events[] = {
        ARCHITECTURAL, { 0xd0, 0x81, EVENT_LOADS }, { 0xd0, 0x82, EVENT_STORES },
        { 0xc4, 0x7e, EVENT_CONDITIONAL }, { 0xc4, 0xfe, EVENT_COND_TAKEN }, { 0xc5, 0x7e, EVENT_MISPREDICTED },
        { 0xc4, 0xc0, EVENT_TAKEN }, { 0xc4, 0xbf, EVENT_FAR }, { 0xe4, 0x01, EVENT_RECORDS }, END,
    };
    /* clang-format on */
    m->name = "intel-small";
    m->core_type = SMALL_CORE;
    bool skymont = m->version >= 6; /* 4 to 6 count slots of top-down analysis, here nothing */
    m->gp = m->max_leaf >= LEAF_PMU_EXTENDED ? 8 : 6;
    m->gp_map = m->max_leaf >= LEAF_PMU_EXTENDED ? 0xff : 0x3f;
    m->fixed = m->version >= 2 ? 3 : 0;
    m->fixed_map = skymont ? 0x77 : m->version >= 2 ? 7 : 0;
    m->slots = 0;
    m->metrics = false;
    m->events = small_events;
}

/* KVM gives kvm-6.8-intel 10 of its 11 counters at once: the host's NMI watchdog has one. */
#define ON_XEON "Intel Xeon Processor (Icelake)"
#define QUIRK(...)
#define SECOND(...)

const struct model all_models[] = {
#define MODEL(id, processor, ...) { .name = (id), __VA_ARGS__ },
#define MACHINE(...)
#include "pmu/virt/names.def"
    { .name = NULL },
};

#define QUIRK(...)
#define SECOND(...)
const struct machine all_machines[] = {
#define MODEL(...)
#define MACHINE(id, text, ...) { .name = (id), .words = (text), __VA_ARGS__ },
#include "pmu/virt/names.def"
    { .name = NULL },
};
