/* SPDX-License-Identifier: MIT */
/* Threads, processes, objects, addresses. A driver's pointer to a thread, a process or another
 * object is to its dispatcher header, that to a file to its FILE_OBJECT. */
#include "kernel/base/print.h"
#include "kernel/driver/bugcheck.h"
#include "kernel/driver/driver.h"
#include "kernel/driver/io.h"
#include "kernel/driver/pool.h"
#include "kernel/driver/request.h"
#include "kernel/ke/process.h"
#include "kernel/ke/suspend.h"
#include "kernel/ke/thread.h"
#include "kernel/mm/phys.h"
#include "kernel/mm/vm.h"

#define CONTIGUOUS ('M' | 'm' << 8 | 'C' << 16 | 'm' << 24)

/* The dispatcher header of a semaphore, whose type is also 5, has another size. */
static struct object *object_of(PVOID header)
{
    const FILE_OBJECT *file = header;
    if (file->Type == IO_TYPE_FILE && file->Size == sizeof *file)
        return &CONTAINING_RECORD(header, struct file, file)->object;
    return CONTAINING_RECORD(header, struct object, header);
}

static PVOID body_of(struct object *object)
{
    return object->type == &file_type ? (PVOID)&CONTAINING_RECORD(object, struct file, object)->file
                                      : (PVOID)&object->header;
}

struct start {
    PKSTART_ROUTINE routine;
    PVOID context;
};

static void begin_driver_thread(void *argument)
{
    struct start s = *(struct start *)argument;
    struct driver_call call;
    pool_free(argument);
    if (!s.routine) /* its creator got no handle */
        return;
    driver_enter(&call, s.routine);
    s.routine(s.context);
    driver_leave(&call);
}

/* ProcessHandle, ClientId and ObjectAttributes have no effect. STATUS_INSUFFICIENT_RESOURCES. */
NTSTATUS PsCreateSystemThread(PHANDLE ThreadHandle, ULONG, PVOID, HANDLE, PVOID, PVOID StartRoutine,
                              PVOID StartContext)
{
    const struct driver *driver = driver_at(driver_caller());
    struct start *start = pool_allocate(sizeof *start);
    if (!start)
        return STATUS_INSUFFICIENT_RESOURCES;
    *start = (struct start){ StartRoutine, StartContext };
    struct thread *thread =
        thread_create_suspended(driver ? driver->name : "driver", begin_driver_thread, start);
    if (!thread) {
        pool_free(start);
        return STATUS_INSUFFICIENT_RESOURCES;
    }
    NTSTATUS status = handle_create(&thread->object, THREAD_ALL_ACCESS, ThreadHandle);
    if (!NT_SUCCESS(status))
        start->routine = NULL;
    thread_resume(thread);
    object_release(&thread->object);
    return status;
}

/* STATUS_INVALID_PARAMETER: not a system thread. */
NTSTATUS PsTerminateSystemThread(NTSTATUS ExitStatus)
{
    if (thread_current()->process)
        return STATUS_INVALID_PARAMETER;
    thread_exit(ExitStatus);
}

void threads_left(struct driver *driver)
{
    struct thread *thread;
    for (unsigned id = 0; (thread = thread_after(id)); object_release(&thread->object)) {
        id = thread->id;
        if (thread->name == driver->name)
            driver_left(driver, "thread %u, which still runs", id);
    }
}

PVOID PsGetCurrentThread(void) { return &thread_current()->object.header; }

PVOID KeGetCurrentThread(void) { return &thread_current()->object.header; }

/* NULL in a system thread. NT: there it is the system process. */
PVOID PsGetCurrentProcess(void)
{
    struct process *process = thread_current()->process;
    return process ? &process->object.header : NULL;
}

PVOID IoGetCurrentProcess(void) { return PsGetCurrentProcess(); }

HANDLE PsGetThreadId(PVOID Thread)
{
    return thread_client_id((struct thread *)object_of(Thread)).UniqueThread;
}

HANDLE PsGetThreadProcessId(PVOID Thread)
{
    return thread_client_id((struct thread *)object_of(Thread)).UniqueProcess;
}

HANDLE PsGetProcessId(const void *Process) { return (HANDLE)(uint64_t)(Process ? PROCESS_ID : 0); }

HANDLE PsGetCurrentThreadId(void) { return PsGetThreadId(PsGetCurrentThread()); }
HANDLE PsGetCurrentProcessId(void) { return PsGetThreadProcessId(PsGetCurrentThread()); }

/* STATUS_INVALID_PARAMETER: there is none. */
NTSTATUS PsLookupThreadByThreadId(HANDLE ThreadId, PVOID *Thread)
{
    uint64_t id = (uint64_t)ThreadId;
    struct thread *thread = id && id < 0xffffffff ? thread_after((unsigned)id - 1) : NULL;
    if (thread && thread->id == id) {
        *Thread = &thread->object.header;
        return STATUS_SUCCESS;
    }
    if (thread)
        object_release(&thread->object);
    return STATUS_INVALID_PARAMETER;
}

/* --- Objects. --- */

/* ObjectType has no effect. STATUS_INVALID_HANDLE; STATUS_ACCESS_DENIED for UserMode. */
NTSTATUS ObReferenceObjectByHandle(HANDLE Handle, ACCESS_MASK DesiredAccess, PVOID,
                                   KPROCESSOR_MODE AccessMode, PVOID *Object, PVOID)
{
    struct object *object;
    NTSTATUS status =
        handle_lookup(Handle, NULL, AccessMode == KernelMode ? 0 : DesiredAccess, &object);
    if (NT_SUCCESS(status))
        *Object = body_of(object);
    return status;
}

int64_t ObfReferenceObject(PVOID Object)
{
    object_hold(object_of(Object));
    return object_of(Object)->refs;
}

int64_t ObfDereferenceObject(PVOID Object)
{
    int64_t left = (int64_t)object_of(Object)->refs - 1;
    object_release(object_of(Object));
    return left;
}

/* --- Addresses. --- */

/* NT: memory is mapped cached, and devices uncached, whatever CacheType says. NULL: there is
 * nothing at the address, or no memory for page tables. */
PVOID MmMapIoSpace(LARGE_INTEGER PhysicalAddress, SIZE_T NumberOfBytes, ULONG)
{
    uint64_t at = (uint64_t)PhysicalAddress.QuadPart;
    return NumberOfBytes && vm_map_physical(at, NumberOfBytes, PTE_WRITE | PTE_UNCACHED)
               ? phys_to_virt(at)
               : NULL;
}

PVOID MmMapIoSpaceEx(LARGE_INTEGER PhysicalAddress, SIZE_T NumberOfBytes, ULONG Protect)
{
    return MmMapIoSpace(PhysicalAddress, NumberOfBytes, Protect);
}

/* The buffer of a request, which is mapped as long as the request lives. */
PVOID MmMapLockedPagesSpecifyCache(PMDL MemoryDescriptorList)
{
    return MemoryDescriptorList->MappedSystemVa;
}

VOID MmUnmapLockedPages(void) {}

VOID MmUnmapIoSpace(PVOID, SIZE_T) {}

/* Whole pages; NULL: there are none below HighestAcceptableAddress. NT: pages are allocated from
 * the lowest address up, so that one try says whether there are any so low. */
PVOID MmAllocateContiguousMemory(SIZE_T NumberOfBytes, LARGE_INTEGER HighestAcceptableAddress)
{
    const uint64_t size = (NumberOfBytes + PAGE_SIZE - 1) & ~(uint64_t)(PAGE_SIZE - 1);
    void *p = size >= NumberOfBytes ? pool_allocate_for(size, CONTIGUOUS) : NULL;
    if (p && virt_to_phys(p) + size - 1 <= (uint64_t)HighestAcceptableAddress.QuadPart)
        return p;
    if (p)
        pool_free_for(p, CONTIGUOUS);
    return NULL;
}

VOID MmFreeContiguousMemory(PVOID BaseAddress) { pool_free_for(BaseAddress, CONTIGUOUS); }

static uint64_t physical_of(uint64_t address)
{
    const struct driver *driver = driver_at(address);
    if (driver)
        return virt_to_phys(driver->pages) + (address - driver->base);
    return address >= DIRECT_MAP && address < VM_WINDOW ? virt_to_phys((void *)address) : 0;
}

/* 0: not memory of a driver or of pool. */
LARGE_INTEGER MmGetPhysicalAddress(PVOID BaseAddress)
{
    return (LARGE_INTEGER){ .QuadPart = (LONGLONG)physical_of((uint64_t)BaseAddress) };
}

BOOLEAN MmIsAddressValid(PVOID VirtualAddress)
{
    uint64_t physical = physical_of((uint64_t)VirtualAddress);
    return physical && physical < 4ul << 30;
}
