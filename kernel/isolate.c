/* SPDX-License-Identifier: MIT */
/* The policy `isolate`: while a profiled thread runs, the counters hold its own counts, and all others are zero. A
 * switch stops the counters, saves them with RDPMC and writes the next thread's into them; nothing is written if the
 * same thread comes back and nobody came between. Without a global control register stopping costs a write for each
 * counter: there they run on, and every arrival writes them.
 *
 * What is written is the total, as far as the counter can be written (31 bits on the oldest processors); the thread's
 * 64-bit total is the sum of differences, as in the other policy. IPI_LEVEL, but join and leave. */
#include "kernel/isolate.h"
#include "hal/hal.h"
#include "kernel/cpu.h"
#include "kernel/counter_config.h"
#include "kernel/irql.h"
#include "kernel/sched.h"
#include "kernel/smp.h"
#include "kernel/x86.h"

bool isolate_on; /* written once, at boot */

static uint32_t joining;     /* atomic: a thread is joining or leaving */
static unsigned users;       /* L: joining */
static HANDLE others;        /* L: joining; the counters that are not configured, or NULL */
static uint64_t configured;  /* the counters that are; constant while there are users */
static uint64_t ran;         /* which of them the driver had running before, and no other will; the same */
static const struct thread_profiling *loaded[MAX_CPUS]; /* each its CPU's own: whose counts are in the counters */

static void lock(void)
{
    while (__atomic_exchange_n(&joining, 1, __ATOMIC_ACQUIRE))
        sched_switch(WrYieldExecution);
}

static void unlock(void) { __atomic_store_n(&joining, 0, __ATOMIC_RELEASE); }

static NTSTATUS first_user(void)
{
    configured = 0;
    for (ULONG i = 0; i < counter_config_count; i++)
        configured |= hal_counter_bit(counter_config[i].selector);
    ran = hal_counters_running() & configured;
    uint64_t rest = hal_counters() & ~configured;
    return rest ? hal_counters_claim("thread profiling, isolate", SMP_ALL, rest, NULL, &others) : STATUS_SUCCESS;
}

NTSTATUS isolate_join(struct thread_profiling *p)
{
    NTSTATUS status = STATUS_SUCCESS;
    p->loaded_on = ISOLATE_NONE;
    p->counters = 0;
    for (uint64_t left = p->active; left; left &= left - 1)
        p->counters |= hal_counter_bit(p->readings[__builtin_ctzl(left)].selector);
    lock();
    if (!users && hal_counters())
        status = first_user();
    if (NT_SUCCESS(status))
        users++;
    unlock();
    return status;
}

/* Their driver finds them running again. */
static void run_again(void *unused)
{
    (void)unused;
    hal_counters_run(configured, ran);
}

void isolate_leave(void)
{
    lock();
    if (--users == 0) {
        smp_call(SMP_ALL, run_again, NULL);
        if (others)
            HalFreeHardwareCounters(others);
        others = NULL;
    }
    unlock();
}

static void save(struct thread_profiling *p)
{
    for (uint64_t left = p->active; left; left &= left - 1) {
        unsigned i = (unsigned)__builtin_ctzl(left);
        struct reading *r = &p->readings[i];
        uint64_t value = rdpmc(r->selector);
        r->total += (value - r->start) & counter_config[i].width;
        r->start = value;
        p->block->HwCounters[i].Total = r->total;
        p->block->HwCounters[i].Start = value;
    }
}

static void load(struct thread_profiling *p)
{
    for (uint64_t rest = configured & ~p->counters; rest; rest &= rest - 1)
        hal_counter_write(rest & -rest, 0);
    for (uint64_t left = p->active; left; left &= left - 1) {
        unsigned i = (unsigned)__builtin_ctzl(left);
        struct reading *r = &p->readings[i];
        r->start = hal_counter_write(hal_counter_bit(r->selector), r->total);
        p->block->HwCounters[i].Start = r->start;
    }
}

void isolate_switch(struct thread_profiling *out, struct thread_profiling *in)
{
    unsigned cpu = cpu_number();
    bool stops = hal_counters_stop_at_once();
    if (out && out->mask) {
        if (stops)
            hal_counters_run(configured, 0);
        save(out);
    }
    if (!in || !in->mask)
        return;
    bool still_there = stops && loaded[cpu] == in && in->loaded_on == cpu && !(hal_counters_running() & configured);
    if (!still_there) {
        hal_counters_run(configured, stops ? 0 : in->counters & ran);
        load(in);
        loaded[cpu] = in;
        in->loaded_on = cpu;
    }
    hal_counters_run(configured, in->counters & ran);
}
