/* SPDX-License-Identifier: MIT */
/* A lock of a thread, for what is done at PASSIVE_LEVEL and across IPIs and switches. Who waits
 * sleeps, and gets it in the order of coming. A thread is not ended while it has one (thread_kill),
 * unless by force: then it gives up all that it has. */
#pragma once
#include "kernel/nt/nt_dispatcher.h"

struct thread;

struct mutex {
    const char *name;
    DISPATCHER_HEADER header; /* L: dispatcher lock (sched.h), as the rest */
    struct thread *owner;     /* NULL: free */
    struct mutex *next;       /* what else the owner has */
};

#define MUTEX(mutex_name)                                                                          \
    {                                                                                              \
        .name = (mutex_name)                                                                       \
    }

/* Waits for it and takes it; panics if the thread has it already. IRQL < DISPATCH_LEVEL. */
void mutex_acquire(struct mutex *mutex);
/* Gives up what was taken last. A thread that was to end ends here. */
void mutex_release(struct mutex *mutex);
/* For ending.c: the current thread, which ends, gives up whatever it has, and prints what that was. */
void mutex_abandon(void);
/* How often that happened: what such a mutex guards may be changed by half. */
unsigned mutex_abandoned(void);
