/* SPDX-License-Identifier: MIT */
/* Processes: their address space with an image, and their threads. process.lock is of
 * DISPATCH_LEVEL. */
#include "kernel/ke/copy.h"
#include "kernel/ke/process.h"
#include "hal/machine/clock.h"
#include "kernel/base/upcalls.h"
#include "kernel/base/bits.h"
#include "kernel/base/string.h"
#include "kernel/ke/sched.h"
#include "kernel/ke/shared_data.h"
#include "kernel/ke/thread.h"
#include "kernel/mm/phys.h"
#include "kernel/mm/vm.h"
#include "kernel/nt/nt_process.h"

static void destroy_process(struct object *object)
{
    struct process *process = CONTAINING_RECORD(object, struct process, object);
    handle_close_all(process);
    if (process->pml4)
        vm_destroy(process->pml4);
    memory_destroy(process);
    phys_free(process, 1);
}

const struct object_type process_type = {
    .name = "Process",
    .destroy = destroy_process,
    .all = PROCESS_ALL_ACCESS,
    .read = STANDARD_RIGHTS_READ | PROCESS_QUERY_INFORMATION,
    .write = STANDARD_RIGHTS_READ,
    .execute = STANDARD_RIGHTS_READ | SYNCHRONIZE,
};

struct process *process_create(void)
{
    _Static_assert(sizeof(struct process) <= PAGE_SIZE, "one page");
    struct process *process = phys_alloc(1);
    if (!process)
        return NULL;
    object_init(&process->object, &process_type, ProcessObject, 1);
    process->exit_status = STATUS_PENDING;
    process->created = clock_ns();
    process->lock = (struct lock)LOCK("process", DISPATCH_LEVEL);
    process->pml4 = vm_create();
    if (process->pml4 && memory_init(process) && shared_data_map(process))
        return process;
    object_release(&process->object);
    return NULL;
}

static bool make_teb(struct process *process, struct thread *thread)
{
    uint64_t at = thread->teb = thread->gs_base = memory_system(process, TEB_SIZE);
    const struct {
        size_t offset;
        uint64_t value;
    } fields[] = {
        { offsetof(struct teb, stack_base), thread->user_stack_top },
        { offsetof(struct teb, stack_limit), thread->user_stack_top - process->stack_commit },
        { offsetof(struct teb, self), at },
        { offsetof(struct teb, process_id), PROCESS_ID },
        { offsetof(struct teb, thread_id), thread->id },
        { offsetof(struct teb, peb), process->peb },
        { offsetof(struct teb, stack_region), thread->user_stack },
    };
    bool done = at;
    for (unsigned i = 0; done && i < ARRAY_SIZE(fields); i++)
        done = process_write(process, at + fields[i].offset, &fields[i].value, sizeof(uint64_t));
    return done;
}

static void unequip(struct process *process, struct thread *thread)
{
    if (thread->user_stack)
        memory_release(process, thread->user_stack);
    if (thread->teb)
        memory_release(process, thread->teb);
}

bool process_equip(struct process *process, struct thread *thread)
{
    thread->user_stack_top =
        memory_stack(process, process->stack_reserve, process->stack_commit, &thread->user_stack);
    if (!thread->user_stack_top)
        return false;
    if (make_teb(process, thread))
        return true;
    unequip(process, thread);
    return false;
}

bool process_join(struct process *process, struct thread *thread)
{
    KIRQL irql = lock_acquire(&process->lock);
    bool open = !process->ending;
    if (open) {
        thread->sibling = process->first;
        process->first = thread;
        __atomic_fetch_add(&process->threads, 1, __ATOMIC_RELAXED);
    }
    lock_release(&process->lock, irql);
    return open;
}

void process_leave(struct process *process, struct thread *thread)
{
    KIRQL irql = lock_acquire(&process->lock);
    struct thread **link = &process->first;
    uint64_t ended;
    while (*link != thread)
        link = &(*link)->sibling;
    *link = thread->sibling;
    process->ended_cycles += thread_cycles(thread, &ended);
    lock_release(&process->lock, irql);
    /* After the last thread the whole address space is freed. */
    if (__atomic_load_n(&process->threads, __ATOMIC_RELAXED) > 1)
        unequip(process, thread);
    if (__atomic_fetch_sub(&process->threads, 1, __ATOMIC_ACQ_REL) == 1) {
        process->exit_status = process->ending ? process->end_status : thread->exit_status;
        __atomic_store_n(&process->ended, clock_ns(), __ATOMIC_RELAXED);
        if (process_notify_end)
            process_notify_end(process);
        if (process_ended)
            process_ended(process);
        handle_close_all(process); /* a process may have handles to itself */
        wait_signal(&process->object);
    }
}

NTSTATUS process_fault(uint64_t address)
{
    const struct thread *me = thread_current();
    uint64_t limit;
    NTSTATUS status = memory_fault(me->process, address, &limit);
    if (limit && me->teb)
        copy_out(&((struct teb *)me->teb)->stack_limit, &limit, sizeof limit);
    return status;
}

bool process_write(struct process *process, uint64_t to, const void *from, size_t size)
{
    for (size_t part; size; size -= part, to += part, from = (const uint8_t *)from + part) {
        uint64_t entry = to < USER_END ? vm_entry(process->pml4, to) : 0;
        part = PAGE_SIZE - to % PAGE_SIZE;
        part = part < size ? part : size;
        if (!entry)
            return false;
        memcpy((uint8_t *)phys_to_virt(entry & PTE_ADDRESS) + to % PAGE_SIZE, from, part);
    }
    return true;
}
