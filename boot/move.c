/* SPDX-License-Identifier: MIT */
/* Moves the running image, with its stack, to where it is in no guest's way. Its virtual addresses
 * stay: new tables map them to the new place. One CPU, boot page tables, interrupts off. */
#include "boot/move.h"
#include "kernel/base/boot_info.h"
#include "kernel/base/layout.h"
#include "kernel/base/string.h"
#include "kernel/base/x86.h"

#define LARGE_PAGE (2ul << 20)
#define TABLE 3ul /* present, writable */
#define ENTRIES 512
#define HALF 256 /* the entry of DIRECT_MAP */

extern char image_start[], image_end[];
extern uint64_t boot_pml4[ENTRIES];
static uint64_t pml4[ENTRIES] __attribute__((aligned(PAGE_SIZE))),
    pdpt_low[ENTRIES] __attribute__((aligned(PAGE_SIZE)));
static uint64_t pdpt_high[ENTRIES] __attribute__((aligned(PAGE_SIZE))),
    dirs[6][ENTRIES] __attribute__((aligned(PAGE_SIZE)));

/* 2 GB at KERNEL_VMA, of which the image's own pages move; 4 GB at 0 and at DIRECT_MAP. */
static void make_tables(uint64_t start, uint64_t end, uint64_t by)
{
    for (unsigned i = 0; i < 6 * ENTRIES; i++) {
        bool high = i >= 4 * ENTRIES;
        uint64_t at = (high ? i - 4 * ENTRIES : i) * LARGE_PAGE;
        bool ours = high && at + LARGE_PAGE > start && at < end;
        dirs[i / ENTRIES][i % ENTRIES] = (at + (ours ? by : 0)) | TABLE | 0x80;
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
    struct table_register gdt;
    sgdt(&gdt);
    gdt.base += by;
    make_tables(start, end, by);
    boot_info.moved = by;
    /* Nothing between the copy and the switch uses the stack. */
    asm volatile("rep movsq\nmov %3,%%cr3"
                 : "+S"(from), "+D"(at), "+c"(n)
                 : "r"((uint64_t)pml4 - KERNEL_VMA + by)
                 : "memory");
    asm volatile("lgdt %0" : : "m"(gdt));
    return to;
}
