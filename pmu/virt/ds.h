/* SPDX-License-Identifier: MIT */
/* PEBS of one CPU: the records that its processor writes into the guest's memory. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

struct model;
struct pmu;
struct vcpu;

struct ds {
    uint64_t area, enable, config; /* IA32_DS_AREA, IA32_PEBS_ENABLE, MSR_PEBS_DATA_CFG */
    /* Counters, as the global status numbers them: they have overflowed, and the next event makes a
     * record; it has come; by the quirk pebs=shadow it has come, and the one after it makes it. */
    uint64_t armed, due, passed;
};

/* pebs_format of models: the first one whose records have groups, and counters among them. */
enum { DS_ADAPTIVE = 4, DS_COUNTERS = 6 };
#define STATUS_BUFFER (1ul << 62)

/* Which bits IA32_PEBS_ENABLE has. */
uint64_t ds_counters(const struct model *m);
/* What PERF_CAPABILITIES says. */
uint64_t ds_capabilities(const struct model *m);
/* Whether the next event of a counter that counts in this ring may make a record: code of the other
 * ring needs no steps. */
bool ds_waits(const struct pmu *p, bool user);
/* The event of an armed counter happens. */
void ds_event(struct pmu *p, unsigned counter);
/* Writes the record that is due, of the instruction at run.rip, which is done. */
void ds_write_record(struct vcpu *v);
/* Registers. False: #GP. */
bool ds_read(struct pmu *p, uint32_t msr, uint64_t *value);
bool ds_write(struct pmu *p, uint32_t msr, uint64_t value);
