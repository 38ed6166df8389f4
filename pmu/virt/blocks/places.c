/* SPDX-License-Identifier: MIT */
/* What was found of the guest's pages is forgotten when the guest runs, which may flush its TLB. */
#include "kernel/base/string.h"
#include "pmu/virt/blocks/blocks.h"
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

/* The entries that hold a page, by their number in all tables. */
static uint16_t filled[ACCESSES * PLACES];
static unsigned filled_count;
static bool written; /* some may be of ACCESS_WRITE */

static void empty_place(unsigned i)
{
    places[i / PLACES][i % PLACES].page = (i % PLACES + 1) * PAGE_SIZE;
}

void places_start(void)
{
    for (unsigned i = 0; i < ACCESSES * PLACES; i++)
        empty_place(i);
}

static void fill_place(uint64_t address, enum access access, uint8_t *host)
{
    struct place *place = place_entry(address, access);
    if ((place->page ^ address) / PAGE_SIZE % PLACES)
        filled[filled_count++] = (uint16_t)(access * PLACES + address / PAGE_SIZE % PLACES);
    *place = (struct place){ address & -PAGE_SIZE, host };
    written |= access == ACCESS_WRITE;
}

bool place_may_hold_code(uint64_t host)
{
    uint64_t page = *code_page(host);
    return page == code_tag(host) || page == run_number;
}

static void forget_written(void)
{
    for (unsigned i = filled_count; i-- > 0;) {
        const struct place *place = &places[ACCESS_WRITE][filled[i] % PLACES];
        if (filled[i] / PLACES != ACCESS_WRITE || !place_may_hold_code((uint64_t)place->host))
            continue;
        empty_place(filled[i]);
        filled[i] = filled[--filled_count];
    }
}

void place_holds_code(uint64_t host)
{
    uint64_t *page = code_page(host), tag = code_tag(host);
    if (*page == tag || *page == run_number)
        return;
    *page = *page % PAGE_SIZE != run_number ? tag : run_number;
    if (written)
        forget_written();
}

uint8_t *place_look_up(const struct vcpu *v, uint64_t address, enum access access)
{
    uint8_t *host = guest_page(v, address, access);
    uint64_t at = address & (PAGE_SIZE - 1);
    if (!host)
        return NULL;
    bool kept = access != ACCESS_WRITE || !place_may_hold_code((uint64_t)host);
    if (kept && (access == ACCESS_EXECUTE || !v->pmu.caches)) /* each access is modelled */
        fill_place(address, access, host);
    return host + at;
}

uint8_t *place_use(const struct vcpu *v, uint64_t address, enum access access)
{
    uint8_t *host = place_find(v, address, access);
    if (host && access == ACCESS_WRITE && place_may_hold_code((uint64_t)host))
        places_time++;
    return host;
}

void places_forget(void)
{
    places_time++;
    while (filled_count)
        empty_place(filled[--filled_count]);
    written = false;
    run_number = (run_number + 1) % PAGE_SIZE;
    if (run_number)
        return;
    memset(code_pages, 0, sizeof code_pages);
    run_number = 1;
}
