/* SPDX-License-Identifier: MIT */
/* Samples as events: of time, and of counters (ProfileConfig), and changed intervals. */
#include "hal/hal.h"
#include "kernel/cpu.h"
#include "kernel/phys.h"
#include "kernel/profile.h"
#include "kernel/sched.h"
#include "kernel/thread.h"
#include "tests/etw.h"

#define INSTRUCTIONS ProfileTotalIssues
#define CYCLES ProfileTotalCycles
#define PERIOD 20000u
#define SAMPLES 50u

extern void profile_loop(uint64_t turns);
extern const uint8_t profile_loop_start[], profile_loop_end[];

static const ULONG none;

static NTSTATUS configure(const ULONG *sources, ULONG count)
{
    return session_list(EventTraceProfileConfigInformation, 0, sources, count);
}

/* Samples by the source in what is left of `all`, of this thread inside the loop; of other sources none. */
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
        outside += !inside;
    }
    CHECK(outside < n);
    return n;
}

static void end(struct session *s, uint8_t *bytes)
{
    session_end(s, bytes);
    CHECK_STATUS(configure(&none, 0), STATUS_SUCCESS);
}

static void sample_by(struct session *s, uint8_t *bytes, KPROFILE_SOURCE source)
{
    CHECK_STATUS(session_mask(s, PERF_PMC_PROFILE, 0), STATUS_SUCCESS);
    CHECK_EQ(hal_counters_owned(), 1);
    profile_loop(PERIOD * SAMPLES / 10);
    struct records all = session_drain(s, bytes);
    CHECK_EQ(hal_counters_owned(), 0);
    /* Instructions, and cycles of which the model has as many. A tenth may hit elsewhere: interrupts, which NMIs sample
     * too, and what the session itself does; a real processor's cycles may be twice as many. */
    ULONG n = count_samples(all, source);
    CHECK_RANGE(n, SAMPLES * 9 / 10, 2 * SAMPLES);
}

TEST(etw_samples, counters, "counters that are configured sample into records; a new configuration replaces the old one, also "
     "while it runs [ET-39 ET-40 ET-42]")
{
    static const ULONG sources[] = { INSTRUCTIONS, CYCLES };
    ULONG before[2];
    struct session s;
    uint8_t *bytes;
    ULONG n = hal_source_supported(CYCLES) ? 2 : 1;
    SKIP_WITHOUT_PMU();
    REQUIRE(session_begin(&s, &bytes));
    for (ULONG i = 0; i < n; i++) {
        before[i] = hal_source_interval((KPROFILE_SOURCE)sources[i]);
        hal_source_set_interval((KPROFILE_SOURCE)sources[i], PERIOD);
        CHECK_STATUS(configure(&sources[i], 1), STATUS_SUCCESS);
        sample_by(&s, bytes, (KPROFILE_SOURCE)sources[i]);
    }
    /* While it runs: what the first one has recorded by then is read before the second one's. */
    CHECK_STATUS(configure(sources, 1), STATUS_SUCCESS);
    CHECK_STATUS(session_mask(&s, PERF_PMC_PROFILE, 0), STATUS_SUCCESS);
    profile_loop(PERIOD);
    CHECK_STATUS(configure(sources + n - 1, 1), STATUS_SUCCESS);
    session_drain(&s, bytes);
    sample_by(&s, bytes, (KPROFILE_SOURCE)sources[n - 1]);
    for (ULONG i = 0; i < n; i++)
        hal_source_set_interval((KPROFILE_SOURCE)sources[i], before[i]);
    end(&s, bytes);
}

/* At each sample the counter of the list says how many events there were since the one before: the period, more if the
 * interrupt was kept off for a while, and after that less. */
TEST(etw_samples, with_counters, "samples by counters carry counters, as context switches do, at once on all processors")
{
    static const ULONG source = INSTRUCTIONS, hooks[] = { PERFINFO_LOG_TYPE_PMC_INTERRUPT,
                                                          PERFINFO_LOG_TYPE_CONTEXTSWAP };
    ULONG before, samples[MAX_CPUS] = { 0 }, swaps = 0;
    uint64_t last[MAX_CPUS] = { 0 };
    struct session s;
    uint8_t *bytes;
    SKIP_WITHOUT_PMU();
    REQUIRE(session_begin(&s, &bytes));
    before = hal_source_interval(INSTRUCTIONS);
    hal_source_set_interval(INSTRUCTIONS, PERIOD);
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
        if (samples[cpu]++)
            CHECK_RANGE(r.counters[0] - last[cpu], PERIOD - 1000, PERIOD + 1000);
        last[cpu] = r.counters[0];
    }
    for (unsigned cpu = 0; cpu < cpu_count; cpu++)
        CHECK_RANGE(samples[cpu], 19, 1000); /* the loop alone has 20 periods */
    CHECK(cpu_count == 1 || swaps >= 2 * (cpu_count - 1));
    hal_source_set_interval(INSTRUCTIONS, before);
    end(&s, bytes);
}

TEST(etw_samples, refusals, "five sources, sources that there are not, time, and counters that somebody has [ET-41]")
{
    static const ULONG five[9] = { INSTRUCTIONS, INSTRUCTIONS, INSTRUCTIONS, INSTRUCTIONS, INSTRUCTIONS },
                       time = ProfileTime, unknown = 0xFE, large = 0x10002;
    struct session s;
    uint8_t *bytes;
    HANDLE all;
    CHECK_STATUS(configure(five, 5), STATUS_INVALID_PARAMETER);
    CHECK_STATUS(configure(five, 9), STATUS_INVALID_PARAMETER);
    CHECK_STATUS(configure(&time, 1), STATUS_NOT_SUPPORTED);
    CHECK_STATUS(configure(&unknown, 1), STATUS_NOT_SUPPORTED);
    CHECK_STATUS(configure(&large, 1), STATUS_NOT_SUPPORTED);
    SKIP_WITHOUT_PMU();
    REQUIRE(session_begin(&s, &bytes));
    CHECK_STATUS(configure(five, 1), STATUS_SUCCESS);
    REQUIRE_STATUS(HalAllocateHardwareCounters(NULL, 0, NULL, &all), STATUS_SUCCESS);
    CHECK_STATUS(session_mask(&s, PERF_PMC_PROFILE, 0), STATUS_DEVICE_BUSY);
    CHECK(!etw_wants(ETW_PMC) && !etw_wants(ETW_SAMPLES));
    CHECK_STATUS(session_mask(&s, PERF_PROFILE, 0), STATUS_SUCCESS); /* needs none */
    CHECK_STATUS(session_mask(&s, PERF_PROFILING, 0), STATUS_DEVICE_BUSY);
    CHECK(etw_wants(ETW_PROFILE) && !etw_wants(ETW_PMC));
    CHECK_STATUS(HalFreeHardwareCounters(all), STATUS_SUCCESS);
    CHECK_STATUS(session_mask(&s, PERF_PROFILING, 0), STATUS_SUCCESS);
    CHECK(etw_wants(ETW_PROFILE) && etw_wants(ETW_PMC));
    end(&s, bytes);
}

TEST(etw_samples, time, "samples of time carry the address and the thread that the timer met, and tell neither of DPC nor "
     "of interrupt [ET-43]")
{
    struct session s;
    uint8_t *bytes;
    ULONG inside = 0, elsewhere = 0, others = 0;
    REQUIRE(session_begin(&s, &bytes));
    CHECK_STATUS(session_mask(&s, PERF_PROFILE, 0), STATUS_SUCCESS);
    for (uint64_t until = sched_time_ns() + 30000000; sched_time_ns() < until;)
        profile_loop(1000);
    struct records all = session_drain(&s, bytes);
    for (struct record r; (r = next_record(&all)).header;) {
        const PERFINFO_SAMPLED_PROFILE_INFORMATION *sample = r.payload;
        uint64_t ip = (uint64_t)sample->InstructionPointer;
        CHECK_EQ(r.header->HookId, PERFINFO_LOG_TYPE_SAMPLED_PROFILE);
        CHECK_EQ(r.size, 16);
        CHECK_EQ(sample->Count, 1);
        CHECK_EQ(sample->Flags & (PROFILE_IN_DPC | PROFILE_IN_ISR), 0);
        CHECK_EQ(sample->Flags >> PROFILE_PRIORITY_SHIFT, sample->ThreadId ? 8 : 0);
        if (r.buffer->ClientContext.ProcessorIndex)
            others++;
        else if (ip >= (uint64_t)profile_loop_start && ip < (uint64_t)profile_loop_end)
            inside += sample->ThreadId == thread_current()->id;
        else
            elsewhere++;
    }
    CHECK_RANGE(inside, 15, 40); /* a sample a millisecond, or as often as the timer's turn comes */
    CHECK(elsewhere < inside);
    CHECK(cpu_count == 1 || others > 0);
    end(&s, bytes);
}

TEST(etw_samples, set_interval, "a changed interval is an event with both values, while samples are recorded [ET-46]")
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
    end(&s, bytes);
}
