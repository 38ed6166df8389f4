/* SPDX-License-Identifier: MIT */
/* A snippet's module: its page tables, and what an address in it means. */
#include "kernel/image/image.h"
#include "tests/cost/bench.h"
#include "tests/harness/kernel.h"

bool bench_is(const struct image *image)
{
    return image && image->file_size >= sizeof(struct bench_header) &&
           memcmp(image->file, BENCH_MAGIC, sizeof(uint64_t)) == 0;
}

/* tests/tools/bench has checked the numbers; a module may be cut off on its way. */
static const char *read_module(struct bench *b, const struct image *image)
{
    memcpy(&b->h, image->file, sizeof b->h);
    b->file = image->file;
    b->title = (const char *)b->file + b->h.title;
    b->events = (const void *)(b->file + b->h.events);
    return b->h.size <= image->file_size ? NULL : "is cut off";
}

/* New pages, of them the first `size` bytes from `from`; NULL without memory. */
static void *map_new(const struct bench *b, uint64_t at, unsigned pages, uint64_t flags,
                     const void *from, size_t size)
{
    uint8_t *memory = phys_alloc(pages);
    if (!memory)
        return NULL;
    if (size)
        memcpy(memory, from, size);
    for (unsigned i = 0; i < pages; i++)
        if (!vm_map(b->pml4, at + i * (uint64_t)PAGE_SIZE,
                    virt_to_phys(memory) + i * (uint64_t)PAGE_SIZE, flags)) {
            phys_free(memory + i * (uint64_t)PAGE_SIZE, pages - i);
            return NULL;
        }
    return memory;
}

static bool map(struct bench *b)
{
    uint64_t user = b->h.ring ? PTE_USER : 0, writable = PTE_WRITE | PTE_NX;
    unsigned pages = (b->h.size + PAGE_SIZE - 1) / PAGE_SIZE;
    if (!map_new(b, BENCH_CODE, pages, user, b->file, b->h.size))
        return false;
    b->data = map_new(b, BENCH_DATA, 1, writable, NULL, 0);
    for (unsigned i = 0; b->data && i < BENCH_AREA_COUNT; i++)
        if (!map_new(b, BENCH_AREAS + i * BENCH_AREA_STEP, BENCH_AREA_PAGES, user | writable, NULL,
                     0))
            return false;
    return b->data;
}

const char *bench_open(struct bench *b, const struct image *image)
{
    _Static_assert(sizeof(struct bench_data) <= PAGE_SIZE, "one page");
    const char *wrong = read_module(b, image);
    if (wrong)
        return wrong;
    b->pml4 = vm_create();
    if (b->pml4 && map(b))
        return NULL;
    if (b->pml4)
        bench_close(b);
    return "finds no memory";
}

void bench_close(struct bench *b) { vm_destroy(b->pml4); }

static uint32_t start_of_copy(const struct bench *b, const struct bench_half *h, uint32_t copy)
{
    uint32_t at;
    memcpy(&at, b->file + h->starts + copy * sizeof at, sizeof at);
    return at;
}

void bench_place(const struct bench *b, unsigned half, uint64_t rip, char *text, size_t size)
{
    const struct bench_half *h = &b->h.half[half];
    uint64_t at = rip - BENCH_CODE;
    uint32_t copy = 0;
    if (at < h->entry || at >= h->stop) {
        print_to(text, size, "0x%lx, outside the snippet", rip);
    } else if (at < h->body) {
        print_to(text, size, "offset 0x%lx of INIT", at - h->entry);
    } else if (at >= h->end) {
        print_to(text, size, "offset 0x%lx after the last copy", at - h->end);
    } else {
        while (copy + 1 < h->copies && start_of_copy(b, h, copy + 1) <= at)
            copy++;
        print_to(text, size, "offset 0x%lx of copy %u of %u", at - start_of_copy(b, h, copy),
                 copy + 1, h->copies);
    }
}
