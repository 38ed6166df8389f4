/* SPDX-License-Identifier: MIT */
/* The list of living threads. */
#include "kernel/base/lock.h"
#include "kernel/ke/thread.h"

static struct lock living_lock = LOCK("threads", DISPATCH_LEVEL);
static struct thread *newest; /* L: living_lock; idle threads excluded, by id */

void living_add(struct thread *thread)
{
    struct thread **link = &newest, *newer = NULL;
    KIRQL irql = lock_acquire(&living_lock);
    for (; *link && (*link)->id > thread->id; link = &newer->older)
        newer = *link;
    thread->older = *link;
    thread->newer = newer;
    if (*link)
        (*link)->newer = thread;
    *link = thread;
    lock_release(&living_lock, irql);
}

void living_remove(struct thread *thread)
{
    KIRQL irql = lock_acquire(&living_lock);
    *(thread->newer ? &thread->newer->older : &newest) = thread->older;
    if (thread->older)
        thread->older->newer = thread->newer;
    lock_release(&living_lock, irql);
}

struct thread *thread_after(unsigned id)
{
    struct thread *found = NULL;
    KIRQL irql = lock_acquire(&living_lock);
    for (struct thread *t = newest; t && t->id > id; t = t->older)
        found = t;
    if (found)
        object_hold(&found->object);
    lock_release(&living_lock, irql);
    return found;
}
