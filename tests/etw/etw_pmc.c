/* SPDX-License-Identifier: MIT */
/* Counters in records: which records have them, their number, order and values. The hook of
 * ready threads is called directly, so that only known work lies between two events. */
#include "kernel/ke/etw_stream.h"
#include "tests/harness/etw.h"
#include "tests/harness/kernel.h"

#define INSTRUCTIONS ProfileTotalIssues
#define BRANCHES ProfileBranchInstructions
#define LOOP_INSTRUCTIONS 10u /* profile_loop.asm; one of them is a branch */

extern void profile_loop(uint64_t iterations);

static const ULONG ready[] = { PERFINFO_LOG_TYPE_READY_THREAD };

/* Two sources that differ. The virtual PMU decodes what it counts as branches, which takes long,
 * and minutes with several CPUs: else ring 3's instructions, of which there are none, must do. */
static ULONG both[] = { INSTRUCTIONS, BRANCHES };
static unsigned other_each; /* the second one, in an iteration of the loop */

/* First three times the least, for the caches of a real machine, then some and many. */
static uint64_t iterations[] = { 1, 1, 1, 101, 0, 1 };
#define MARKS ARRAY_SIZE(iterations)
#define MANY 4

static bool begin_session(struct session *s, uint8_t **bytes)
{
    bool branches = cpu_count == 1 && test_long();
    both[1] = branches ? BRANCHES : INSTRUCTIONS | PROFILE_SOURCE_RING3;
    other_each = branches;
    iterations[MANY] = test_long() ? 1001 : 201;
    return session_begin(s, bytes);
}

/* Records events of this thread, with this many iterations of the loop after each and nothing
 * else in between. */
static void mark_events(unsigned n)
{
    KIRQL old = irql_raise(PROFILE_LEVEL);
    for (unsigned i = 0; i < n; i++) {
        asm volatile("" : "+r"(i)); /* every round is the same code */
        etw_ready_thread(thread_current());
        if (iterations[i])
            profile_loop(iterations[i]);
    }
    irql_lower(old);
}

/* The next record of mark. */
static struct record next_mark(struct records *all)
{
    struct record r;
    while ((r = next_record(all)).header &&
           ((const ETW_READY_THREAD_EVENT *)r.payload)->ThreadId != thread_current()->id)
        ;
    CHECK(r.header != NULL);
    return r;
}

/* The marks' records have `n` counters; element `which` counts `each` in an iteration. */
static void check_marks(struct records all, ULONG n, unsigned which, uint64_t each)
{
    uint64_t values[MARKS];
    for (unsigned i = 0; i < MARKS; i++) {
        struct record r = next_mark(&all);
        if (!r.header || !CHECK_EQ(r.count, n))
            return;
        CHECK_EQ(r.size, sizeof(ETW_READY_THREAD_EVENT));
        values[i] = r.counters[which];
    }
    uint64_t overhead = values[3] - values[2] - each;
    CHECK_EQ(values[2] - values[1], overhead + each);
    CHECK_EQ(values[4] - values[3], overhead + 101 * each);
    CHECK_EQ(values[5] - values[4], overhead + iterations[MANY] * each);
}

#define EARLY 300u /* iterations of the loop */

static void either_order(bool events_first)
{
    struct session s;
    uint8_t *bytes;
    REQUIRE(begin_session(&s, &bytes));
    if (events_first)
        CHECK_STATUS(event_list(&s, ready, 1), STATUS_SUCCESS);
    CHECK_STATUS(counter_list(&s, both, 2), STATUS_SUCCESS);
    profile_loop(EARLY); /* counts, though nothing is recorded yet */
    if (!events_first)
        CHECK_STATUS(event_list(&s, ready, 1), STATUS_SUCCESS);
    CHECK_STATUS(session_mask(&s, PERF_DISPATCHER, 0), STATUS_SUCCESS);
    mark_events(MARKS);
    struct records all = session_drain(&s, bytes), again = all;
    struct record first = next_mark(&again);
    REQUIRE(first.header && first.count == 2);
    uint64_t waits = cpu_count > 1 ? 1000000 : 0;
    uint64_t counted = first.counters[0] + (boot_wraps() ? BOOT_WRAPS_COUNTS : 0);
    CHECK_BECAUSE(counted & pmu_mask(pmu_here(), 0), EARLY * LOOP_INSTRUCTIONS,
                  EARLY * LOOP_INSTRUCTIONS + 50000 + waits,
                  "the loop, at most two calls that set the session up, which wait for other CPUs, "
                  "and interrupts");
    check_marks(all, 2, 0, LOOP_INSTRUCTIONS);
    check_marks(all, 2, 1, other_each);
    session_end(&s, bytes);
}

TEST(etw_pmc, values,
     "records of listed events carry the listed counters in order and exactly, whichever list was "
     "set first [ET-18 ET-23 ET-25 ET-26 ET-27 ET-28]")
{
    SKIP_WITHOUT_PMU();
    either_order(false);
    either_order(true);
}

/* One record of each of six kinds. */
static void record_kinds(void)
{
    KIRQL old = irql_raise(PROFILE_LEVEL);
    etw_thread(ETW_THREAD_CREATE, thread_current());
    etw_thread(ETW_THREAD_DELETE, thread_current());
    etw_syscall_enter(1);
    etw_syscall_exit(2);
    etw_ipi(3, NULL);
    etw_ready_thread(thread_current());
    irql_lower(old);
}

TEST(etw_pmc, one_list,
     "records of listed events have counters; with one list only, and for events that are not "
     "listed, they have none [ET-24 ET-26]")
{
    static const ULONG hooks[] = { PERFINFO_LOG_TYPE_READY_THREAD, WMI_LOG_TYPE_THREAD_DELETE,
                                   PERFINFO_LOG_TYPE_SYSCALL_EXIT, PERFINFO_LOG_TYPE_IPI };
    struct session s;
    uint8_t *bytes;
    SKIP_WITHOUT_PMU();
    for (unsigned lists = 0; lists < 4; lists++) { /* bit 0: counters, bit 1: events */
        ULONG seen = 0;
        REQUIRE(begin_session(&s, &bytes));
        if (lists & 1)
            CHECK_STATUS(counter_list(&s, both, 2), STATUS_SUCCESS);
        if (lists & 2)
            CHECK_STATUS(event_list(&s, hooks, 4), STATUS_SUCCESS);
        EVENT_TRACE_GROUPMASK_INFORMATION info = { EventTraceGroupMaskInformation,
                                                   s.trace,
                                                   { { PERF_THREAD, PERF_MASK_BITS(PERF_DISPATCHER),
                                                       PERF_MASK_BITS(PERF_SYSCALL) |
                                                           PERF_MASK_BITS(PERF_IPI) } } };
        CHECK_OK(NtSetSystemInformation(SystemPerformanceTraceInformation, &info, sizeof info));
        record_kinds();
        struct records all = session_drain(&s, bytes);
        for (struct record r; (r = next_record(&all)).header;) {
            ULONG listed = 0;
            for (unsigned i = 0; i < 4; i++)
                listed |= (r.header->HookId == hooks[i]) << i;
            seen |= listed;
            CHECK_EQ(r.count, lists == 3 && listed ? 2 : 0);
        }
        CHECK_EQ(seen, 15);
        session_end(&s, bytes);
    }
}

/* The values of a processor never decrease, and are those of that processor. */
TEST(etw_pmc, processors,
     "records carry the counters of their own processor, which never decrease [ET-29]")
{
    struct session s;
    uint8_t *bytes;
    uint64_t last[MAX_CPUS] = { 0 };
    struct cpu_set seen = cpu_set_none();
    SKIP_WITHOUT_PMU();
    REQUIRE(begin_session(&s, &bytes));
    CHECK_STATUS(counter_list(&s, both, 1), STATUS_SUCCESS);
    CHECK_STATUS(event_list(&s, ready, 1), STATUS_SUCCESS);
    CHECK_STATUS(session_mask(&s, PERF_DISPATCHER, 0), STATUS_SUCCESS);
    for (unsigned i = 0; i < 5 * cpu_count; i++) {
        test_run_on(i % cpu_count);
        mark_events(MARKS);
    }
    struct records all = session_drain(&s, bytes);
    for (struct record r; (r = next_record(&all)).header;) {
        unsigned cpu = r.buffer->ClientContext.ProcessorIndex;
        REQUIRE(cpu < cpu_count && r.count == 1);
        CHECK(r.counters[0] > last[cpu]);
        last[cpu] = r.counters[0];
        if (((const ETW_READY_THREAD_EVENT *)r.payload)->ThreadId == thread_current()->id)
            cpu_set_add(&seen, cpu);
    }
    CHECK(cpu_set_equal(seen, cpu_all()));
    for (unsigned cpu = 0; cpu < cpu_count;
         cpu++) /* 5 times the iterations of all but the last mark, at the least */
        CHECK(last[cpu] > 5 * (104 + iterations[MANY]) * LOOP_INSTRUCTIONS);
    session_end(&s, bytes);
}

static bool begin_second(struct session *s)
{
    struct session_info d;
    session_describe(&d, "the other one");
    d.info.MaximumBuffers = 16;
    if (!CHECK_STATUS(session_control(EtwStartLoggerCode, &d), STATUS_SUCCESS))
        return false;
    s->trace = d.info.Wnode.HistoricalContext;
    return session_connect(s);
}

TEST(etw_pmc, two_sessions, "two sessions at once each record their own counters [ET-30]")
{
    struct session a, b;
    uint8_t *bytes, *more;
    SKIP_WITHOUT_PMU();
    more = phys_alloc(SESSION_PAGES);
    REQUIRE(more && begin_session(&a, &bytes) && begin_second(&b));
    CHECK_STATUS(counter_list(&a, both, 1), STATUS_SUCCESS);
    CHECK_STATUS(counter_list(&b, both + 1, 1), STATUS_SUCCESS);
    CHECK_STATUS(event_list(&a, ready, 1), STATUS_SUCCESS);
    CHECK_STATUS(event_list(&b, ready, 1), STATUS_SUCCESS);
    CHECK_STATUS(session_mask(&a, PERF_DISPATCHER, 0), STATUS_SUCCESS);
    CHECK_STATUS(session_mask(&b, PERF_DISPATCHER, 0), STATUS_SUCCESS);
    CHECK_EQ(hal_counters_owned(), 2 * cpu_count);
    mark_events(MARKS);
    check_marks(session_drain(&a, bytes), 1, 0, LOOP_INSTRUCTIONS);
    check_marks(session_drain(&b, more), 1, 0, other_each);
    CHECK_EQ(session_stop(&b), 0);
    session_close(&b);
    phys_free(more, SESSION_PAGES);
    session_end(&a, bytes);
}
