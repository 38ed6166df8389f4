/* SPDX-License-Identifier: MIT */
/* The policy `isolate`: while a profiled thread runs, the counters hold its own counts, and all
 * other counters are zero. A switch stops the counters, saves them with RDPMC and loads the next
 * thread's counts; nothing is written if the same thread returns and no other profiled thread
 * ran in between. Without a global control register, stopping would cost a write for each
 * counter: there the counters run on, and every switch to a profiled thread loads them.
 *
 * A counter is loaded with the low bits of the total, as many as it takes (31 on the oldest
 * processors). The thread's 64-bit total is the sum of differences, as in the other policy.
 * IPI_LEVEL, except join and leave. */
#include "kernel/profiling/profiling_enable.h"
#include "kernel/counting/thread_profiling.h"
#include "hal/owners.h"
#include "hal/machine/smp.h"
#include "kernel/base/cpu.h"
#include "kernel/base/x86.h"
#include "kernel/ke/mutex.h"
#include "kernel/counting/switch_counters.h"

static struct mutex joining = MUTEX("isolate");
static unsigned users; /* L: joining */
static HANDLE others;  /* L: joining; claim on the counters not configured, or NULL */

static void note_running(void *)
{
    isolate_ran[cpu_number()] = hal_counters_running() & isolate_configured;
}

static NTSTATUS first_user(void)
{
    isolate_configured = 0;
    for (ULONG i = 0; i < counter_config_count; i++)
        isolate_configured |= hal_counter_bit(counter_config[i].selector);
    smp_call(SMP_ALL, note_running, NULL);
    return hal_counters_claim_others("thread profiling, isolate", isolate_configured, &others);
}

NTSTATUS isolate_join(struct thread_profiling *p)
{
    NTSTATUS status = STATUS_SUCCESS;
    p->loaded_on = ISOLATE_NONE;
    mutex_acquire(&joining);
    if (!users && hal_counters())
        status = first_user();
    if (NT_SUCCESS(status))
        users++;
    mutex_release(&joining);
    return status;
}

/* Restarts the counters that their driver had started. */
static void run_again(void *) { hal_counters_run(isolate_configured, isolate_ran[cpu_number()]); }

void isolate_leave(void)
{
    mutex_acquire(&joining);
    if (--users == 0) {
        smp_call(SMP_ALL, run_again, NULL);
        if (others)
            HalFreeHardwareCounters(others);
        others = NULL;
    }
    mutex_release(&joining);
}
