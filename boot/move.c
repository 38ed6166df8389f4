/* SPDX-License-Identifier: MIT */
/* Moves the running image, with its stack, to where it is in no guest's way. Its virtual addresses
 * stay: new tables map them to the new place. And what the boot page tables lack. One CPU, boot
 * page tables, interrupts off. */
#include "boot/move.h"
#include "kernel/base/boot_info.h"
#include "kernel/base/layout.h"
#include "kernel/base/string.h"
#include "kernel/base/x86.h"

#define LARGE_PAGE (2ul << 20)
#define TABLE 3ul /* present, writable */
#define ENTRIES 512
#define HALF 256 /* the entry of DIRECT_MAP */
#define LARGE 0x80ul
#define REACHED (1ul << 32) /* by the tables as they are at first */

extern char image_start[], image_end[];
extern uint64_t boot_pml4[ENTRIES];
static uint64_t pml4[ENTRIES] __attribute__((aligned(PAGE_SIZE))),
    pdpt_low[ENTRIES] __attribute__((aligned(PAGE_SIZE)));
static uint64_t pdpt_high[ENTRIES] __attribute__((aligned(PAGE_SIZE))),
    dirs[6][ENTRIES] __attribute__((aligned(PAGE_SIZE)));
/* Of a framebuffer above 4 GB. */
static uint64_t far_pdpt[ENTRIES] __attribute__((aligned(PAGE_SIZE))),
    far_dirs[2][ENTRIES] __attribute__((aligned(PAGE_SIZE)));

static uint64_t table_entry_of(const uint64_t *table)
{
    return ((uint64_t)table - KERNEL_VMA + boot_info.moved) | TABLE;
}

static unsigned physical_bits(void)
{
    unsigned bits = cpuid(0x80000000, 0).eax >= 0x80000008 ? cpuid(0x80000008, 0).eax & 0xff : 36;
    return bits < 47 ? bits : 47; /* the direct map's */
}

/* A framebuffer is smaller than 1 GB, and part of a range that is aligned to its own size. */
bool move_reach(const struct screen *screen)
{
    uint64_t start = screen->address, end = start + (uint64_t)screen->pitch * screen->height;
    if (screen->kind == SCREEN_NONE || (start < end && end <= REACHED))
        return true;
    if (end <= start || end - start > 1ul << 30 || end > 1ul << physical_bits() ||
        start >> 39 >= ENTRIES - HALF - 2 || (end - 1) >> 39 != start >> 39)
        return false;
    uint64_t *top = (uint64_t *)(DIRECT_MAP + read_cr3()), *pdpt = far_pdpt;
    if (start >> 39 == 0)
        pdpt = (uint64_t *)(DIRECT_MAP + (top[HALF] & ~(uint64_t)(PAGE_SIZE - 1)));
    else
        top[HALF + (start >> 39)] = table_entry_of(far_pdpt);
    for (unsigned n = 0; n < 2; n++) {
        uint64_t gb = (start >> 30) + n;
        if (gb << 30 >= end || gb << 30 < REACHED)
            continue;
        for (unsigned i = 0; i < ENTRIES; i++)
            far_dirs[n][i] = (gb << 30) + i * LARGE_PAGE + (TABLE | LARGE);
        pdpt[gb % ENTRIES] = table_entry_of(far_dirs[n]);
    }
    return true;
}

/* Memory above 4 GB, by pages of 1 GB, where the processor has them. */
static void map_above(void)
{
    bool giant = cpuid(0x80000000, 0).eax >= 0x80000001 && cpuid(0x80000001, 0).edx >> 26 & 1;
    uint64_t end = 1ul << (physical_bits() < 39 ? physical_bits() : 39);
    for (unsigned i = REACHED >> 30; giant && i < ENTRIES; i++)
        pdpt_low[i] = (uint64_t)i << 30 | TABLE | LARGE;
    boot_info.mapped_end = giant ? end : REACHED;
}

/* 2 GB at KERNEL_VMA, of which the image's own pages move; 4 GB at 0 and at DIRECT_MAP. */
static void make_tables(uint64_t start, uint64_t end, uint64_t by)
{
    for (unsigned i = 0; i < 6 * ENTRIES; i++) {
        bool high = i >= 4 * ENTRIES;
        uint64_t at = (high ? i - 4 * ENTRIES : i) * LARGE_PAGE;
        bool ours = high && at + LARGE_PAGE > start && at < end;
        dirs[i / ENTRIES][i % ENTRIES] = (at + (ours ? by : 0)) | TABLE | LARGE;
    }
    uint64_t off = by - KERNEL_VMA;
    for (unsigned i = 0; i < 4; i++)
        pdpt_low[i] = ((uint64_t)dirs[i] + off) | TABLE;
    for (unsigned i = 0; i < 2; i++)
        pdpt_high[ENTRIES - 2 + i] = ((uint64_t)dirs[4 + i] + off) | TABLE;
    pml4[0] = pml4[HALF] = ((uint64_t)pdpt_low + off) | TABLE;
    pml4[ENTRIES - 1] = ((uint64_t)pdpt_high + off) | TABLE;
}

uint64_t move_image(uint64_t top)
{
    uint64_t start = (uint64_t)image_start - KERNEL_VMA, end = (uint64_t)image_end - KERNEL_VMA;
    uint64_t to = (top - (end - start)) & ~(LARGE_PAGE - 1);
    if (top < end || to < end)
        return 0;
    uint64_t by = to - start, from = DIRECT_MAP + start, at = DIRECT_MAP + to,
             n = (end - start + 7) / 8;
    make_tables(start, end, by);
    map_above();
    boot_info.moved = by;
    boot_info.ap_tables = (uint32_t)((uint64_t)pml4 - KERNEL_VMA + by);
    /* Nothing between the copy and the switch uses the stack. */
    asm volatile("rep movsq\nmov %3,%%cr3"
                 : "+S"(from), "+D"(at), "+c"(n)
                 : "r"((uint64_t)boot_info.ap_tables)
                 : "memory");
    move_reach(&boot_info.screen);
    return to;
}
