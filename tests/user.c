/* SPDX-License-Identifier: MIT */
/* Runs functions in ring 3 for the tests, and fetches what their checks found. */
#include "tests/user.h"
#include "hal/smp.h"
#include "kernel/base/string.h"
#include "kernel/ke/sched.h"
#include "kernel/ke/thread.h"
#include "kernel/mm/phys.h"
#include "kernel/mm/vm.h"
#include "tests/checks.h"

extern char user_load[], user_image_start[], user_image_end[];

static char skip_reason[160];

/* Where the image holds what ring 3 sees at this address; kernel pointers are left alone. */
static const void *image_of(const void *pointer)
{
    const char *p = pointer;
    return p >= user_image_start && p < user_image_end ? user_load + (p - user_image_start) : p;
}

struct test user_test(const struct test *record)
{
    struct test test = *(const struct test *)image_of(record);
    test.group = image_of(test.group);
    test.name = image_of(test.name);
    test.meaning = image_of(test.meaning);
    return test;
}

/* What the process prints counts from here. */
static void pass_lines(const struct process *process)
{
    uint64_t address = (uint64_t)&user_test_report, entry = vm_entry(process->pml4, address);
    struct test_report *theirs =
        (void *)((uint8_t *)phys_to_virt(entry & PTE_ADDRESS) + address % PAGE_SIZE);
    theirs->long_run = test_long();
    if (!process->threads)
        theirs->lines = theirs->lines_before = test_report()->lines;
}

struct thread *user_start(struct process *process, void (*function)(void), uint64_t argument)
{
    pass_lines(process);
    return thread_create_user("ring 3", process, (uint64_t)function, argument, SMP_ALL);
}

static const char *fetch_reason(const struct process *process, uint64_t address)
{
    for (unsigned i = 0; i < sizeof skip_reason - 1; i++) {
        skip_reason[i] = 0;
        if (!process_read(process, &skip_reason[i], address + i, 1) || !skip_reason[i])
            break;
    }
    return skip_reason;
}

void user_report(const struct process *process)
{
    struct test_report theirs;
    if (!CHECK(process_read(process, &theirs, (uint64_t)&user_test_report, sizeof theirs)))
        return;
    if (theirs.skip)
        theirs.skip = fetch_reason(process, (uint64_t)theirs.skip);
    test_adopt(&theirs);
}

void user_finish(struct process *process, struct thread *thread)
{
    if (thread) {
        CHECK_STATUS(thread->exit_status, STATUS_SUCCESS);
        user_report(process);
        object_release(&thread->object);
    }
    object_release(&process->object);
}

NTSTATUS user_run(void (*function)(void), uint64_t argument)
{
    NTSTATUS status = STATUS_NO_MEMORY;
    struct process *process = process_create();
    struct thread *thread = process ? user_start(process, function, argument) : NULL;
    if (thread) {
        sched_wait(&thread->object, SCHED_FOREVER, Executive);
        status = thread->exit_status;
        user_report(process);
        object_release(&thread->object);
    }
    if (process)
        object_release(&process->object);
    return status;
}
