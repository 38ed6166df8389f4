/* SPDX-License-Identifier: MIT */
#include "boot/space.h"
#include "boot/move.h"
#include "kernel/base/boot_info.h"
#include "kernel/base/layout.h"
#include "kernel/base/print.h"
#include "kernel/base/string.h"

#define HIGHEST (1ul << 32) /* we lie below */
#define LOWEST (1ul << 20)
#define PAGE_MASK (PAGE_SIZE - 1ul)

/* Const once space_make is done. */
static uint64_t ours; /* from here to the end of its range */
static uint64_t more_at;
static struct space_range ranges[BOOT_MEMORY_MAX + 1];
static unsigned range_count;

uint8_t *space_at(uint64_t physical) { return (uint8_t *)(DIRECT_MAP + physical); }

static uint64_t top_of_memory(const struct boot_info *boot)
{
    uint64_t top = 0;
    for (unsigned n = 0; n < boot->memory_count; n++) {
        uint64_t start = boot->memory[n].start, end = start + boot->memory[n].size;
        end = end < HIGHEST ? end : HIGHEST;
        if (end > top && end > start &&
            end - start > 16 << 20) /* not the few pages that firmware may leave above holes */
            top = end;
    }
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

static void add_range(uint64_t start, uint64_t end, uint32_t type)
{
    if (start < end && range_count < BOOT_MEMORY_MAX + 1)
        ranges[range_count++] = (struct space_range){ start, end, type };
}

/* Memory that the virtual PMU could not read is not passed on. */
static void make_ranges(const struct boot_info *boot)
{
    for (unsigned i = 0; i < boot->map_count; i++) {
        const struct boot_range *m = &boot->map[i];
        uint64_t end = m->start + m->size;
        if (m->type == BOOT_RAM)
            end = end < boot_info.mapped_end ? end : boot_info.mapped_end;
        uint64_t cut = m->type == BOOT_RAM && m->start < ours && ours < end ? ours : end;
        add_range(m->start, cut, m->type);
        add_range(cut, end, SPACE_RESERVED);
    }
}

bool space_make(struct boot_info *boot, uint64_t more)
{
    uint64_t top = top_of_memory(boot) & ~PAGE_MASK;
    more_at = top > more ? top - more : 0;
    ours = move_image(more_at);
    make_ranges(boot);
    if (ours && move_modules(boot))
        return true;
    print("# payload: too little memory to move out of the guest's way\n");
    return false;
}

uint64_t space_end(void) { return ours; }
uint8_t *space_more(void) { return space_at(more_at); }

static bool may_be_put(const struct boot_info *boot, uint64_t start, uint64_t end, unsigned file)
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
    for (unsigned n = 0; space_range(n, &r); n++) {
        if (r.start == ours && overlaps(start, end, r.start, r.end)) {
            print("# payload: wants %lx-%lx, which overlaps ntpmu at %lx-%lx\n", start, end,
                  r.start, r.end);
            return false;
        }
        if (r.type == BOOT_RAM && start >= r.start && end <= r.end && start <= end)
            return true;
    }
    print("# payload: wants %lx-%lx, which is not memory\n", start, end);
    return false;
}

bool space_place(const struct boot_info *boot, const void *from, uint64_t size, uint64_t to,
                 uint64_t whole, unsigned file)
{
    if (!may_be_put(boot, to, to + whole, file))
        return false;
    memcpy(space_at(to), from, size);
    memset(space_at(to) + size, 0, whole - size);
    return true;
}

bool space_range(unsigned n, struct space_range *r)
{
    if (n < range_count)
        *r = ranges[n];
    return n < range_count;
}
