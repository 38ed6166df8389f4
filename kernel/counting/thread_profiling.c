/* SPDX-License-Identifier: MIT */
/* Counting per thread: what a switch does. There are two policies (`counters=`):
 *
 *   accumulate  The counters run for ever, and a switch samples them: one RDPMC for each counter
 *               ends the old thread's time slice and begins the new one's. Nothing is written to
 *               the PMU. As far as is known NT does the same.
 *   isolate     The counters hold the running thread's own counts only (switch_counters.c).
 *
 * A thread's own totals live in its struct thread_profiling and are never read back from the
 * block, which is ring-3 memory: its pages are held and written through a window. Only the
 * thread itself changes its profiling (profiling_enable.c) and, at IPI_LEVEL on the CPU where it
 * runs, thread_profiling_refresh. */
#include "hal/measure_traps.h"
#include "hal/owners.h"
#include "kernel/counting/thread_profiling.h"
#include "kernel/base/bits.h"
#include "kernel/base/string.h"
#include "kernel/base/x86.h"
#include "kernel/counting/switch_counters.h"

/* tests/profiling/tp_cost.c counts its instructions. What ring 3 sees is written when a thread
 * arrives: only the thread itself reads its block. */

/* These take an element and its counterpart in the block by one `offset`, in bytes, so that one
 * register indexes all arrays: a thread with 4 counters arrives by 76 instructions, leaves by 68,
 * both by 102; gcc 12 makes 84, 72 and 111 of elements' numbers. */
static inline void end(struct reading *readings, size_t offset, uint64_t value, uint64_t mask)
{
    struct reading *r = (struct reading *)((char *)readings + offset);
    r->total += (value - r->start) & mask;
}

static inline void begin_reading(struct reading *readings, block_at_4 *block, size_t offset,
                                 uint64_t value)
{
    struct reading *r = (struct reading *)((char *)readings + offset);
    reading_at_4 *shown = (reading_at_4 *)((char *)block->HwCounters + offset);
    r->start = value;
    shown->Start = value;
    shown->Total = r->total;
}

static inline uint64_t now(const struct reading *readings, size_t offset)
{
    return rdpmc(((const struct reading *)((const char *)readings + offset))->selector);
}

static inline bool stale(const struct thread_profiling *p)
{
    return p->generation != __atomic_load_n(&counter_config_generation, __ATOMIC_ACQUIRE);
}

/* An emptied configuration ends sampling for good: another one cannot come while the thread is
 * enabled. The arrival or the interrupt in which this happens changes UpdateCount. */
static void drop_stale(struct thread_profiling *p)
{
    if (!stale(p))
        return;
    p->generation = __atomic_load_n(&counter_config_generation, __ATOMIC_ACQUIRE);
    p->active = 0;
    p->plain = 0;
    p->counters = 0;
    p->block->HwCountersCount = 0;
    p->block->CycleTime.Index &= (1u << THREAD_PROFILING_USUAL_SHIFT) - 1;
    p->lost = __atomic_load_n(&counter_config_lost, __ATOMIC_ACQUIRE) != COUNTERS_KEPT;
    if (p->lost) /* its readings are the service's, which refuses them */
        p->block->CycleTime.Index |= THREAD_PROFILING_NO_RDPMC;
}

bool thread_profiling_check(struct thread_profiling *p)
{
    if (p->active && !hal_counters_kept(p->counters)) {
        enum counters_lost kept = COUNTERS_KEPT; /* what was said stays so */
        __atomic_compare_exchange_n(&counter_config_lost, &kept, COUNTERS_LOST, false,
                                    __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
        __atomic_fetch_add(&counter_config_generation, 1, __ATOMIC_RELEASE);
        drop_stale(p);
        p->block->UpdateCount++;
    }
    return !p->lost;
}

/* Whether the first counter went back: it wrapped, or somebody has reset all. */
static inline bool went_back(uint64_t value)
{
    if (value < CPU_FIELD(counter_seen))
        return true;
    CPU_SET_FIELD(counter_seen, value);
    return false;
}

/* False: the counters were reset, and neither is sampled any more. */
static bool check_both(struct thread_profiling *out, struct thread_profiling *in)
{
    bool kept = !out || thread_profiling_check(out);
    return (!in || thread_profiling_check(in)) && kept;
}

/* Any elements, each counter read once. */
static void sample_any(struct thread_profiling *out, struct thread_profiling *in)
{
    uint64_t ends = out ? out->active : 0, begins = in ? in->active : 0;
    for_each_bit(i, ends | begins) {
        uint64_t value = rdpmc(counter_config[i].selector);
        if (i == 0 && went_back(value)) {
            CPU_SET_FIELD(counter_seen, value);
            if (!check_both(out, in))
                return;
        }
        if (ends >> i & 1)
            end(out->readings, i * sizeof(struct reading), value, counter_config_mask(i));
        if (begins >> i & 1)
            begin_reading(in->readings, in->block, i * sizeof(struct reading), value);
    }
}

/* Ring 3 may read counters only while a thread runs that enabled them, or never (`rdpmc=off`). */
static void allow_rdpmc(bool allow)
{
    uint64_t cr4 = read_cr4();
    write_cr4(allow ? cr4 | thread_profiling_pce : cr4 & ~(uint64_t)CR4_PCE);
}

__attribute__((noinline)) void thread_profiling_sample(struct thread_profiling *out,
                                                       struct thread_profiling *in)
{
    if (in)
        drop_stale(in);
    if (in && counter_config_uneven && !in->lost)
        in->block->CycleTime.Index = thread_profiling_unused_bits();
    if (isolate_on)
        isolate_switch(out, in);
    else
        sample_any(out, in);
    allow_rdpmc(in && in->mask);
}

/* The usual cases are plain: under accumulate, the first n elements, of one mask, of one thread
 * or the same of both. They call the general one as a tail call only, so no register needs to be
 * saved around it. */
static inline void sample_end(struct thread_profiling *p)
{
    size_t o = 0, last = p->plain, mask = p->value_mask;
    if (!last)
        return thread_profiling_sample(p, NULL);
    uint64_t value = now(p->readings, o);
    if (went_back(value))
        return thread_profiling_sample(p, NULL);
    for (;; value = now(p->readings, o)) {
        end(p->readings, o, value, mask);
        if ((o += sizeof(struct reading)) == last)
            break;
    }
    allow_rdpmc(false);
}

static inline void sample_begin(struct thread_profiling *p)
{
    size_t o = 0, last = p->plain;
    if (!last || stale(p))
        return thread_profiling_sample(NULL, p);
    block_at_4 *block = p->block;
    uint64_t value = now(p->readings, o);
    if (went_back(value))
        return thread_profiling_sample(NULL, p);
    for (;; value = now(p->readings, o)) {
        begin_reading(p->readings, block, o, value);
        if ((o += sizeof(struct reading)) == last)
            break;
    }
    allow_rdpmc(true);
}

static inline void sample_both(struct thread_profiling *out, struct thread_profiling *in)
{
    size_t o = 0, last = out->plain, mask = out->value_mask;
    if (!last || last != in->plain || stale(in))
        return thread_profiling_sample(out, in);
    block_at_4 *block = in->block;
    uint64_t value = now(out->readings, o);
    if (went_back(value))
        return thread_profiling_sample(out, in);
    for (;; value = now(out->readings, o)) {
        end(out->readings, o, value, mask);
        begin_reading(in->readings, block, o, value);
        if ((o += sizeof(struct reading)) == last)
            break;
    }
}

static inline void leave(struct thread_profiling *p, uint64_t tsc, KWAIT_REASON reason)
{
    block_at_4 *block = p->block;
    p->cycle_total += tsc - p->cycle_start;
    block->CycleTime.Total = p->cycle_total;
    p->switches++;
    /* The reader, who exchanges it, is the thread itself. */
    block->WaitReasonBitMap |= 1ul << reason;
}

static inline void arrive(struct thread_profiling *p, unsigned cpu, uint64_t tsc)
{
    block_at_4 *block = p->block;
    p->cycle_start = tsc;
    block->CycleTime.Start = tsc;
    block->ContextSwitches = p->switches;
    block->ProcessorNumber.Number = (UCHAR)cpu;
    block->UpdateCount++; /* if ring 3 writes it, only ring 3's own reads are affected */
}

bool thread_profiling_policy(const char *name)
{
    isolate_on = strcmp(name, "isolate") == 0;
    return isolate_on || strcmp(name, "accumulate") == 0;
}

void thread_profiling_switch(struct thread_profiling *out, struct thread_profiling *in,
                             unsigned cpu, KWAIT_REASON reason)
{
    lfence(); /* ring 3's instructions have retired: one for all counters, which count no others */
    uint64_t tsc = rdtsc();
    if (!in) {
        leave(out, tsc, reason);
        sample_end(out);
    } else if (!out) {
        arrive(in, cpu, tsc);
        sample_begin(in);
    } else {
        leave(out, tsc, reason);
        arrive(in, cpu, tsc);
        sample_both(out, in);
    }
}

void thread_profiling_begin(struct thread_profiling *p, unsigned cpu)
{
    lfence();
    arrive(p, cpu, rdtsc());
    thread_profiling_sample(NULL, p);
    thread_profiling_check(p);
}

void thread_profiling_exclude(struct thread_profiling *p, uint64_t ticks)
{
    p->cycle_start += ticks;
    p->block->CycleTime.Start = p->cycle_start;
    thread_profiling_check(p);
}

/* The counter may contain what the trap adds already, or only when ring 3 continues. The
 * kernel's total is right modulo 2^64 in both cases. In the block Start is moved, so that Total
 * remains that of the last switch. Where nothing was added, ring 3 need not read again.
 * NT: Windows reports what the counter counts. */
void thread_profiling_trapped(struct thread_profiling *p, enum hal_trap trap)
{
    uint64_t any = 0;
    for_each_bit(i, p->active) {
        uint64_t added = (uint64_t)hal_trap_adds(p->readings[i].counter, trap);
        p->readings[i].total -= added;
        p->taken_off[i] += added;
        p->block->HwCounters[i].Start += added;
        any |= added;
    }
    p->block->UpdateCount += any != 0;
}

void thread_profiling_refresh(struct thread_profiling *p)
{
    if (isolate_on)
        isolate_switch(p, NULL);
    drop_stale(p);
}
