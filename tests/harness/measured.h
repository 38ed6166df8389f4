/* SPDX-License-Identifier: MIT */
/* What tests need to know of a PMU and the kernel does not. Measured once, at start, on each kind
 * of CPU; by the manuals where no counter counts instructions. Group measured compares it with what
 * the virtual PMU was set to do. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

struct test_measured {
    bool known;            /* some counter could be used */
    bool late_at_zero;     /* a counter that stops at exactly 0 has not reported its overflow */
    bool masks;            /* a PMI that is delivered masks its LVT entry */
    bool throttled;        /* a counter that overflows again and again stops for a while */
    bool held;             /* one that is written while it counts does not count on */
    int64_t lag;           /* instructions from a PMI until counters freeze, by DEBUGCTL[12] */
    uint64_t select_kept;  /* reserved bits of an event select that keep what is written */
    bool global_used;      /* AMD: a reserved bit of a global register is kept, or faults */
    unsigned lost;         /* PMIs, while another counter counted too */
    int64_t exit_branches; /* counted for a CPUID, which is none */
    int64_t far;           /* branches that an IRET counts beside itself (Goldmont and its kin) */
    bool uncore;           /* Intel: 391h is there, below version 4 */
    uint64_t misc;         /* Intel: MISC_ENABLE, if it is not as the manual says; else 0 */
    uint64_t access_ns;    /* for an access to the PMU */
    uint64_t thousand_ns;  /* for 1,000 instructions that are counted */
};

/* Before the first test, on the runner's thread, which may take all counters. */
void measured_init(void);
/* Of this CPU's kind, which is const since then. */
const struct test_measured *measured_here(void);
/* A line of what is unusual: nothing where nothing is. */
void measured_print(unsigned cpu);
