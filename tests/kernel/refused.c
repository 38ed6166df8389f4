/* SPDX-License-Identifier: MIT */
/* The kernel's services that allocate, and refuse.h's table of them: objects, threads, processes,
 * memory. */
#include "kernel/ke/memory.h"
#include "kernel/ke/suspend.h"
#include "kernel/ke/synchronization.h"
#include "kernel/ke/thread_context.h"
#include "tests/harness/kernel.h"
#include "tests/harness/refuse.h"

#define SOME_CODE 0x1000 /* a thread that begins there ends by a fault */

/* --- What threads wait for. --- */

static HANDLE first_event;

static void make_old_event(void)
{
    CHECK_OK(NtCreateEvent(&first_event, EVENT_ALL_ACCESS, NULL, NotificationEvent, TRUE));
}

static void close_old_event(void) { CHECK_OK(NtClose(first_event)); }

/* It has its state and its one handle. */
static void use_old_event(void)
{
    LARGE_INTEGER at_once = { .QuadPart = 0 };
    CHECK_OK(NtWaitForSingleObject(first_event, FALSE, &at_once));
}

static NTSTATUS make_event(void)
{
    return NtCreateEvent(&refuse_made, EVENT_ALL_ACCESS, NULL, SynchronizationEvent, FALSE);
}

static NTSTATUS make_semaphore(void)
{
    return NtCreateSemaphore(&refuse_made, SEMAPHORE_ALL_ACCESS, NULL, 0, 1);
}

static NTSTATUS semaphore_of_none(void)
{
    return NtCreateSemaphore(&refuse_made, SEMAPHORE_ALL_ACCESS, NULL, 0, 0);
}

static NTSTATUS make_mutant(void)
{
    return NtCreateMutant(&refuse_made, MUTANT_ALL_ACCESS, NULL, TRUE);
}

/* Owned: a mutex that is closed so would be counted as abandoned. */
static void close_mutant(void)
{
    CHECK_OK(NtReleaseMutant(refuse_made, NULL));
    refuse_close_made();
}

static NTSTATUS make_timer(void)
{
    return NtCreateTimer(&refuse_made, TIMER_ALL_ACCESS, NULL, NotificationTimer);
}

static NTSTATUS copy_handle(void)
{
    return NtDuplicateObject(NtCurrentProcess(), first_event, NtCurrentProcess(), &refuse_made,
                             EVENT_ALL_ACCESS, 0, 0);
}

static NTSTATUS copy_and_close(void)
{
    NTSTATUS status =
        NtDuplicateObject(NtCurrentProcess(), first_event, NtCurrentProcess(), &refuse_made, 0, 0,
                          DUPLICATE_SAME_ACCESS | DUPLICATE_CLOSE_SOURCE);
    if (NT_SUCCESS(status))
        first_event = refuse_made;
    return status;
}

static NTSTATUS copy_none(void)
{
    return NtDuplicateObject(NtCurrentProcess(), NULL, NtCurrentProcess(), &refuse_made, 0, 0, 0);
}

#define OF_EVENTS .make = make_old_event, .unmake = close_old_event, .use = use_old_event
#define WANT .may = { STATUS_INSUFFICIENT_RESOURCES }
static const struct refusal_row objects[] = {
    { "NtCreateEvent", make_event, refuse_close_made, WANT, .least = 2, OF_EVENTS },
    { "NtCreateSemaphore", make_semaphore, refuse_close_made, WANT, .least = 2, OF_EVENTS,
      .others = { { semaphore_of_none, STATUS_INVALID_PARAMETER } } },
    { "NtCreateMutant", make_mutant, close_mutant, WANT, .least = 2, OF_EVENTS },
    { "NtCreateTimer", make_timer, refuse_close_made, WANT, .least = 2, OF_EVENTS },
    { "NtCreateEvent of a process", make_event, refuse_close_made, WANT, .least = 2,
      .in_process = true, OF_EVENTS },
    { "NtDuplicateObject", copy_handle, refuse_close_made, WANT, .least = 1, .in_process = true,
      OF_EVENTS, .others = { { copy_none, STATUS_INVALID_HANDLE } } },
    { "NtDuplicateObject, source closed", copy_and_close, refuse_undo_nothing, WANT, .least = 1,
      .in_process = true, OF_EVENTS },
};

TEST(refused, objects,
     "whatever an object or a handle lacks, it is refused, keeps nothing, and leaves "
     "the objects "
     "before it alone")
{
    refuse_each(objects, ARRAY_SIZE(objects));
}

/* --- Threads and processes. --- */

static struct thread *thread;
static struct process *process;
static uint32_t runs; /* atomic */

static void note_start(void *) { __atomic_fetch_add(&runs, 1, __ATOMIC_RELAXED); }

static void forget_runs(void) { __atomic_store_n(&runs, 0, __ATOMIC_RELAXED); }

static NTSTATUS make_thread(void)
{
    thread = thread_create_system("short", note_start, NULL, cpu_all());
    return thread ? STATUS_SUCCESS : STATUS_NO_MEMORY;
}

static void wait_for_thread(void)
{
    team_end(thread);
    CHECK_EQ(__atomic_load_n(&runs, __ATOMIC_RELAXED), 1); /* that of the refused call none */
}

NTSTATUS PsCreateSystemThread(PHANDLE, ULONG, PVOID, HANDLE, PVOID, PVOID, PVOID);

static __attribute__((ms_abi)) void driver_run(void *unused) { note_start(unused); }

static NTSTATUS make_driver_thread(void)
{
    return PsCreateSystemThread(&refuse_made, THREAD_ALL_ACCESS, NULL, NULL, NULL,
                                (PVOID)(uint64_t)driver_run, NULL);
}

static void end_driver_thread(void)
{
    CHECK_OK(NtWaitForSingleObject(refuse_made, FALSE, NULL));
    CHECK_EQ(__atomic_load_n(&runs, __ATOMIC_RELAXED), 1);
    refuse_close_made();
}

static NTSTATUS make_user_thread(void)
{
    return NtCreateThreadEx(&refuse_made, THREAD_ALL_ACCESS, NULL, NtCurrentProcess(),
                            (PVOID)SOME_CODE, NULL, THREAD_CREATE_FLAGS_CREATE_SUSPENDED, 0, 0, 0,
                            NULL);
}

static void end_user_thread(void)
{
    struct object *object;
    if (!CHECK_OK(handle_lookup(refuse_made, &thread_type, 0, &object)))
        return;
    CHECK_OK(NtTerminateThread(refuse_made, STATUS_SUCCESS));
    CHECK_OK(sched_wait(object, SCHED_FOREVER, Executive));
    object_release(object);
    refuse_close_made();
}

static NTSTATUS make_process(void)
{
    process = user_process();
    return process ? STATUS_SUCCESS : STATUS_NO_MEMORY;
}

static NTSTATUS ask_of_kernel(void)
{
    CONTEXT context = { .ContextFlags = CONTEXT_INTEGER };
    return NtGetContextThread(NtCurrentThread(), &context);
}

static void end_process(void) { object_release(&process->object); }

#define NO_MEMORY .may = { STATUS_NO_MEMORY }
static const struct refusal_row threads[] = {
    { "thread_create_system", make_thread, wait_for_thread, NO_MEMORY, .least = 2,
      .make = forget_runs },
    { "PsCreateSystemThread", make_driver_thread, end_driver_thread, WANT, .least = 4,
      .make = forget_runs },
    { "NtCreateThreadEx",
      make_user_thread,
      end_user_thread,
      { STATUS_NO_MEMORY, STATUS_INSUFFICIENT_RESOURCES },
      .least = 8,
      .in_process = true },
    { "program_process", make_process, end_process, NO_MEMORY, .least = 30,
      .others = { { ask_of_kernel, STATUS_INVALID_HANDLE } } },
};

TEST(refused, threads,
     "whatever a thread or a process lacks, it is refused, does not run, and keeps "
     "nothing")
{
    refuse_each(threads, ARRAY_SIZE(threads));
}

/* --- Memory. --- */

#define AT 0x400000000000ul
#define SIZE (4ul * PAGE_SIZE)
static PVOID base;
static SIZE_T size;

static NTSTATUS allocate_at(ULONG type)
{
    base = (PVOID)AT;
    size = SIZE;
    return NtAllocateVirtualMemory(NtCurrentProcess(), &base, 0, &size, type, PAGE_READWRITE);
}

static NTSTATUS reserve_and_commit(void) { return allocate_at(MEM_RESERVE | MEM_COMMIT); }

static void free_all(void)
{
    size = 0;
    CHECK_OK(NtFreeVirtualMemory(NtCurrentProcess(), &base, &size, MEM_RELEASE));
}

static NTSTATUS allocate_there(void) { return allocate_at(MEM_RESERVE); }

static void reserve(void) { CHECK_OK(allocate_at(MEM_RESERVE)); }
static NTSTATUS commit(void) { return allocate_at(MEM_COMMIT); }

static void decommit_there(void)
{
    size = SIZE;
    CHECK_OK(NtFreeVirtualMemory(NtCurrentProcess(), &base, &size, MEM_DECOMMIT));
}

static uint64_t stack;

static NTSTATUS make_stack(void)
{
    return memory_stack(thread_current()->process, SIZE, PAGE_SIZE, &stack) ? STATUS_SUCCESS
                                                                            : STATUS_NO_MEMORY;
}

static void free_stack(void) { CHECK(memory_release(thread_current()->process, stack)); }

static const struct refusal_row memory[] = {
    { "NtAllocateVirtualMemory", reserve_and_commit, free_all, NO_MEMORY, .least = 8,
      .in_process = true, .others = { { allocate_there, STATUS_CONFLICTING_ADDRESSES } } },
    { "NtAllocateVirtualMemory of reserved memory", commit, decommit_there, NO_MEMORY, .least = 7,
      .in_process = true, .make = reserve, .unmake = free_all },
    { "memory_stack", make_stack, free_stack, NO_MEMORY, .least = 3, .in_process = true },
};

TEST(refused, memory,
     "whatever an allocation of a process lacks, it is refused, and no page or range is kept")
{
    refuse_each(memory, ARRAY_SIZE(memory));
}

TEST(refused, ring3,
     "whatever a service that ring 3 calls lacks, it says so, writes nothing, succeeds when called "
     "again, and the process leaves nothing")
{
    refuse_ring3(user_claims, USER_CLAIMS);
}
