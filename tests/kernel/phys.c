/* SPDX-License-Identifier: MIT */
/* Physical pages: which of a region are RAM, and what an allocation holds. */
#include "tests/harness/kernel.h"

#define PAGES 4u
#define TRIES 100u /* another CPU may take the pages in between */

static void pages_are(uint64_t first, uint64_t size, uint64_t start, uint64_t end)
{
    const struct boot_memory region = { first, size };
    uint64_t found_start, found_end;
    phys_pages_of(&region, &found_start, &found_end);
    if (start == end) {
        CHECK(found_end <= found_start);
        return;
    }
    CHECK_EQ(found_start, start);
    CHECK_EQ(found_end, end);
}

TEST(phys, whole_pages, "a page that is RAM only in part is not used, nor what lies above 4 GB")
{
    const uint64_t page = PAGE_SIZE, gb = 1ul << 30;
    pages_are(page, 2 * page, page, 3 * page);
    pages_are(page + 1, 2 * page - 1, 2 * page, 3 * page);
    pages_are(page + 1, 2 * page - 2, 2 * page, 2 * page);
    pages_are(2 * page - 1, page + 1, 2 * page, 3 * page);
    pages_are(page, 2 * page - 1, page, 2 * page);
    pages_are(page + 1, 10, 0, 0);
    pages_are(page, page - 1, 0, 0);
    pages_are(4 * gb - page, 2 * page, 4 * gb - page, 4 * gb);
    pages_are(4 * gb - page, UINT64_MAX, 4 * gb - page, 4 * gb);
    pages_are(4 * gb, page, 0, 0);
    pages_are(UINT64_MAX - 10, 10, 0, 0);
}

static bool is_zero(const uint8_t *bytes)
{
    for (unsigned i = 0; i < PAGES * PAGE_SIZE; i++)
        if (bytes[i])
            return false;
    return true;
}

TEST(phys, zeroed, "each page of an allocation is zeroed, whoever had it before")
{
    bool again = false;
    for (unsigned i = 0; i < TRIES && !again; i++) {
        uint8_t *first = phys_alloc(PAGES);
        REQUIRE(first != NULL);
        memset(first, 0xa5, PAGES * PAGE_SIZE);
        phys_free(first, PAGES);
        phys_search_from(first);
        uint8_t *second = phys_alloc(PAGES);
        REQUIRE(second != NULL);
        again = second >= first && second < first + (PAGES - 1) * PAGE_SIZE;
        CHECK(is_zero(second));
        phys_free(second, PAGES);
    }
    CHECK(again);
}
