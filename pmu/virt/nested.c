/* SPDX-License-Identifier: MIT */
/* With QEMU's instruction clock each iteration of a repeated string instruction counts. So, while
 * instructions are counted, code that has such instructions does not run freely: blocks.c and steps
 * execute it. Nested paging finds it: an identity map, in which a page may be executed once its
 * bytes have been searched, and then not written until it is searched again. In a second map
 * everything may be executed: for steps, and for a ring in which nothing counts. What a device
 * writes is not noticed. L: the token. Source: AMD64 APM volume 2, "Nested Paging". */
#include "kernel/base/boot_info.h"
#include "kernel/base/layout.h"
#include "kernel/base/print.h"
#include "kernel/base/string.h"
#include "pmu/virt/guest.h"
#include "pmu/virt/vcpu.h"

enum { PRESENT = 1, WRITABLE = 2, USER = 4, ACCESSED = 0x20, DIRTY = 0x40, LARGE = 0x80 };
#define NO_EXECUTE (1ul << 63)
#define NODE (PRESENT | WRITABLE | USER | ACCESSED)
#define DATA (NODE | DIRTY)
#define ADDRESS 0x000ffffffffff000u
#define LARGE_SIZE (1ul << 21)
#define GIGABYTE (1ul << 30)
#define REACH (4 * GIGABYTE) /* beyond it there is no RAM of a guest's */
enum { ENTRIES = 512, TABLES = 160 };
/* What executes in blocks after such a page, rather than with an exit to the next one; a step costs
 * as much as so many. */
enum { STAYS = 400, STEP_COST = 200 };
enum map { SEARCHED, ALL, MAPS };

static uint64_t top[MAPS][ENTRIES] __attribute__((aligned(PAGE_SIZE)));
static uint64_t gigabytes[MAPS][ENTRIES] __attribute__((aligned(PAGE_SIZE)));
static uint64_t directories[MAPS][4][ENTRIES] __attribute__((aligned(PAGE_SIZE)));
static uint64_t tables[MAPS][TABLES][ENTRIES] __attribute__((aligned(PAGE_SIZE)));
static unsigned used_tables;
static bool on, spares_ring0;

BOOT_OPTIONS("rep");

/* By page: what was found in it, and how often it was written since, from ONE_WRITE on. After
 * WRITES_MOST it is code and data in one, and is no more searched. */
enum { UNKNOWN, CLEAN, STRINGS, KIND = 3, ONE_WRITE = 4, WRITES_MOST = 16 * ONE_WRITE };
static uint8_t found[REACH / PAGE_SIZE];

static uint8_t kind_of(uint64_t physical) { return found[physical / PAGE_SIZE] & KIND; }

static void map_large(uint64_t *directory, uint64_t first, uint64_t flags)
{
    for (unsigned i = 0; i < ENTRIES; i++)
        directory[i] = (first + i * LARGE_SIZE) | flags | LARGE;
}

/* Nothing is known of any page. */
static void forget_pages(void)
{
    memset(found, UNKNOWN, sizeof found);
    used_tables = 0;
    for (unsigned m = 0; m < MAPS; m++)
        for (unsigned i = 0; i < 4; i++)
            map_large(directories[m][i], i * GIGABYTE, DATA | (m == ALL ? 0 : NO_EXECUTE));
}

static void start_nested(void)
{
    for (unsigned m = 0; m < MAPS; m++) {
        top[m][0] = virt_physical(gigabytes[m]) | NODE;
        for (unsigned i = 0; i < ENTRIES; i++)
            gigabytes[m][i] =
                i < 4 ? virt_physical(directories[m][i]) | NODE : i * GIGABYTE | DATA | LARGE;
    }
    forget_pages();
    on = true;
}

static uint64_t *leaf_entry(enum map m, uint64_t physical)
{
    uint64_t *entry = &directories[m][physical / GIGABYTE][physical / LARGE_SIZE % ENTRIES];
    uint64_t *table = (uint64_t *)(DIRECT_MAP + (*entry & ADDRESS));
    return &table[physical / PAGE_SIZE % ENTRIES];
}

/* Maps 4 KB pages there. */
static void split_large(uint64_t physical)
{
    unsigned gigabyte = (unsigned)(physical / GIGABYTE);
    unsigned at = physical / LARGE_SIZE % ENTRIES;
    uint64_t first = physical & -LARGE_SIZE;
    if (!(directories[0][gigabyte][at] & LARGE))
        return;
    if (used_tables == TABLES)
        forget_pages();
    for (unsigned m = 0; m < MAPS; m++) {
        uint64_t *table = tables[m][used_tables];
        for (unsigned i = 0; i < ENTRIES; i++)
            table[i] = (first + i * PAGE_SIZE) | DATA | (m == ALL ? 0 : NO_EXECUTE);
        directories[m][gigabyte][at] = virt_physical(table) | NODE;
    }
    used_tables++;
}

static void set_page(uint64_t physical, uint8_t what, bool writable)
{
    uint64_t page = physical & -PAGE_SIZE, flags = DATA & ~(writable ? 0ul : WRITABLE);
    split_large(physical);
    uint8_t *is = &found[physical / PAGE_SIZE];
    *is = (uint8_t)((*is & ~KIND) | what);
    *leaf_entry(SEARCHED, physical) = page | flags | (what == CLEAN ? 0 : NO_EXECUTE);
    *leaf_entry(ALL, physical) = page | flags;
}

static bool is_ram(uint64_t page)
{
    for (unsigned i = 0; i < boot_info.memory_count; i++) {
        const struct boot_memory *m = &boot_info.memory[i];
        if (page >= m->start && page + PAGE_SIZE <= m->start + m->size)
            return true;
    }
    return false;
}

static bool is_prefix(uint8_t b)
{
    return b == 0x26 || b == 0x2e || b == 0x36 || b == 0x3e || (b >= 0x64 && b <= 0x67) ||
           b == 0xf0 || b == 0xf2 || b == 0xf3;
}

/* Whether a repeated string instruction may begin in the page. */
static bool search_strings(const uint8_t *page)
{
    for (unsigned i = 0; i < PAGE_SIZE; i++) {
        if ((page[i] & 0xfe) != 0xf2)
            continue;
        unsigned j = i + 1;
        while (j < PAGE_SIZE && is_prefix(page[j]))
            j++;
        if (j < PAGE_SIZE && (page[j] & 0xf0) == 0x40)
            j++;
        if (j == PAGE_SIZE || insn_op_is_string(page[j]))
            return true;
    }
    return false;
}

static bool counts_in(const struct vcpu *v, bool user)
{
    return v->pmu.instructions[user] && !v->pmu.decoding[user] && (user || !spares_ring0);
}

void nested_spare_payload(void)
{
    spares_ring0 = !boot_flag("rep");
    if (spares_ring0)
        print("# vpmu: in ring 0 a repeated string instruction counts its iterations while only "
              "instructions and cycles count; with the boot option rep it counts 1 there, too\n");
}

void nested_enter(struct vcpu *v)
{
    bool user = v->vmcb.cpl == 3 && !(v->vmcb.inject & INJECT_VALID);
    bool search = !virt_step && counts_in(v, user);
    if (search && !on)
        start_nested();
    v->vmcb.nested_paging = on;
    v->vmcb.nested_cr3 = virt_physical(top[search && !v->step.active ? SEARCHED : ALL]);
}

static uint64_t rip_page(const struct vcpu *v)
{
    bool wide = guest_in_long_mode(v);
    uint64_t rip = wide ? v->vmcb.rip : (uint32_t)(v->vmcb.cs.base + v->vmcb.rip);
    return guest_physical(v, rip) / PAGE_SIZE;
}

void nested_fault(struct vcpu *v)
{
    uint64_t code = v->vmcb.exit_info1, physical = v->vmcb.exit_info2;
    if (physical >= REACH)
        virt_die(v, "a page that nested paging maps");
    if (!(code & 16)) {
        if (v->run.inject_failed)
            v->vmcb.inject = v->run.injected;
        nested_written(physical);
        return;
    }
    if (kind_of(physical) == UNKNOWN) {
        bool ram = is_ram(physical & -PAGE_SIZE);
        bool strings = ram && search_strings((uint8_t *)(DIRECT_MAP + (physical & -PAGE_SIZE)));
        set_page(physical, strings ? STRINGS : CLEAN, !ram);
    }
    if (kind_of(physical) == STRINGS) {
        v->nested.inside = true;
        v->nested.once = rip_page(v) != physical / PAGE_SIZE;
    }
}

static bool has_strings(uint64_t physical)
{
    return physical < REACH && kind_of(physical) == STRINGS;
}

bool nested_stays(struct vcpu *v, uint64_t physical, unsigned instructions)
{
    struct nested *n = &v->nested;
    if (!counts_in(v, v->vmcb.cpl == 3))
        return false;
    if (has_strings(physical)) {
        n->stays = STAYS;
        return true;
    }
    if (n->stays < instructions)
        return false;
    n->stays -= instructions;
    return true;
}

void nested_decide(struct vcpu *v)
{
    struct nested *n = &v->nested;
    if (n->inside && !n->once)
        n->inside = nested_stays(v, rip_page(v) * PAGE_SIZE, STEP_COST);
    n->once = false;
}

void nested_written(uint64_t physical)
{
    if (!on || physical >= REACH || kind_of(physical) == UNKNOWN)
        return;
    uint8_t *is = &found[physical / PAGE_SIZE];
    if (*is < WRITES_MOST)
        *is = (uint8_t)(*is + ONE_WRITE);
    set_page(physical, *is < WRITES_MOST ? UNKNOWN : STRINGS, true);
}
