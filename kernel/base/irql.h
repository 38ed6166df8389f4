/* SPDX-License-Identifier: MIT */
/* IRQL is CR8: a vector v interrupts only below IRQL v >> 4. */
#pragma once
#include "kernel/base/assert.h"
#include "kernel/base/x86.h"
#include "kernel/nt/nt.h"

static inline KIRQL irql_current(void) { return (KIRQL)read_cr8(); }

static inline KIRQL irql_raise(KIRQL level)
{
    KIRQL old = irql_current();
    ASSERT(level >= old);
    write_cr8(level);
    return old;
}

/* Back to `old`. A switch that became due meanwhile is an interrupt of DISPATCH_LEVEL, which comes
 * now (sched.c). */
void irql_lower(KIRQL old);
