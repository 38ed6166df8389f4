/* SPDX-License-Identifier: MIT */
/* Where each thread of a program that hangs is, and what it waits for. Somebody asks by an NMI that
 * nobody claims: by the button of a machine, or tests/tools/judge before it gives up. */
#include "kernel/init/threads.h"
#include "kernel/base/upcalls.h"
#include "kernel/base/print.h"
#include "kernel/driver/driver.h"
#include "kernel/driver/request.h"
#include "kernel/image/image.h"
#include "kernel/ke/context.h"
#include "kernel/ke/dispatcher.h"
#include "kernel/ke/process.h"
#include "kernel/ke/sched.h"
#include "kernel/ke/thread.h"
#include "kernel/mm/phys.h"
#include "kernel/mm/vm.h"
#include "kernel/image/program.h"
#include "kernel/trap.h"

#define STACK_WORDS 512u /* of ring 3's stack, looked through for a return address */
#define OBJECTS_SHOWN 2u
#define LINE_MAX 320u

static KEVENT asked;

static void ask(void)
{
    __atomic_store_n(&driver_hangs, true, __ATOMIC_RELAXED);
    KeSetEvent(&asked, 0, FALSE);
}

void threads_watch(void)
{
    KeInitializeEvent(&asked, SynchronizationEvent, FALSE);
    sched_set_priority(thread_current(), SCHED_PRIORITIES - 1); /* a thread that loops has less */
    driver_wait = threads_wait;
    __atomic_store_n(&trap_stray_nmi, ask, __ATOMIC_RELEASE);
}

/* What a thread waited for at one moment. */
struct moment {
    enum thread_state state;
    unsigned cpu, count;
    bool timed;
    PVOID objects[OBJECTS_SHOWN];
    UCHAR types[OBJECTS_SHOWN];
    unsigned numbers[OBJECTS_SHOWN]; /* of the mutant's owner, of the thread */
};

static unsigned number_of(const DISPATCHER_HEADER *h)
{
    if (h->Type == ThreadObject)
        return CONTAINING_RECORD(h, struct thread, object.header)->id;
    const struct thread *owner = h->Type == MutantObject ? ((const KMUTANT *)h)->OwnerThread : NULL;
    return owner ? owner->id : 0;
}

static void look_at(const struct thread *t, struct moment *m)
{
    KIRQL irql = sched_lock();
    *m = (struct moment){ .state = t->state, .cpu = t->cpu };
    if (t->state == THREAD_WAITING && t->wait) {
        m->count = t->wait->count;
        m->timed = t->wait->wake_ns != WAIT_FOREVER;
        for (unsigned i = 0; i < m->count && i < OBJECTS_SHOWN; i++) {
            m->objects[i] = t->wait->objects[i];
            m->types[i] = ((const DISPATCHER_HEADER *)m->objects[i])->Type;
            m->numbers[i] = number_of(m->objects[i]);
        }
    }
    sched_unlock(irql);
}

static size_t put_object(char *line, size_t capacity, const struct moment *m, unsigned i)
{
    static const char *const kinds[] = { "an event", "an event",    "a mutant", "a process",
                                         "",         "a semaphore", "thread",   "",
                                         "a timer",  "a timer" };
    char words[120];
    if (request_waited(m->objects[i], words, sizeof words))
        return print_to(line, capacity, "%s%s", i ? " or " : "", words);
    print_to(words, sizeof words, m->types[i] == ThreadObject ? " %u" : " that thread %u owns",
             m->numbers[i]);
    return print_to(line, capacity, "%s%s%s", i ? " or " : "",
                    m->types[i] < 10 ? kinds[m->types[i]] : "an object",
                    m->numbers[i] ? words : "");
}

static size_t put_state(char *line, size_t capacity, const struct moment *m)
{
    size_t n;
    switch (m->state) {
    case THREAD_RUNNING: return print_to(line, capacity, "runs on CPU %u", m->cpu);
    case THREAD_READY: return print_to(line, capacity, "is ready to run");
    case THREAD_SUSPENDED: return print_to(line, capacity, "is suspended");
    case THREAD_WAITING: break;
    default: return print_to(line, capacity, "has ended");
    }
    if (!m->count)
        return print_to(line, capacity, "sleeps");
    n = print_to(line, capacity, "waits for ");
    for (unsigned i = 0; i < m->count && i < OBJECTS_SHOWN; i++)
        n += put_object(line + n, capacity - n, m, i);
    if (m->count > OBJECTS_SHOWN)
        n += print_to(line + n, capacity - n, " and %u more", m->count - OBJECTS_SHOWN);
    return n + print_to(line + n, capacity - n, m->timed ? ", for a time" : "");
}

/* The word of ring 3 at an address; 0: there is none. */
static uint64_t user_word(const struct process *process, uint64_t address)
{
    const uint64_t entry = vm_entry(process->pml4, address);
    return entry & PTE_PRESENT && !(address & 7)
               ? *(const uint64_t *)phys_to_virt((entry & PTE_ADDRESS) + address % PAGE_SIZE)
               : 0;
}

static bool is_code(const struct image *image, uint64_t address)
{
    const uint64_t rva = address - image->base;
    for (unsigned i = 0; i < image->pe.sections; i++) {
        const struct pe_section s = pe_section(&image->pe, image->file, i);
        if (rva >= s.rva && rva - s.rva < s.size)
            return s.executable;
    }
    return false;
}

/* Where ring 3 was when it came here last, and the program's own routine that called that, as far
 * as the stack shows it. */
static size_t put_user_place(char *line, size_t capacity, const struct thread *t)
{
    const struct trap_frame *frame = context_frame(t);
    const struct image *image = image_at(t->process, frame->rip);
    char symbol[120];
    size_t n = 0;
    if (program_symbol(t->process, frame->rip, symbol, sizeof symbol))
        n = print_to(line, capacity, ", at %s", symbol);
    for (unsigned i = 0; image && i < STACK_WORDS; i++) {
        const uint64_t word = user_word(t->process, (frame->rsp & ~7ul) + 8 * i);
        const struct image *at = word ? image_at(t->process, word) : NULL;
        const struct image *first = image_at(t->process, t->process->start);
        if (image == first)
            break;
        if (at && at == first && is_code(at, word) &&
            program_symbol(t->process, word, symbol, sizeof symbol))
            return n + print_to(line + n, capacity - n, ", called by %s", symbol);
    }
    return n;
}

/* The driver that a thread which does not run is in. */
static size_t put_driver_place(char *line, size_t capacity, const struct thread *t)
{
    const uint64_t *top = (const uint64_t *)(t->stack + KERNEL_STACK_SIZE);
    char place[96];
    for (const uint64_t *word = (const uint64_t *)t->rsp; word < top; word++)
        if (driver_at(*word)) {
            driver_place(*word, place, sizeof place);
            return print_to(line, capacity, ", in %s", place);
        }
    return 0;
}

static void print_thread(const struct thread *t)
{
    char line[LINE_MAX];
    struct moment m;
    look_at(t, &m);
    const size_t state = put_state(line, sizeof line, &m);
    size_t n = state;
    if (m.state != THREAD_RUNNING)
        n += put_driver_place(line + n, sizeof line - n, t);
    if (t->process)
        n += put_user_place(line + n, sizeof line - n, t);
    if (t->process || m.state == THREAD_RUNNING || driver_at((uint64_t)t->argument) || n > state)
        print("# thread %u (%s) %s\n", t->id, t->name, line);
}

static void print_all(void)
{
    struct thread *t;
    print_fresh_line();
    for (unsigned id = 0; (t = thread_after(id)); object_release(&t->object)) {
        id = t->id;
        if (t != thread_current())
            print_thread(t);
    }
}

void threads_wait(struct object *object)
{
    PVOID objects[] = { &object->header, &asked };
    while (KeWaitForMultipleObjects(2, objects, WaitAny, Executive, KernelMode, FALSE, NULL,
                                    NULL) != STATUS_WAIT_0)
        print_all();
}
