/* SPDX-License-Identifier: MIT */
/* Quirks: what processors and hypervisors do that their manuals do not say, each off unless vpmu=
 * names it. names.def has their table. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { LVTMASK_NEVER = 1, LVTMASK_ALWAYS = 2 };
enum { V2BITS_KEEP = 1, V2BITS_FAULT = 2 };
enum {
    UNCOUNTED_CPUID = 1,
    UNCOUNTED_RDMSR,
    UNCOUNTED_WRMSR,
    UNCOUNTED_RDPMC,
    UNCOUNTED_HLT,
    UNCOUNTED_DR,
    UNCOUNTED_PAUSE
};
enum {
    BUG_QUIET = 1,
    BUG_DOWN,
    BUG_CARRY,
    BUG_LOCKED,
    BUG_EVENT8,
    BUG_LATE,
    BUG_CPUID,
    BUG_BRANCHES,
    BUG_HELD,
    BUG_RESET,
    BUG_LOSING
};
enum { TSC_IGNORES = 1, TSC_FAULTS = 2 };
enum { PEBS_HOST = 1, PEBS_STILL, PEBS_SHADOW, PEBS_QUIET, PEBS_SHARED, PEBS_LEFT };

/* What is off is 0, but for ipc and ref, which are then 1. Const once the guest runs. */
struct quirks {
#define MODEL(...)
#define MACHINE(...)
#define QUIRK(form, meaning, field, ...) uint64_t field;
#define SECOND(field) uint64_t field;
#include "pmu/virt/names.def"
};

extern struct quirks virt_quirks;
#define DEBUGCTL_IGNORED (0xful << 11)

/* Reads "word,word=value,..." after a model's name for a processor of this vendor. False after one
 * line that says what is wrong, and what there is. */
bool quirk_parse(const char *words, const char *vendor);
/* Of a name, as words and forms begin with it. Whether two begin with the same. */
size_t quirk_name_length(const char *text);
bool quirk_same_name(const char *one, const char *other);
/* Quirk number n, as CPUID reports it: whether it is on, its name, padded with zeros to 12 bytes,
 * and two values. False: there is none. */
bool quirk_describe(unsigned n, bool *on, char name[12], uint64_t value[2]);
