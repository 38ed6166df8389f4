/* SPDX-License-Identifier: MIT */
/* Branches before events: who may have the lists of branches, and what is in the records. */
#include "hal/branch_owner.h"
#include "kernel/ke/etw_stream.h"
#include "pmu/branches.h"
#include "tests/harness/etw.h"
#include "tests/harness/kernel.h"

#define NO_LOGGER 0x1234
#define HIDDEN_KERNEL 1u
#define ONLY_INDIRECT_CALLS (HAL_BRANCHES_FILTER & ~(HIDDEN_KERNEL | 0x10u))
#define ADDRESS 0x5ca1ab1e /* of a service, by which the test knows its own records */

static const ULONG hooks[] = { PERFINFO_LOG_TYPE_SYSCALL_ENTER, PERFINFO_LOG_TYPE_CONTEXTSWAP,
                               PERFINFO_LOG_TYPE_SAMPLED_PROFILE, PERFINFO_LOG_TYPE_READY_THREAD,
                               PERFINFO_LOG_TYPE_IPI };

static NTSTATUS branch_events(const struct session *s, const ULONG *list, ULONG count)
{
    return session_list(EventTraceLastBranchEventListInformation, s->trace, list, count);
}

TEST(etw_lbr, refusals,
     "options and events of a list of branches that are wrong, too many, or of no session are "
     "refused, and so are all where a processor has no list [ET-61 ET-62 slow]")
{
    struct session s = session_unread("one", SESSION_MODE),
                   plain = session_unread("plain", EVENT_TRACE_REAL_TIME_MODE),
                   none = { NO_LOGGER, NULL, 0 };
    ULONG unknown = 0x0525, class = EventTraceLastBranchConfigurationInformation;
    NTSTATUS there = hal_branches_can(0) ? STATUS_SUCCESS : STATUS_NOT_SUPPORTED;
    CHECK_STATUS(session_branches(&none, 0), STATUS_WMI_INSTANCE_NOT_FOUND);
    CHECK_STATUS(branch_events(&none, hooks, 1), STATUS_WMI_INSTANCE_NOT_FOUND);
    CHECK_STATUS(session_branches(&plain, 0), STATUS_INVALID_PARAMETER);
    CHECK_STATUS(branch_events(&plain, hooks, 1), STATUS_INVALID_PARAMETER);
    CHECK_STATUS(session_list(class, s.trace, hooks, 0), STATUS_INFO_LENGTH_MISMATCH);
    CHECK_STATUS(session_list(class, s.trace, hooks, 2), STATUS_INFO_LENGTH_MISMATCH);
    for (unsigned bit = 11; bit < 32; bit++)
        CHECK_STATUS(session_branches(&s, 1u << bit), STATUS_INVALID_PARAMETER);
    for (unsigned bit = 3; bit <= 5; bit++) /* a call stack without calls, or without returns */
        CHECK_STATUS(session_branches(&s, HAL_BRANCHES_CALL_STACK | 1u << bit),
                     STATUS_INVALID_PARAMETER);
    CHECK_STATUS(session_branches(&s, ETW_LBR_SAMPLED), STATUS_NOT_SUPPORTED);
    CHECK_STATUS(branch_events(&s, hooks, 0), STATUS_INVALID_PARAMETER);
    CHECK_STATUS(branch_events(&s, hooks, 5), STATUS_INVALID_PARAMETER);
    CHECK_STATUS(branch_events(&s, &unknown, 1), STATUS_NOT_SUPPORTED);
    for (unsigned bit = 0; bit <= 9; bit++)
        CHECK_STATUS(session_branches(&s, 1u << bit),
                     hal_branches_can(1u << bit) ? STATUS_SUCCESS : STATUS_NOT_SUPPORTED);
    CHECK_STATUS(branch_events(&s, hooks, 4), there);
    CHECK_STATUS(session_branches(&s, 0), there                 ? there
                                          : hal_branches_can(1) ? STATUS_WMI_ALREADY_ENABLED
                                                                : STATUS_SUCCESS);
    CHECK_EQ(session_stop(&plain), 0);
    CHECK_EQ(session_stop(&s), 0);
    CHECK_STATUS(branch_events(&s, hooks, 1), STATUS_WMI_INSTANCE_NOT_FOUND);
}

#define DEBUGCTL 0x1d9u
static unsigned recording, entries_left; /* atomic; of all processors */

static void look_at_list(void *)
{
    const struct pmu_branches *b = pmu_branches_of(pmu_here());
    struct pmu_branch list[PMU_BRANCHES_MAX];
    uint64_t flags = read_flags(), debugctl = 0;
    cli();
    rdmsr_fault(DEBUGCTL, &debugctl);
    if (debugctl & 3 || (b->depth && rdmsr(b->control) & b->enable))
        __atomic_fetch_add(&recording, 1, __ATOMIC_RELAXED);
    for (unsigned n = pmu_branches_read(b, list); n--;)
        if (list[n].from)
            __atomic_fetch_add(&entries_left, 1, __ATOMIC_RELAXED);
    write_flags(flags);
}

/* No processor records or steps from branch to branch, and the lists are empty. */
static void check_lists_are_off(void)
{
    recording = entries_left = 0;
    smp_call(SMP_ALL, look_at_list, NULL);
    CHECK_EQ(recording, 0);
    CHECK_EQ(entries_left, 0);
}

static __attribute__((noinline)) void first(void) { __asm__ volatile(""); }
static __attribute__((noinline)) void second(void) { __asm__ volatile("nop"); }
static __attribute__((noinline)) void third(void) { __asm__ volatile("nop; nop"); }
static void (*const called[])(void) = { first, second, third };

/* Two records, of which the second has what was called since the first. At IPI_LEVEL. */
static void call_between(void *)
{
    uint64_t flags = read_flags();
    cli();
    etw_syscall_enter(ADDRESS);
    for (unsigned i = 0; i < ARRAY_SIZE(called); i++) {
        void (*function)(void) = called[i];
        __asm__ volatile("" : "+r"(function)); /* not known: the call stays indirect */
        function();
    }
    etw_syscall_enter(ADDRESS + 1);
    write_flags(flags);
}

TEST(etw_lbr, whole_lists,
     "on every processor the record after an event has all branches since the event before that "
     "are not left out, the newest first, and nothing of others [ET-64 slow]")
{
    struct session s;
    uint8_t *bytes;
    ULONG count = 0, seen = 0;
    struct record event;
    const ETW_LAST_BRANCH *entries;
    if (!hal_branches_can(ONLY_INDIRECT_CALLS)) {
        struct session refused = session_unread("one", SESSION_MODE);
        CHECK_STATUS(session_branches(&refused, ONLY_INDIRECT_CALLS), STATUS_NOT_SUPPORTED);
        CHECK_EQ(session_stop(&refused), 0);
        return;
    }
    REQUIRE(session_begin(&s, &bytes));
    CHECK_STATUS(session_branches(&s, ONLY_INDIRECT_CALLS), STATUS_SUCCESS);
    CHECK_STATUS(branch_events(&s, hooks, 1), STATUS_SUCCESS);
    CHECK_STATUS(session_mask(&s, PERF_SYSCALL, 0), STATUS_SUCCESS);
    smp_call(SMP_ALL, call_between, NULL);
    struct records all = session_drain(&s, bytes);
    while ((entries = next_branches(&all, (USHORT)hooks[0], &event, &count)) != NULL) {
        const PERFINFO_SYSCALL_ENTER_DATA *enter = event.payload;
        if ((uint64_t)enter->SysCallAddr != ADDRESS + 1)
            continue;
        seen++;
        CHECK_EQ(count, ARRAY_SIZE(called));
        for (ULONG i = 0; i < count && i < ARRAY_SIZE(called); i++) {
            CHECK_EQ(entries[i].To, (uint64_t)called[ARRAY_SIZE(called) - 1 - i]);
            CHECK(entries[i].From - (uint64_t)call_between < 512);
            CHECK_EQ(entries[i].Reserved, 0);
        }
    }
    CHECK_EQ(seen, cpu_count);
    session_end(&s, bytes);
    check_lists_are_off();
}

#define SAMPLES (test_long() ? 50u : 20u)

static uint64_t ticks_of_all(void)
{
    uint64_t sum = 0;
    for (unsigned cpu = 0; cpu < cpu_count; cpu++)
        sum += __atomic_load_n(&cpus[cpu]->ticks, __ATOMIC_RELAXED);
    return sum;
}

/* By the timer that samples. It does not stand still while the virtual PMU reads a list; the clock
 * does. */
static uint64_t wait_ticks(uint64_t ticks)
{
    const uint64_t start = ticks_of_all();
    for (unsigned looks = 1; ticks_of_all() - start < ticks; looks++)
        pause_rarely(looks);
    return ticks_of_all() - start;
}

TEST(etw_lbr, samples,
     "1,000 samples a second of all processors together, each with its branches: none is lost, and "
     "each has a list [ET-65 slow]")
{
    struct session s;
    uint8_t *bytes;
    ULONG count = 0, seen = 0, interval = 0;
    /* Where addresses or ranges are checked, or accesses are slow, a sample takes longer than a
     * millisecond. A list takes at most 100 of them. */
    const ULONG list_ns = (ULONG)(200 * measured_here()->access_ns),
                least_ns = SANITIZED ? 8000000 : 1000000,
                interval_ns = (list_ns > least_ns ? list_ns : least_ns) * cpu_count;
    struct record event;
    if (!hal_branches_can(0)) {
        s = session_unread("one", SESSION_MODE);
        CHECK_STATUS(branch_events(&s, hooks + 2, 1), STATUS_NOT_SUPPORTED);
        CHECK_EQ(session_stop(&s), 0);
        return;
    }
    SKIP_IF_STEPPED(); /* a sample takes longer than an interval */
    REQUIRE(session_begin(&s, &bytes));
    CHECK_STATUS(NtQueryIntervalProfile(ProfileTime, &interval), STATUS_SUCCESS);
    CHECK_STATUS(NtSetIntervalProfile(interval_ns / 100, ProfileTime), STATUS_SUCCESS);
    CHECK_STATUS(session_branches(&s, 0), STATUS_SUCCESS);
    CHECK_STATUS(branch_events(&s, hooks + 2, 1), STATUS_SUCCESS);
    const uint64_t start = ticks_of_all();
    const uint64_t period_ns = sched_tick_ns() < interval_ns ? sched_tick_ns() : interval_ns;
    CHECK_STATUS(session_mask(&s, PERF_PROFILE, 0), STATUS_SUCCESS);
    uint64_t least = wait_ticks(SAMPLES * interval_ns / period_ns);
    struct records all = session_drain(&s, bytes);
    uint64_t most = ticks_of_all() - start;
    for (; next_branches(&all, (USHORT)hooks[2], &event, &count); seen++)
        CHECK(count > 0 && count <= HAL_BRANCHES_MAX);
    /* Each processor's first interval begins, and its last is cut off, anywhere. */
    CHECK_RANGE(seen, least * period_ns / interval_ns - cpu_count,
                most * period_ns / interval_ns + cpu_count);
    test_note("%u samples, each with a list", seen);
    CHECK_STATUS(NtSetIntervalProfile(interval, ProfileTime), STATUS_SUCCESS);
    session_end(&s, bytes);
}
