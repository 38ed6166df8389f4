/* SPDX-License-Identifier: MIT */
/* What surrounds a call of a driver's routine, at any IRQL: what the call saves is on its stack. */
#include "kernel/base/irql.h"
#include "kernel/base/x86.h"
#include "kernel/driver/bugcheck.h"
#include "kernel/driver/driver.h"
#include "kernel/ke/thread.h"

void driver_enter(struct driver_call *call, const void *routine)
{
    call->routine = (uint64_t)routine;
    call->irql = irql_current();
    if (call->irql < DISPATCH_LEVEL)
        thread_use_fpu();
    fxsave(call->fpu);
}

void driver_leave(struct driver_call *call)
{
    uint64_t irql = irql_current();
    if (irql != call->irql)
        bug_check_at(call->routine, IRQL_UNEXPECTED_VALUE,
                     (uint64_t[]){ irql, call->irql, call->routine, 0 },
                     "it returns at another IRQL than it was called at");
    fxrstor(call->fpu);
}
