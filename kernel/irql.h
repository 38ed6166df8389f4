/* SPDX-License-Identifier: MIT */
/* IRQL is CR8: a vector v interrupts only below IRQL v >> 4. */
#pragma once
#include "kernel/assert.h"
#include "kernel/nt.h"
#include "kernel/x86.h"

static inline KIRQL irql_current(void) { return (KIRQL)read_cr8(); }

static inline KIRQL irql_raise(KIRQL level)
{
    KIRQL old = irql_current();
    ASSERT(level >= old);
    write_cr8(level);
    return old;
}

/* Back to `old`; a switch that became due above DISPATCH_LEVEL happens here (sched.c). */
void irql_lower(KIRQL old);
