/* SPDX-License-Identifier: MIT */
/* Runs functions in ring 3 for the tests, and fetches what their checks found. */
#include "tests/harness/kernel.h"
#include "tests/harness/user.h"
#include "kernel/base/assert.h"
#include "kernel/image/image.h"
#include "kernel/nt/nt_thread_profiling.h"
#include "kernel/image/program.h"
#include "tests/harness/checks.h"
#include "tests/ring3/call.h"

extern const uint8_t ring3_file[], ring3_file_end[]; /* ring3_image.asm */

static struct image ring3 = { .name = "ring3.exe" };
static char skip_reason[160];

void user_init(void)
{
    static const char *const libraries[] = { "ntdll.dll", "kernel32.dll", "advapi32.dll",
                                             "msvcrt.dll" };
    ring3.file = ring3_file;
    ring3.file_size = (size_t)(ring3_file_end - ring3_file);
    const char *wrong = image_prepare(&ring3);
    if (wrong)
        panic("ring3.exe %s", wrong);
    for (unsigned i = 0; i < ARRAY_SIZE(libraries); i++)
        image_prepare(image_find(libraries[i], strlen(libraries[i])));
}

struct process *user_process(void)
{
    struct process *process;
    const char *who;
    if (program_process(&ring3, "ring3.exe", &process, &who))
        return NULL;
    process->fault_ends_all = false;
    process->stack_reserve = 16 * PAGE_SIZE;
    process->stack_commit = PAGE_SIZE;
    return process;
}

bool user_in_text(uint64_t address)
{
    struct pe_section text = pe_section(&ring3.pe, ring3.file, 0);
    return address - ring3.base - text.rva < text.size;
}

/* Where the image holds what ring 3 sees at this address; kernel pointers are left alone. */
static const void *image_of(const void *pointer)
{
    uint64_t offset = (uint64_t)pointer - ring3.base;
    return offset < ring3.pe.size ? ring3.pages + offset : pointer;
}

struct test user_test(const struct test *record)
{
    struct test test = *(const struct test *)image_of(record);
    test.group = image_of(test.group);
    test.name = image_of(test.name);
    test.meaning = image_of(test.meaning);
    return test;
}

bool user_read(const struct process *process, void *to, uint64_t from, size_t size)
{
    for (size_t part; size; size -= part, from += part, to = (uint8_t *)to + part) {
        uint64_t entry = from < USER_END ? vm_entry(process->pml4, from) : 0;
        part = PAGE_SIZE - from % PAGE_SIZE;
        part = part < size ? part : size;
        if (!entry)
            return false;
        const uint8_t *page = phys_to_virt(entry & PTE_ADDRESS);
        memcpy_from_shared(to, page + from % PAGE_SIZE, part);
    }
    return true;
}

/* What ring 3's `user_begin` calls; used again when so many threads more have begun. */
static uint64_t describe_call(struct process *process, uint64_t function, uint64_t argument)
{
    struct user_call call = { function, argument };
    uint64_t n = 0, at;
    user_read(process, &n, (uint64_t)&user_calls_made, sizeof n);
    at = (uint64_t)&user_calls[n % USER_CALLS];
    n++;
    process_write(process, at, &call, sizeof call);
    process_write(process, (uint64_t)&user_calls_made, &n, sizeof n);
    return at;
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

struct thread *user_thread(const char *name, struct process *process, uint64_t function,
                           uint64_t argument, struct cpu_set affinity)
{
    if (!process)
        return NULL;
    pass_lines(process);
    return thread_create_user(name, process, (uint64_t)&user_begin,
                              describe_call(process, function, argument), affinity);
}

struct thread *user_start(struct process *process, void (*function)(uint64_t), uint64_t argument)
{
    return user_thread("ring 3", process, (uint64_t)function, argument, SMP_ALL);
}

bool user_wait(struct thread *thread)
{
    if (CHECK(thread != NULL))
        sched_wait(&thread->object, SCHED_FOREVER, Executive);
    return thread != NULL;
}

static const char *fetch_reason(const struct process *process, uint64_t address)
{
    for (unsigned i = 0; i < sizeof skip_reason - 1; i++) {
        skip_reason[i] = 0;
        if (!user_read(process, &skip_reason[i], address + i, 1) || !skip_reason[i])
            break;
    }
    return skip_reason;
}

void user_report(const struct process *process)
{
    struct test_report theirs;
    if (!CHECK(user_read(process, &theirs, (uint64_t)&user_test_report, sizeof theirs)))
        return;
    if (theirs.skip)
        theirs.skip = fetch_reason(process, (uint64_t)theirs.skip);
    test_adopt(&theirs);
}

NTSTATUS user_end(struct process *process, struct thread *thread)
{
    NTSTATUS status = user_wait(thread) ? thread->exit_status : STATUS_NO_MEMORY;
    if (thread) {
        user_report(process);
        object_release(&thread->object);
    }
    if (process)
        object_release(&process->object);
    return status;
}

void user_finish(struct process *process, struct thread *thread)
{
    CHECK_OK(user_end(process, thread));
}

NTSTATUS user_run(void (*function)(uint64_t), uint64_t argument)
{
    struct process *process = user_process();
    return user_end(process, user_start(process, function, argument));
}

#define BLOCK_AT 0x500000000000ul /* of a thread that pretends */

struct process *user_pretend(void)
{
    struct thread *me = thread_current();
    void *page = phys_alloc(1);
    struct process *process = user_process();
    if (!CHECK(page && process) ||
        !CHECK(vm_map(process->pml4, BLOCK_AT, virt_to_phys(page), PTE_WRITE | PTE_USER)))
        return NULL;
    me->trusted++;
    me->process = process;
    __atomic_fetch_add(&process->threads, 1, __ATOMIC_RELAXED); /* it does not end with others */
    return process;
}

NTSTATUS user_profile(bool enable, uint64_t mask)
{
    THREAD_PROFILING_INFORMATION info = { .HardwareCounters = mask,
                                          .Enable = enable,
                                          .PerformanceData = (PVOID)BLOCK_AT };
    return thread_profiling_set(NtCurrentThread(), &info, sizeof info);
}

void user_pretend_end(struct process *process)
{
    struct thread *me = thread_current();
    me->process = NULL;
    me->trusted--;
    __atomic_fetch_sub(&process->threads, 1, __ATOMIC_RELAXED);
    KIRQL old = irql_raise(DISPATCH_LEVEL);
    vm_switch(vm_kernel_pml4); /* a switch of threads may have loaded the process's */
    irql_lower(old);
    object_release(&process->object);
}
