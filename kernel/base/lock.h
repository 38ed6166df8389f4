/* SPDX-License-Identifier: MIT */
/* Spinlocks that know their owner. Each lock has one IRQL at which it is always taken. */
#pragma once
#include <stdint.h>
#include "kernel/nt/nt.h"

struct lock {
    const char *name;
    KIRQL irql;
    uint32_t owner; /* CPU number + 1, 0 free */
};

#define LOCK(lock_name, lock_irql)                                                                 \
    {                                                                                              \
        .name = (lock_name), .irql = (lock_irql)                                                   \
    }

/* Raises to the lock's IRQL, takes it, returns the old IRQL. Panics if this CPU has it already. */
KIRQL lock_acquire(struct lock *lock);
void lock_release(struct lock *lock, KIRQL irql);
