/* SPDX-License-Identifier: MIT */
/* What comes at each instruction of a call that begins or ends a thread's profiling: a call of
 * another thread. */
#include "tests/harness/kernel.h"

static unsigned ctr;
static HANDLE handle;
static struct thread *profiled;
static uint64_t other_ran; /* TSC */

static NTSTATUS enable_it(void) { return user_profile(true, 1); }
static NTSTATUS disable_it(void) { return user_profile(false, 1); }
static NTSTATUS may_go_anywhere(void) { return thread_profiling_set_affinity(profiled, cpu_all()); }

static NTSTATUS run_other(void)
{
    other_ran = rdtsc();
    return STATUS_SUCCESS;
}

/* On the CPU that is stepped, where an affinity of all may have led away from. */
static bool begin_unprofiled(void)
{
    test_run_on(0);
    other_ran = 0;
    return CHECK_EQ(cpu_number(), 0);
}

static bool begin_profiled(void) { return begin_unprofiled() && CHECK_OK(enable_it()); }

/* The other thread's time is not this one's: the time slice began when it came back. */
static void end_enabled(void)
{
    if (profiled->profiling) {
        CHECK(other_ran <= profiled->profiling->cycle_start);
        CHECK_OK(disable_it());
    }
    CHECK_EQ(counter_config_users(), 0);
    test_run_on(0);
}

static const struct collision of_profiling[] = {
    COLLISION(thread_profiling_set, begin_unprofiled, enable_it, run_other, end_enabled, BOTH_WIN),
    COLLISION(thread_profiling_set, begin_profiled, disable_it, run_other, end_enabled, BOTH_WIN),
};

static const struct collision with_affinity[] = {
    COLLISION(thread_profiling_set, begin_unprofiled, enable_it, may_go_anywhere, end_enabled,
              BOTH_WIN),
    COLLISION(thread_profiling_set, begin_profiled, disable_it, may_go_anywhere, end_enabled,
              BOTH_WIN),
};

/* The counter does not count the same on all CPUs, on which no thread may be profiled then. */
#define UNEVEN STATUS_DEVICE_CONFIGURATION_ERROR
static const struct collision with_uneven[] = {
    COLLISION(thread_profiling_set, begin_unprofiled, enable_it, may_go_anywhere, end_enabled,
              ONE_WINS(UNEVEN)),
    COLLISION(thread_profiling_set, begin_profiled, disable_it, may_go_anywhere, end_enabled,
              LOSES(0, UNEVEN)),
};

static void program_here(void *)
{
    KIRQL old = irql_raise(PROFILE_LEVEL);
    pmu_program(ctr, pmu_select(pmu_here(), PMU_INSTRUCTIONS, PMU_USER), 0);
    irql_lower(old);
}

static void collide_uneven(void)
{
    ctr = bit_lowest(pmu_common_counters(cpu_all()) & PMU_ANY_GP);
    REQUIRE_OK(take_one(cpu_all(), ctr, &handle));
    smp_call(cpu_set_one(0), program_here, NULL);
    if (CHECK(counting_configure(&ctr, 1)))
        STEP_COLLIDE(with_uneven);
    CHECK_OK(KeSetHardwareCounterConfiguration(NULL, 0));
    free_and_check(handle);
}

TEST(tp_colliders, profiling,
     "a thread whose profiling begins or ends may be switched away: what others do then is not "
     "charged to it, and it never may run where it cannot be counted")
{
    uint32_t kinds = pmu_kinds_of(cpu_all());
    test_run_on(0);
    profiled = thread_current();
    struct process *process = user_pretend();
    REQUIRE(process != NULL);
    STEP_COLLIDE(of_profiling);
    STEP_COLLIDE(with_affinity);
    if (kinds & (kinds - 1))
        collide_uneven();
    user_pretend_end(process);
}
