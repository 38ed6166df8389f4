/* SPDX-License-Identifier: MIT */
/* Free counters that count an event on every CPU and are the machine's hardware counter
 * configuration. A test has one such set at a time. PASSIVE_LEVEL. */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include "pmu/pmu.h"

/* Takes a free counter of every CPU for the event, programs and starts it everywhere, and makes its
 * RDPMC selector the configuration. flags: PMU_USER, PMU_KERNEL. False if a check failed; nothing
 * is kept then. */
bool counting_start(enum pmu_event event, uint32_t flags, unsigned *ctr);
/* counting_start for n events: element i of the configuration counts events[i] on counter ctrs[i].
 * False without a failed check, and nothing kept, if the free counters do not suffice;
 * counting_possible says so beforehand. */
bool counting_start_many(const enum pmu_event *events, unsigned n, uint32_t flags, unsigned *ctrs);
bool counting_possible(const enum pmu_event *events, unsigned n);
/* Writes 0 to every register of the PMU of this CPU, as if a host had lost them. */
void counting_lose(void *unused);
/* Empties the configuration and gives the counters back, which stops them. */
void counting_stop(void);
/* After a test that was ended: whatever it had is free again. */
void counting_forget(void);
/* Makes these counters the configuration, in this order, without touching any counter. */
bool counting_configure(const unsigned *ctrs, unsigned n);
/* Stops and starts counters on every CPU; their values stay. */
void counting_pause(uint64_t counters);
void counting_resume(uint64_t counters);
