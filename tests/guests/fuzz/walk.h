/* SPDX-License-Identifier: MIT */
/* Page tables as the processor walks them, written from the manual alone: what pmu/virt/guest.c is
 * compared with. */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include "pmu/virt/vcpu.h"

struct walk {
    bool present;      /* each entry was present and in reach: below 4 GB */
    bool reserved;     /* some reserved bit was 1 */
    uint64_t all;      /* AND of the entries that have permissions */
    uint64_t some;     /* OR of all entries */
    uint64_t leaf;     /* the last one */
    uint64_t physical; /* of the byte */
};

struct walk walk(const struct vcpu *v, uint64_t address);
