/* SPDX-License-Identifier: MIT */
/* walk of guest.h. Source: AMD64 APM volume 2, "Page Translation and Protection". */
#include "tests/guests/fuzz/guest.h"
#include <string.h>
#include "kernel/base/msr.h"
#include "tests/guests/fuzz/fuzz.h"

enum { PRESENT = 1, PAGE = 4096, LARGE = 1 << 7 };
#define CR0_PG (1u << 31)
#define CR4_PSE (1u << 4)
#define CR4_PAE (1u << 5)
#define CR4_LA57 (1u << 12)
#define FRAME 0x000ffffffffff000ul

static uint64_t read_entry(uint64_t physical, unsigned size, struct walk *w)
{
    uint64_t entry = 0;
    if (physical <= FUZZ_MEMORY - size)
        memcpy(&entry, fuzz_memory + physical, size);
    w->present = entry & PRESENT;
    w->some |= entry;
    w->leaf = entry;
    return entry;
}

static struct walk legacy(const struct vcpu *v, uint32_t address)
{
    struct walk w = { .all = ~0ul };
    uint64_t e = read_entry((v->vmcb.cr3 & 0xfffff000) + address / (4u << 20) * 4, 4, &w);
    w.all &= e;
    if (w.present && e & LARGE && v->vmcb.cr4 & CR4_PSE) {
        w.physical = (e & 0xffc00000) | address % (4u << 20);
        return w;
    }
    if (w.present)
        w.all &= e = read_entry((e & 0xfffff000) + address / PAGE % 1024 * 4, 4, &w);
    w.physical = (e & 0xfffff000) | address % PAGE;
    return w;
}

static bool walk_is_canonical(uint64_t address, unsigned bits)
{
    uint64_t high = address >> (bits - 1);
    return high == 0 || high == (1ul << (65 - bits)) - 1;
}

/* `top` levels of 512 entries, under a table of `first` entries. */
static struct walk levels(const struct vcpu *v, uint64_t address, int top)
{
    bool pae = top == 3 && !(v->vmcb.efer & EFER_LMA);
    struct walk w = { .all = ~0ul };
    uint64_t table = pae ? v->vmcb.cr3 & 0xffffffe0 : v->vmcb.cr3 & FRAME;
    for (int level = top; level > 0; level--) {
        unsigned shift = 12 + 9 * (unsigned)(level - 1);
        uint64_t size = 1ul << shift, e;
        e = read_entry(table + address / size % (pae && level == 3 ? 4 : 512) * 8, 8, &w);
        if (!w.present)
            return w;
        if (!(pae && level == 3))
            w.all &= e;
        bool large = level > 1 && e & LARGE;
        w.reserved |= large && (level > 3 || (pae && level == 3));
        if (level == 1 || large) {
            w.reserved |= large && e & (size - 1) & FRAME & ~0x1000ul;
            w.physical = (e & FRAME & ~(size - 1)) | address % size;
            break;
        }
        table = e & FRAME;
    }
    return w;
}

struct walk walk(const struct vcpu *v, uint64_t address)
{
    const struct vmcb *g = &v->vmcb;
    bool long_mode = g->efer & EFER_LMA, la57 = g->cr4 & CR4_LA57;
    struct walk w = { .present = true, .all = ~0ul, .physical = (uint32_t)address };
    if (!(g->cr0 & CR0_PG))
        return w;
    if (!(g->cr4 & CR4_PAE))
        w = legacy(v, (uint32_t)address);
    else if (!long_mode)
        w = levels(v, (uint32_t)address, 3);
    else if (walk_is_canonical(address, la57 ? 57 : 48))
        w = levels(v, address, la57 ? 5 : 4);
    else
        w.present = false;
    w.present = w.present && w.physical < FUZZ_MEMORY;
    return w;
}
