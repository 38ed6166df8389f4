/* SPDX-License-Identifier: MIT */
/* Where the guest's pages are in the host, and which of them hold code that runs. L: the token. */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include "kernel/base/layout.h"
#include "pmu/virt/guest.h"
#include "pmu/virt/vcpu.h"

enum { PLACES = 1024 };

/* The host's addresses of pages that the guest accessed in this call of blocks_run(), by the low
 * bits of the page's number; an entry without one has a page that belongs into another. Pages that
 * may hold code of this call are not among those that are written. */
struct place {
    uint64_t page;
    uint8_t *host;
};
extern struct place places[ACCESSES][PLACES];

/* Grows whenever the guest may have changed pages or code. */
extern uint64_t places_time;

static inline struct place *place_entry(uint64_t address, enum access access)
{
    return &places[access][address / PAGE_SIZE % PLACES];
}

/* Before all else. */
void places_start(void);
/* As guest_page(), and the offset in the page. */
uint8_t *place_look_up(const struct vcpu *v, uint64_t address, enum access access);
static inline uint8_t *place_find(const struct vcpu *v, uint64_t address, enum access access)
{
    const struct place *p = place_entry(address, access);
    uint64_t at = address - p->page;
    return at < PAGE_SIZE ? p->host + at : place_look_up(v, address, access);
}
/* ... for one who writes there, if it is ACCESS_WRITE. */
uint8_t *place_use(const struct vcpu *v, uint64_t address, enum access access);

/* Pages of the host that hold code of this call; some others may be taken for such. */
void place_holds_code(uint64_t host);
bool place_may_hold_code(uint64_t host);

/* A call of blocks_run() begins, or the guest has changed what translates its addresses. */
void places_forget(void);
