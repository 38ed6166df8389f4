/* SPDX-License-Identifier: MIT */
/* Pairs of calls on one object: the second comes at each instruction of the first. */
#include "kernel/ke/memory.h"
#include "kernel/ke/mutex.h"
#include "kernel/ke/suspend.h"
#include "kernel/ke/synchronization.h"
#include "tests/harness/kernel.h"

static HANDLE handle, made; /* the object's; a duplicate */
static struct object *object;
static struct process *process;

/* --- Handles. --- */

static NTSTATUS close_collider(void) { return NtClose(handle); }
static NTSTATUS set_it(void) { return NtSetEvent(handle, NULL); }

static NTSTATUS duplicate_it(void)
{
    thread_current()->trusted++; /* the result goes to an address of the kernel */
    NTSTATUS status = NtDuplicateObject(NtCurrentProcess(), handle, NtCurrentProcess(), &made, 0, 0,
                                        DUPLICATE_SAME_ACCESS);
    thread_current()->trusted--;
    return status;
}

static bool begin_event(void)
{
    made = NULL;
    if (!CHECK_OK(NtCreateEvent(&handle, EVENT_ALL_ACCESS, NULL, SynchronizationEvent, FALSE)) ||
        !CHECK_OK(handle_lookup(handle, NULL, 0, &object)))
        return false;
    object_hold(object); /* one that a second release may take */
    return true;
}

static void end_closed(void)
{
    if (made != handle)  /* a duplicate may get the number of what was closed */
        NtClose(handle); /* unless a call has */
    if (made)
        CHECK_OK(NtClose(made));
    CHECK_EQ(__atomic_load_n(&object->refs, __ATOMIC_RELAXED), 2);
    __atomic_store_n(&object->refs, 1, __ATOMIC_RELAXED);
    object_release(object);
}

static const struct collision of_handles[] = {
    COLLISION(NtClose, begin_event, close_collider, close_collider, end_closed,
              ONE_WINS(STATUS_INVALID_HANDLE)),
    COLLISION(NtClose, begin_event, close_collider, set_it, end_closed,
              LOSES(0, STATUS_INVALID_HANDLE)),
    COLLISION(NtSetEvent, begin_event, set_it, close_collider, end_closed,
              LOSES(STATUS_INVALID_HANDLE, 0)),
    COLLISION(NtClose, begin_event, close_collider, duplicate_it, end_closed,
              LOSES(0, STATUS_INVALID_HANDLE)),
    COLLISION(NtDuplicateObject, begin_event, duplicate_it, close_collider, end_closed,
              LOSES(STATUS_INVALID_HANDLE, 0)),
};

TEST(colliders, handles,
     "a handle that two threads close at once, or one while the other uses it, is closed once")
{
    test_run_on(0);
    STEP_COLLIDE(of_handles);
}

/* --- Waits. --- */

#define SOON (-200000) /* 100 ns */
#define SOON_AT_ONCE                                                                               \
    (-3000000) /* where a busy host stops CPUs, which then have a longer watchdog */
static LARGE_INTEGER soon;
static struct mutex mutex = MUTEX("colliders");

static NTSTATUS wait_for_it(void) { return NtWaitForSingleObject(handle, FALSE, &soon); }
static NTSTATUS release_it(void) { return NtReleaseSemaphore(handle, 1, NULL); }

static bool begin_semaphore(void)
{
    return CHECK_OK(NtCreateSemaphore(&handle, SEMAPHORE_ALL_ACCESS, NULL, 0, 1));
}

static void end_handle(void) { CHECK_OK(NtClose(handle)); }

static NTSTATUS leave_mutex(void)
{
    mutex_acquire(&mutex);
    mutex_release(&mutex);
    return STATUS_SUCCESS;
}

static void end_mutex(void) { CHECK(mutex.owner == NULL); }

static const struct collision of_waits[] = {
    COLLISION(NtWaitForSingleObject, begin_event, wait_for_it, set_it, end_closed, BOTH_WIN,
              .alone = STATUS_TIMEOUT),
    COLLISION(NtWaitForSingleObject, begin_semaphore, wait_for_it, release_it, end_handle, BOTH_WIN,
              .alone = STATUS_TIMEOUT),
    COLLISION(mutex_acquire, NULL, leave_mutex, leave_mutex, end_mutex, BOTH_WIN),
    COLLISION(mutex_release, NULL, leave_mutex, leave_mutex, end_mutex, BOTH_WIN),
};

TEST(colliders, waits, "a wake at any instruction of a wait ends it; a mutex is handed over [slow]")
{
    test_run_on(0);
    soon.QuadPart = test_word("watchdog") ? SOON_AT_ONCE : SOON;
    STEP_COLLIDE(of_waits);
}

/* --- Threads: one of ring 3 that is suspended before its first instruction. --- */

#define STATUS_OURS 7

static NTSTATUS terminate_it(void) { return NtTerminateThread(handle, STATUS_OURS); }
static NTSTATUS suspend_it(void) { return NtSuspendThread(handle, NULL); }
static NTSTATUS resume_it(void) { return NtResumeThread(handle, NULL); }

static bool begin_victim(void)
{
    struct thread *thread = thread_create_another(process, (uint64_t)user_spin, 0, true);
    if (!CHECK(thread != NULL))
        return false;
    object = &thread->object;
    return CHECK_OK(handle_create(object, THREAD_ALL_ACCESS, &handle));
}

/* It ends, however often it was suspended. */
static void end_victim(void)
{
    terminate_it();
    CHECK_OK(sched_wait(object, SCHED_FOREVER, Executive));
    CHECK_EQ(((struct thread *)object)->exit_status, STATUS_OURS);
    object_release(object);
    CHECK_OK(NtClose(handle));
}

#define TERMINATES STATUS_THREAD_IS_TERMINATING

static const struct collision of_threads[] = {
    COLLISION(NtTerminateThread, begin_victim, terminate_it, terminate_it, end_victim, BOTH_WIN),
    COLLISION(NtTerminateThread, begin_victim, terminate_it, suspend_it, end_victim,
              LOSES(0, TERMINATES)),
    COLLISION(NtSuspendThread, begin_victim, suspend_it, terminate_it, end_victim,
              LOSES(TERMINATES, 0)),
    COLLISION(NtTerminateThread, begin_victim, terminate_it, resume_it, end_victim, BOTH_WIN),
    COLLISION(NtResumeThread, begin_victim, resume_it, terminate_it, end_victim, BOTH_WIN),
};

/* --- Stacks of one process. --- */

#define STACK_SIZE 0x10000u
#define STACK_COMMIT 0x2000u

static uint64_t bases[2], tops[2];

static NTSTATUS get_stack(unsigned which)
{
    tops[which] = memory_stack(process, STACK_SIZE, STACK_COMMIT, &bases[which]);
    return tops[which] ? STATUS_SUCCESS : STATUS_NO_MEMORY;
}

static NTSTATUS get_first_stack(void) { return get_stack(0); }
static NTSTATUS get_second_stack(void) { return get_stack(1); }

static bool begin_stacks(void)
{
    tops[0] = tops[1] = 0;
    return true;
}

static void end_stacks(void)
{
    for (unsigned i = 0; i < 2 && tops[i]; i++) {
        CHECK_EQ(tops[i], bases[i] + STACK_SIZE);
        CHECK(memory_release(process, bases[i]));
    }
}

static const struct collision of_stacks[] = {
    COLLISION(memory_stack, begin_stacks, get_first_stack, get_second_stack, end_stacks, BOTH_WIN),
};

TEST(colliders, threads,
     "a thread that is ended, suspended and resumed at once ends; two that get a stack of one "
     "process each have their own")
{
    test_run_on(0);
    REQUIRE((process = user_process()) != NULL);
    STEP_COLLIDE(of_threads);
    STEP_COLLIDE(of_stacks);
    object_release(&process->object);
}
