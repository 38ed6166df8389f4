/* SPDX-License-Identifier: MIT */
/* A lock that a thread owns at PASSIVE_LEVEL, across IPIs and context switches. Threads that
 * wait for it sleep, and get it in the order of their requests. thread_kill does not end a
 * thread while it owns a mutex; by force it does, and the thread then releases all its
 * mutexes. */
#pragma once
#include "kernel/nt/nt_dispatcher.h"

struct thread;

struct mutex {
    const char *name;
    DISPATCHER_HEADER header; /* L: dispatcher lock (sched.h), as the rest */
    struct thread *owner;     /* NULL: free */
    struct mutex *next;       /* the next mutex that the owner holds */
};

#define MUTEX(mutex_name)                                                                          \
    {                                                                                              \
        .name = (mutex_name)                                                                       \
    }

/* Waits for the mutex and takes it; panics if the thread owns it already. IRQL < DISPATCH_LEVEL. */
void mutex_acquire(struct mutex *mutex);
/* Releases the mutex, which must be the one taken last. A thread that has been asked to end
 * meanwhile ends here. */
void mutex_release(struct mutex *mutex);
/* For ending.c: releases every mutex of the current thread, which ends, and prints their names. */
void mutex_abandon(void);
/* How many mutexes mutex_abandon has released: the data that they guard may be inconsistent. */
unsigned mutex_abandoned(void);
