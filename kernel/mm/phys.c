/* SPDX-License-Identifier: MIT */
/* One 16-bit count of users per page frame, 0 = free, searched from a hint. phys_lock,
 * DISPATCH_LEVEL. */
#include "kernel/mm/phys.h"
#include "kernel/base/assert.h"
#include "kernel/base/boot_info.h"
#include "kernel/base/irql.h"
#include "kernel/base/sanitize/kasan.h"
#include "kernel/base/lock.h"
#include "kernel/base/refuse.h"
#include "kernel/base/string.h"
#include "kernel/mm/vm.h"

#define NOT_RAM 0xffff
#define LARGE_PAGE (2ul << 20)
#define LOWEST (1ul << 20)  /* firmware, trampoline */
#define HIGHEST (1ul << 32) /* what boot.asm maps */
#define APART KASAN_ON      /* pages left free between allocations, to notice an overrun */

static struct lock phys_lock = LOCK("phys", DISPATCH_LEVEL);
static uint16_t *users;     /* L: phys_lock; [0, frames) */
static size_t frames, hint; /* L: phys_lock */
static size_t total;        /* never changes */
static size_t free_count;   /* L: phys_lock; atomic: anybody reads it */

extern char image_start[], image_end[];

static uint64_t page_up(uint64_t address)
{
    return (address + PAGE_SIZE - 1) & ~(uint64_t)(PAGE_SIZE - 1);
}
static uint64_t clip(uint64_t address) { return address > HIGHEST ? HIGHEST : address; }

/* The first address from `start` on where so many bytes are free of modules. */
static uint64_t behind_modules(const struct boot_info *info, uint64_t start, size_t bytes)
{
    for (unsigned i = 0; i < info->module_count; i++)
        if (start < info->modules[i].end && info->modules[i].start < start + bytes)
            return behind_modules(info, page_up(info->modules[i].end), bytes);
    return start;
}

/* The array stands after the image in the first region that is large enough. */
static uint64_t place_array(const struct boot_info *info, size_t bytes)
{
    uint64_t image_end_phys = (uint64_t)image_end - KERNEL_VMA;
    for (unsigned i = 0; i < info->memory_count; i++) {
        uint64_t start = info->memory[i].start, end = clip(start + info->memory[i].size);
        if (start < image_end_phys)
            start = image_end_phys;
        start = behind_modules(info, page_up(start), bytes);
        if (start < end && end - start >= bytes)
            return start;
    }
    panic("no memory for the page array (%lu bytes) in the loader's memory map", bytes);
}

static void mark_pages(uint64_t start, uint64_t end, uint16_t value)
{
    for (uint64_t f = start / PAGE_SIZE; f < end / PAGE_SIZE && f < frames; f++)
        users[f] = value;
}

void phys_pages_of(const struct boot_memory *region, uint64_t *start, uint64_t *end)
{
    uint64_t low = clip(region->start);
    *start = page_up(low);
    *end = low + (region->size < HIGHEST - low ? region->size : HIGHEST - low);
    *end &= ~(uint64_t)(PAGE_SIZE - 1);
}

/* L: phys_lock: nobody else runs yet. */
void phys_init(const struct boot_info *info)
{
    uint64_t top = 0, start, end;
    for (unsigned i = 0; i < info->memory_count; i++) {
        phys_pages_of(&info->memory[i], &start, &end);
        top = end > top ? end : top;
    }
    frames = top / PAGE_SIZE;
    size_t bytes = (frames * sizeof *users + PAGE_SIZE - 1) & ~(size_t)(PAGE_SIZE - 1);
    uint64_t array = place_array(info, bytes);
    users = phys_to_virt(array);
    mark_pages(0, top, NOT_RAM);
    for (unsigned i = 0; i < info->memory_count; i++) {
        phys_pages_of(&info->memory[i], &start, &end);
        mark_pages(start, end, 0);
    }
    mark_pages(0, LOWEST, NOT_RAM);
    for (uint64_t p = VM_DEVICES; p < top; p += LARGE_PAGE)
        if (!phys_is_memory(p, LARGE_PAGE))
            mark_pages(p, p + LARGE_PAGE, NOT_RAM);
    mark_pages((uint64_t)image_start - KERNEL_VMA, (uint64_t)image_end - KERNEL_VMA, NOT_RAM);
    mark_pages(array, array + bytes, NOT_RAM);
    for (unsigned i = 0; i < info->module_count; i++)
        mark_pages(info->modules[i].start, page_up(info->modules[i].end), NOT_RAM);
    for (size_t f = 0; f < frames; f++)
        if (users[f] == 0) {
            total++;
            kasan_poison(phys_to_virt(f * PAGE_SIZE), PAGE_SIZE, KASAN_PAGE);
        }
    free_count = total;
}

bool phys_is_memory(uint64_t address, uint64_t size)
{
    for (unsigned i = 0; i < boot_info.memory_count; i++)
        if (boot_info.memory[i].start <= address && boot_info.memory[i].size >= size &&
            address - boot_info.memory[i].start <= boot_info.memory[i].size - size)
            return true;
    return false;
}

static void add_free(size_t pages)
{
    __atomic_store_n(&free_count, free_count + pages, __ATOMIC_RELAXED);
}

static bool run_is_free(size_t first, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        if (first + i >= frames || users[first + i])
            return false;
    return true;
}

/* First fit from the hint, then from the start; `frames` if there is none. */
static size_t find_run(unsigned count)
{
    for (size_t tried = 0, f = hint; tried < frames; tried++, f++) {
        if (f >= frames)
            f = 0;
        if (!users[f] && run_is_free(f, count + 2 * APART))
            return f + APART;
    }
    return frames;
}

void *phys_alloc(unsigned count)
{
    const bool refused = claim_fails();
    KIRQL irql = lock_acquire(&phys_lock);
    size_t first = !refused && free_count >= count ? find_run(count) : frames;
    if (first < frames) {
        for (unsigned i = 0; i < count; i++)
            users[first + i] = 1;
        add_free(-(size_t)count);
        hint = first + count;
        kasan_unpoison(phys_to_virt(first * PAGE_SIZE), (size_t)count * PAGE_SIZE);
    }
    lock_release(&phys_lock, irql);
    if (first == frames)
        return NULL;
    return memset(phys_to_virt(first * PAGE_SIZE), 0, (size_t)count * PAGE_SIZE);
}

void phys_search_from(const void *page)
{
    KIRQL irql = lock_acquire(&phys_lock);
    hint = virt_to_phys(page) / PAGE_SIZE;
    lock_release(&phys_lock, irql);
}

void phys_free(void *pages, unsigned count)
{
    size_t first = virt_to_phys(pages) / PAGE_SIZE;
    KIRQL irql = lock_acquire(&phys_lock);
    for (unsigned i = 0; i < count; i++) {
        ASSERT(first + i < frames && users[first + i] && users[first + i] != NOT_RAM);
        if (--users[first + i] == 0) {
            add_free(1);
            hint = first + i < hint ? first + i : hint;
            kasan_poison(phys_to_virt((first + i) * PAGE_SIZE), PAGE_SIZE, KASAN_PAGE);
        }
    }
    lock_release(&phys_lock, irql);
}

void phys_hold(uint64_t physical)
{
    KIRQL irql = lock_acquire(&phys_lock);
    ASSERT(users[physical / PAGE_SIZE] && users[physical / PAGE_SIZE] < NOT_RAM - 1);
    users[physical / PAGE_SIZE]++;
    lock_release(&phys_lock, irql);
}

size_t phys_free_pages(void) { return __atomic_load_n(&free_count, __ATOMIC_RELAXED); }
size_t phys_total_pages(void) { return total; }
