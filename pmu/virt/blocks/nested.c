/* SPDX-License-Identifier: MIT */
/* Nested paging: an identity map, in which a page may be executed once its bytes have been searched
 * for repeated string instructions, and then not written until it is searched again. In a second
 * map everything may be executed: for steps, and for a ring in which no instructions count. Where
 * no CPU counts there is no map, as it costs time, and what was known is forgotten. What a device
 * writes is not noticed. L: the token. Source: AMD64 APM volume 2, "Nested Paging". */
#include "pmu/virt/blocks/nested.h"
#include "kernel/base/insn.h"
#include "kernel/base/layout.h"
#include "kernel/base/string.h"
#include "pmu/virt/vcpu.h"

enum { PRESENT = 1, WRITABLE = 2, USER = 4, ACCESSED = 0x20, DIRTY = 0x40, LARGE = 0x80 };
#define NO_EXECUTE (1ul << 63)
#define NODE (PRESENT | WRITABLE | USER | ACCESSED)
#define DATA (NODE | DIRTY)
#define ADDRESS 0x000ffffffffff000u
#define LARGE_SIZE (1ul << 21)
#define GIGABYTE (1ul << 30)
enum { ENTRIES = 512, DIRECTORIES = 16, TABLES = 160 };
#define REACH (ENTRIES * GIGABYTE) /* beyond it there is no RAM of a guest's */
enum map { SEARCHED, ALL, MAPS };

static uint64_t top[MAPS][ENTRIES] __attribute__((aligned(PAGE_SIZE)));
static uint64_t gigabytes[MAPS][ENTRIES] __attribute__((aligned(PAGE_SIZE)));
static uint64_t directories[MAPS][DIRECTORIES][ENTRIES] __attribute__((aligned(PAGE_SIZE)));
static uint64_t tables[MAPS][TABLES][ENTRIES] __attribute__((aligned(PAGE_SIZE)));
static unsigned used_directories, used_tables;
static bool on, watches;
static uint64_t guarded; /* a page; 0: none */
static bool opened;

/* The pages of which something is known: what was found there, and how often each was written
 * since, from ONE_WRITE on. After WRITES_MOST it is code and data in one, and is no more searched.
 * With one page more than KNOWN_MOST all are forgotten. */
enum { UNKNOWN, CLEAN, STRINGS, KIND = 3, ONE_WRITE = 4, WRITES_MOST = 16 * ONE_WRITE };
enum { KNOWN_MOST = 1024, PLACES = 4 * KNOWN_MOST };
static struct known {
    uint32_t page; /* its number and 1; 0: the place is free */
    uint8_t found;
} known[PLACES];
static unsigned known_count;
uint64_t nested_changes;

/* What was searched before, also what is forgotten, by the low bits of the page's number. */
enum { PAST = 1024 };
static struct past {
    uint64_t page, hash;
    bool wide, strings;
} past[PAST];

static uint32_t page_of(uint64_t physical) { return (uint32_t)(physical / PAGE_SIZE + 1); }

/* Where the page is, or would be. */
static struct known *place_of(uint64_t physical)
{
    uint32_t page = page_of(physical), at = page * 2654435761u >> 20;
    while (known[at].page && known[at].page != page)
        at = (at + 1) % PLACES;
    return &known[at];
}

static uint8_t kind_of(uint64_t physical)
{
    return physical < REACH ? place_of(physical)->found & KIND : CLEAN;
}

/* --- The maps: of gigabytes, of 2 MB, of pages, as far as they are split. --- */

static uint64_t flags_of(enum map m) { return DATA | (m == ALL ? 0 : NO_EXECUTE); }

static uint64_t *below(uint64_t entry) { return (uint64_t *)(DIRECT_MAP + (entry & ADDRESS)); }

static uint64_t *directory_entry(enum map m, uint64_t physical)
{
    return &below(gigabytes[m][physical / GIGABYTE])[physical / LARGE_SIZE % ENTRIES];
}

static uint64_t *leaf_entry(enum map m, uint64_t physical)
{
    return &below(*directory_entry(m, physical))[physical / PAGE_SIZE % ENTRIES];
}

/* Maps what `entry` maps by entries of a table, each of `size` bytes. */
static void split_entry(uint64_t *entry, uint64_t *table, uint64_t size, uint64_t flags)
{
    uint64_t first = *entry & ADDRESS & -(size * ENTRIES);
    for (unsigned i = 0; i < ENTRIES; i++)
        table[i] = (first + i * size) | flags;
    *entry = virt_physical(table) | NODE;
}

static void forget_pages(void);

/* Maps 4 KB pages there. */
static void split_large(uint64_t physical)
{
    uint64_t *giant = &gigabytes[0][physical / GIGABYTE];
    if (used_directories == DIRECTORIES || used_tables == TABLES)
        if (*giant & LARGE || *directory_entry(0, physical) & LARGE)
            forget_pages();
    if (*giant & LARGE) {
        for (unsigned m = 0; m < MAPS; m++)
            split_entry(&gigabytes[m][physical / GIGABYTE], directories[m][used_directories],
                        LARGE_SIZE, flags_of(m) | LARGE);
        used_directories++;
    }
    if (*directory_entry(0, physical) & LARGE) {
        for (unsigned m = 0; m < MAPS; m++)
            split_entry(directory_entry(m, physical), tables[m][used_tables], PAGE_SIZE,
                        flags_of(m));
        used_tables++;
    }
}

static void guard_page(void)
{
    if (!guarded)
        return;
    split_large(guarded);
    for (unsigned m = 0; m < MAPS; m++)
        *leaf_entry(m, guarded) = guarded | (opened ? DATA : DATA & ~WRITABLE);
}

/* Nothing is known of any page. */
static void forget_pages(void)
{
    nested_changes++;
    memset(known, 0, sizeof known);
    used_directories = used_tables = known_count = 0;
    for (unsigned m = 0; m < MAPS; m++)
        for (unsigned i = 0; i < ENTRIES; i++)
            gigabytes[m][i] = i * GIGABYTE | flags_of(m) | LARGE;
    guard_page();
}

static void start_nested(void)
{
    for (unsigned m = 0; m < MAPS; m++)
        top[m][0] = virt_physical(gigabytes[m]) | NODE;
    forget_pages();
    on = true;
}

/* --- What is known. --- */

/* Of a page that is known, and split. */
static void set_page(struct known *k, uint8_t what, bool writable)
{
    uint64_t page = (k->page - 1ul) * PAGE_SIZE, flags = DATA & ~(writable ? 0ul : WRITABLE);
    nested_changes++;
    k->found = (uint8_t)((k->found & ~KIND) | what);
    *leaf_entry(SEARCHED, page) = page | flags | (what == CLEAN ? 0 : NO_EXECUTE);
    *leaf_entry(ALL, page) = page | flags;
}

static void know_page(uint64_t physical, uint8_t what, bool writable)
{
    if (known_count == KNOWN_MOST)
        forget_pages();
    split_large(physical); /* may forget them too */
    struct known *k = place_of(physical);
    known_count += !k->page;
    k->page = page_of(physical);
    set_page(k, what, writable);
}

static void forget_known(void)
{
    for (unsigned i = 0; known_count && i < PLACES; i++)
        if (known[i].page)
            set_page(&known[i], UNKNOWN, true);
    memset(known, 0, known_count ? sizeof known : 0);
    known_count = 0;
}

static struct insn parse_at(const uint8_t *page, unsigned at)
{
    unsigned left = PAGE_SIZE - at;
    struct insn i = { .length = left < INSN_MAX ? (uint8_t)left : INSN_MAX, .wide = true };
    memcpy(i.byte, page + at, i.length);
    insn_parse(&i);
    return i;
}

/* Whether 64-bit code that is executed from `at` on reaches `to`. */
static bool reaches(const uint8_t *page, unsigned at, unsigned to)
{
    while (at < to) {
        const struct insn i = parse_at(page, at);
        unsigned length = insn_length(&i);
        at += length ? length : 1;
    }
    return at == to;
}

/* Whether an instruction of 64-bit code may begin at `to`. One of the 16 bytes before the last 32
 * begins an instruction, and functions begin at multiples of 16; where code from none of these
 * reaches it, it is in the middle of others. */
static bool may_begin(const uint8_t *page, unsigned to)
{
    if (to < 48)
        return true;
    for (unsigned at = to - 48; at < to; at++)
        if ((at < to - 32 || at % 16 == 0) && reaches(page, at, to))
            return true;
    return false;
}

/* Whether a repeated string instruction may begin in the page. */
static bool search_strings(const uint8_t *page, bool wide)
{
    for (unsigned i = 0; i < PAGE_SIZE; i++) {
        if ((page[i] & 0xfe) != 0xf2)
            continue;
        const struct insn in = parse_at(page, i);
        bool ends = in.prefixes < in.length; /* the prefixes, before the page */
        bool string = in.map == MAP_ONE && insn_op_is_string(in.op);
        if ((!ends || string) && (!wide || may_begin(page, i)))
            return true;
    }
    return false;
}

/* Any change of one word changes it. */
static uint64_t hash_page(const uint8_t *page)
{
    uint64_t hash = 0;
    for (unsigned i = 0; i < PAGE_SIZE / sizeof hash; i++)
        hash = (hash ^ ((const uint64_t *)page)[i]) * 0x9e3779b97f4a7c15;
    return hash;
}

/* A search takes several times as long as the hash. */
static bool has_strings(uint64_t physical, const uint8_t *page, bool wide)
{
    uint64_t number = physical / PAGE_SIZE, hash = hash_page(page);
    struct past *p = &past[number % PAST];
    if (p->page != number || p->hash != hash || p->wide != wide)
        *p = (struct past){ number, hash, wide, search_strings(page, wide) };
    return p->strings;
}

bool nested_reaches(uint64_t physical) { return physical < REACH; }

uint64_t nested_root(bool search, bool watch)
{
    if (watch && !on)
        start_nested();
    watches = watch;
    if (!watch)
        forget_known();
    return on && (watch || guarded) ? virt_physical(top[search ? SEARCHED : ALL]) : 0;
}

void nested_guard(uint64_t physical)
{
    guarded = physical;
    start_nested();
}

void nested_open(bool open)
{
    if (open != opened) {
        opened = open;
        guard_page();
    }
}

bool nested_search(uint64_t physical, const uint8_t *page, bool wide)
{
    if (kind_of(physical) == UNKNOWN)
        know_page(physical, page && has_strings(physical, page, wide) ? STRINGS : CLEAN, !page);
    return kind_of(physical) == STRINGS;
}

bool nested_has_strings(uint64_t physical) { return kind_of(physical) == STRINGS; }

bool nested_watch(uint64_t physical, const uint8_t *page)
{
    if (!watches || physical >= REACH)
        return false;
    nested_search(physical, page, true);
    return place_of(physical)->found < WRITES_MOST;
}

void nested_written(uint64_t physical)
{
    if (physical >= REACH || kind_of(physical) == UNKNOWN)
        return;
    struct known *k = place_of(physical);
    if (k->found < WRITES_MOST)
        k->found = (uint8_t)(k->found + ONE_WRITE);
    set_page(k, k->found < WRITES_MOST ? UNKNOWN : STRINGS, true);
}
