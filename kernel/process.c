/* SPDX-License-Identifier: MIT */
/* Processes: the ring-3 image shared but for its data, stacks, and pages that ring 3 asked for.
 * process.lock (DISPATCH_LEVEL) is taken before vm_lock. */
#include "kernel/process.h"
#include "kernel/counter_config.h"
#include "kernel/irql.h"
#include "kernel/phys.h"
#include "kernel/sched.h"
#include "kernel/string.h"
#include "kernel/thread.h"
#include "kernel/vm.h"

#define STACKS_BASE 0x70000000ul
#define STACK_SPACING 0x110000ul /* the rest is guard */
#define REGIONS_BASE 0x10000000ul
#define REGIONS_END 0x60000000ul

extern char user_load[], user_image_start[], user_text_end[], user_rodata_end[], user_data_end[], user_image_end[];

static bool map_image(struct process *process)
{
    uint64_t start = (uint64_t)user_image_start;
    uint64_t load = (uint64_t)user_load - KERNEL_VMA;
    for (uint64_t a = start; a < (uint64_t)user_image_end; a += PAGE_SIZE) {
        uint64_t physical = load + (a - start), flags = PTE_USER;
        if (a >= (uint64_t)user_text_end)
            flags |= PTE_NX;
        if (a >= (uint64_t)user_rodata_end) {
            void *copy = phys_alloc(1);
            if (!copy)
                return false;
            if (a < (uint64_t)user_data_end)
                memcpy(copy, phys_to_virt(physical), PAGE_SIZE);
            physical = virt_to_phys(copy);
            flags |= PTE_WRITE;
        }
        if (!vm_map(process->pml4, a, physical, flags)) {
            if (flags & PTE_WRITE)
                phys_free(phys_to_virt(physical), 1);
            return false;
        }
    }
    return true;
}

struct process *process_create(void)
{
    _Static_assert(sizeof(struct process) <= PAGE_SIZE, "one page");
    struct process *process = phys_alloc(1);
    if (!process)
        return NULL;
    process->object = (struct object){ .type = OBJECT_PROCESS, .refs = 1 };
    process->exit_status = STATUS_PENDING;
    process->lock = (struct lock)LOCK("process", DISPATCH_LEVEL);
    process->next_base = REGIONS_BASE;
    process->stack_pages = PROCESS_STACK_PAGES;
    process->pml4 = vm_create();
    if (process->pml4 && map_image(process))
        return process;
    process_destroy(process);
    return NULL;
}

void process_destroy(struct process *process)
{
    handle_close_all(process);
    if (process->pml4)
        vm_destroy(process->pml4);
    phys_free(process, 1);
}

/* Maps fresh pages; on failure those already mapped stay for the process's end. */
static bool map_fresh(struct process *process, uint64_t base, uint64_t pages, uint64_t flags)
{
    for (uint64_t i = 0; i < pages; i++) {
        void *page = phys_alloc(1);
        if (!page)
            return false;
        if (!vm_map(process->pml4, base + i * PAGE_SIZE, virt_to_phys(page), flags | PTE_USER | PTE_NX)) {
            phys_free(page, 1);
            return false;
        }
    }
    return true;
}

uint64_t process_stack(struct process *process, unsigned *slot)
{
    uint64_t used = __atomic_load_n(&process->stacks_used, __ATOMIC_RELAXED), bit;
    do {
        if (used == ~0ul)
            return 0;
        *slot = (unsigned)__builtin_ctzl(~used);
        bit = 1ul << *slot;
    } while (!__atomic_compare_exchange_n(&process->stacks_used, &used, used | bit, false, __ATOMIC_ACQ_REL,
                                          __ATOMIC_RELAXED));
    uint64_t top = STACKS_BASE + (*slot + 1) * STACK_SPACING;
    uint8_t irql = lock_acquire(&process->lock);
    bool mapped = process->stacks_mapped & bit;
    if (!mapped && map_fresh(process, top - process->stack_pages * PAGE_SIZE, process->stack_pages, PTE_WRITE)) {
        process->stacks_mapped |= bit;
        mapped = true;
    }
    lock_release(&process->lock, irql);
    if (!mapped)
        __atomic_fetch_and(&process->stacks_used, ~bit, __ATOMIC_RELEASE);
    return mapped ? top : 0;
}

bool process_join(struct process *process, struct thread *thread)
{
    uint8_t irql = lock_acquire(&process->lock);
    bool open = !process->ending;
    if (open) {
        process->members[thread->stack_slot] = thread;
        __atomic_fetch_add(&process->threads, 1, __ATOMIC_RELAXED);
    }
    lock_release(&process->lock, irql);
    return open;
}

void process_leave(struct process *process, struct thread *thread)
{
    uint8_t irql = lock_acquire(&process->lock);
    process->members[thread->stack_slot] = NULL;
    lock_release(&process->lock, irql);
    __atomic_fetch_and(&process->stacks_used, ~(1ul << thread->stack_slot), __ATOMIC_RELEASE);
    if (__atomic_fetch_sub(&process->threads, 1, __ATOMIC_ACQ_REL) == 1) {
        process->exit_status = process->ending ? process->end_status : thread->exit_status;
        counter_driver_end(process);
        handle_close_all(process); /* a process may have handles to itself */
        sched_signal(&process->object);
    }
}

void process_end(NTSTATUS status)
{
    struct thread *me = thread_current();
    struct process *process = me->process;
    uint8_t irql = lock_acquire(&process->lock);
    if (!process->ending) {
        process->ending = true;
        process->end_status = status;
    }
    for (unsigned i = 0; i < PROCESS_THREADS_MAX; i++)
        if (process->members[i] && process->members[i] != me)
            thread_terminate(process->members[i], status);
    lock_release(&process->lock, irql);
    thread_exit(status);
}

bool process_read(const struct process *process, void *to, uint64_t from, size_t size)
{
    uint8_t *out = to;
    while (size) {
        uint64_t entry = from < USER_END ? vm_entry(process->pml4, from) : 0;
        size_t part = PAGE_SIZE - from % PAGE_SIZE;
        if (!entry)
            return false;
        if (part > size)
            part = size;
        memcpy(out, (uint8_t *)phys_to_virt(entry & PTE_ADDRESS) + from % PAGE_SIZE, part);
        out += part;
        from += part;
        size -= part;
    }
    return true;
}

static NTSTATUS protection(ULONG protect, uint64_t *flags)
{
    switch (protect) {
    case PAGE_READONLY:
        *flags = 0;
        return STATUS_SUCCESS;
    case PAGE_READWRITE:
        *flags = PTE_WRITE;
        return STATUS_SUCCESS;
    default:
        return STATUS_INVALID_PAGE_PROTECTION;
    }
}

/* The current process behind a handle: memory of others is nobody's business here. */
static NTSTATUS own_process(HANDLE handle)
{
    struct object *object;
    NTSTATUS status = handle_lookup(handle, OBJECT_PROCESS, 0, &object);
    if (!NT_SUCCESS(status))
        return status;
    bool own = object == &thread_current()->process->object;
    object_release(object);
    return own ? STATUS_SUCCESS : STATUS_NOT_SUPPORTED;
}

static NTSTATUS copy_in_range(PVOID *base, PSIZE_T size, uint64_t *address, uint64_t *bytes)
{
    NTSTATUS status = copy_in(address, base, sizeof *address);
    return NT_SUCCESS(status) ? copy_in(bytes, size, sizeof *bytes) : status;
}

static NTSTATUS copy_out_range(PVOID *base, PSIZE_T size, uint64_t address, uint64_t bytes)
{
    NTSTATUS status = copy_out(base, &address, sizeof address);
    return NT_SUCCESS(status) ? copy_out(size, &bytes, sizeof bytes) : status;
}

static struct region *find_region(struct process *process, uint64_t base)
{
    for (unsigned i = 0; i < PROCESS_REGIONS_MAX; i++)
        if (process->regions[i].pages && process->regions[i].base == base)
            return &process->regions[i];
    return NULL;
}

/* Unmaps what is mapped of a region; with the lock free, because other CPUs' TLBs are told. */
static void unmap(struct process *process, uint64_t base, uint64_t pages)
{
    for (uint64_t i = 0; i < pages; i++) {
        uint64_t physical = vm_unmap(process->pml4, base + i * PAGE_SIZE);
        if (physical)
            phys_free(phys_to_virt(physical), 1);
    }
}

/* NT: reserves and commits at once, at an address of our choice (*BaseAddress must be NULL); Windows does both
 * apart and at any address. PAGE_READONLY and PAGE_READWRITE.
 * STATUS_ACCESS_VIOLATION, STATUS_INVALID_HANDLE, STATUS_OBJECT_TYPE_MISMATCH, STATUS_NOT_SUPPORTED (another
 * process), STATUS_INVALID_PAGE_PROTECTION, STATUS_INVALID_PARAMETER, STATUS_NO_MEMORY. */
NTSTATUS NtAllocateVirtualMemory(HANDLE ProcessHandle, PVOID *BaseAddress, ULONG_PTR ZeroBits, PSIZE_T RegionSize,
                                 ULONG AllocationType, ULONG Protect)
{
    struct process *process = thread_current()->process;
    uint64_t base, bytes, flags;
    NTSTATUS status = own_process(ProcessHandle);
    if (NT_SUCCESS(status))
        status = copy_in_range(BaseAddress, RegionSize, &base, &bytes);
    if (NT_SUCCESS(status))
        status = protection(Protect, &flags);
    if (!NT_SUCCESS(status))
        return status;
    if (base || ZeroBits || !bytes || AllocationType != (MEM_COMMIT | MEM_RESERVE))
        return STATUS_INVALID_PARAMETER;
    if (bytes > REGIONS_END - REGIONS_BASE)
        return STATUS_NO_MEMORY;

    uint64_t pages = (bytes + PAGE_SIZE - 1) / PAGE_SIZE;
    struct region *free_entry = NULL;
    uint8_t irql = lock_acquire(&process->lock);
    for (unsigned i = 0; i < PROCESS_REGIONS_MAX && !free_entry; i++)
        if (!process->regions[i].pages)
            free_entry = &process->regions[i];
    bool ok = free_entry && process->next_base + pages * PAGE_SIZE <= REGIONS_END && phys_free_pages() > pages;
    if (ok) {
        base = process->next_base;
        process->next_base += (pages + 1) * PAGE_SIZE; /* a page between regions stays unmapped */
        *free_entry = (struct region){ base, pages };
        ok = map_fresh(process, base, pages, flags);
    }
    lock_release(&process->lock, irql);
    return ok ? copy_out_range(BaseAddress, RegionSize, base, pages * PAGE_SIZE) : STATUS_NO_MEMORY;
}

/* NT: MEM_RELEASE of a whole region only. STATUS_ACCESS_VIOLATION, handle errors as above,
 * STATUS_INVALID_PARAMETER, STATUS_MEMORY_NOT_ALLOCATED. */
NTSTATUS NtFreeVirtualMemory(HANDLE ProcessHandle, PVOID *BaseAddress, PSIZE_T RegionSize, ULONG FreeType)
{
    struct process *process = thread_current()->process;
    uint64_t base, bytes, pages = 0;
    NTSTATUS status = own_process(ProcessHandle);
    if (NT_SUCCESS(status))
        status = copy_in_range(BaseAddress, RegionSize, &base, &bytes);
    if (!NT_SUCCESS(status))
        return status;
    if (FreeType != MEM_RELEASE || bytes)
        return STATUS_INVALID_PARAMETER;
    uint8_t irql = lock_acquire(&process->lock);
    struct region *region = find_region(process, base);
    if (region) {
        pages = region->pages;
        region->pages = 0;
    }
    lock_release(&process->lock, irql);
    if (!pages)
        return STATUS_MEMORY_NOT_ALLOCATED;
    unmap(process, base, pages);
    return copy_out_range(BaseAddress, RegionSize, base, pages * PAGE_SIZE);
}

/* NT: one page range inside one region, read-only or read-write. Statuses as NtAllocateVirtualMemory,
 * STATUS_MEMORY_NOT_ALLOCATED for a page that is not mapped. */
NTSTATUS NtProtectVirtualMemory(HANDLE ProcessHandle, PVOID *BaseAddress, PSIZE_T RegionSize, ULONG NewProtect,
                                PULONG OldProtect)
{
    struct process *process = thread_current()->process;
    uint64_t base, bytes, flags;
    NTSTATUS status = own_process(ProcessHandle);
    if (NT_SUCCESS(status))
        status = copy_in_range(BaseAddress, RegionSize, &base, &bytes);
    if (NT_SUCCESS(status))
        status = protection(NewProtect, &flags);
    if (!NT_SUCCESS(status))
        return status;
    if (!bytes || base < REGIONS_BASE || base >= REGIONS_END || bytes > REGIONS_END - base)
        return STATUS_INVALID_PARAMETER;
    uint64_t first = base & ~(uint64_t)(PAGE_SIZE - 1), end = base + bytes;
    ULONG old = vm_entry(process->pml4, first) & PTE_WRITE ? PAGE_READWRITE : PAGE_READONLY;
    for (uint64_t a = first; a < end; a += PAGE_SIZE) {
        uint64_t physical = vm_unmap(process->pml4, a);
        if (!physical)
            return STATUS_MEMORY_NOT_ALLOCATED;
        vm_map(process->pml4, a, physical, flags | PTE_USER | PTE_NX);
    }
    status = copy_out(OldProtect, &old, sizeof old);
    return NT_SUCCESS(status) ? copy_out_range(BaseAddress, RegionSize, first, end - first) : status;
}
