/* SPDX-License-Identifier: MIT */
/* Pool for drivers. pool_lock guards all. Blocks of at most half a page come from lists by
 * powers of 2; larger ones are whole pages after a page for the header. Each allocation stores
 * the address of its caller. NT: paged pool is nonpaged, too. */
#include "kernel/base/sanitize/kasan.h"
#include "kernel/base/list.h"
#include "kernel/base/lock.h"
#include "kernel/base/print.h"
#include "kernel/base/refuse.h"
#include "kernel/base/string.h"
#include "kernel/driver/bugcheck.h"
#include "kernel/driver/driver.h"
#include "kernel/driver/pool.h"
#include "kernel/mm/phys.h"

#define MAGIC 0x4c4f4f50u
#define MAGIC_FREE 0x65657246u
#define GUARD 0xb7 /* in bytes after a block; its complement after the next: each bit changes one */
#define GUARD_LEAST 8u
#define GUARD_MOST 64u
#define SMALLEST 64u
#define CLASSES 6u /* 64 to 2048 bytes, header and all */
#define POOL_FLAG_NON_PAGED 0x40ul
#define POOL_FLAG_NON_PAGED_EXECUTE 0x80ul
#define POOL_FLAG_PAGED 0x100ul

/* Who writes beyond the block before it overwrites the magic number first. */
struct block {
    uint32_t magic, tag;
    uint64_t where;
    uint64_t size;  /* asked for */
    uint16_t class; /* CLASSES: pages */
    uint16_t guard;
    uint32_t pages;
    LIST_ENTRY list; /* of those in use, or of the free ones of a class */
};
_Static_assert(sizeof(struct block) == 48, "16 divides it");

static struct lock pool_lock = LOCK("pool", DISPATCH_LEVEL);
static LIST_ENTRY used = { &used, &used }; /* L: pool_lock */
static struct block *free_blocks[CLASSES]; /* L: pool_lock; by list.Flink */
static uint8_t last_guard = GUARD;         /* L: pool_lock */

static void check_header(const struct block *b, uint32_t magic)
{
    if (b->magic != magic)
        bug_check(BAD_POOL_HEADER, (uint64_t[]){ 0x20, (uint64_t)b, 0, 0 },
                  "a block's header is overwritten: somebody wrote beyond the block before it");
}

static bool make_blocks(uint32_t class)
{
    uint8_t *page = phys_alloc(1);
    for (uint32_t at = 0; page && at < PAGE_SIZE; at += SMALLEST << class) {
        struct block *b = (struct block *)(page + at);
        b->magic = MAGIC_FREE;
        b->list.Flink = (LIST_ENTRY *)free_blocks[class];
        free_blocks[class] = b;
    }
    return page;
}

static struct block *take_small(uint32_t class)
{
    if (!free_blocks[class] && !make_blocks(class))
        return NULL;
    struct block *b = free_blocks[class];
    free_blocks[class] = (struct block *)b->list.Flink;
    kasan_unpoison(b, SMALLEST << class);
    check_header(b, MAGIC_FREE);
    memset(b, 0, SMALLEST << class);
    b->class = (uint16_t) class;
    return b;
}

static struct block *take_pages(uint64_t size)
{
    uint64_t pages = (size + PAGE_SIZE - 1) / PAGE_SIZE + 1;
    uint8_t *p = pages < phys_total_pages() ? phys_alloc((unsigned)pages) : NULL;
    if (!p)
        return NULL;
    struct block *b = (struct block *)(p + PAGE_SIZE) - 1;
    b->class = CLASSES;
    b->pages = (uint32_t)pages;
    return b;
}

/* Bytes after the header. */
static size_t block_capacity(const struct block *b)
{
    return b->class < CLASSES ? (SMALLEST << b->class) - sizeof *b
                              : (size_t)(b->pages - 1) * PAGE_SIZE;
}

static size_t guard_size(const struct block *b)
{
    size_t left = block_capacity(b) - b->size;
    return left < GUARD_MOST ? left : GUARD_MOST;
}

/* Whether somebody has written there. */
static bool guard_changed(const struct block *b)
{
    const uint8_t *data = (const uint8_t *)(b + 1), *guard = data + b->size;
    const size_t size = guard_size(b), whole = (b->size + 7) & ~7ul; /* shadow is of 8 bytes */
    bool changed = false;
    kasan_unpoison(data, block_capacity(b));
    for (size_t i = 0; i < size; i++)
        changed |= guard[i] != b->guard;
    kasan_poison(data + whole, block_capacity(b) - whole, KASAN_BEHIND);
    kasan_unpoison(data, b->size);
    return changed;
}

static void print_block(char *text, size_t capacity, const struct block *b)
{
    char place[96], tag[5] = "";
    for (unsigned i = 0; i < 4; i++) {
        const char c = (char)(b->tag >> 8 * i);
        tag[i] = c >= ' ' && c <= '~' ? c : '.';
    }
    driver_place(b->where, place, sizeof place);
    print_to(text, capacity, "pool '%s', %lu bytes, from %s", tag, b->size,
             *place ? place : "the kernel");
}

/* Zeroed, as all pool here. */
static void *allocate_block(uint64_t where, uint64_t size, uint32_t tag)
{
    uint32_t class = 0;
    while (class < CLASSES && size + GUARD_LEAST > (SMALLEST << class) - sizeof(struct block))
        class ++;
    if (size > size + GUARD_LEAST || claim_fails())
        return NULL;
    KIRQL irql = lock_acquire(&pool_lock);
    struct block *b = class < CLASSES ? take_small(class) : take_pages(size + GUARD_LEAST);
    if (b) {
        b->where = where;
        b->size = size;
        b->tag = tag;
        b->magic = MAGIC;
        b->guard = last_guard = (uint8_t)~last_guard;
        memset((uint8_t *)(b + 1) + size, b->guard, guard_size(b));
        kasan_poison(b + 1, block_capacity(b), KASAN_BEHIND);
        kasan_unpoison(b + 1, size);
        InsertTailList(&used, &b->list);
    }
    lock_release(&pool_lock, irql);
    return b ? b + 1 : NULL;
}

static bool is_used(const struct block *block)
{
    for (const LIST_ENTRY *e = used.Flink; e != &used; e = e->Flink) {
        check_header(CONTAINING_RECORD(e, struct block, list), MAGIC);
        if (e == &block->list)
            return true;
    }
    return false;
}

static void free_block(void *p, uint32_t tag)
{
    struct block *b = (struct block *)p - 1;
    KIRQL irql = lock_acquire(&pool_lock);
    if (!is_used(b))
        bug_check(BAD_POOL_CALLER, (uint64_t[]){ 0x46, (uint64_t)p, 0, 0 },
                  "freed memory that is not allocated: never, or no longer");
    if (tag && tag != b->tag)
        bug_check(BAD_POOL_CALLER, (uint64_t[]){ 0x0a, (uint64_t)p, b->tag, tag },
                  "freed memory with another tag than it was allocated with");
    if (guard_changed(b)) {
        char words[160] = "wrote beyond ";
        print_block(words + 13, sizeof words - 13, b);
        bug_check_at(b->where, SPECIAL_POOL_DETECTED_MEMORY_CORRUPTION,
                     (uint64_t[]){ (uint64_t)p, b->size, 0, 0x23 }, words);
    }
    RemoveEntryList(&b->list);
    if (b->class < CLASSES) {
        b->magic = MAGIC_FREE;
        kasan_unpoison(b + 1, block_capacity(b));
        memset(b + 1, 0xdd, block_capacity(b));
        kasan_poison(b + 1, block_capacity(b), KASAN_FREED);
        b->list.Flink = (LIST_ENTRY *)free_blocks[b->class];
        free_blocks[b->class] = b;
    } else {
        phys_free((uint8_t *)(b + 1) - PAGE_SIZE, b->pages);
    }
    lock_release(&pool_lock, irql);
}

/* NULL: no memory, a tag of 0, or flags that say no kind of pool or are unknown. */
PVOID ExAllocatePool2(ULONG64 Flags, SIZE_T NumberOfBytes, ULONG Tag)
{
    const ULONG64 kinds = POOL_FLAG_NON_PAGED | POOL_FLAG_NON_PAGED_EXECUTE | POOL_FLAG_PAGED;
    const ULONG64 kind = Flags & kinds;
    if (!Tag || !kind || (kind & (kind - 1)) || (Flags & 0xffffffff & ~(kinds | 0x3f)))
        return NULL;
    return allocate_block(driver_caller(), NumberOfBytes, Tag);
}

PVOID ExAllocatePoolWithTag(ULONG PoolType, SIZE_T NumberOfBytes, ULONG Tag)
{
    (void)PoolType;
    if (!Tag)
        bug_check(BAD_POOL_CALLER, (uint64_t[]){ 0x9b, PoolType, NumberOfBytes, driver_caller() },
                  "ExAllocatePoolWithTag with a tag of 0");
    return allocate_block(driver_caller(), NumberOfBytes, Tag);
}

PVOID ExAllocatePool(ULONG, SIZE_T NumberOfBytes)
{
    return allocate_block(driver_caller(), NumberOfBytes, 'e' << 24 | 'n' << 16 | 'o' << 8 | 'N');
}

VOID ExFreePool(PVOID P) { free_block(P, 0); }

VOID ExFreePoolWithTag(PVOID P, ULONG Tag) { free_block(P, Tag); }

VOID ExFreePool2(PVOID P, ULONG Tag, PVOID, ULONG) { free_block(P, Tag); }

void *pool_allocate_for(uint64_t size, uint32_t tag)
{
    return allocate_block(driver_caller(), size, tag);
}

void pool_free_for(void *p, uint32_t tag) { free_block(p, tag); }

void *pool_allocate(uint64_t size) { return allocate_block(0, size, 1); }
void pool_free(void *p) { free_block(p, 1); }

unsigned pool_blocks(void)
{
    unsigned count = 0;
    KIRQL irql = lock_acquire(&pool_lock);
    for (const LIST_ENTRY *e = used.Flink; e != &used; e = e->Flink)
        count++;
    lock_release(&pool_lock, irql);
    return count;
}

void pool_left(struct driver *driver)
{
    KIRQL irql = lock_acquire(&pool_lock);
    for (const LIST_ENTRY *e = used.Flink; e != &used; e = e->Flink) {
        const struct block *b = CONTAINING_RECORD(e, struct block, list);
        char text[160];
        if (driver_at(b->where) != driver)
            continue;
        print_block(text, sizeof text, b);
        driver_left(driver, "%s%s", text, guard_changed(b) ? ", and wrote beyond it" : "");
    }
    lock_release(&pool_lock, irql);
}
