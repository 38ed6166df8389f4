/* SPDX-License-Identifier: MIT */
/* Regions are a sorted array; the page tables show which of their pages are committed. NT: a
 * page is allocated when it is committed, not when it is touched. PASSIVE_LEVEL, under the mutex
 * of the process's memory. */
#include "kernel/base/refuse.h"
#include "kernel/ke/memory.h"
#include "kernel/base/string.h"
#include "kernel/ke/process.h"
#include "kernel/mm/phys.h"
#include "kernel/mm/vm.h"

/* The space below is for images that are linked to small addresses. */
#define SEARCH_FROM 0x10000000ul
#define ARRAY_PAGES_MAX 16u
#define SPARE_PAGES 128u /* physical pages that are reserved for the kernel */
#define LAST_PAGES 4u    /* of a stack, for the handler of its overflow */

static uint64_t page_of(uint64_t address) { return address & ~(uint64_t)(PAGE_SIZE - 1); }
static uint64_t pages_up(uint64_t size) { return page_of(size + PAGE_SIZE - 1); }
static uint64_t granule_up(uint64_t a)
{
    return (a + MEMORY_GRANULARITY - 1) & ~(MEMORY_GRANULARITY - 1);
}

bool memory_init(struct process *process)
{
    process->memory.mutex = (struct mutex)MUTEX("memory");
    process->memory.regions = phys_alloc(1);
    process->memory.pages = 1;
    return process->memory.regions;
}

void memory_destroy(struct process *process)
{
    if (process->memory.regions)
        phys_free(process->memory.regions, process->memory.pages);
}

/* --- Regions. --- */

/* The first that ends above the address. */
static unsigned find_region(const struct memory *m, uint64_t address)
{
    unsigned low = 0, high = m->count;
    while (low < high) {
        unsigned middle = (low + high) / 2;
        if (m->regions[middle].end > address)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

struct region *memory_region(const struct process *process, uint64_t address)
{
    const struct memory *m = &process->memory;
    unsigned i = find_region(m, address);
    return i < m->count && m->regions[i].base <= address ? &m->regions[i] : NULL;
}

uint64_t memory_next_region(const struct process *process, uint64_t address)
{
    const struct memory *m = &process->memory;
    unsigned i = find_region(m, address);
    return i < m->count ? m->regions[i].base : USER_END;
}

static bool grow_array(struct memory *m)
{
    unsigned pages = 2 * m->pages;
    struct region *larger = pages <= ARRAY_PAGES_MAX ? phys_alloc(pages) : NULL;
    if (!larger)
        return false;
    memcpy(larger, m->regions, m->count * sizeof *larger);
    phys_free(m->regions, m->pages);
    m->regions = larger;
    m->pages = pages;
    return true;
}

static bool insert(struct memory *m, unsigned at, struct region region)
{
    if (claim_fails() ||
        ((m->count + 1) * sizeof region > m->pages * (size_t)PAGE_SIZE && !grow_array(m)))
        return false;
    for (unsigned i = m->count++; i > at; i--)
        m->regions[i] = m->regions[i - 1];
    m->regions[at] = region;
    return true;
}

/* The lowest free range from an address up, with a gap after the region before it; 0 if there is
 * none. */
static uint64_t find_room(const struct memory *m, uint64_t from, uint64_t size)
{
    for (unsigned i = find_region(m, from); i < m->count; i++) {
        if (m->regions[i].base >= from && m->regions[i].base - from >= size)
            return from;
        from = granule_up(m->regions[i].end) + MEMORY_GRANULARITY;
    }
    return from < USER_END && USER_END - from >= size ? from : 0;
}

static bool is_free(const struct memory *m, uint64_t base, uint64_t size)
{
    unsigned i = find_region(m, base);
    return base >= MEMORY_LOWEST && base < USER_END && size <= USER_END - base &&
           (i == m->count || m->regions[i].base >= base + size);
}

NTSTATUS memory_reserve_locked(struct process *process, uint64_t *base, uint64_t size,
                               enum region_kind kind, ULONG protect)
{
    struct memory *m = &process->memory;
    if (size > USER_END)
        return STATUS_NO_MEMORY;
    size = pages_up(size);
    if (!*base) {
        *base = find_room(m, SEARCH_FROM, size);
        if (!*base)
            *base = find_room(m, MEMORY_LOWEST, size);
        if (!*base)
            return STATUS_NO_MEMORY;
    } else if (!is_free(m, *base, size)) {
        return STATUS_CONFLICTING_ADDRESSES;
    }
    struct region region = { *base, *base + size, protect, kind };
    return insert(m, find_region(m, *base), region) ? STATUS_SUCCESS : STATUS_NO_MEMORY;
}

NTSTATUS memory_reserve(struct process *process, uint64_t *base, uint64_t size,
                        enum region_kind kind, ULONG protect)
{
    mutex_acquire(&process->memory.mutex);
    NTSTATUS status = memory_reserve_locked(process, base, size, kind, protect);
    mutex_release(&process->memory.mutex);
    return status;
}

/* --- Pages. --- */

static void *take_page(void) { return phys_free_pages() > SPARE_PAGES ? phys_alloc(1) : NULL; }

static bool commit_page(struct process *process, uint64_t address, uint64_t flags)
{
    void *page = take_page();
    if (!page)
        return false;
    if (vm_put(process->pml4, address, virt_to_phys(page) | flags | PTE_USER))
        return true;
    phys_free(page, 1);
    return false;
}

/* What is needed to commit the rest of a range: tables, and pages, each with the address of the
 * next one. False: there is not all of it; the pages that there are go to *pages. */
static bool prepare_pages(struct process *process, uint64_t from, uint64_t end, void ***pages)
{
    for (; from < end; from += PAGE_SIZE) {
        if (vm_raw(process->pml4, from))
            continue;
        void **page = vm_put(process->pml4, from, 0) ? take_page() : NULL;
        if (!page)
            return false;
        *page = *pages;
        *pages = page;
    }
    return true;
}

/* Takes the first page, empty again. */
static void *next_page(void ***pages)
{
    void **page = *pages;
    *pages = *page;
    *page = NULL;
    return page;
}

NTSTATUS memory_commit_locked(struct process *process, uint64_t from, uint64_t end, uint64_t flags)
{
    void **pages = NULL;
    size_t available = phys_free_pages();
    if (available <= SPARE_PAGES || (end - from) / PAGE_SIZE > available - SPARE_PAGES)
        return STATUS_NO_MEMORY;
    if (!prepare_pages(process, from, end, &pages)) {
        while (pages)
            phys_free(next_page(&pages), 1);
        return STATUS_NO_MEMORY;
    }
    for (; pages; from += PAGE_SIZE)
        if (!vm_raw(process->pml4, from))
            vm_put(process->pml4, from, virt_to_phys(next_page(&pages)) | flags | PTE_USER);
    return STATUS_SUCCESS;
}

/* Unmaps the pages on every CPU before it frees them. */
void memory_decommit_locked(struct process *process, uint64_t from, uint64_t end)
{
    uint64_t entry, a;
    bool any = false;
    for (a = vm_next(process->pml4, from, end, &entry); a < end;
         a = vm_next(process->pml4, a + PAGE_SIZE, end, &entry)) {
        vm_put(process->pml4, a, entry & ~(uint64_t)PTE_PRESENT);
        any = true;
    }
    if (!any)
        return;
    vm_flush(process->pml4);
    for (a = vm_next(process->pml4, from, end, &entry); a < end;
         a = vm_next(process->pml4, a + PAGE_SIZE, end, &entry)) {
        vm_put(process->pml4, a, 0);
        if (!(entry & PTE_VIEW))
            phys_free(phys_to_virt(entry & PTE_ADDRESS), 1);
    }
}

bool memory_release_locked(struct process *process, uint64_t base)
{
    struct memory *m = &process->memory;
    unsigned i = find_region(m, base);
    if (i == m->count || m->regions[i].base != base)
        return false;
    memory_decommit_locked(process, base, m->regions[i].end);
    m->count--;
    for (; i < m->count; i++)
        m->regions[i] = m->regions[i + 1];
    return true;
}

bool memory_release(struct process *process, uint64_t base)
{
    mutex_acquire(&process->memory.mutex);
    bool found = memory_release_locked(process, base);
    mutex_release(&process->memory.mutex);
    return found;
}

uint64_t memory_system(struct process *process, uint64_t size)
{
    uint64_t base = 0;
    mutex_acquire(&process->memory.mutex);
    NTSTATUS status = memory_reserve_locked(process, &base, size, REGION_SYSTEM, PAGE_READWRITE);
    if (NT_SUCCESS(status)) {
        status = memory_commit_locked(process, base, base + size, PTE_PRESENT | PTE_WRITE | PTE_NX);
        if (!NT_SUCCESS(status))
            memory_release_locked(process, base);
    }
    mutex_release(&process->memory.mutex);
    return NT_SUCCESS(status) ? base : 0;
}

/* --- Stacks. --- */

#define STACK_PAGE (PTE_PRESENT | PTE_WRITE | PTE_NX)
#define GUARD_PAGE (PTE_GUARD | PTE_WRITE | PTE_NX)

static NTSTATUS make_stack(struct process *process, uint64_t size, uint64_t commit, uint64_t *base)
{
    NTSTATUS status = memory_reserve_locked(process, base, size, REGION_STACK, PAGE_READWRITE);
    if (!NT_SUCCESS(status))
        return status;
    uint64_t top = *base + size, from = top - commit;
    status = memory_commit_locked(process, from, top, STACK_PAGE);
    if (NT_SUCCESS(status) && from > *base && !commit_page(process, from - PAGE_SIZE, GUARD_PAGE))
        status = STATUS_NO_MEMORY;
    if (!NT_SUCCESS(status))
        memory_release_locked(process, *base);
    return status;
}

uint64_t memory_stack(struct process *process, uint64_t size, uint64_t commit, uint64_t *base)
{
    *base = 0;
    mutex_acquire(&process->memory.mutex);
    NTSTATUS status = make_stack(process, size, commit < size ? commit : size, base);
    mutex_release(&process->memory.mutex);
    return NT_SUCCESS(status) ? *base + size : 0;
}

/* The guard page at `page` was touched. The lowest page of a stack is never given out. */
static NTSTATUS grow_stack(struct process *process, const struct region *stack, uint64_t page,
                           uint64_t *limit)
{
    uint64_t lowest = stack->base + PAGE_SIZE;
    *limit = page;
    if (page > lowest + LAST_PAGES * PAGE_SIZE &&
        commit_page(process, page - PAGE_SIZE, GUARD_PAGE))
        return STATUS_SUCCESS;
    if (page > lowest && NT_SUCCESS(memory_commit_locked(process, lowest, page, STACK_PAGE)))
        *limit = lowest;
    return STATUS_STACK_OVERFLOW;
}

static NTSTATUS open_guard(struct process *process, uint64_t page, uint64_t *limit)
{
    uint64_t entry = vm_raw(process->pml4, page);
    const struct region *region = memory_region(process, page);
    if (!(entry & PTE_GUARD) || !region)
        return STATUS_ACCESS_VIOLATION;
    vm_put(process->pml4, page, (entry & ~(uint64_t)PTE_GUARD) | PTE_PRESENT);
    return region->kind == REGION_STACK ? grow_stack(process, region, page, limit)
                                        : STATUS_GUARD_PAGE_VIOLATION;
}

NTSTATUS memory_fault(struct process *process, uint64_t address, uint64_t *limit)
{
    *limit = 0;
    if (address >= USER_END)
        return STATUS_ACCESS_VIOLATION;
    mutex_acquire(&process->memory.mutex);
    NTSTATUS status = open_guard(process, page_of(address), limit);
    mutex_release(&process->memory.mutex);
    return status;
}
