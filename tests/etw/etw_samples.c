/* SPDX-License-Identifier: MIT */
/* Records of samples, by time and by counters (ProfileConfig), and of changed intervals. */
#include "kernel/ke/etw_stream.h"
#include "tests/harness/etw.h"
#include "tests/harness/lab.h"

#define INSTRUCTIONS ProfileTotalIssues
#define CYCLES ProfileTotalCycles
#define PERIOD 20000u
#define SAMPLES 50u

static const ULONG none;

static NTSTATUS configure(const ULONG *sources, ULONG count)
{
    return session_list(EventTraceProfileConfigInformation, 0, sources, count);
}

/* Counts the samples in the rest of `all` that are in the loop, and checks that all are of this
 * source, these of this thread, and few are elsewhere. Those of idle threads are left out: where
 * HLT stops the timer, idle CPUs execute instructions. */
static ULONG count_samples(struct records all, KPROFILE_SOURCE source)
{
    ULONG n = 0, outside = 0;
    for (struct record r; (r = next_record(&all)).header;) {
        const PERFINFO_PMC_SAMPLE_INFORMATION *sample = r.payload;
        CHECK_EQ(r.header->HookId, PERFINFO_LOG_TYPE_PMC_INTERRUPT);
        CHECK_EQ(r.size, 16);
        CHECK_EQ(sample->ProfileSource, source);
        CHECK_EQ(sample->Reserved, 0);
        uint64_t ip = (uint64_t)sample->InstructionPointer;
        bool inside = ip >= (uint64_t)profile_loop_start && ip < (uint64_t)profile_loop_end;
        if (inside)
            CHECK_EQ(sample->ThreadId, thread_current()->id);
        n += inside;
        outside += !inside && sample->ThreadId;
    }
    CHECK(outside < n);
    return n;
}

static void end_session(struct session *s, uint8_t *bytes)
{
    session_end(s, bytes);
    CHECK_STATUS(configure(&none, 0), STATUS_SUCCESS);
}

/* Samples by a source that the session did not ask for, as by an object of profiling, are not
 * recorded. */
static void sample_by(struct session *s, uint8_t *bytes, KPROFILE_SOURCE source)
{
    unsigned samples = test_long() ? SAMPLES : SAMPLES / 5;
    CHECK_STATUS(session_mask(s, PERF_PMC_PROFILE, 0), STATUS_SUCCESS);
    CHECK_EQ(hal_counters_owned(), 1);
    uint64_t iterations =
        lab_instructions(source == CYCLES ? PMU_CYCLES : PMU_INSTRUCTIONS, PERIOD * samples) / 10;
    profile_loop_alone(iterations);
    sample_at((uint64_t)profile_loop_start, source == CYCLES ? INSTRUCTIONS : CYCLES);
    struct records all = session_drain(s, bytes);
    CHECK_EQ(hal_counters_owned(), 0);
    /* Instructions, and cycles, of which there are so many by what was measured. The first and the
     * last period are not whole. A real processor's cycles may be twice as many. */
    ULONG n = count_samples(all, source);
    CHECK_RANGE(n, samples - 2, 2 * samples * iterations / (PERIOD * samples / 10));
}

TEST(etw_samples, counters,
     "a configured source makes records of samples; a new configuration replaces the old one, "
     "also during sampling [ET-39 ET-40 ET-42 slow]")
{
    static const ULONG sources[] = { INSTRUCTIONS, CYCLES };
    ULONG before[2];
    struct session s;
    uint8_t *bytes;
    ULONG n = hal_source_supported(CYCLES) ? 2 : 1;
    SKIP_WITHOUT_PMU();
    SKIP_IF_STEPPED();
    REQUIRE(session_begin(&s, &bytes));
    for (ULONG i = 0; i < n; i++) {
        before[i] = hal_source_interval((KPROFILE_SOURCE)sources[i]);
        hal_source_set_interval((KPROFILE_SOURCE)sources[i], PERIOD);
        CHECK_STATUS(configure(&sources[i], 1), STATUS_SUCCESS);
        sample_by(&s, bytes, (KPROFILE_SOURCE)sources[i]);
    }
    /* A change during sampling: the first source's records are read before the second one's. */
    CHECK_STATUS(configure(sources, 1), STATUS_SUCCESS);
    CHECK_STATUS(session_mask(&s, PERF_PMC_PROFILE, 0), STATUS_SUCCESS);
    profile_loop(PERIOD);
    CHECK_STATUS(configure(sources + n - 1, 1), STATUS_SUCCESS);
    session_drain(&s, bytes);
    sample_by(&s, bytes, (KPROFILE_SOURCE)sources[n - 1]);
    /* A shorter list: the second source ends. */
    CHECK_STATUS(configure(sources, n), STATUS_SUCCESS);
    CHECK_STATUS(configure(sources, 1), STATUS_SUCCESS);
    sample_by(&s, bytes, (KPROFILE_SOURCE)sources[0]);
    for (ULONG i = 0; i < n; i++)
        hal_source_set_interval((KPROFILE_SOURCE)sources[i], before[i]);
    end_session(&s, bytes);
}

/* At each sample the counter of the list has counted one period more than at that before, but for
 * handlers and what interrupts are late, where none was lost. */
TEST(etw_samples, with_counters,
     "records of samples carry counters, as those of context switches do, on all processors at "
     "once")
{
    static const ULONG source = INSTRUCTIONS,
                       hooks[] = { PERFINFO_LOG_TYPE_PMC_INTERRUPT, PERFINFO_LOG_TYPE_CONTEXTSWAP };
    ULONG before, samples[MAX_CPUS] = { 0 }, swaps = 0;
    uint64_t lost[MAX_CPUS] = { 0 };
    int64_t least[MAX_CPUS] = { 0 }, most[MAX_CPUS] = { 0 }; /* a counter is ahead by so much */
    struct session s;
    uint8_t *bytes;
    SKIP_WITHOUT_PMU();
    SKIP_IF_STEPPED();
    REQUIRE(session_begin(&s, &bytes));
    before = hal_source_interval(INSTRUCTIONS);
    hal_source_set_interval(INSTRUCTIONS, PERIOD);
    for (unsigned cpu = 0; cpu < cpu_count; cpu++)
        lost[cpu] = hal_profile_lost[cpu];
    CHECK_STATUS(configure(&source, 1), STATUS_SUCCESS);
    CHECK_STATUS(counter_list(&s, &source, 1), STATUS_SUCCESS);
    CHECK_STATUS(event_list(&s, hooks, 2), STATUS_SUCCESS);
    CHECK_STATUS(session_mask(&s, PERF_PMC_PROFILE | PERF_CONTEXT_SWITCH, 0), STATUS_SUCCESS);
    for (unsigned cpu = 0; cpu < cpu_count; cpu++) {
        test_run_on(cpu);
        profile_loop(PERIOD * 20 / 10);
    }
    struct records all = session_drain(&s, bytes);
    for (struct record r; (r = next_record(&all)).header;) {
        unsigned cpu = r.buffer->ClientContext.ProcessorIndex % MAX_CPUS;
        REQUIRE(r.count == 1);
        swaps += r.header->HookId == PERFINFO_LOG_TYPE_CONTEXTSWAP;
        if (r.header->HookId != PERFINFO_LOG_TYPE_PMC_INTERRUPT)
            continue;
        int64_t now = (int64_t)(r.counters[0] - samples[cpu] * (uint64_t)PERIOD);
        bool first = !samples[cpu]++;
        least[cpu] = first || now < least[cpu] ? now : least[cpu];
        most[cpu] = first || now > most[cpu] ? now : most[cpu];
    }
    for (unsigned cpu = 0; cpu < cpu_count; cpu++) {
        int64_t latest = pmu_of(cpu)->measured.skid.high;
        CHECK_RANGE(samples[cpu], 19, 1000); /* the loop alone has 20 periods */
        if (hal_profile_lost[cpu] == lost[cpu])
            CHECK(most[cpu] - least[cpu] <= 1000 + 2 * (latest > 0 ? latest : 0));
    }
    CHECK(cpu_count == 1 || swaps >= 2 * (cpu_count - 1));
    hal_source_set_interval(INSTRUCTIONS, before);
    end_session(&s, bytes);
}

TEST(etw_samples, refusals, "five sources, unknown sources and time are refused [ET-41]")
{
    static const ULONG five[9] = { INSTRUCTIONS, INSTRUCTIONS, INSTRUCTIONS, INSTRUCTIONS,
                                   INSTRUCTIONS },
                       time = ProfileTime, unknown = 0xFE, large = 0x10002;
    CHECK_STATUS(configure(five, 5), STATUS_INVALID_PARAMETER);
    CHECK_STATUS(configure(five, 9), STATUS_INVALID_PARAMETER);
    CHECK_STATUS(configure(&time, 1), STATUS_NOT_SUPPORTED);
    CHECK_STATUS(configure(&unknown, 1), STATUS_NOT_SUPPORTED);
    CHECK_STATUS(configure(&large, 1), STATUS_NOT_SUPPORTED);
}

/* --- Samples of time, of two threads that take turns on one processor, each in code of its own.
 * --- */

static uint64_t ended; /* atomic */

static void other_loop(void *)
{
    while (!__atomic_load_n(&ended, __ATOMIC_ACQUIRE))
        lab_loop(1000);
}

/* Until so many samples were due here: a host may let few of them come. */
static void loop_for(uint64_t samples)
{
    uint64_t interval_ns = hal_source_interval(ProfileTime) * 100ul, tick_ns = sched_tick_ns();
    uint64_t ticks = samples * (interval_ns > tick_ns ? interval_ns / tick_ns : 1);
    const volatile uint64_t *now = &cpus[0]->ticks;
    for (uint64_t until = *now + ticks; *now < until;)
        profile_loop(1000);
}

/* Numbers of samples on processor 0, by code, and of those on other processors. */
struct met {
    ULONG loop, other_loop, elsewhere, on_others;
};

static void check_sample(struct met *met, const struct record *r, ULONG other)
{
    const PERFINFO_SAMPLED_PROFILE_INFORMATION *sample = r->payload;
    uint64_t ip = (uint64_t)sample->InstructionPointer;
    CHECK_EQ(r->header->HookId, PERFINFO_LOG_TYPE_SAMPLED_PROFILE);
    CHECK_EQ(r->size, 16);
    CHECK_EQ(sample->Count, 1);
    CHECK_EQ(sample->Flags & (PROFILE_IN_DPC | PROFILE_IN_ISR), 0);
    ULONG priority = sample->Flags >> PROFILE_PRIORITY_SHIFT, thread = 0;
    CHECK_EQ(priority == 0, sample->ThreadId == 0); /* idle */
    if (r->buffer->ClientContext.ProcessorIndex) {
        met->on_others++;
    } else if (ip >= (uint64_t)profile_loop_start && ip < (uint64_t)profile_loop_end) {
        thread = thread_current()->id;
        met->loop++;
    } else if (ip >= (uint64_t)lab_loop && ip < (uint64_t)lab_memory) {
        thread = other;
        met->other_loop++;
    } else {
        met->elsewhere++;
    }
    if (thread) {
        CHECK_EQ(sample->ThreadId, thread);
        CHECK_EQ(priority, 8);
    }
}

TEST(etw_samples, time,
     "time samples have the interrupted address and thread, and neither the DPC nor the ISR bit, "
     "at DISPATCH_LEVEL too [ET-43 slow]")
{
    struct session s;
    uint8_t *bytes;
    struct met met = { 0, 0, 0, 0 };
    REQUIRE(session_begin(&s, &bytes));
    __atomic_store_n(&ended, 0, __ATOMIC_RELEASE);
    struct thread *other = team_start(other_loop, NULL, cpu_set_one(0), 8);
    REQUIRE(other != NULL);
    uint64_t ticks = cpus[0]->ticks;
    CHECK_STATUS(session_mask(&s, PERF_PROFILE, 0), STATUS_SUCCESS);
    loop_for(50);
    KIRQL old = irql_raise(DISPATCH_LEVEL);
    loop_for(15);
    irql_lower(old);
    struct records all = session_drain(&s, bytes);
    ticks = cpus[0]->ticks - ticks;
    __atomic_store_n(&ended, 1, __ATOMIC_RELEASE);
    for (struct record r; (r = next_record(&all)).header;)
        check_sample(&met, &r, other->id);
    team_end(other);
    test_note("%u samples in one loop, %u in the other", met.loop, met.other_loop);
    /* No more than ticks came; the other has half of the time, or one iteration. */
    CHECK_RANGE(met.loop, 15, ticks);
    CHECK_RANGE(met.other_loop, 5, ticks);
    CHECK(met.elsewhere < met.loop);
    CHECK(cpu_count == 1 || met.on_others > 0);
    session_end(&s, bytes);
}

TEST(etw_samples, set_interval,
     "a change of the interval during sampling is recorded with both values [ET-46]")
{
    struct session s;
    uint8_t *bytes;
    ULONG before = hal_source_interval(ProfileTime), found = 0;
    REQUIRE(session_begin(&s, &bytes));
    CHECK_STATUS(NtSetIntervalProfile(20000, ProfileTime), STATUS_SUCCESS); /* nobody records */
    CHECK_STATUS(session_mask(&s, PERF_PROFILE, 0), STATUS_SUCCESS);
    CHECK_STATUS(NtSetIntervalProfile(1, ProfileTime), STATUS_SUCCESS);
    CHECK_STATUS(NtSetIntervalProfile(before, ProfileTime), STATUS_SUCCESS);
    struct records all = session_drain(&s, bytes);
    for (struct record r; (r = next_record(&all)).header;) {
        const PERFINFO_SAMPLED_PROFILE_CONFIG *change = r.payload;
        if (r.header->HookId != PERFINFO_LOG_TYPE_SAMPLED_PROFILE_SET_INTERVAL)
            continue;
        CHECK_EQ(r.size, sizeof *change);
        CHECK_EQ(change->Source, ProfileTime);
        CHECK_EQ(change->OldInterval, found ? 1221 : 20000);
        CHECK_EQ(change->NewInterval, found ? before : 1221);
        found++;
    }
    CHECK_EQ(found, 2);
    end_session(&s, bytes);
}
