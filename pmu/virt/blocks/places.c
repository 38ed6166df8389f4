/* SPDX-License-Identifier: MIT */
/* What was found of the guest's pages is forgotten when the guest runs again: only then can it
 * flush its TLB. */
#include "kernel/base/string.h"
#include "pmu/virt/blocks/places.h"

enum { CODE_PAGES = 1024 };

struct place places[ACCESSES][PLACES];
uint64_t places_time;
static uint64_t run_number; /* of the call of blocks_run() */

/* The low bits of a page's number select the entry, which holds its address and the run's number.
 * An entry that several pages share holds the run's number alone: each of them may hold code. */
static uint64_t code_pages[CODE_PAGES];

static uint64_t *code_page(uint64_t host) { return &code_pages[host / PAGE_SIZE % CODE_PAGES]; }
static uint64_t code_tag(uint64_t host) { return (host & ~(PAGE_SIZE - 1)) | run_number; }

void places_changed(void)
{
    places_time++;
    blocks_unlink();
}

static void forget_places(enum access access)
{
    for (uint64_t i = 0; i < PLACES; i++)
        places[access][i].page = (i + 1) * PAGE_SIZE;
}

void place_holds_code(uint64_t host)
{
    uint64_t *page = code_page(host), tag = code_tag(host);
    if (*page == tag || *page == run_number)
        return;
    *page = *page % PAGE_SIZE != run_number ? tag : run_number;
    forget_places(ACCESS_WRITE);
}

bool place_may_hold_code(uint64_t host)
{
    uint64_t page = *code_page(host);
    return page == code_tag(host) || page == run_number;
}

uint8_t *place_look_up(const struct vcpu *v, uint64_t address, enum access access)
{
    uint8_t *host = guest_page(v, address, access);
    uint64_t at = address & (PAGE_SIZE - 1);
    if (!host)
        return NULL;
    bool kept = access != ACCESS_WRITE || !place_may_hold_code((uint64_t)host);
    if (kept && (access == ACCESS_EXECUTE || !v->pmu.caches)) /* each access is modelled */
        *place_entry(address, access) = (struct place){ address - at, host };
    return host + at;
}

uint8_t *place_use(const struct vcpu *v, uint64_t address, enum access access)
{
    uint8_t *host = place_find(v, address, access);
    if (host && access == ACCESS_WRITE && place_may_hold_code((uint64_t)host))
        places_changed();
    return host;
}

void places_forget(void)
{
    places_changed();
    for (enum access access = 0; access < ACCESSES; access++)
        forget_places(access);
    run_number = (run_number + 1) % PAGE_SIZE;
    if (run_number)
        return;
    memset(code_pages, 0, sizeof code_pages);
    run_number = 1;
}
