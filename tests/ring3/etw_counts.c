/* SPDX-License-Identifier: MIT */
/* Two independent ways to one number: what threads have counted, by context switch records and by
 * thread profiling. */
#include "tests/ring3/etw.h"

#define THREADS 8
#define YIELDS_OF_SWITCH 15 /* at most, of a worker, however few share its processor */
#define CPUS 64
#define BUFFER_KB 64
#define BYTES (2 * BUFFER_KB * 1024)
#define SOURCE ProfileTotalIssues /* instructions */

/* A thread's total up to its last switch, as the kernel shows it at some moment after that switch
 * and before the next. */
struct moment {
    uint64_t total, tsc, switches;
};

static struct worker {
    uint64_t iterations, yields;
    ULONG id, n;     /* n: stretches of the thread between the moments */
    uint64_t traced; /* what they have counted, by the records */
    struct moment first, last;
} workers[THREADS];

/* What a processor's records have said so far. */
static struct {
    bool known;
    uint64_t value;
} cpus[CPUS];

static uint64_t arrived; /* atomic: workers that may begin, all of them together */

static struct moment moment_of(const THREAD_PERFORMANCE_DATA *block)
{
    struct moment m;
    uint64_t updates;
    do {
        updates = __atomic_load_n(&block->UpdateCount, __ATOMIC_ACQUIRE);
        m.total = __atomic_load_n(&block->HwCounters[0].Total, __ATOMIC_ACQUIRE);
        m.switches = __atomic_load_n(&block->ContextSwitches, __ATOMIC_ACQUIRE);
        m.tsc = __rdtsc();
    } while (updates != __atomic_load_n(&block->UpdateCount, __ATOMIC_ACQUIRE));
    return m;
}

/* Often enough since the first moment. */
static bool switched(const struct worker *w, const THREAD_PERFORMANCE_DATA *block)
{
    return moment_of(block).switches - w->first.switches >= w->yields / YIELDS_OF_SWITCH;
}

static DWORD work_counted(PVOID argument)
{
    struct worker *w = argument;
    HANDLE profile = NULL;
    bool enabled = CHECK_EQ(
        EnableThreadProfiling(GetCurrentThread(), THREAD_PROFILING_FLAG_DISPATCH, 1, &profile), 0);
    Sleep(1); /* a switch, which ends the stretch that the enable began in its middle */
    __atomic_fetch_add(&arrived, 1, __ATOMIC_ACQ_REL);
    if (!enabled)
        return 1;
    w->id = GetCurrentThreadId();
    /* Ready, not asleep: one that sleeps here wakes up ticks later than the first of them. */
    while (__atomic_load_n(&arrived, __ATOMIC_ACQUIRE) < THREADS) {
        _mm_pause();
        ZwYieldExecution();
    }
    w->first = moment_of(profile);
    for (uint64_t i = 0; i < w->yields || (i < 10 * w->yields && !switched(w, profile)); i++) {
        ring3_work(w->iterations + i % 7);
        ZwYieldExecution();
        if (i >= w->yields)
            Sleep(1);
    }
    Sleep(1); /* a switch, which ends the work's last stretch */
    w->last = moment_of(profile);
    return DisableThreadProfiling(profile);
}

static void take_record(const struct record *r)
{
    unsigned cpu = r->buffer->ClientContext.ProcessorIndex;
    const WMI_CONTEXTSWAP *swap = r->payload;
    uint64_t counted = r->counters[0] - cpus[cpu].value;
    for (struct worker *w = workers; w < workers + THREADS; w++)
        if (cpus[cpu].known && w->id == swap->OldThreadId && r->header->TimeStamp > w->first.tsc &&
            r->header->TimeStamp < w->last.tsc) {
            w->traced += counted;
            w->n++;
        }
    cpus[cpu].value = r->counters[0];
    cpus[cpu].known = true;
}

static void take_all_records(struct session *s, void *bytes)
{
    ULONG n = 0;
    CHECK_STATUS(session_flush(s), STATUS_SUCCESS);
    while (CHECK_STATUS(session_read(s, bytes, BYTES, &n), STATUS_SUCCESS) && n) {
        struct records all = records_of(bytes, n);
        for (struct record r; (r = next_record(&all)).header;)
            if (r.count != 1 || r.size != sizeof(WMI_CONTEXTSWAP))
                CHECK(!"a context switch with one counter");
            else
                take_record(&r);
    }
}

static bool set_up(struct session *s)
{
    HARDWARE_COUNTER counter = { PMCCounter, 0, SOURCE };
    ULONG source = SOURCE | PROFILE_SOURCE_RING3, hook = PERFINFO_LOG_TYPE_CONTEXTSWAP;
    return CHECK_STATUS(KeSetHardwareCounterConfiguration(&counter, 1), STATUS_SUCCESS) &&
           session_start(s, BUFFER_KB, 64) &&
           CHECK_STATUS(session_list(EventTraceProfileCounterListInformation, s->trace, &source, 1),
                        STATUS_SUCCESS) &&
           CHECK_STATUS(session_list(EventTraceProfileEventListInformation, s->trace, &hook, 1),
                        STATUS_SUCCESS) &&
           CHECK_STATUS(session_mask(s, PERF_CONTEXT_SWITCH, 0), STATUS_SUCCESS);
}

static void run_workers(uint64_t yields)
{
    HANDLE threads[THREADS];
    arrived = 0;
    for (unsigned i = 0; i < THREADS; i++) {
        workers[i] = (struct worker){ .iterations = 100 * i, .yields = yields };
        threads[i] = ring3_start(work_counted, &workers[i]);
    }
    for (unsigned i = 0; i < THREADS; i++)
        ring3_end(threads[i]);
}

void user_trace_counts(uint64_t yields)
{
    struct session s;
    uint8_t *bytes = ring3_pages(BYTES / RING3_PAGE);
    REQUIRE(bytes && set_up(&s));
    run_workers(yields);
    CHECK_STATUS(session_mask(&s, 0, 0), STATUS_SUCCESS);
    take_all_records(&s, bytes);
    CHECK_EQ(session_stop(&s), 0);
    session_close(&s);
    for (const struct worker *w = workers; w < workers + THREADS; w++) {
        CHECK_EQ(w->n, w->last.switches - w->first.switches);
        CHECK_EQ(w->traced, w->last.total - w->first.total);
        CHECK(w->traced > w->yields * w->iterations * 2); /* the work alone */
        user_values[0] += w->n;
    }
    CHECK_STATUS(KeSetHardwareCounterConfiguration(NULL, 0), STATUS_SUCCESS);
}
