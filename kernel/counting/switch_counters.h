/* SPDX-License-Identifier: MIT */
/* The hardware counter configuration as a switch reads it; counter_config.c writes it. */
#pragma once
#include "kernel/nt/ntddk.h"

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
