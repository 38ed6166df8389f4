/* SPDX-License-Identifier: MIT */
/* The guest of tests/guests/fuzz/guest.c: its one CPU, and what is drawn for it. */
#pragma once
#include "pmu/virt/guest.h"
#include "pmu/virt/vcpu.h"

extern struct vcpu *v;
/* An address, often one that is mapped; a mode of the processor, with page tables; registers of the
 * PMU. */
uint64_t guest_some_address(void);
void guest_make_mode(void);
void guest_make_pmu(void);
/* One case each. */
void guest_try_exit(void);
void guest_try_counting(void);
void guest_try_block(void);
void guest_try_words(void);

/* Page tables as the processor walks them, written from the manual alone: what pmu/virt/guest.c is
 * compared with. */
struct walk {
    bool present;      /* each entry was present and in reach: below 4 GB */
    bool reserved;     /* some reserved bit was 1 */
    uint64_t all;      /* AND of the entries that have permissions */
    uint64_t some;     /* OR of all entries */
    uint64_t leaf;     /* the last one */
    uint64_t physical; /* of the byte */
};

struct walk walk(const struct vcpu *v, uint64_t address);
