/* SPDX-License-Identifier: MIT */
/* What comes at each instruction of a window: an NMI, an interrupt that switches threads. */
#include "hal/hal.h"
#include "kernel/base/boot_info.h"
#include "kernel/ke/isolate.h"
#include "kernel/ke/synchronization.h"
#include "kernel/ke/thread_profiling.h"
#include "kernel/services.h"
#include "kernel/trap.h"
#include "tests/harness/kernel.h"
#include "tests/harness/lab.h"
#include "tests/harness/step.h"
#include "tests/harness/threads.h"
#include "tests/harness/user.h"
#include "tests/harness/vpmu.h"

#define PERIOD 20000u /* more than the handler has, stepped and under KASAN */

extern const void *const window_enabling, *const window_enabled;
extern void switch_stacks(void);

/* The address of a function, which C does not convert. */
static const void *code_of(void (*function)(void)) { return (const void *)(uint64_t)function; }

#define SKIP_IF_SAFE()                                                                             \
    do {                                                                                           \
        if (boot_safe())                                                                           \
            SKIP("safe: no NMI");                                                                  \
    } while (0)

static uint64_t nmis; /* that came */

static bool claim_nmi(void)
{
    nmis++;
    return true;
}

static unsigned step_nmis(const struct step_window *window, void (*scenario)(void *))
{
    nmis = 0;
    trap_nmi_callbacks = claim_nmi;
    unsigned instructions = step_through(window, scenario, NULL);
    trap_nmi_callbacks = NULL;
    if (hal_pmi_is_nmi()) /* those are asked too */
        CHECK(nmis >= instructions);
    else
        CHECK_EQ(nmis, instructions);
    return instructions;
}

/* --- The counters' interrupt. --- */

static struct {
    unsigned ctr;
    uint32_t calls; /* atomic */
    uint64_t overflows, handled;
    bool wrong_level;
} pmi;

static void take_overflow(ULONGLONG bits, HANDLE handle)
{
    (void)handle;
    pmi.wrong_level |= irql_current() != PROFILE_LEVEL || bits != PMU_BIT(pmi.ctr);
    pmu_write(pmi.ctr, -(uint64_t)PERIOD & pmu_mask(pmu_here(), pmi.ctr));
    __atomic_fetch_add(&pmi.calls, 1, __ATOMIC_RELAXED);
}

/* Two overflows: after the NMI the counter goes on, and its interrupt comes again. */
static void overflow_twice(void *unused)
{
    (void)unused;
    __atomic_store_n(&pmi.calls, 0, __ATOMIC_RELAXED);
    KIRQL old = irql_raise(PROFILE_LEVEL);
    pmu_program(pmi.ctr, pmu_select(pmu_here(), PMU_INSTRUCTIONS, PMU_KERNEL | PMU_INTERRUPT),
                -(uint64_t)PERIOD & pmu_mask(pmu_here(), pmi.ctr));
    pmu_start(PMU_BIT(pmi.ctr));
    irql_lower(old);
    for (unsigned i = 0; i < 8 * PERIOD && __atomic_load_n(&pmi.calls, __ATOMIC_RELAXED) < 2; i++)
        asm volatile("");
    old = irql_raise(PROFILE_LEVEL);
    pmu_clear(PMU_BIT(pmi.ctr));
    irql_lower(old);
    pmi.overflows += 2;
    pmi.handled += __atomic_load_n(&pmi.calls, __ATOMIC_RELAXED);
}

TEST(windows, pmi,
     "an NMI at any instruction of the counters' interrupt handler: each overflow is handled once, "
     "counting goes on and the level is right")
{
    uint64_t able = pmu_counters_for(pmu_here(), PMU_INSTRUCTIONS);
    const struct step_window window = {
        code_of((void (*)(void))(hal_pmi_is_nmi() ? (void *)hal_pmi_deliver : (void *)hal_pmi)),
        NULL, STEP_NMI, test_long() ? 0 : 3
    };
    HANDLE handle;
    SKIP_WITHOUT_PMU();
    SKIP_IF_SAFE();
    if (!able)
        SKIP("no counter counts instructions");
    test_run_on(0);
    pmi.ctr = bit_lowest(able);
    pmi.overflows = pmi.handled = pmi.wrong_level = 0;
    REQUIRE_OK(hal_counters_claim("windows.pmi", cpu_set_one(0), PMU_BIT(pmi.ctr), take_overflow,
                                  &handle));
    unsigned instructions = step_nmis(&window, overflow_twice);
    /* A virtual PMU that steps all itself loses the guest's own steps in an interrupt's handler. */
    CHECK(instructions <= 2000 &&
          (instructions >= 40 / (window.left_out + 1) || (vpmu_present() && vpmu_steps())));
    CHECK_EQ(pmi.wrong_level, false);
    struct lab_range fewest = lab_pmis((unsigned)pmi.overflows);
    CHECK_BECAUSE(pmi.handled, fewest.low < pmi.overflows ? fewest.low : pmi.overflows,
                  pmi.overflows, fewest.why);
    CHECK_OK(HalFreeHardwareCounters(handle));
    test_note("an NMI at each of %u instructions", instructions);
}

/* --- A thread enables profiling. --- */

static struct {
    uint64_t other_ran, too_early; /* TSC; how often a time slice began before it */
    unsigned switches;
} profiled;

static void run_other(void)
{
    profiled.switches++;
    profiled.other_ran = rdtsc();
}

/* The other thread's time is not this one's: the time slice began when it came back. */
static void enable_once(void *unused)
{
    (void)unused;
    CHECK_OK(user_profile(true, 0));
    step_partner_wait();
    if (!thread_current()->profiling ||
        profiled.other_ran > thread_current()->profiling->cycle_start)
        profiled.too_early++;
    CHECK_OK(user_profile(false, 0));
}

TEST(windows, enabling,
     "a thread that enables profiling may be switched away at any instruction: it is not charged "
     "with what others do then")
{
    const struct step_window window = { window_enabling, window_enabled, STEP_SWITCH, 0 };
    test_run_on(0);
    struct process *process = user_pretend();
    REQUIRE(process != NULL);
    profiled.other_ran = profiled.too_early = profiled.switches = 0;
    struct thread *partner = step_partner(run_other);
    unsigned instructions = step_through(&window, enable_once, NULL);
    step_partner_end(partner);
    CHECK(instructions > 1);
    CHECK_EQ(profiled.switches, instructions);
    CHECK_EQ(profiled.too_early, 0);
    user_pretend_end(process);
    test_note("a switch at each of %u instructions", instructions);
}

/* --- The switch of stacks. --- */

static uint64_t other_rounds;

static void yield_once(void *unused)
{
    uint64_t before = other_rounds;
    (void)unused;
    for (unsigned i = 0; i < 1000 && __atomic_load_n(&other_rounds, __ATOMIC_RELAXED) == before;
         i++)
        sched_switch(WrYieldExecution);
}

static void count_rounds(void *ended)
{
    while (!__atomic_load_n((uint32_t *)ended, __ATOMIC_RELAXED)) {
        other_rounds++;
        sched_switch(WrYieldExecution);
    }
}

static unsigned switch_with_nmis(void)
{
    const struct step_window window = { code_of(switch_stacks), NULL, STEP_NMI, 0 };
    uint32_t ended = 0;
    uint64_t rounds = other_rounds;
    struct thread *other =
        team_start(count_rounds, &ended, cpu_set_one(0), thread_current()->priority);
    unsigned instructions = step_nmis(&window, yield_once);
    __atomic_store_n(&ended, 1, __ATOMIC_RELAXED);
    team_end(other);
    CHECK(other_rounds - rounds >= instructions);
    return instructions;
}

TEST(windows, switch_stacks,
     "an NMI at any instruction of a switch, of threads that are profiled and others, changes "
     "neither stacks nor counts")
{
    SKIP_IF_SAFE();
    test_run_on(0);
    unsigned plain = switch_with_nmis();
    CHECK_RANGE(plain, 12, 40); /* two loads, a branch, 7 pushes, 2 moves, POPs */
    struct process *process = user_pretend();
    REQUIRE(process != NULL);
    CHECK_OK(user_profile(true, 0));
    uint32_t switches = thread_current()->profiling->switches;
    unsigned with = switch_with_nmis();
    CHECK(with > plain && thread_current()->profiling->switches - switches >= with);
    CHECK_OK(user_profile(false, 0));
    user_pretend_end(process);
    test_note("an NMI at each of %u and %u instructions", plain, with);
}

/* --- The fence before the counters are read. --- */

static struct {
    bool fenced;
    unsigned early, reads; /* RDTSC, RDPMC: before the LFENCE; in all */
} looked;

static void look_at(const uint8_t *i)
{
    bool reads = i[0] == 0x0f && (i[1] == 0x31 || i[1] == 0x33);
    looked.fenced |= i[0] == 0x0f && i[1] == 0xae && i[2] == 0xe8;
    looked.reads += reads;
    looked.early += reads && !looked.fenced;
}

static void enable_and_disable(void *unused)
{
    (void)unused;
    CHECK_OK(user_profile(true, 0));
    CHECK_OK(user_profile(false, 0));
}

static void check_fenced(void (*from)(void), void (*scenario)(void *))
{
    const struct step_window window = { code_of(from), NULL, STEP_NMI, 0 };
    looked = (__typeof__(looked)){ 0 };
    step_look(&window, look_at, scenario, NULL);
    CHECK(looked.reads > 0);
    CHECK_EQ(looked.early, 0);
}

TEST(windows, fenced,
     "where a thread's profiling begins, and at each of its switches, LFENCE stands before the "
     "clock and the counters are read")
{
    uint32_t ended = 0;
    test_run_on(0);
    struct process *process = user_pretend();
    REQUIRE(process != NULL);
    check_fenced((void (*)(void))thread_profiling_begin, enable_and_disable);
    struct thread *other =
        team_start(count_rounds, &ended, cpu_set_one(0), thread_current()->priority);
    CHECK_OK(user_profile(true, 0));
    check_fenced((void (*)(void))thread_profiling_switch, yield_once);
    CHECK_OK(user_profile(false, 0));
    __atomic_store_n(&ended, 1, __ATOMIC_RELAXED);
    team_end(other);
    user_pretend_end(process);
}

/* --- Two threads close one handle. --- */

static struct {
    HANDLE handle;
    unsigned closed, refused, wrong;
} closing;

static void close_it(void)
{
    NTSTATUS status = NtClose(closing.handle);
    closing.closed += status == STATUS_SUCCESS;
    closing.refused += status == STATUS_INVALID_HANDLE;
}

static void close_together(void *unused)
{
    struct object *object;
    (void)unused;
    REQUIRE_OK(NtCreateEvent(&closing.handle, EVENT_ALL_ACCESS, NULL, NotificationEvent, FALSE));
    REQUIRE_OK(handle_lookup(closing.handle, NULL, 0, &object));
    object_hold(object); /* one that a second release may take */
    close_it();
    step_partner_wait();
    closing.wrong += __atomic_load_n(&object->refs, __ATOMIC_RELAXED) != 2;
    __atomic_store_n(&object->refs, 1, __ATOMIC_RELAXED);
    object_release(object);
}

TEST(windows, closing,
     "a thread that closes a handle may be switched at any instruction to one that closes it too: "
     "one of them closes it, once")
{
    const struct step_window window = { code_of((void (*)(void))handle_close), NULL, STEP_SWITCH,
                                        0 };
    test_run_on(0);
    closing = (__typeof__(closing)){ 0 };
    struct thread *partner = step_partner(close_it);
    unsigned instructions = step_through(&window, close_together, NULL);
    step_partner_end(partner);
    CHECK(instructions > 10);
    CHECK_EQ(closing.closed, instructions + 1); /* the last time nothing came */
    CHECK_EQ(closing.refused, instructions);
    CHECK_EQ(closing.wrong, 0);
    test_note("a switch at each of %u instructions", instructions);
}

TEST(windows, closed_all, "after all handles were closed at once numbers begin at the lowest again")
{
    HANDLE first, second;
    REQUIRE_OK(NtCreateEvent(&first, EVENT_ALL_ACCESS, NULL, NotificationEvent, FALSE));
    handle_close_all(NULL);
    REQUIRE_OK(NtCreateEvent(&second, EVENT_ALL_ACCESS, NULL, NotificationEvent, FALSE));
    CHECK(second == first);
    CHECK_STATUS(NtClose(second), STATUS_SUCCESS);
}
