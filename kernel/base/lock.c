/* SPDX-License-Identifier: MIT */
#include "kernel/base/lock.h"
#include "kernel/base/cpu.h"
#include "kernel/base/irql.h"

KIRQL lock_acquire(struct lock *lock)
{
    KIRQL old = irql_current();
    if (old > lock->irql)
        panic("lock %s taken at IRQL %u, its own is %u", lock->name, old, lock->irql);
    write_cr8(lock->irql);
    struct cpu *cpu = cpu_current();
    uint32_t me = cpu->number + 1, expected = 0;
    cpu->locks++;
    if (__atomic_load_n(&lock->owner, __ATOMIC_RELAXED) == me)
        panic("lock %s taken twice by CPU %u", lock->name, me - 1);
    while (!__atomic_compare_exchange_n(&lock->owner, &expected, me, false, __ATOMIC_ACQUIRE,
                                        __ATOMIC_RELAXED)) {
        expected = 0;
        pause();
    }
    return old;
}

void lock_release(struct lock *lock, KIRQL irql)
{
    struct cpu *cpu = cpu_current();
    ASSERT(lock->owner == cpu->number + 1);
    __atomic_store_n(&lock->owner, 0, __ATOMIC_RELEASE);
    cpu->locks--;
    irql_lower(irql);
}

void irql_lower(KIRQL old)
{
    ASSERT(old <= irql_current());
    write_cr8(old);
}
