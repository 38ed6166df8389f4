/* SPDX-License-Identifier: MIT */
/* Thread profiling with pointers and blocks that are not what they should be. Ring 3 can hand
 * anything to a service: it gets the status of TP-86 to TP-93 of tests/contract.md, and nothing
 * changes. What the Rtl functions do with a bad pointer they do in ring 3: the thread ends by an
 * access violation, and that is all. */
#include "tests/ring3/helpers.h"

#define CLASS ThreadCounterProfiling
#define INFO_SIZE sizeof(THREAD_PROFILING_INFORMATION)
#define BLOCK_SIZE sizeof(THREAD_PERFORMANCE_DATA)
#define ME NtCurrentThread()

static const uint8_t read_only[512] __attribute__((aligned(16))) = { 1 };

static PVOID pointer(uint64_t address) { return (PVOID)address; }

TEST_USER(tp_input, set_information_good,
          "information may be unaligned, read-only, or end with its page")
{
    uint8_t *page = ring3_pages(1), *last = page + RING3_PAGE - INFO_SIZE;
    THREAD_PERFORMANCE_DATA block;
    THREAD_PROFILING_INFORMATION on = { 0, 0, TRUE, &block }, off = { 0, 0, FALSE, &block };
    REQUIRE(page != NULL);
    memcpy(last, &on, sizeof on);
    memcpy(page + 1, &off, sizeof off);
    ring3_protect(page, PAGE_READONLY);
    CHECK_STATUS(NtSetInformationThread(ME, CLASS, last, INFO_SIZE), STATUS_SUCCESS);
    CHECK(ring3_profiled());
    CHECK_STATUS(NtSetInformationThread(ME, CLASS, page + 1, INFO_SIZE), STATUS_SUCCESS);
    CHECK(!ring3_profiled());
}

/* This block is refused, for enable and disable, profiled already or not, and nothing changes. */
static void block_refused(void *block, NTSTATUS status)
{
    THREAD_PERFORMANCE_DATA good;
    CHECK_STATUS(ring3_set(1, 1, TRUE, block), status);
    CHECK_STATUS(ring3_set(0, 0, FALSE, block), status);
    CHECK(!ring3_profiled());
    CHECK_STATUS(ring3_set(1, 1, TRUE, &good), STATUS_SUCCESS);
    CHECK_STATUS(ring3_set(1, 1, TRUE, block), status);
    CHECK_STATUS(ring3_set(0, 0, FALSE, block), status);
    CHECK(ring3_profiled());
    CHECK_STATUS(ring3_set(0, 0, FALSE, &good), STATUS_SUCCESS);
}

TEST_USER(
    tp_input, block_bad,
    "a block that the caller cannot write is refused; so is one whose address is not a multiple "
    "of 4, whether or not it is mapped [TP-87 TP-88 TP-89]")
{
    static uint8_t block[2 * sizeof(THREAD_PERFORMANCE_DATA)] __attribute__((aligned(16)));
    for (unsigned i = 0; i < RING3_BAD_ADDRESSES; i++) {
        block_refused(pointer(ring3_bad_addresses[i]), STATUS_ACCESS_VIOLATION);
        block_refused(pointer(ring3_bad_addresses[i] + 1), STATUS_DATATYPE_MISALIGNMENT);
    }
    block_refused(pointer((uint64_t)read_only), STATUS_ACCESS_VIOLATION);
    block_refused(pointer((uint64_t)block_refused & ~UINT64_C(3)), STATUS_ACCESS_VIOLATION);
    for (unsigned i = 1; i < 4; i++)
        block_refused(block + i, STATUS_DATATYPE_MISALIGNMENT);
}

TEST_USER(tp_input, block_half,
          "a block that begins or ends in a page that is read-only or not mapped is refused "
          "[TP-89]")
{
    uint8_t *pages = ring3_pages(2), *middle = pages + RING3_PAGE, *end = middle + RING3_PAGE;
    REQUIRE(pages != NULL);
    for (unsigned inside = 4; inside < BLOCK_SIZE; inside += 4) {
        block_refused(end - inside, STATUS_ACCESS_VIOLATION);
        block_refused(pages - inside, STATUS_ACCESS_VIOLATION);
    }
    ring3_protect(middle, PAGE_READONLY);
    for (unsigned inside = 4; inside < BLOCK_SIZE; inside += 4)
        block_refused(middle - inside, STATUS_ACCESS_VIOLATION);
    ring3_protect(middle, PAGE_READWRITE);
    ring3_protect(pages, PAGE_READONLY);
    for (unsigned inside = 4; inside < BLOCK_SIZE; inside += 4)
        block_refused(middle - inside, STATUS_ACCESS_VIOLATION);
    CHECK_STATUS(ring3_set(0, 0, TRUE, end - BLOCK_SIZE), STATUS_SUCCESS);
    CHECK_STATUS(ring3_set(0, 0, FALSE, end - BLOCK_SIZE), STATUS_SUCCESS);
    CHECK_STATUS(ring3_set(0, 0, TRUE, middle), STATUS_SUCCESS);
    CHECK_STATUS(ring3_set(0, 0, FALSE, middle), STATUS_SUCCESS);
}

TEST_USER(tp_input, set_values,
          "the kernel checks flags and mask, too; Enable is true for any number but 0 [TP-90 "
          "TP-91]")
{
    THREAD_PERFORMANCE_DATA block, other;
    for (unsigned bit = 1; bit < 32; bit++)
        CHECK_STATUS(ring3_set(0, 1u << bit, TRUE, &block), STATUS_INVALID_PARAMETER);
    for (unsigned bit = MAX_HW_COUNTERS; bit < 64; bit++)
        CHECK_STATUS(ring3_set(UINT64_C(1) << bit, 0, TRUE, &block), STATUS_INVALID_PARAMETER);
    CHECK(!ring3_profiled());
    CHECK_STATUS(ring3_set(0, 0, FALSE, &block), STATUS_WMI_ALREADY_DISABLED);
    CHECK_STATUS(ring3_set(0, 1, 0x80000000, &block), STATUS_SUCCESS);
    CHECK_STATUS(ring3_set(0, 1, TRUE, &block), STATUS_WMI_ALREADY_ENABLED);
    CHECK_STATUS(ring3_set(0, 1, TRUE, &other), STATUS_WMI_ALREADY_ENABLED);
    CHECK_STATUS(ring3_set(0, 0, FALSE, &other), STATUS_INVALID_PARAMETER);
    CHECK(ring3_profiled());
    CHECK_STATUS(ring3_set(0, 0, FALSE, &block), STATUS_SUCCESS);
}
