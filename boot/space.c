/* SPDX-License-Identifier: MIT */
#include "boot/space.h"
#include "boot/move.h"
#include "kernel/base/boot_info.h"
#include "kernel/base/layout.h"
#include "kernel/base/print.h"
#include "kernel/base/string.h"

#define HIGHEST (1ul << 32) /* the virtual PMU reads its guest's memory up to here */
#define LOWEST (1ul << 20)
#define PAGE_MASK (PAGE_SIZE - 1ul)

static uint64_t ours; /* from here to the end of its range; const once space_make is done */

uint32_t space_physical(const void *p)
{
    return (uint32_t)((uint64_t)p - KERNEL_VMA + boot_info.moved);
}
uint8_t *space_at(uint64_t physical) { return (uint8_t *)(DIRECT_MAP + physical); }

/* The n-th range of memory, as far as it is below 4 GB. */
static bool memory(const struct boot_info *boot, unsigned n, uint64_t *start, uint64_t *end)
{
    if (n >= boot->memory_count)
        return false;
    *start = boot->memory[n].start;
    *end = *start + boot->memory[n].size;
    *end = *end < HIGHEST ? *end : HIGHEST;
    *start = *start < *end ? *start : *end;
    return true;
}

static uint64_t top_of_memory(const struct boot_info *boot)
{
    uint64_t start, end, top = 0;
    for (unsigned n = 0; memory(boot, n, &start, &end); n++)
        if (end > top &&
            end - start > 16 << 20) /* not the few pages that firmware may leave above holes */
            top = end;
    return top;
}

static bool overlaps(uint64_t a, uint64_t a_end, uint64_t b, uint64_t b_end)
{
    return a < b_end && b < a_end;
}

/* Moves the last one first, because loaders put them one after the other. A module that already
 * lies above its new place stays. */
static bool move_modules(struct boot_info *boot)
{
    uint64_t to = ours;
    for (unsigned i = boot->module_count; i-- > 0;) {
        struct boot_module *m = &boot->modules[i];
        uint32_t size = m->end - m->start;
        uint64_t place = (to - size) & ~PAGE_MASK;
        if (place >= to || place < LOWEST)
            return false;
        if (m->start >= place && m->start < ours) {
            to = m->start & ~PAGE_MASK;
            continue;
        }
        for (unsigned k = 0; k < i; k++) /* not over one that has not moved yet */
            if (overlaps(place, place + size, boot->modules[k].start, boot->modules[k].end))
                return false;
        memmove(space_at(place), space_at(m->start), size);
        m->start = (uint32_t)place;
        m->end = (uint32_t)place + size;
        to = place;
    }
    return true;
}

bool space_make(struct boot_info *boot)
{
    ours = move_image(top_of_memory(boot));
    if (ours && move_modules(boot))
        return true;
    print("# payload: too little memory to move out of the guest's way\n");
    return false;
}

uint64_t space_end(void) { return ours; }

bool space_has(const struct boot_info *boot, uint64_t start, uint64_t end, unsigned file)
{
    struct space_range r;
    for (unsigned i = 0; i < boot->module_count; i++) {
        const struct boot_module *m = &boot->modules[i];
        if (overlaps(start, end, m->start, m->end)) {
            print("# payload: wants %lx-%lx, which overlaps %s at %x-%x\n", start, end,
                  i == file ? "its own file" : "a module", m->start, m->end);
            return false;
        }
    }
    for (unsigned n = 0; space_range(boot, n, &r); n++) {
        if (r.type != 1 && overlaps(start, end, r.start, r.end)) {
            print("# payload: wants %lx-%lx, which overlaps ntpmu at %lx-%lx\n", start, end,
                  r.start, r.end);
            return false;
        }
        if (r.type == 1 && start >= r.start && end <= r.end && start <= end)
            return true;
    }
    print("# payload: wants %lx-%lx, which is not memory\n", start, end);
    return false;
}

bool space_place(const struct boot_info *boot, const void *from, uint64_t size, uint64_t to,
                 uint64_t whole, unsigned file)
{
    if (!space_has(boot, to, to + whole, file))
        return false;
    memcpy(space_at(to), from, size);
    memset(space_at(to) + size, 0, whole - size);
    return true;
}

bool space_range(const struct boot_info *boot, unsigned n, struct space_range *r)
{
    uint64_t start, end;
    for (unsigned i = 0; memory(boot, i, &start, &end); i++) {
        bool split = start < ours && ours < end;
        if (start == end)
            continue;
        if (n == 0) {
            *r = (struct space_range){ start, split ? ours : end, 1 };
            return true;
        }
        n--;
        if (split && n == 0) {
            *r = (struct space_range){ ours, end, 2 };
            return true;
        }
        n -= split;
    }
    return false;
}
