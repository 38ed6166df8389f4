/* SPDX-License-Identifier: MIT */
/* Where a process's ranges of addresses lie, and what is left for the kernel. */
#include "kernel/ke/memory.h"
#include "kernel/ke/process.h"
#include "kernel/ke/sched.h"
#include "kernel/ke/synchronization.h"
#include "kernel/ke/thread.h"
#include "kernel/mm/vm.h"
#include "kernel/services/services.h"
#include "tests/harness/etw.h"
#include "tests/harness/kernel.h"
#include "tests/harness/profile.h"
#include "tests/harness/user.h"

#define FLAGS (PTE_PRESENT | PTE_WRITE | PTE_NX)
#define ANYWHERE 0
#define LARGE (1ul << 32)
#define SPARE 128                     /* pages that are the kernel's */
#define MOST (LARGE / PAGE_SIZE / 64) /* pages */

static uint64_t reserved(struct process *process, uint64_t base, uint64_t size)
{
    CHECK_OK(memory_reserve(process, &base, size, REGION_PRIVATE, PAGE_READWRITE));
    return base;
}

TEST(memory, ranges,
     "after each range that the kernel places there is a gap; ranges that a program places may be "
     "adjacent")
{
    struct process *process = user_process();
    REQUIRE(process != NULL);
    uint64_t size = PAGE_SIZE, first = reserved(process, ANYWHERE, size),
             second = reserved(process, ANYWHERE, size), wanted = 1ul << 40;
    CHECK_EQ(second - first, 2 * MEMORY_GRANULARITY);
    CHECK_EQ(reserved(process, wanted, size), wanted);
    CHECK_EQ(reserved(process, wanted - size, size), wanted - size);
    CHECK_EQ(reserved(process, wanted + size, size), wanted + size);
    object_release(&process->object);
}

TEST(memory, spare,
     "an allocation that would take the kernel's last pages is refused before any of it is made")
{
    struct process *process = user_process();
    REQUIRE(process != NULL);
    uint64_t base = reserved(process, ANYWHERE, LARGE), size = phys_free_pages() * PAGE_SIZE;
    mutex_acquire(&process->memory.mutex);
    uint64_t before = phys_free_pages();
    CHECK_STATUS(memory_commit_locked(process, base, base + size - 64 * PAGE_SIZE, FLAGS),
                 STATUS_NO_MEMORY);
    CHECK_EQ(phys_free_pages(), before);
    mutex_release(&process->memory.mutex);
    object_release(&process->object);
}

TEST(
    memory, last,
    "where page tables take what was left for pages, an allocation ends with STATUS_NO_MEMORY, and "
    "the kernel has its last pages still")
{
    if (phys_free_pages() > MOST)
        SKIP("there are more than 64 MB of memory");
    struct process *process = user_process();
    REQUIRE(process != NULL);
    uint64_t base = reserved(process, ANYWHERE, LARGE);
    mutex_acquire(&process->memory.mutex);
    uint64_t before = phys_free_pages(), size = (before - SPARE) * PAGE_SIZE;
    CHECK_STATUS(memory_commit_locked(process, base, base + size, FLAGS), STATUS_NO_MEMORY);
    CHECK_RANGE(phys_free_pages(), SPARE - 3, SPARE); /* less the last page's tables */
    mutex_release(&process->memory.mutex);
    object_release(&process->object);
    CHECK(phys_free_pages() >= before);
}

/* --- Nearly no memory: what each operation needs is refused page by page. --- */

#define ENOUGH 64u /* pages, for any of them */

static void *spare; /* pages, each with the address of the next */
static HANDLE made;
static struct process *made_process;
static struct thread *made_thread;

static void take_pages(void)
{
    for (void **page; (page = phys_alloc(1)) != NULL; spare = page)
        *page = spare;
}

static void give_pages(uint64_t count)
{
    while (spare && count--) {
        void **page = spare;
        spare = *page;
        phys_free(page, 1);
    }
}

static NTSTATUS make_event(void)
{
    return NtCreateEvent(&made, EVENT_ALL_ACCESS, NULL, NotificationEvent, FALSE);
}

static NTSTATUS make_timer(void)
{
    return NtCreateTimer(&made, TIMER_ALL_ACCESS, NULL, NotificationTimer);
}

static NTSTATUS make_profile(void)
{
    static ULONG counts[4];
    return NtCreateProfile(&made, NULL, (PVOID)KERNEL_VMA, 64, 4, counts, sizeof counts,
                           ProfileTime, 1);
}

static NTSTATUS make_session(void)
{
    struct session_info d;
    session_describe(&d, SESSION_NAME);
    d.info.BufferSize = 4;
    d.info.MaximumBuffers = 2 * cpu_count;
    NTSTATUS status = session_control(EtwStartLoggerCode, &d);
    made = (HANDLE)d.info.Wnode.HistoricalContext;
    return status;
}

static NTSTATUS make_process(void)
{
    made_process = process_create();
    return made_process ? STATUS_SUCCESS : STATUS_NO_MEMORY;
}

static void do_nothing(void *unused) { (void)unused; }

static NTSTATUS make_thread(void)
{
    made_thread = thread_create_system("short", do_nothing, NULL, cpu_all());
    return made_thread ? STATUS_SUCCESS : STATUS_NO_MEMORY;
}

static NTSTATUS profile_thread(void) { return user_profile(true, 0); }

static void close_made(void) { CHECK_OK(NtClose(made)); }

static void stop_made(void)
{
    WMI_LOGGER_INFORMATION info;
    CHECK_OK(session_by_handle(EtwStopLoggerCode, (TRACEHANDLE)made, &info));
}

static void end_process(void) { object_release(&made_process->object); }

static void end_made_thread(void)
{
    sched_wait(&made_thread->object, SCHED_FOREVER, Executive);
    object_release(&made_thread->object);
}

static void end_profiling(void) { CHECK_OK(user_profile(false, 0)); }

struct operation {
    NTSTATUS (*make)(void);
    void (*end)(void);
    NTSTATUS refused;
};

/* With no page, with one, and so on until it succeeds. */
static void try_with_few_pages(const struct operation *o)
{
    NTSTATUS status = o->refused;
    unsigned pages = 0;
    for (; pages <= ENOUGH && status == o->refused; pages++) {
        take_pages();
        CHECK_EQ(phys_free_pages(), 0); /* the last one, too */
        give_pages(pages);
        uint64_t before = phys_free_pages();
        status = o->make();
        if (NT_SUCCESS(status))
            o->end();
        else
            CHECK_EQ(phys_free_pages(), before);
    }
    CHECK_OK(status);
    CHECK(pages > 1); /* it was refused at least once */
    give_pages(UINT64_MAX);
}

TEST(memory, refused,
     "whatever page is the first that is not there, an operation without memory says so and keeps "
     "nothing")
{
    static const struct operation operations[] = {
        { make_event, close_made, STATUS_INSUFFICIENT_RESOURCES },
        { make_timer, close_made, STATUS_INSUFFICIENT_RESOURCES },
        { make_profile, close_made, STATUS_INSUFFICIENT_RESOURCES },
        { make_session, stop_made, STATUS_NO_MEMORY },
        { make_process, end_process, STATUS_NO_MEMORY },
        { make_thread, end_made_thread, STATUS_NO_MEMORY },
    };
    static const struct operation profile = { profile_thread, end_profiling, STATUS_NO_MEMORY };
    if (phys_free_pages() > MOST)
        SKIP("there are more than 64 MB of memory");
    for (unsigned i = 0; i < ARRAY_SIZE(operations); i++)
        try_with_few_pages(&operations[i]);
    struct process *process = user_pretend(); /* whose thread is profiled */
    REQUIRE(process);
    try_with_few_pages(&profile);
    user_pretend_end(process);
}
