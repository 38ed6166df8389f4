/* SPDX-License-Identifier: MIT */
/* Sections: there is one, \Device\PhysicalMemory, for drivers alone, as on Windows. NT: a view is
 * in the kernel's half of the address space, where its memory is mapped already: a program cannot
 * use it. PASSIVE_LEVEL. Source: the Windows driver documentation of each routine. */
#include "kernel/driver/driver.h"
#include "kernel/driver/io.h"
#include "kernel/driver/pool.h"
#include "kernel/ke/memory.h"
#include "kernel/ke/object.h"
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

/* Where the driver finds the offset, rounded down to the granularity of addresses, which
 * *SectionOffset is then. STATUS_INVALID_PARAMETER_4: a BaseAddress that is wanted (NT: it may be);
 * STATUS_INVALID_PARAMETER: a size of 0; handle errors; STATUS_CONFLICTING_ADDRESSES: beyond what
 * the processor can address. NT: Win32Protect has no effect: all can be written, nothing executed.
 */
NTSTATUS ZwMapViewOfSection(HANDLE SectionHandle, HANDLE ProcessHandle, PVOID *BaseAddress,
                            ULONG_PTR ZeroBits, SIZE_T CommitSize, PLARGE_INTEGER SectionOffset,
                            PSIZE_T ViewSize, ULONG InheritDisposition, ULONG AllocationType,
                            ULONG Win32Protect)
{
    const ULONG writes = PAGE_READWRITE | PAGE_WRITECOPY | PAGE_EXECUTE_READWRITE;
    const uint64_t offset = SectionOffset ? (uint64_t)SectionOffset->QuadPart : 0;
    const uint64_t from = offset & ~(MEMORY_GRANULARITY - 1);
    struct object *section;
    (void)ProcessHandle, (void)ZeroBits, (void)CommitSize, (void)InheritDisposition;
    (void)AllocationType;
    if (*BaseAddress || !*ViewSize)
        return *BaseAddress ? STATUS_INVALID_PARAMETER_4 : STATUS_INVALID_PARAMETER;
    NTSTATUS status =
        handle_lookup(SectionHandle, &section_type,
                      Win32Protect & writes ? SECTION_MAP_WRITE : SECTION_MAP_READ, &section);
    if (!NT_SUCCESS(status))
        return status;
    object_release(section);
    const uint64_t size =
        (*ViewSize + (offset - from) + PAGE_SIZE - 1) & ~(uint64_t)(PAGE_SIZE - 1);
    if (size < *ViewSize || !vm_map_physical(from, size, PTE_WRITE | PTE_UNCACHED))
        return STATUS_CONFLICTING_ADDRESSES;
    *BaseAddress = phys_to_virt(from);
    *ViewSize = size;
    if (SectionOffset)
        SectionOffset->QuadPart = (LONGLONG)from;
    return STATUS_SUCCESS;
}

/* STATUS_INVALID_PARAMETER: no view's address. */
NTSTATUS ZwUnmapViewOfSection(HANDLE ProcessHandle, PVOID BaseAddress)
{
    const uint64_t at = (uint64_t)BaseAddress;
    (void)ProcessHandle;
    return at >= DIRECT_MAP && at < VM_WINDOW ? STATUS_SUCCESS : STATUS_INVALID_PARAMETER;
}
