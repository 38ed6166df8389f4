/* SPDX-License-Identifier: MIT */
/* Records that a processor writes itself (PEBS), at the event instead of after it, into a buffer
 * that a DS area describes. Functions act on this CPU, which the caller does not leave; he keeps
 * interrupts that use the PMU away. No lock, any IRQL. Sources: SDM volume 3, "Processor Event
 * Based Sampling" and "PEBS record format" by processor; Linux for the layouts of all formats. */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include "pmu/pmu.h"

/* Groups of an adaptive record, as bits of MSR_PEBS_DATA_CFG. */
#define PEBS_MEMORY 1u
#define PEBS_GPR 2u
#define PEBS_XMM 4u
#define PEBS_LBR 8u
#define PEBS_LBR_ENTRIES(n) ((uint64_t)((n)-1) << 24) /* n from 1 */
#define PEBS_COUNTERS 16u
#define PEBS_VALUES_OF(counters) (((counters)&0xffff) << 32 | (counters) >> PMU_FIXED << 48)

/* What a kind of CPU writes. */
struct pebs_facts {
    uint8_t format;      /* 0 to 3; from 4 on records are adaptive */
    uint8_t groups;      /* of those above; 0: all records are alike */
    uint8_t first_fixed; /* which reset field is fixed counter 0's */
    uint8_t lbr_depth;   /* branches in a record at most */
    uint16_t smallest;   /* bytes of a record without groups */
    uint64_t counters;   /* bits of IA32_PEBS_ENABLE, as pmu.h numbers counters */
};

/* Of this CPU's kind; NULL: it writes no records. */
const struct pebs_facts *pebs_facts(void);
/* Whether this CPU does as its kind, when it starts. */
bool pebs_is_here(void);
/* Of another kind, on a CPU of which that was called before. */
const struct pebs_facts *pebs_facts_of(const struct pmu_kind *kind);
/* Bytes of a record by this MSR_PEBS_DATA_CFG, where there are facts. */
uint32_t pebs_record_size(uint64_t data_cfg);

/* A record, from either format. What it does not have is 0 or NULL. */
struct pebs_record {
    uint32_t size, groups;
    uint64_t address;         /* of the instruction that caused the event */
    uint64_t applicable, tsc; /* counters, as bits */
    /* After that instruction. gpr: by the registers' numbers. */
    uint64_t next, flags, gpr[16];
    uint64_t data_address, data_source, latency;
    const uint64_t *xmm; /* two words each */
    const uint64_t *lbr; /* from, to, info; the newest first */
    unsigned lbr_count;
    uint64_t counters;     /* as bits; in the order of their numbers: */
    const uint64_t *value; /* before a counter is set again */
};

/* Decodes what this CPU's kind wrote; false: it is none of its records. */
bool pebs_read(const void *record, struct pebs_record *r);

#define PEBS_RESETS 48u
/* The DS area in 64-bit mode, but for branch traces, which stay 0. Addresses are linear. */
struct ds_area {
    uint64_t bts[4];
    uint64_t base, index, max, threshold; /* of records: index is the next one's */
    uint64_t reset[PEBS_RESETS];          /* what a counter is set to after its record */
};

/* Fills the area, whose buffer must not fault, and points this CPU to it. threshold_records: after
 * so many records a PMI comes. False: it refuses the area's address. */
bool pebs_attach(struct ds_area *area, void *buffer, uint32_t bytes, uint32_t record_size,
                 uint32_t threshold_records);
void pebs_set_reload(struct ds_area *area, unsigned ctr, uint64_t value);
/* From now on these counters write records instead of interrupting; data_cfg counts where there are
 * groups, for counters whose select has PMU_ADAPTIVE. 0 counters: none writes. False: refused. */
bool pebs_enable(uint64_t counters, uint64_t data_cfg);
/* These counters write none any more. */
void pebs_forget(uint64_t counters);
/* None writes, and this CPU forgets the area. */
void pebs_detach(void);
/* Bytes of records that wait; from now on none, the next one is the first. Counters are paused. */
static inline uint32_t pebs_drain(struct ds_area *area)
{
    uint32_t bytes = (uint32_t)(area->index - area->base);
    area->index = area->base;
    return bytes;
}
/* Clears the status bit of a full buffer; whether it was set. */
bool pebs_take_full(void);
