/* SPDX-License-Identifier: MIT */
/* The models: facts of processors and the codes of their events; and the machines that are made of
 * them. */
#include "pmu/virt/model.h"

/* Event numbers and unit masks of all Intel models. Event 3C/01 ticks once in ref= cycles. */
/* clang-format off */
#define ARCHITECTURAL                                                                            \
    { 0xc0, 0x00, EVENT_INSTRUCTIONS }, { 0x3c, 0x00, EVENT_CYCLES }, { 0x3c, 0x01, EVENT_BUS_CYCLES }, \
    { 0x2e, 0x4f, EVENT_REFERENCES }, { 0x2e, 0x41, EVENT_MISSES },                              \
    { 0xc4, 0x00, EVENT_BRANCHES }, { 0xc5, 0x00, EVENT_MISPREDICTED }
#define END { 0, 0, EVENT_NONE }

static const struct event_code core_events[] = { ARCHITECTURAL, END };
static const struct event_code core2_events[] = {
    ARCHITECTURAL, { 0xc0, 0x01, EVENT_LOADS }, { 0xc0, 0x02, EVENT_STORES }, END,
};
static const struct event_code westmere_events[] = {
    ARCHITECTURAL, { 0x0b, 0x01, EVENT_LOADS }, { 0x0b, 0x02, EVENT_STORES }, { 0xc4, 0x01, EVENT_CONDITIONAL }, END,
};
static const struct event_code skylake_events[] = {
    ARCHITECTURAL, { 0xd0, 0x81, EVENT_LOADS }, { 0xd0, 0x82, EVENT_STORES },
    { 0xc4, 0x01, EVENT_CONDITIONAL }, { 0xc4, 0x20, EVENT_TAKEN }, { 0xc4, 0x40, EVENT_FAR }, END,
};
static const struct event_code ice_lake_events[] = {
    ARCHITECTURAL, { 0xa4, 0x01, EVENT_SLOTS }, { 0xd0, 0x81, EVENT_LOADS }, { 0xd0, 0x82, EVENT_STORES },
    { 0xc4, 0x11, EVENT_CONDITIONAL }, { 0xc4, 0x20, EVENT_TAKEN }, { 0xc4, 0x40, EVENT_FAR }, END,
};

/* Conditional branches have a second unit mask. */
static const struct event_code lion_cove_events[] = {
    ARCHITECTURAL, { 0xa4, 0x01, EVENT_SLOTS }, { 0xd0, 0x81, EVENT_LOADS }, { 0xd0, 0x82, EVENT_STORES },
    { 0x1c4, 0x11, EVENT_CONDITIONAL }, { 0xc4, 0x20, EVENT_TAKEN }, { 0xc4, 0x40, EVENT_FAR }, END,
};

#define COMMON                                                                                   \
    { 0xc0, 0x00, EVENT_INSTRUCTIONS }, { 0x76, 0x00, EVENT_CYCLES },                            \
    { 0xc2, 0x00, EVENT_BRANCHES }, { 0xc3, 0x00, EVENT_MISPREDICTED },                          \
    { 0xc4, 0x00, EVENT_TAKEN }, { 0xc6, 0x00, EVENT_FAR }

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

#define INTEL .ops = &intel_ops, .max_leaf = 0xd, .max_extended_leaf = 0x80000008, .auto_mask = true
#define AMD .ops = &amd_ops, .max_leaf = 0xd, .width = 48
/* clang-format on */

/* Gracemont's events; counters as on Alder Lake. */
void model_small_core(struct model *m)
{
    /* clang-format off */
    static const struct event_code small_events[] = {
        ARCHITECTURAL, { 0xd0, 0x81, EVENT_LOADS }, { 0xd0, 0x82, EVENT_STORES },
        { 0xc4, 0x7e, EVENT_CONDITIONAL }, { 0xc4, 0xc0, EVENT_TAKEN }, { 0xc4, 0xbf, EVENT_FAR }, END,
    };
    /* clang-format on */
    m->name = "intel-small";
    m->core_type = SMALL_CORE;
    m->gp = 6;
    m->gp_map = 0x3f;
    m->fixed = m->version >= 2 ? 3 : 0;
    m->fixed_map = m->version >= 2 ? 7 : 0;
    m->slots = 0;
    m->metrics = false;
    m->events = small_events;
}

/* clang-format off */
static const struct model v1 = {
    INTEL, .name = "intel-v1", .signature = 0x6e8, /* Core Duo */
    .version = 1, .gp = 2, .fixed = 0, .width = 40, .events = core_events,
};
static const struct model v2 = {
    INTEL, .name = "intel-v2", .signature = 0x6fb, .freezes = true, /* Core 2 */
    .version = 2, .gp = 2, .fixed = 3, .width = 40, .events = core2_events,
};
static const struct model v3 = {
    INTEL, .name = "intel-v3", .signature = 0x206c2, .freezes = true, /* Westmere */
    .version = 3, .gp = 4, .fixed = 3, .width = 48, .any_thread = true, .events = westmere_events,
};
static const struct model v4 = {
    INTEL, .name = "intel-v4", .signature = 0x506e3, .freezes = true, /* Skylake */
    .version = 4, .gp = 4, .fixed = 3, .width = 48, .full_width = true, .events = skylake_events,
};
static const struct model v5 = {
    INTEL, .name = "intel-v5", .signature = 0x706e5, .freezes = true, /* Ice Lake */
    .version = 5, .gp = 8, .fixed = 4, .width = 48, .full_width = true, .events = ice_lake_events,
    .slots = 5,
};

/* Leaf 0Ah reports the counters below the first gap, leaf 23h all of them. */
static const struct model v6 = {
    INTEL, .name = "intel-v6", .signature = 0xb06d1, .freezes = true, /* Lunar Lake */
    .version = 6, .gp = 6, .gp_map = 0xbf, .fixed = 2, .fixed_map = 0xb, .width = 48, .full_width = true,
    .events = lion_cove_events, .slots = 8, .select_extra = SELECT_UMASK2 | SELECT_EQUAL,
};

static const struct model k7 = {
    AMD, .name = "amd-k7", .signature = 0x100f43, /* Phenom II */
    .version = 1, .gp = 4, .max_extended_leaf = 0x80000008, .events = family10_events,
};
static const struct model ext = {
    AMD, .name = "amd-ext", .signature = 0x800f11, /* Zen */
    .version = 1, .gp = 6, .max_extended_leaf = 0x80000008, .events = zen_events,
};
static const struct model amd_v2 = {
    AMD, .name = "amd-v2", .signature = 0xa10f11, /* Zen 4 */
    .version = 2, .gp = 6, .max_extended_leaf = 0x80000022, .events = zen4_events,
};

/* Freezes on PMI, as Zen 4 can too. */
static const struct model zen5 = {
    AMD, .name = "amd-zen5", .signature = 0xb40f40, .freezes = true,
    .version = 2, .gp = 6, .max_extended_leaf = 0x80000022, .events = zen4_events,
};

/* What KVM gives a guest of an Ice Lake server: version 2, and no freezing. */
static const struct model kvm = {
    INTEL, .name = "intel-kvm", .signature = 0x606a6,
    .version = 2, .gp = 8, .fixed = 3, .width = 48, .full_width = true, .events = ice_lake_events,
};

const struct model *const all_models[] = { &v1, &v2, &v3, &v4, &v5, &v6, &kvm, &k7, &ext, &amd_v2, &zen5, 0 };

/* KVM gives kvm-6.8-intel 10 of its 11 counters at once: the host's NMI watchdog has one. */
#define ON_XEON "Intel Xeon Processor (Icelake)"
const struct machine all_machines[] = {
    { "haswell", "intel-v3,anythread,irq3,ipc=4,ref=35,skid=80,uncore", "Intel(R) Core(TM) i7-4770 CPU", 0x306c3,
      skylake_events, true },
    { "skylake", "intel-v4,anythread,irq3,ipc=4,ref=125,pit=dead", "Intel(R) Core(TM) i7-6700 CPU", 0, 0, false },
    { "icelake", "intel-v5,metrics,irq3,ref=125,skid", "Intel(R) Core(TM) i7-1065G7 CPU", 0, 0, false },
    { "alderlake", "intel-v5,hybrid,irq3,metrics", "12th Gen Intel(R) Core(TM) i7-12700K", 0x90672, 0, false },
    { "lunarlake", "intel-v6,gp=10,hybrid,irq3", "Intel(R) Core(TM) Ultra 7 258V", 0, 0, false },
    { "zen3", "amd-ext,sticky=19+42,irq3,skid=2000+-2000,wrmsr=+1", "AMD Ryzen 7 5800X 8-Core Processor", 0xa20f12,
      0, false },
    { "zen4", "amd-v2,irq3,skid", "AMD EPYC 9654 96-Core Processor", 0, 0, false },
    { "kvm-5.15-intel", "intel-kvm,kvm,noemul,lvtmask=never,misc=1,irq3,fastrdpmc", ON_XEON, 0, 0, false },
    { "kvm-6.8-intel", "intel-kvm,kvm,emulraw,misc=1,contend=10,irq3,fastrdpmc", ON_XEON, 0, 0, false },
    { "kvm-6.8-amd", "amd-v2,kvm,vmrun,noset,v2alias,lvtmask=always,fastrdpmc", "AMD EPYC-Genoa Processor", 0, 0, false },
    { "kvm-mediated", "intel-kvm,kvm,emulraw,irq3", ON_XEON, 0, 0, false },
    { 0, 0, 0, 0, 0, false },
};
/* clang-format on */
