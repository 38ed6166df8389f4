/* SPDX-License-Identifier: MIT */
/* Threads, processes, objects, addresses. `where` is who called. A driver's pointer to a thread, a
 * process or another object is to its dispatcher header, that to a file to its FILE_OBJECT. */
#include "kernel/base/assert.h"
#include "kernel/base/print.h"
#include "kernel/driver/bugcheck.h"
#include "kernel/driver/driver.h"
#include "kernel/driver/io.h"
#include "kernel/driver/pool.h"
#include "kernel/driver/request.h"
#include "kernel/ke/process.h"
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

static void begin(void *argument)
{
    struct start s = *(struct start *)argument;
    struct driver_visit visit;
    pool_free(argument);
    driver_enter(&visit, s.routine);
    s.routine(s.context);
    driver_leave(&visit);
}

/* ProcessHandle, ClientId and ObjectAttributes have no effect. STATUS_INSUFFICIENT_RESOURCES. */
NTSTATUS driver_PsCreateSystemThread(uint64_t where, PHANDLE ThreadHandle, ULONG DesiredAccess,
                                     PVOID ObjectAttributes, HANDLE ProcessHandle, PVOID ClientId,
                                     PVOID StartRoutine, PVOID StartContext)
{
    const struct driver *driver = driver_at(where);
    struct start *start = pool_allocate(sizeof *start);
    (void)DesiredAccess, (void)ObjectAttributes, (void)ProcessHandle, (void)ClientId;
    if (!start)
        return STATUS_INSUFFICIENT_RESOURCES;
    *start = (struct start){ StartRoutine, StartContext };
    struct thread *thread =
        thread_create_system(driver ? driver->name : "driver", begin, start, cpu_all());
    if (!thread) {
        pool_free(start);
        return STATUS_INSUFFICIENT_RESOURCES;
    }
    NTSTATUS status = handle_create(&thread->object, THREAD_ALL_ACCESS, ThreadHandle);
    object_release(&thread->object);
    return status;
}

/* STATUS_INVALID_PARAMETER: not a system thread. */
NTSTATUS driver_PsTerminateSystemThread(uint64_t where, NTSTATUS ExitStatus)
{
    (void)where;
    if (thread_current()->process)
        return STATUS_INVALID_PARAMETER;
    thread_exit(ExitStatus);
}

unsigned threads_left(const struct driver *driver)
{
    unsigned count = 0;
    struct thread *thread;
    for (unsigned id = 0; (thread = thread_after(id)); object_release(&thread->object)) {
        id = thread->id;
        if (thread->name != driver->name)
            continue;
        print("# %s left thread %u, which still runs\n", driver->name, id);
        count++;
    }
    return count;
}

PVOID driver_PsGetCurrentThread(uint64_t where)
{
    (void)where;
    return &thread_current()->object.header;
}

PVOID driver_KeGetCurrentThread(uint64_t where)
{
    (void)where;
    return &thread_current()->object.header;
}

/* NULL in a system thread. NT: there it is the system process. */
PVOID driver_PsGetCurrentProcess(uint64_t where)
{
    (void)where;
    struct process *process = thread_current()->process;
    return process ? &process->object.header : NULL;
}

PVOID driver_IoGetCurrentProcess(uint64_t where) { return driver_PsGetCurrentProcess(where); }

HANDLE driver_PsGetThreadId(uint64_t where, PVOID Thread)
{
    (void)where;
    return thread_client_id((struct thread *)object_of(Thread)).UniqueThread;
}

HANDLE driver_PsGetThreadProcessId(uint64_t where, PVOID Thread)
{
    (void)where;
    return thread_client_id((struct thread *)object_of(Thread)).UniqueProcess;
}

HANDLE driver_PsGetProcessId(uint64_t where, const void *Process)
{
    (void)where;
    return (HANDLE)(uint64_t)(Process ? PROCESS_ID : 0);
}

HANDLE driver_PsGetCurrentThreadId(uint64_t where)
{
    return driver_PsGetThreadId(where, driver_PsGetCurrentThread(where));
}
HANDLE driver_PsGetCurrentProcessId(uint64_t where)
{
    return driver_PsGetThreadProcessId(where, driver_PsGetCurrentThread(where));
}

/* STATUS_INVALID_PARAMETER: there is none. */
NTSTATUS driver_PsLookupThreadByThreadId(uint64_t where, HANDLE ThreadId, PVOID *Thread)
{
    uint64_t id = (uint64_t)ThreadId;
    (void)where;
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
NTSTATUS driver_ObReferenceObjectByHandle(uint64_t where, HANDLE Handle, ACCESS_MASK DesiredAccess,
                                          PVOID ObjectType, KPROCESSOR_MODE AccessMode,
                                          PVOID *Object, PVOID HandleInformation)
{
    struct object *object;
    (void)where, (void)ObjectType, (void)HandleInformation;
    NTSTATUS status =
        handle_lookup(Handle, NULL, AccessMode == KernelMode ? 0 : DesiredAccess, &object);
    if (NT_SUCCESS(status))
        *Object = body_of(object);
    return status;
}

int64_t driver_ObfReferenceObject(uint64_t where, PVOID Object)
{
    (void)where;
    object_hold(object_of(Object));
    return object_of(Object)->refs;
}

int64_t driver_ObfDereferenceObject(uint64_t where, PVOID Object)
{
    (void)where;
    int64_t left = (int64_t)object_of(Object)->refs - 1;
    object_release(object_of(Object));
    return left;
}

/* --- Addresses. --- */

/* NT: what is memory here is mapped as it is, cached, whatever CacheType says; a device uncached.
 * NULL: nobody has the address, or there is no memory. */
PVOID driver_MmMapIoSpace(uint64_t where, LARGE_INTEGER PhysicalAddress, SIZE_T NumberOfBytes,
                          ULONG CacheType)
{
    uint64_t at = (uint64_t)PhysicalAddress.QuadPart;
    (void)where, (void)CacheType;
    return NumberOfBytes && vm_map_physical(at, NumberOfBytes, PTE_WRITE | PTE_UNCACHED)
               ? phys_to_virt(at)
               : NULL;
}

PVOID driver_MmMapIoSpaceEx(uint64_t where, LARGE_INTEGER PhysicalAddress, SIZE_T NumberOfBytes,
                            ULONG Protect)
{
    return driver_MmMapIoSpace(where, PhysicalAddress, NumberOfBytes, Protect);
}

/* The buffer of a request, which is mapped as long as the request lives. */
PVOID driver_MmMapLockedPagesSpecifyCache(uint64_t where, PMDL MemoryDescriptorList)
{
    (void)where;
    return MemoryDescriptorList->MappedSystemVa;
}

VOID driver_MmUnmapLockedPages(uint64_t where) { (void)where; }

VOID driver_MmUnmapIoSpace(uint64_t where, PVOID BaseAddress, SIZE_T NumberOfBytes)
{
    (void)where, (void)BaseAddress, (void)NumberOfBytes;
}

/* Whole pages; NULL: there is none below HighestAcceptableAddress. NT: memory is given from below:
 * that there is none so low is known by the first try. */
PVOID driver_MmAllocateContiguousMemory(uint64_t where, SIZE_T NumberOfBytes,
                                        LARGE_INTEGER HighestAcceptableAddress)
{
    const uint64_t size = (NumberOfBytes + PAGE_SIZE - 1) & ~(uint64_t)(PAGE_SIZE - 1);
    void *p = size >= NumberOfBytes ? pool_allocate_for(where, size, CONTIGUOUS) : NULL;
    if (p && virt_to_phys(p) + size - 1 <= (uint64_t)HighestAcceptableAddress.QuadPart)
        return p;
    if (p)
        pool_free_for(where, p, CONTIGUOUS);
    return NULL;
}

VOID driver_MmFreeContiguousMemory(uint64_t where, PVOID BaseAddress)
{
    pool_free_for(where, BaseAddress, CONTIGUOUS);
}

static uint64_t physical_of(uint64_t address)
{
    const struct driver *driver = driver_at(address);
    if (driver)
        return virt_to_phys(driver->pages) + (address - driver->base);
    return address >= DIRECT_MAP && address < VM_WINDOW ? virt_to_phys((void *)address) : 0;
}

/* 0: not memory of a driver or of pool. */
LARGE_INTEGER driver_MmGetPhysicalAddress(uint64_t where, PVOID BaseAddress)
{
    (void)where;
    return (LARGE_INTEGER){ .QuadPart = (LONGLONG)physical_of((uint64_t)BaseAddress) };
}

BOOLEAN driver_MmIsAddressValid(uint64_t where, PVOID VirtualAddress)
{
    uint64_t physical = physical_of((uint64_t)VirtualAddress);
    (void)where;
    return physical && physical < 4ul << 30;
}
