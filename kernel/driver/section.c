/* SPDX-License-Identifier: MIT */
/* Sections: there is one, \Device\PhysicalMemory, for drivers alone, as on Windows. In a
 * program's thread a view is the program's. NT: in a thread of the kernel's own it is in the
 * kernel's half of the address space, where its memory is mapped already. PASSIVE_LEVEL. Source:
 * the Windows driver documentation of each routine. */
#include "kernel/driver/driver.h"
#include "kernel/driver/io.h"
#include "kernel/driver/pool.h"
#include "kernel/ke/memory.h"
#include "kernel/ke/object.h"
#include "kernel/ke/process.h"
#include "kernel/ke/thread.h"
#include "kernel/mm/phys.h"
#include "kernel/mm/vm.h"

#define SECTION_MAP_WRITE 0x2u
#define SECTION_MAP_READ 0x4u

static void free_section(struct object *section) { pool_free(section); }

static const struct object_type section_type = { .name = "Section",
                                                 .destroy = free_section,
                                                 .read = 0x20005,
                                                 .write = 0x20002,
                                                 .execute = 0x20008,
                                                 .all = 0xf001f };

/* STATUS_INVALID_PARAMETER: ObjectAttributes; STATUS_OBJECT_NAME_NOT_FOUND: any other name;
 * STATUS_INSUFFICIENT_RESOURCES. */
NTSTATUS ZwOpenSection(PHANDLE SectionHandle, ACCESS_MASK DesiredAccess,
                       POBJECT_ATTRIBUTES ObjectAttributes)
{
    static const WCHAR text[] = u"\\Device\\PhysicalMemory";
    const UNICODE_STRING name = { sizeof text - 2, sizeof text, (WCHAR *)text };
    if (ObjectAttributes->Length != sizeof *ObjectAttributes || !ObjectAttributes->ObjectName)
        return STATUS_INVALID_PARAMETER;
    if (!text_equal(ObjectAttributes->ObjectName, &name, true))
        return STATUS_OBJECT_NAME_NOT_FOUND;
    struct object *section = pool_allocate(sizeof *section);
    if (!section)
        return STATUS_INSUFFICIENT_RESOURCES;
    object_init(section, &section_type, EventNotificationObject, 1);
    NTSTATUS status = handle_create(section, DesiredAccess, SectionHandle);
    object_release(section);
    return status;
}

/* A view of whole pages at *base or, if that is 0, where there is space; `flags`: PTE_WRITE.
 * STATUS_CONFLICTING_ADDRESSES; STATUS_NO_MEMORY; STATUS_INSUFFICIENT_RESOURCES. */
static NTSTATUS map_view(struct process *process, uint64_t *base, uint64_t physical, uint64_t size,
                         ULONG protect, uint64_t flags)
{
    mutex_acquire(&process->memory.mutex);
    NTSTATUS status = memory_reserve_locked(process, base, size, REGION_VIEW, protect);
    for (uint64_t at = 0; NT_SUCCESS(status) && at < size; at += PAGE_SIZE)
        if (!vm_put(process->pml4, *base + at,
                    (physical + at) | flags | PTE_PRESENT | PTE_USER | PTE_VIEW |
                        (phys_is_memory(physical + at, PAGE_SIZE) ? 0 : PTE_UNCACHED))) {
            memory_release_locked(process, *base);
            status = STATUS_INSUFFICIENT_RESOURCES;
        }
    mutex_release(&process->memory.mutex);
    return status;
}

/* Of the view that has this address; false: none has. */
static bool unmap_view(struct process *process, uint64_t address)
{
    mutex_acquire(&process->memory.mutex);
    const struct region *region = memory_region(process, address);
    const bool found =
        region && region->kind == REGION_VIEW && memory_release_locked(process, region->base);
    mutex_release(&process->memory.mutex);
    return found;
}

/* The offset is rounded down to the granularity of addresses, which *SectionOffset is then.
 * STATUS_MAPPED_ALIGNMENT, STATUS_CONFLICTING_ADDRESSES: *BaseAddress, which a program's view
 * may name (STATUS_INVALID_PARAMETER_4: NT: a kernel thread's may not);
 * STATUS_INVALID_PARAMETER: a size of 0; handle errors; STATUS_CONFLICTING_ADDRESSES: beyond
 * what the processor can address; STATUS_NO_MEMORY, STATUS_INSUFFICIENT_RESOURCES. NT:
 * ProcessHandle is the current process; nothing is executable, and a kernel thread's view can be
 * written. */
NTSTATUS ZwMapViewOfSection(HANDLE SectionHandle, HANDLE, PVOID *BaseAddress, ULONG_PTR, SIZE_T,
                            PLARGE_INTEGER SectionOffset, PSIZE_T ViewSize, ULONG, ULONG,
                            ULONG Win32Protect)
{
    const bool writes = Win32Protect & (PAGE_READWRITE | PAGE_WRITECOPY | PAGE_EXECUTE_READWRITE);
    const uint64_t offset = SectionOffset ? (uint64_t)SectionOffset->QuadPart : 0;
    const uint64_t from = offset & ~(MEMORY_GRANULARITY - 1);
    struct process *process = thread_current()->process;
    uint64_t base = (uint64_t)*BaseAddress;
    struct object *section;
    if (base && !process)
        return STATUS_INVALID_PARAMETER_4;
    if (!*ViewSize || base % MEMORY_GRANULARITY)
        return *ViewSize ? STATUS_MAPPED_ALIGNMENT : STATUS_INVALID_PARAMETER;
    NTSTATUS status = handle_lookup(SectionHandle, &section_type,
                                    writes ? SECTION_MAP_WRITE : SECTION_MAP_READ, &section);
    if (!NT_SUCCESS(status))
        return status;
    object_release(section);
    const uint64_t size =
        (*ViewSize + (offset - from) + PAGE_SIZE - 1) & ~(uint64_t)(PAGE_SIZE - 1);
    if (size < *ViewSize || !vm_map_physical(from, size, PTE_WRITE | PTE_UNCACHED))
        return STATUS_CONFLICTING_ADDRESSES;
    if (process)
        status = map_view(process, &base, from, size, writes ? PAGE_READWRITE : PAGE_READONLY,
                          (writes ? PTE_WRITE : 0) | PTE_NX);
    else
        base = (uint64_t)phys_to_virt(from);
    if (!NT_SUCCESS(status))
        return status;
    *BaseAddress = (PVOID)base;
    *ViewSize = size;
    if (SectionOffset)
        SectionOffset->QuadPart = (LONGLONG)from;
    return STATUS_SUCCESS;
}

/* STATUS_NOT_MAPPED_VIEW: no view has the address. */
NTSTATUS ZwUnmapViewOfSection(HANDLE, PVOID BaseAddress)
{
    const uint64_t at = (uint64_t)BaseAddress;
    struct process *process = thread_current()->process;
    const bool found =
        at < USER_END ? process && unmap_view(process, at) : at >= DIRECT_MAP && at < VM_WINDOW;
    return found ? STATUS_SUCCESS : STATUS_NOT_MAPPED_VIEW;
}
