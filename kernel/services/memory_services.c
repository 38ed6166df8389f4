/* SPDX-License-Identifier: MIT */
/* Nt*VirtualMemory, for the calling process. What ring 3 passes is copied before the mutex is
 * taken, and results after it is released. */
#include "kernel/base/bits.h"
#include "kernel/ke/copy.h"
#include "kernel/services/services.h"
#include "kernel/ke/memory.h"
#include "kernel/base/string.h"
#include "kernel/ke/process.h"
#include "kernel/ke/thread.h"
#include "kernel/mm/phys.h"
#include "kernel/mm/vm.h"

#define ALLOCATION_TYPES (MEM_COMMIT | MEM_RESERVE | MEM_RESET | MEM_TOP_DOWN)
#define PAGES 0xffful

/* NT: no PAGE_NOCACHE and PAGE_WRITECOMBINE. What may be executed may be read. */
static bool flags_of(ULONG protect, uint64_t *flags)
{
    static const struct {
        ULONG protect;
        uint64_t flags;
    } known[] = {
        { PAGE_NOACCESS, PTE_NX },
        { PAGE_READONLY, PTE_PRESENT | PTE_NX },
        { PAGE_READWRITE, PTE_PRESENT | PTE_WRITE | PTE_NX },
        { PAGE_WRITECOPY, PTE_PRESENT | PTE_WRITE | PTE_NX },
        { PAGE_EXECUTE, PTE_PRESENT },
        { PAGE_EXECUTE_READ, PTE_PRESENT },
        { PAGE_EXECUTE_READWRITE, PTE_PRESENT | PTE_WRITE },
        { PAGE_EXECUTE_WRITECOPY, PTE_PRESENT | PTE_WRITE },
    };
    for_each_in(k, known)
        if (k->protect == (protect & ~(ULONG)PAGE_GUARD)) {
            *flags = k->flags;
            if (protect & PAGE_GUARD)
                *flags = (*flags & ~(uint64_t)PTE_PRESENT) | PTE_GUARD;
            return protect != (PAGE_GUARD | PAGE_NOACCESS);
        }
    return false;
}

static ULONG protect_of(uint64_t entry)
{
    static const ULONG names[] = { PAGE_EXECUTE_READ, PAGE_EXECUTE_READWRITE, PAGE_READONLY,
                                   PAGE_READWRITE };
    if (!(entry & (PTE_PRESENT | PTE_GUARD)))
        return PAGE_NOACCESS;
    ULONG protect = names[(entry & PTE_NX ? 2 : 0) + (entry & PTE_WRITE ? 1 : 0)];
    return entry & PTE_GUARD ? protect | PAGE_GUARD : protect;
}

/* Checks that the handle is of the current process; memory of other processes is not supported. */
static NTSTATUS own_process(HANDLE handle, ACCESS_MASK access)
{
    struct object *object;
    NTSTATUS status = handle_lookup(handle, &process_type, access, &object);
    if (!NT_SUCCESS(status))
        return status;
    bool own = object == &thread_current()->process->object;
    object_release(object);
    return own ? STATUS_SUCCESS : STATUS_NOT_SUPPORTED;
}

static NTSTATUS copy_in_range(HANDLE handle, PVOID *base, PSIZE_T size, uint64_t *address,
                              uint64_t *bytes)
{
    NTSTATUS status = own_process(handle, PROCESS_VM_OPERATION);
    if (NT_SUCCESS(status))
        status = copy_in(address, base, sizeof *address);
    return NT_SUCCESS(status) ? copy_in(bytes, size, sizeof *bytes) : status;
}

static NTSTATUS copy_out_range(PVOID *base, PSIZE_T size, uint64_t address, uint64_t bytes)
{
    NTSTATUS status = copy_out(base, &address, sizeof address);
    return NT_SUCCESS(status) ? copy_out(size, &bytes, sizeof bytes) : status;
}

/* The pages that a range touches. False if they leave ring 3's half. */
static bool page_range(uint64_t *base, uint64_t *end, uint64_t bytes)
{
    if (*base >= USER_END || bytes > USER_END - *base)
        return false;
    *end = (*base + bytes + PAGES) & ~PAGES;
    *base &= ~PAGES;
    return true;
}

/* --- Protection. --- */

/* A page of an image that is made writable becomes the process's own. */
static bool own_copy(uint64_t *entry)
{
    void *page = phys_alloc(1);
    if (!page)
        return false;
    memcpy(page, phys_to_virt(*entry & PTE_ADDRESS), PAGE_SIZE);
    phys_free(phys_to_virt(*entry & PTE_ADDRESS), 1); /* the image itself keeps it */
    *entry = virt_to_phys(page);
    return true;
}

static NTSTATUS protect_pages(struct process *process, uint64_t from, uint64_t end, uint64_t flags)
{
    NTSTATUS status = STATUS_SUCCESS;
    for (uint64_t a = from; a < end && NT_SUCCESS(status); a += PAGE_SIZE) {
        uint64_t entry = vm_raw(process->pml4, a);
        uint64_t keep = entry & (PTE_SHARED | PTE_VIEW | PTE_UNCACHED);
        if ((keep & PTE_SHARED) && (flags & PTE_WRITE)) {
            keep = 0;
            if (!own_copy(&entry))
                status = STATUS_NO_MEMORY;
        }
        if (NT_SUCCESS(status))
            vm_put(process->pml4, a, (entry & PTE_ADDRESS) | keep | flags | PTE_USER);
    }
    vm_flush(process->pml4);
    return status;
}

/* Whether each page of the range has an entry. */
static bool all_committed(const struct process *process, uint64_t from, uint64_t end)
{
    uint64_t entry;
    for (; from < end; from += PAGE_SIZE)
        if (vm_next(process->pml4, from, end, &entry) != from)
            return false;
    return true;
}

static NTSTATUS protect(struct process *process, uint64_t from, uint64_t end, uint64_t flags,
                        ULONG *old)
{
    const struct region *region = memory_region(process, from);
    if (!region || end > region->end)
        return STATUS_CONFLICTING_ADDRESSES;
    if (!all_committed(process, from, end))
        return STATUS_NOT_COMMITTED;
    *old = protect_of(vm_raw(process->pml4, from));
    return protect_pages(process, from, end, flags);
}

/* NT: WRITECOPY is READWRITE. STATUS_ACCESS_VIOLATION; handle errors; STATUS_NOT_SUPPORTED (another
 * process); STATUS_INVALID_PAGE_PROTECTION; STATUS_INVALID_PARAMETER: no bytes;
 * STATUS_CONFLICTING_ADDRESSES: not inside one region; STATUS_NOT_COMMITTED; STATUS_NO_MEMORY. */
NTSTATUS NtProtectVirtualMemory(HANDLE ProcessHandle, PVOID *BaseAddress, PSIZE_T RegionSize,
                                ULONG NewProtect, PULONG OldProtect)
{
    struct process *process = thread_current()->process;
    uint64_t base, bytes, end, flags;
    ULONG old = 0;
    NTSTATUS status = copy_in_range(ProcessHandle, BaseAddress, RegionSize, &base, &bytes);
    if (NT_SUCCESS(status))
        status = copy_probe(OldProtect, sizeof old);
    if (!NT_SUCCESS(status))
        return status;
    if (!flags_of(NewProtect, &flags))
        return STATUS_INVALID_PAGE_PROTECTION;
    if (!bytes || !page_range(&base, &end, bytes))
        return STATUS_INVALID_PARAMETER;
    mutex_acquire(&process->memory.mutex);
    status = protect(process, base, end, flags, &old);
    mutex_release(&process->memory.mutex);
    if (NT_SUCCESS(status))
        status = copy_out(OldProtect, &old, sizeof old);
    return NT_SUCCESS(status) ? copy_out_range(BaseAddress, RegionSize, base, end - base) : status;
}

/* --- Allocation. --- */

static NTSTATUS commit_pages(struct process *process, uint64_t from, uint64_t end, uint64_t flags)
{
    const struct region *region = memory_region(process, from);
    if (!region || end > region->end || region->kind >= REGION_IMAGE)
        return STATUS_CONFLICTING_ADDRESSES;
    bool was = all_committed(process, from, end);
    NTSTATUS status = memory_commit_locked(process, from, end, flags);
    return NT_SUCCESS(status) && was ? protect_pages(process, from, end, flags) : status;
}

static NTSTATUS allocate(struct process *process, uint64_t *base, uint64_t *size, ULONG type,
                         ULONG protect_as, uint64_t flags)
{
    uint64_t end = 0;
    bool reserving = type & MEM_RESERVE || !*base;
    NTSTATUS status = STATUS_SUCCESS;
    if (reserving && *base) {
        uint64_t granule = *base & ~(MEMORY_GRANULARITY - 1);
        *size += *base - granule;
        *base = granule;
    }
    if (reserving)
        status = memory_reserve_locked(process, base, *size, REGION_PRIVATE, protect_as);
    if (NT_SUCCESS(status) && !page_range(base, &end, *size))
        status = STATUS_INVALID_PARAMETER;
    if (NT_SUCCESS(status) && (type & MEM_COMMIT)) {
        status = commit_pages(process, *base, end, flags);
        if (!NT_SUCCESS(status) && reserving)
            memory_release_locked(process, *base);
    }
    *size = end - *base;
    return status;
}

/* NT: MEM_TOP_DOWN is ignored, MEM_RESET does nothing, ZeroBits must be 0; no large pages and write
 * watches. Committing again changes the protection only if all of it was committed.
 * STATUS_ACCESS_VIOLATION; handle errors; STATUS_NOT_SUPPORTED; STATUS_INVALID_PAGE_PROTECTION;
 * STATUS_INVALID_PARAMETER; STATUS_CONFLICTING_ADDRESSES; STATUS_NO_MEMORY. */
NTSTATUS NtAllocateVirtualMemory(HANDLE ProcessHandle, PVOID *BaseAddress, ULONG_PTR ZeroBits,
                                 PSIZE_T RegionSize, ULONG AllocationType, ULONG Protect)
{
    struct process *process = thread_current()->process;
    uint64_t base, bytes, flags;
    NTSTATUS status = copy_in_range(ProcessHandle, BaseAddress, RegionSize, &base, &bytes);
    if (!NT_SUCCESS(status))
        return status;
    if (!flags_of(Protect, &flags))
        return STATUS_INVALID_PAGE_PROTECTION;
    if (ZeroBits || !bytes || AllocationType & ~(ULONG)ALLOCATION_TYPES ||
        !(AllocationType & (MEM_COMMIT | MEM_RESERVE | MEM_RESET)))
        return STATUS_INVALID_PARAMETER;
    if (AllocationType & MEM_RESET)
        return AllocationType == MEM_RESET ? STATUS_SUCCESS : STATUS_INVALID_PARAMETER;
    if (bytes > USER_END)
        return STATUS_NO_MEMORY;
    mutex_acquire(&process->memory.mutex);
    status = allocate(process, &base, &bytes, AllocationType, Protect, flags);
    mutex_release(&process->memory.mutex);
    return NT_SUCCESS(status) ? copy_out_range(BaseAddress, RegionSize, base, bytes) : status;
}

static NTSTATUS release_region(struct process *process, uint64_t base, uint64_t *size)
{
    const struct region *region = memory_region(process, base);
    if (!region)
        return STATUS_MEMORY_NOT_ALLOCATED;
    if (*size || region->base != base)
        return STATUS_INVALID_PARAMETER;
    if (region->kind != REGION_PRIVATE)
        return STATUS_CONFLICTING_ADDRESSES; /* NT: STATUS_UNABLE_TO_DELETE_SECTION for an image */
    *size = region->end - base;
    memory_release_locked(process, base);
    return STATUS_SUCCESS;
}

static NTSTATUS decommit(struct process *process, uint64_t *base, uint64_t *size)
{
    uint64_t end = 0;
    const struct region *region = memory_region(process, *base);
    if (!region)
        return STATUS_MEMORY_NOT_ALLOCATED;
    if (!*size && region->base == *base)
        *size = region->end - region->base;
    if (!*size || region->kind != REGION_PRIVATE || !page_range(base, &end, *size) ||
        end > region->end)
        return STATUS_INVALID_PARAMETER;
    memory_decommit_locked(process, *base, end);
    *size = end - *base;
    return STATUS_SUCCESS;
}

/* STATUS_ACCESS_VIOLATION; handle errors; STATUS_NOT_SUPPORTED; STATUS_INVALID_PARAMETER: neither
 * MEM_RELEASE of a whole region with size 0 nor MEM_DECOMMIT inside one;
 * STATUS_MEMORY_NOT_ALLOCATED; STATUS_CONFLICTING_ADDRESSES: an image or a stack. */
NTSTATUS NtFreeVirtualMemory(HANDLE ProcessHandle, PVOID *BaseAddress, PSIZE_T RegionSize,
                             ULONG FreeType)
{
    struct process *process = thread_current()->process;
    uint64_t base, bytes;
    NTSTATUS status = copy_in_range(ProcessHandle, BaseAddress, RegionSize, &base, &bytes);
    if (!NT_SUCCESS(status))
        return status;
    if (FreeType != MEM_RELEASE && FreeType != MEM_DECOMMIT)
        return STATUS_INVALID_PARAMETER;
    mutex_acquire(&process->memory.mutex);
    status = FreeType == MEM_RELEASE ? release_region(process, base, &bytes)
                                     : decommit(process, &base, &bytes);
    mutex_release(&process->memory.mutex);
    return NT_SUCCESS(status) ? copy_out_range(BaseAddress, RegionSize, base, bytes) : status;
}

/* --- Query. --- */

/* The end of the pages from `from` on that have the same state and protection. */
static uint64_t run_end(const struct process *process, uint64_t from, uint64_t end, uint64_t first)
{
    uint64_t entry, at = vm_next(process->pml4, from, end, &entry);
    if (!first)
        return at;
    while (at < end && at == from && protect_of(entry) == protect_of(first)) {
        from += PAGE_SIZE;
        at = vm_next(process->pml4, from, end, &entry);
    }
    return from;
}

static void query_page(const struct process *process, uint64_t page, MEMORY_BASIC_INFORMATION *info)
{
    static const ULONG types[] = { [REGION_PRIVATE] = MEM_PRIVATE,
                                   [REGION_SYSTEM] = MEM_PRIVATE,
                                   [REGION_STACK] = MEM_PRIVATE,
                                   [REGION_IMAGE] = MEM_IMAGE,
                                   [REGION_VIEW] = MEM_MAPPED };
    const struct region *region = memory_region(process, page);
    memset(info, 0, sizeof *info); /* what is between its fields goes to ring 3, too */
    info->BaseAddress = (PVOID)page;
    info->State = MEM_FREE;
    info->Protect = PAGE_NOACCESS;
    if (!region) {
        info->RegionSize = memory_next_region(process, page) - page;
        return;
    }
    uint64_t entry = vm_raw(process->pml4, page);
    info->AllocationBase = (PVOID)region->base;
    info->AllocationProtect = region->protect;
    info->RegionSize = run_end(process, page, region->end, entry) - page;
    info->State = entry ? MEM_COMMIT : MEM_RESERVE;
    info->Protect = entry ? protect_of(entry) : 0;
    info->Type = types[region->kind];
}

/* MemoryBasicInformation. STATUS_INVALID_INFO_CLASS; STATUS_INFO_LENGTH_MISMATCH; handle errors;
 * STATUS_NOT_SUPPORTED; STATUS_INVALID_PARAMETER: an address that is not ring 3's;
 * STATUS_ACCESS_VIOLATION. */
NTSTATUS NtQueryVirtualMemory(HANDLE ProcessHandle, PVOID BaseAddress, ULONG MemoryInformationClass,
                              PVOID MemoryInformation, SIZE_T MemoryInformationLength,
                              PSIZE_T ReturnLength)
{
    struct process *process = thread_current()->process;
    MEMORY_BASIC_INFORMATION info;
    SIZE_T size = sizeof info;
    if (MemoryInformationClass != MemoryBasicInformation)
        return STATUS_INVALID_INFO_CLASS;
    if (MemoryInformationLength < size)
        return STATUS_INFO_LENGTH_MISMATCH;
    NTSTATUS status = own_process(ProcessHandle, PROCESS_QUERY_INFORMATION);
    if (!NT_SUCCESS(status))
        return status;
    if ((uint64_t)BaseAddress >= USER_END)
        return STATUS_INVALID_PARAMETER;
    mutex_acquire(&process->memory.mutex);
    query_page(process, (uint64_t)BaseAddress & ~PAGES, &info);
    mutex_release(&process->memory.mutex);
    status = copy_out(MemoryInformation, &info, size);
    return NT_SUCCESS(status) && ReturnLength ? copy_out(ReturnLength, &size, sizeof size) : status;
}
