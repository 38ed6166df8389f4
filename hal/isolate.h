/* SPDX-License-Identifier: MIT */
/* Counters as thread profiling wants them, whoever owns them. */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include "kernel/base/cpu.h"

/* For thread profiling, which writes, starts and stops counters of other owners. On
 * this CPU, IRQL IPI_LEVEL; counters are bits. */
uint64_t hal_counters(void);                 /* those that work */
uint64_t hal_counter_bit(uint64_t selector); /* 0: the selector names none */
uint64_t hal_counters_running(void);
/* Whether a single write starts or stops any number of counters. */
bool hal_counters_stop_at_once(void);
/* Starts and stops `counters` so that exactly `run` of them run. Writes no register if that is so
 * already. */
void hal_counters_run(uint64_t counters, uint64_t run);
/* Writes as many low bits of the value as the counter takes, and returns them. */
uint64_t hal_counter_write(uint64_t counter, uint64_t value);

/* Whether each of these counters counts the same event on all processors of the mask, so that a
 * thread's counts of several processors can be added; if not, *ctr is a counter that does not. All
 * processors are compared, unless all are of one kind: a driver that programs only some of those
 * knows it. IRQL PASSIVE_LEVEL. */
bool hal_counters_agree(struct cpu_set among, uint64_t counters, unsigned *ctr);
/* The bits that it has on this processor. */
uint64_t hal_counter_mask(uint64_t selector);
