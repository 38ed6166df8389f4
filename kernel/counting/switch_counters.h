/* SPDX-License-Identifier: MIT */
/* What a switch reads: the hardware counter configuration, which counter_config.c writes, and the
 * policy `isolate`. */
#pragma once
#include "kernel/base/cpu.h"
#include "kernel/nt/ntddk.h"

struct thread_profiling;

struct counter_element {
    uint32_t selector; /* of RDPMC */
    uint64_t mask;     /* the bits that the counter has on every CPU */
};

/* The bit that lets ring 3 execute RDPMC; written once, at boot: 0 with `rdpmc=off`. */
extern uint64_t thread_profiling_pce;
/* Changed only while counter_config_users is 0, so users read it without a lock. */
extern struct counter_element counter_config[MAX_HW_COUNTERS];
extern ULONG counter_config_count;
/* A counter has more bits on some CPUs: use counter_config_mask on the CPU where it is read. */
extern bool counter_config_uneven;
uint64_t counter_config_mask(unsigned element);
/* Atomic. It changes when the configuration is changed, or is emptied while it has users. */
extern uint32_t counter_config_generation;
/* Somebody reset the counters, such as a host that restored this guest: nobody profiles with them
 * until they are configured anew. Atomic. */
enum counters_lost { COUNTERS_KEPT, COUNTERS_LOST, COUNTERS_LOST_SAID };
extern enum counters_lost counter_config_lost;
/* For the reader in ring 3 (ntdll_profiling.c): bits 7:0 how many bits counters lack to 64 on this
 * CPU; bits 15:8 the same of fixed ones, if they differ; and THREAD_PROFILING_NO_RDPMC. */
ULONG thread_profiling_unused_bits(void);

#define ISOLATE_NONE 0xffffffffu

extern bool isolate_on;
/* Constant while a thread with a mask is profiled: the configured counters, and which of them their
 * driver had running before. No other counter runs. */
extern uint64_t isolate_configured, isolate_ran[MAX_CPUS];
/* Ends the time slice of `out` on this CPU and begins that of `in`, at IPI_LEVEL. Either may be
 * NULL. */
void isolate_switch(struct thread_profiling *out, struct thread_profiling *in);
