/* SPDX-License-Identifier: MIT */
/* What ring 0 knows of the ring-3 tests: functions that it runs there, with one argument, and what
 * they leave for user_read. Each process has these variables for itself. */
#pragma once
#include "kernel/nt/nt.h"

/* tests/ring3/tp_run.c; mask: HardwareCounters of the enable. */
void user_measure(uint64_t mask);           /* enable, work, read into user_data, disable */
void user_run_until_emptied(uint64_t mask); /* reads until HwCountersCount is 0 */
void user_sleep_profiled(uint64_t mask);    /* enables and sleeps until it is terminated */
void user_spin_profiled(uint64_t mask);     /* the same, running */
void user_spin(uint64_t gs_base);           /* the same, not profiled; 0: the TEB */
void user_end_profiled(uint64_t mask);      /* ends without disabling */
void user_fault_profiled(uint64_t mask);    /* enables, then writes to address 0 */
/* user_values: element 0 over 20 ms of sleep, over 200,000 iterations. */
/* Runs so long with user_state 1, and until somebody writes 2 to it; user_values: ticks, cycles. */
void user_interrupted(uint64_t ticks);
/* Profiled on one CPU after the other: RDPMC and reads work; user_values[0]: how often. */
#define USER_ROUNDS 4
void user_each_cpu(uint64_t selector);
/* Not profiled, or without counters; user_values[0]: how many selectors, of some that exist and
 * some that never do, were refused. */
#define USER_RDPMC_REFUSED 15
void user_rdpmc_each(uint64_t unused);
/* Reads until the counters are lost, at once or after naps of a tick: no wrong number before. */
void user_lose(uint64_t naps);
void user_speed_loop(uint64_t iterations); /* two instructions each, and nothing else */
void user_speed_string(uint64_t pages);    /* one string instruction over as many new pages */

/* tests/ring3/entry.c, until it is terminated: system calls, one by a page fault at the kernel's
 * entry, with this GS base; user_spinning: rounds. */
void user_enter(uint64_t syscall_entry);
#define USER_GS_LEFT 1 /* as it is */
extern uint64_t user_gs;

extern uint64_t user_state; /* atomic; 1: ready */
extern uint64_t user_reads; /* atomic */
extern uint64_t user_handle;
extern uint64_t user_values[4];
extern PERFORMANCE_DATA user_data;

/* tests/ring3/kinds.c */
/* Counts the same going from CPU to CPU as staying on the first. */
void user_kinds_journey(uint64_t cpus);
/* High half: what enabling says; if success, low half: CPUs denied to it. */
void user_kinds_refused(uint64_t wanted);
/* CPUs that it may not go to until the configuration is emptied; user_state 1: it may not yet. */
void user_kinds_emptied(uint64_t cpu_mask);

/* tests/ring3/tp_block.c; also without counters */
void user_block_freed(uint64_t mask);
void user_block_straddles(uint64_t mask);
void user_block_written(uint64_t mask);

/* tests/ring3/tp_driver.c */
/* Configures; user_handle: the selector; sleeps until terminated. */
void user_driver_hold(uint64_t unused);
void user_driver_set(uint64_t wanted);      /* the status of a configuration */
void user_driver_refused(uint64_t unused);  /* by each reason; configures in between */
void user_driver_second(uint64_t selector); /* finds this configured, cannot change it, counts */

/* tests/ring3/etw_counts.c: eight threads give way so often, each; user_values: element 0 switches
 * that were compared */
void user_trace_counts(uint64_t yields);

/* tests/ring3/etw_input.c */
void user_trace_denied(uint64_t trace); /* of a restricted process */
/* Ends connected; 0: with a session of its own, stopped and unread. */
void user_trace_left(uint64_t trace);

/* tests/ring3/profile_input.c */
void user_profile_left(uint64_t unused);       /* ends with a started object */
void user_profile_restricted(uint64_t unused); /* of a restricted process */
/* Samples 16 bytes from base on into a page. user_state 1: started, 2: the page is freed, 3:
 * stopped; goes on when user_reads is as much. */
void user_profile_buffer(uint64_t base);

/* tests/ring3/fuzz.c: the seed, and above it how many calls, and whether there is a PMU. */
#define USER_FUZZ_CALLS 40
#define USER_FUZZ_PMU 63
void user_fuzz(uint64_t what);

/* tests/ring3/claims.c: the service with this number; USER_CLAIMS: none. */
#define USER_CLAIMS 5
void user_claims(uint64_t which);

/* tests/ring3/exceptions.c: each ends by what its name says. */
void user_exception(uint64_t number);
extern uint64_t user_exception_count;
