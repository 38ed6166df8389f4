/* SPDX-License-Identifier: MIT */
/* Debug registers of threads. The thread itself changes them, or who has stopped it; interrupts are
 * off while they are in the processor and in the structure in different states. Sources: Intel SDM
 * vol. 3 "Debug, Branch Profile, TSC, and Resource Monitoring Features"; AMD APM vol. 2 "Software
 * Debug and Performance Resources". */
#include "kernel/ke/debug_registers.h"
#include "kernel/base/cpu.h"
#include "kernel/base/string.h"
#include "kernel/base/vectors.h"
#include "kernel/base/x86.h"
#include "kernel/ke/thread.h"

#define DR7_KEPT 0xffff0355u
#define DR7_LAST_BRANCH (1u << 8)
#define DR7_TRACE_BRANCH (1u << 9)
#define DR7_OFF 0x400u
#define DR6_KEPT 0xe00fu
#define DR6_BREAKPOINTS 15u
#define DR6_STEP (1u << 14)
#define DR6_NONE 0xffff0ff0u
#define ON_PORTS 2u /* R/W */

/* Dr7 without LE, GE, and breakpoints that the processor must not have. */
static uint64_t armed(const struct debug_registers *d)
{
    uint64_t dr7 = d->dr7 & ~(uint64_t)(DR7_LAST_BRANCH | DR7_TRACE_BRANCH);
    for (unsigned i = 0; i < 4; i++)
        if ((dr7 >> (16 + 4 * i) & 3) == ON_PORTS)
            dr7 &= ~(UINT64_C(1) << 2 * i);
    return dr7;
}

static bool watches(const struct debug_registers *d)
{
    return d->dr7 & (DR7_LAST_BRANCH | DR7_TRACE_BRANCH);
}

/* From an empty list. */
static void start_watching(struct debug_registers *d)
{
    d->control = hal_branches_watch(d->dr7 & DR7_LAST_BRANCH, d->dr7 & DR7_TRACE_BRANCH);
    d->before = hal_branches_exception();
}

/* The registers may still have the branches of another thread. */
static void note_branches(struct debug_registers *d)
{
    hal_branches_stop();
    struct hal_branch last = hal_branches_last(USER_END), exception = hal_branches_exception();
    bool recorded = d->dr7 & DR7_LAST_BRANCH;
    if (recorded && last.from)
        d->last = last;
    if (recorded && (exception.from != d->before.from || exception.to != d->before.to) &&
        exception.from < USER_END && exception.to < USER_END)
        d->exception = exception;
}

static void load_registers(struct debug_registers *d)
{
    write_dr0(d->address[0]);
    write_dr1(d->address[1]);
    write_dr2(d->address[2]);
    write_dr3(d->address[3]);
    write_dr7(armed(d) | DR7_OFF);
    if (watches(d))
        start_watching(d);
}

static void unload_registers(struct debug_registers *d)
{
    write_dr7(DR7_OFF);
    if (watches(d))
        note_branches(d);
}

void debug_switch(struct thread *from, struct thread *to)
{
    if (from->at_switch & SWITCH_DEBUG)
        unload_registers(&from->debug);
    if (to->at_switch & SWITCH_DEBUG)
        load_registers(&to->debug);
}

void debug_get(const struct thread *thread, CONTEXT *c)
{
    const struct debug_registers *d = &thread->debug;
    c->Dr0 = d->address[0], c->Dr1 = d->address[1], c->Dr2 = d->address[2], c->Dr3 = d->address[3];
    c->Dr6 = d->dr6, c->Dr7 = d->dr7;
    c->DebugControl = d->control;
    c->LastBranchToRip = d->last.to, c->LastBranchFromRip = d->last.from;
    c->LastExceptionToRip = d->exception.to, c->LastExceptionFromRip = d->exception.from;
}

static struct debug_registers sanitize(const CONTEXT *c)
{
    struct debug_registers d = { .address = { c->Dr0, c->Dr1, c->Dr2, c->Dr3 },
                                 .dr6 = c->Dr6 & DR6_KEPT,
                                 .dr7 = c->Dr7 & DR7_KEPT };
    for (unsigned i = 0; i < 4; i++)
        if (d.address[i] >= USER_END)
            d.address[i] = 0;
    return d;
}

static bool in_use(const struct debug_registers *d)
{
    return armed(d) & (1u << 0 | 1u << 2 | 1u << 4 | 1u << 6) || watches(d);
}

void debug_set(struct thread *thread, const CONTEXT *context)
{
    struct debug_registers next = sanitize(context);
    uint64_t flags = read_flags();
    cli();
    bool here = thread == thread_current();
    if (here && thread->at_switch & SWITCH_DEBUG)
        unload_registers(&thread->debug);
    thread->debug = next;
    if (in_use(&next))
        thread->at_switch |= SWITCH_DEBUG;
    else
        thread->at_switch &= ~(uint64_t)SWITCH_DEBUG;
    if (here && thread->at_switch & SWITCH_DEBUG)
        load_registers(&thread->debug);
    write_flags(flags);
}

/* The processor may set bits of breakpoints that match and are not enabled. */
static uint64_t take_dr6(uint64_t dr7)
{
    uint64_t dr6 = read_dr6() & DR6_KEPT;
    write_dr6(DR6_NONE);
    for (unsigned i = 0; i < 4; i++)
        if (!(dr7 >> 2 * i & 3))
            dr6 &= ~(UINT64_C(1) << i);
    return dr6;
}

void debug_trapped(void)
{
    struct thread *me = thread_current();
    me->debug.dr6 = take_dr6(armed(&me->debug));
    if (!watches(&me->debug))
        return;
    note_branches(&me->debug);
    start_watching(&me->debug); /* the processor has turned it off */
}

/* A breakpoint of ring 3's at an access of ours, or, after MOV SS, at ours to the first instruction
 * of an entry; so may ring 3's step. */
bool debug_is_users(const struct trap_frame *frame)
{
    uint64_t dr6 = take_dr6(read_dr7());
    return dr6 & DR6_BREAKPOINTS || (dr6 & DR6_STEP && !(frame->rflags & RFLAGS_TF));
}
