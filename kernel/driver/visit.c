/* SPDX-License-Identifier: MIT */
/* Entry to and return from drivers' routines. Any IRQL; what is saved lies on the caller's
 * stack. */
#include "kernel/base/irql.h"
#include "kernel/base/x86.h"
#include "kernel/driver/bugcheck.h"
#include "kernel/driver/driver.h"
#include "kernel/ke/thread.h"

void driver_enter(struct driver_visit *visit, const void *routine)
{
    visit->routine = (uint64_t)routine;
    visit->irql = irql_current();
    if (visit->irql < DISPATCH_LEVEL)
        thread_use_fpu();
    fxsave(visit->fpu);
}

void driver_leave(struct driver_visit *visit)
{
    uint64_t irql = irql_current();
    if (irql != visit->irql)
        bug_check_at(visit->routine, IRQL_UNEXPECTED_VALUE,
                     (uint64_t[]){ irql, visit->irql, visit->routine, 0 },
                     "it returns at another IRQL than it was called at");
    fxrstor(visit->fpu);
}
