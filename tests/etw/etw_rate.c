/* SPDX-License-Identifier: MIT */
/* Many events: with a fast reader none is lost, damaged or out of order; with a slow one the
 * number of lost events is exact. And the cost of a record. The events are invented creations of
 * threads, numbered in order. */
#include "kernel/ke/etw_stream.h"
#include "tests/harness/etw.h"
#include "tests/harness/kernel.h"

#define EVENTS 20000u   /* of each processor, or of more than eight 80,000 in all */
#define AHEAD 1000u     /* events that a writer may be ahead of the reader */
#define RECORD_MAX 104u /* of four counters, each with its LFENCE */
#define UNWANTED_MAX 3u

static unsigned each(void) { return cpu_count > 8 ? EVENTS * 4 / cpu_count : EVENTS; }

static struct writer {
    struct thread *thread;
    unsigned ahead;               /* 0: as fast as it can */
    uint64_t written;             /* atomic */
    uint64_t read, missing, next; /* the reader's */
    unsigned reported;            /* of losses: buffers with the flag */
} writers[MAX_CPUS];
static uint32_t go; /* atomic: 1 write, 2 end */

static void record(unsigned number)
{
    struct thread never = { .id = number };
    etw_thread(ETW_THREAD_CREATE, &never);
}

static void write_all(void *argument)
{
    struct writer *w = argument;
    while (!__atomic_load_n(&go, __ATOMIC_ACQUIRE))
        sched_switch(WrYieldExecution);
    for (unsigned i = 0; i < each(); i++) {
        while (w->ahead && i - __atomic_load_n(&w->read, __ATOMIC_ACQUIRE) >= w->ahead) {
            sched_switch(WrYieldExecution);
            pause();
        }
        record(i);
        __atomic_store_n(&w->written, i + 1, __ATOMIC_RELEASE);
    }
    while (__atomic_load_n(&go, __ATOMIC_ACQUIRE) != 2) { /* its end must not be an event */
        sched_switch(WrYieldExecution);
        pause();
    }
}

static bool start_rate(struct session *s, ULONG buffer_kb, ULONG buffers, unsigned ahead)
{
    go = 0;
    for (unsigned cpu = 0; cpu < cpu_count; cpu++) {
        writers[cpu] = (struct writer){ .ahead = ahead };
        writers[cpu].thread = thread_create("writer", write_all, &writers[cpu], cpu_set_one(cpu));
        if (!CHECK(writers[cpu].thread != NULL))
            return false;
    }
    ULONG most = (ULONG)(etw_memory_max() / 1024 / buffer_kb), all = buffers * cpu_count;
    return session_start(s, buffer_kb, all < most ? all : most) &&
           CHECK_STATUS(session_mask(s, PERF_THREAD, 0), STATUS_SUCCESS);
}

static void take_records(struct records all)
{
    for (struct record r; (r = next_record(&all)).header;) {
        struct writer *w = &writers[r.buffer->ClientContext.ProcessorIndex % MAX_CPUS];
        ULONG number = ((const WMI_EXTENDED_THREAD_INFORMATION *)r.payload)->ThreadId;
        CHECK_EQ(r.size, sizeof(WMI_EXTENDED_THREAD_INFORMATION));
        CHECK(number >= w->next);
        /* The flag is that of the buffer which begins after a gap, and of no other. */
        bool first = (const void *)r.header == (const void *)(r.buffer + 1);
        bool reported = r.buffer->BufferFlag & ETW_BUFFER_FLAG_EVENTS_LOST;
        CHECK_EQ(first && reported, number != w->next);
        w->reported += first && reported;
        w->missing += number - w->next;
        w->next = number + 1;
        __atomic_store_n(&w->read, w->read + 1, __ATOMIC_RELEASE);
    }
}

static void read_some(struct session *s, uint8_t *bytes)
{
    ULONG n;
    while (CHECK_STATUS(session_read(s, bytes, SESSION_BYTES, &n), STATUS_SUCCESS) && n)
        take_records(records_of(bytes, n));
}

static bool all_written(void)
{
    for (unsigned cpu = 0; cpu < cpu_count; cpu++)
        if (__atomic_load_n(&writers[cpu].written, __ATOMIC_ACQUIRE) < each())
            return false;
    return true;
}

static void finish_writers(void)
{
    __atomic_store_n(&go, 2, __ATOMIC_RELEASE);
    for (unsigned cpu = 0; cpu < cpu_count; cpu++)
        team_end(writers[cpu].thread);
}

static void none_lost(ULONG buffer_kb, ULONG buffers, unsigned ahead)
{
    struct session s;
    uint8_t *bytes = phys_alloc(SESSION_PAGES);
    REQUIRE(bytes && start_rate(&s, buffer_kb, buffers, ahead));
    __atomic_store_n(&go, 1, __ATOMIC_RELEASE);
    while (!all_written()) {
        session_flush(&s);
        read_some(&s, bytes);
        sched_switch(WrYieldExecution);
    }
    CHECK_STATUS(session_mask(&s, 0, 0), STATUS_SUCCESS);
    session_flush(&s);
    read_some(&s, bytes);
    CHECK_EQ(session_stop(&s), 0);
    session_close(&s);
    finish_writers();
    for (unsigned cpu = 0; cpu < cpu_count; cpu++) {
        CHECK_EQ(writers[cpu].read, each());
        CHECK_EQ(writers[cpu].missing, 0);
        CHECK(!writers[cpu].reported);
    }
    phys_free(bytes, SESSION_PAGES);
}

TEST(etw_rate, keeps_up,
     "20,000 events of each processor, of many 80,000 in all, reach a reader that keeps up: none "
     "is lost, all are whole and in order [slow]")
{
    none_lost(64, 32, 0);
    none_lost(16, 16, AHEAD);
}

TEST(etw_rate, loses,
     "with a slow reader, the events read and the events reported lost add up to all events [slow]")
{
    struct session s;
    WMI_LOGGER_INFORMATION info;
    uint8_t *bytes = phys_alloc(SESSION_PAGES);
    uint64_t read = 0, missing = 0;
    REQUIRE(bytes && start_rate(&s, 4, 2, 0));
    __atomic_store_n(&go, 1, __ATOMIC_RELEASE);
    while (!all_written()) {
        sched_wait(NULL, clock_ns() + 2000000, DelayExecution);
        read_some(&s, bytes);
    }
    CHECK_STATUS(session_mask(&s, 0, 0), STATUS_SUCCESS);
    read_some(&s, bytes);
    CHECK_STATUS(session_flush(&s), STATUS_SUCCESS);
    read_some(&s, bytes);
    for (unsigned cpu = 0; cpu < cpu_count; cpu++) {
        read += writers[cpu].read;
        missing += writers[cpu].missing + (each() - writers[cpu].next);
    }
    CHECK_STATUS(session_by_handle(EtwQueryLoggerCode, s.trace, &info), STATUS_SUCCESS);
    CHECK_EQ(info.EventsLost, missing);
    CHECK_EQ(read + info.EventsLost, (uint64_t)each() * cpu_count);
    CHECK(read > 0 && info.EventsLost > each() / 2);
    test_note("%lu events read, %u lost", read, info.EventsLost);
    CHECK_EQ(session_stop(&s), missing);
    session_close(&s);
    finish_writers();
    phys_free(bytes, SESSION_PAGES);
}

TEST(etw_rate, unread,
     "events that nobody reads are counted as lost when the session stops; a consumer can read on "
     "afterwards")
{
    struct session s;
    WMI_LOGGER_INFORMATION info;
    ULONG n;
    uint8_t *bytes = phys_alloc(SESSION_PAGES);
    REQUIRE(bytes && session_start(&s, 4, 2));
    session_close(&s);
    CHECK_STATUS(session_mask(&s, PERF_THREAD, 0), STATUS_SUCCESS);
    for (unsigned i = 0; i < 1000; i++)
        record(i);
    CHECK_EQ(session_stop(&s), 1000);
    REQUIRE(session_start(&s, 4, 2));
    CHECK_STATUS(session_mask(&s, PERF_THREAD, 0), STATUS_SUCCESS);
    test_run_on(0);
    for (unsigned i = 0; i < 1000; i++)
        record(i);
    CHECK_STATUS(session_by_handle(EtwQueryLoggerCode, s.trace, &info), STATUS_SUCCESS);
    CHECK_EQ(info.NumberOfBuffers - info.FreeBuffers, 1); /* full; the other one is still written */
    ULONG lost = session_stop(&s);
    writers[0] = (struct writer){ .next = 0 };
    while (NT_SUCCESS(session_read(&s, bytes, SESSION_BYTES, &n)))
        take_records(records_of(bytes, n));
    CHECK_STATUS(session_read(&s, bytes, SESSION_BYTES, &n), STATUS_WMI_INSTANCE_NOT_FOUND);
    CHECK_EQ(writers[0].read + lost, 1000);
    CHECK_RANGE(writers[0].read, 80, 92); /* two buffers of 4 KB less their heads, by 88 bytes */
    CHECK_EQ(writers[0].missing, 0);
    session_close(&s);
    test_run_anywhere();
    phys_free(bytes, SESSION_PAGES);
}

TEST(etw_rate, told_once, "only the buffer that begins after lost events has their flag")
{
    struct session s;
    uint8_t *bytes = phys_alloc(SESSION_PAGES);
    REQUIRE(bytes && session_start(&s, 4, 2 * cpu_count));
    CHECK_STATUS(session_mask(&s, PERF_THREAD, 0), STATUS_SUCCESS);
    test_run_on(0);
    writers[0] = (struct writer){ .next = 0 };
    for (unsigned i = 0; i < 1030; i++) {
        if (i >= 1000 && i % 10 == 0) {
            CHECK_STATUS(session_flush(&s), STATUS_SUCCESS);
            read_some(&s, bytes);
        }
        record(i);
    }
    CHECK_STATUS(session_flush(&s), STATUS_SUCCESS);
    read_some(&s, bytes);
    CHECK_EQ(writers[0].reported, 1);
    CHECK_EQ(writers[0].next, 1030);
    session_stop(&s);
    session_close(&s);
    test_run_anywhere();
    phys_free(bytes, SESSION_PAGES);
}

/* --- What it costs. --- */

/* Inlined. No compiler knows what the loop's counter becomes, so the loop is the same around each
 * function; a loop of one turn is none. */
static inline __attribute__((always_inline)) uint64_t cost_of_hook(void (*function)(void),
                                                                   unsigned times)
{
    KIRQL old = irql_raise(PROFILE_LEVEL);
    uint64_t before = vpmu_retired();
    for (unsigned i = 0; i < times; i++) {
        function();
        if (times > 1)
            asm volatile("" : "+r"(i));
    }
    uint64_t cost = vpmu_retired() - before;
    irql_lower(old);
    return cost;
}

static struct vpmu_accesses accesses_of_call(void (*function)(void))
{
    KIRQL old = irql_raise(PROFILE_LEVEL);
    struct vpmu_accesses before = vpmu_accesses();
    function();
    struct vpmu_accesses all = vpmu_accesses_since(before);
    irql_lower(old);
    return all;
}

static void empty_function(void) { asm volatile(""); }

static void unwanted(void)
{
    if (etw_wants(ETW_READY))
        etw_ready_thread(thread_current());
    asm volatile("");
}

static void swap_itself(void) { etw_context_swap(thread_current(), thread_current(), WrPreempted); }

TEST(etw_rate, cost,
     "a hook that no session has enabled costs at most 3 instructions, a context switch record "
     "with 4 counters 104")
{
    static const ULONG hook = PERFINFO_LOG_TYPE_CONTEXTSWAP;
    /* Three counters of some machines count instructions. */
    const ULONG sources[] = { ProfileTotalIssues, ProfileTotalIssues, ProfileTotalIssues,
                              hal_source_supported(ProfileTotalCycles) ? ProfileTotalCycles
                                                                       : ProfileTotalIssues };
    struct session s;
    ULONG counters = hal_counter_count() < 4 ? hal_counter_count() : 4;
    SKIP_WITHOUT_PMU();
    SKIP_WITHOUT_VPMU();
    test_run_on(0);
    uint64_t hook_cost = (cost_of_hook(unwanted, 1000) - cost_of_hook(empty_function, 1000)) / 1000;
    CHECK_RANGE(hook_cost, 1, UNWANTED_MAX);
    REQUIRE(session_start(&s, 16, 2));
    uint64_t swap_cost[2]; /* without counters, with them */
    struct vpmu_accesses accesses[2];
    for (unsigned with = 0; with < 2; with++) {
        if (with) {
            NTSTATUS status; /* the processor may have fewer that count it */
            while ((status = counter_list(&s, sources, counters)) ==
                       STATUS_INSUFFICIENT_RESOURCES &&
                   counters > 1)
                counters--;
            CHECK_STATUS(status, STATUS_SUCCESS);
            CHECK_STATUS(event_list(&s, &hook, 1), STATUS_SUCCESS);
        }
        CHECK_STATUS(session_mask(&s, PERF_CONTEXT_SWITCH, 0), STATUS_SUCCESS);
        swap_cost[with] = cost_of_hook(swap_itself, 1) - cost_of_hook(empty_function, 1);
        accesses[with] = accesses_of_call(swap_itself);
        CHECK_STATUS(session_mask(&s, 0, 0), STATUS_SUCCESS);
    }
    cost_tell(hook_cost, (struct vpmu_accesses){ 0 }, "a hook nobody wants");
    cost_tell(swap_cost[0], accesses[0], "a context switch record");
    cost_tell(swap_cost[1], accesses[1], "a context switch record with %u counters", counters);
    CHECK_RANGE(swap_cost[0], 20, RECORD_MAX); /* 48 bytes are written */
    CHECK_RANGE(swap_cost[1], swap_cost[0] + 4 * counters, RECORD_MAX);
    CHECK_EQ(session_stop(&s), 0);
    session_close(&s);
}
