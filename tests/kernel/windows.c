/* SPDX-License-Identifier: MIT */
/* What comes at each instruction of a window: an NMI, an interrupt that switches threads. */
#include "hal/buffers/event_buffer.h"
#include "kernel/base/upcalls.h"
#include "kernel/ke/fpu.h"
#include "kernel/ke/synchronization.h"
#include "tests/harness/counter_list.h"
#include "tests/harness/lab.h"
#include "tests/harness/peek.h"

#define PERIOD 20000u /* more than the handler has, stepped and under KASAN */
#define PERIOD_RING3 1000u
#define NEVER 0x7fffffffu
#define KERNEL_LIKE 0xffffdeadbeef0000ul /* in no table of ours */

extern const uint8_t trap_stubs[256][16];
extern void switch_stacks(void);
extern void syscall_entry(void);
extern uint64_t user_spinning;

/* The address of a function, which C does not convert. */
static const void *code_of(void (*function)(void)) { return (const void *)(uint64_t)function; }

#define SKIP_IF_SAFE() SKIP_IF(boot_safe(), "safe: no NMI")

static uint64_t nmis; /* that came */

static bool claim_nmi(void)
{
    nmis++;
    return true;
}

static unsigned step_nmis(const struct step_window *window, void (*scenario)(void *),
                          void *argument)
{
    nmis = 0;
    trap_nmi_callbacks = claim_nmi;
    unsigned instructions = step_through(window, scenario, argument);
    trap_nmi_callbacks = NULL;
    if (hal_pmi_is_nmi()) /* those are asked too */
        CHECK(nmis >= instructions);
    else
        CHECK_EQ(nmis, instructions);
    return instructions;
}

/* --- The counters' interrupt. --- */

static struct {
    unsigned ctr, period;
    uint32_t calls; /* atomic */
    uint64_t overflows, handled;
    bool wrong_level;
} pmi;

static uint64_t start_of(unsigned period)
{
    return -(uint64_t)period & pmu_mask(pmu_here(), pmi.ctr);
}

static uint32_t calls(void) { return __atomic_load_n(&pmi.calls, __ATOMIC_RELAXED); }

static void take_overflow(ULONGLONG bits, HANDLE)
{
    pmi.wrong_level |= irql_current() != PROFILE_LEVEL || bits != PMU_BIT(pmi.ctr);
    pmu_write(pmi.ctr, start_of(calls() ? NEVER : pmi.period));
    __atomic_fetch_add(&pmi.calls, 1, __ATOMIC_RELAXED);
}

static void begin_overflows(unsigned rings, unsigned period)
{
    __atomic_store_n(&pmi.calls, 0, __ATOMIC_RELAXED);
    pmi.period = period;
    KIRQL old = irql_raise(PROFILE_LEVEL);
    pmu_program(pmi.ctr, pmu_select(pmu_here(), PMU_INSTRUCTIONS, rings | PMU_INTERRUPT),
                start_of(period));
    pmu_start(PMU_BIT(pmi.ctr));
    irql_lower(old);
}

static void end_overflows(void)
{
    KIRQL old = irql_raise(PROFILE_LEVEL);
    pmu_clear(PMU_BIT(pmi.ctr));
    irql_lower(old);
    pmi.overflows += 2;
    pmi.handled += calls();
}

/* Two overflows: after the NMI the counter goes on, and its interrupt comes again. */
static void overflow_twice(void *)
{
    begin_overflows(PMU_KERNEL, PERIOD);
    for (unsigned i = 0; i < 8 * PERIOD && calls() < 2; i++)
        asm volatile("");
    end_overflows();
}

static void overflow_ring3_twice(void *)
{
    begin_overflows(PMU_USER, PERIOD_RING3);
    for (unsigned i = 0; i < 20 && calls() < 2; i++)
        nap();
    end_overflows();
}

static struct step_window pmi_window(const struct thread *thread)
{
    return (struct step_window){ trap_stubs[hal_pmi_is_nmi() ? VECTOR_PMI_NOTED : VECTOR_PMI],
                                 STEP_NMI, test_long() ? 0 : 11, thread };
}

static void check_pmis(const struct thread *thread, void (*scenario)(void *))
{
    const struct step_window window = pmi_window(thread);
    HANDLE handle;
    pmi.ctr = bit_lowest(pmu_counters_for(pmu_here(), PMU_INSTRUCTIONS));
    pmi.overflows = pmi.handled = pmi.wrong_level = 0;
    REQUIRE_OK(hal_counters_claim("windows.pmi", cpu_set_one(0), PMU_BIT(pmi.ctr), take_overflow,
                                  &handle));
    unsigned instructions = step_nmis(&window, scenario, NULL);
    /* A virtual PMU that steps all itself loses the guest's own steps in an interrupt's handler. */
    CHECK(instructions <= 2000 &&
          (instructions >= 100 / (window.left_out + 1) || (vpmu_present() && vpmu_steps())));
    CHECK_EQ(pmi.wrong_level, false);
    struct lab_range fewest = lab_pmis((unsigned)pmi.overflows);
    CHECK_BECAUSE(pmi.handled, fewest.low < pmi.overflows ? fewest.low : pmi.overflows,
                  pmi.overflows, fewest.why);
    CHECK_OK(HalFreeHardwareCounters(handle));
    test_note("an NMI at each of %u instructions", instructions);
}

#define SKIP_WITHOUT_PMIS()                                                                        \
    do {                                                                                           \
        SKIP_WITHOUT_PMU();                                                                        \
        SKIP_IF_SAFE();                                                                            \
        if (!pmu_counters_for(pmu_here(), PMU_INSTRUCTIONS))                                       \
            SKIP("no counter counts instructions");                                                \
    } while (0)

TEST(windows, pmi,
     "an NMI at any instruction of the counters' interrupt, from its gate to its IRETQ: each "
     "overflow is handled once, counting goes on and the level is right [slow]")
{
    SKIP_WITHOUT_PMIS();
    test_run_on(0);
    check_pmis(NULL, overflow_twice);
}

TEST(windows, pmi_ring3,
     "the same where the interrupt comes out of ring 3, whose GS base looks like the kernel's, "
     "before and after SWAPGS: the thread there goes on [slow]")
{
    SKIP_WITHOUT_PMIS();
    SKIP_IF_STEPPED();
    test_run_on(0);
    struct process *process = user_process();
    REQUIRE(process != NULL);
    struct thread *thread = user_thread("spinner", process, (uint64_t)user_spin,
                                        fpu_facts.bases ? KERNEL_LIKE : 0, cpu_set_one(0));
    if (CHECK(thread != NULL)) {
        peek_wait(process, &user_state, 1);
        check_pmis(thread, overflow_ring3_twice);
        CHECK_EQ(thread->ended, 0);
    }
    end_by_force(process, thread);
}

static void sum_records(PVOID, ULONGLONG, ULONGLONG count, HANDLE)
{
    pmi.wrong_level |= irql_current() != PROFILE_LEVEL;
    pmi.handled += count;
    __atomic_fetch_add(&pmi.calls, 1, __ATOMIC_RELAXED);
}

/* Until the threshold's interrupt has come to this thread; another counter says how many
 * records there are. */
static void fill_buffer(void *truth)
{
    const unsigned ctrs[] = { pmi.ctr, *(unsigned *)truth };
    __atomic_store_n(&pmi.calls, 0, __ATOMIC_RELAXED);
    KIRQL passive = irql_raise(DISPATCH_LEVEL), old = irql_raise(PROFILE_LEVEL);
    for (unsigned i = 0; i < 2; i++)
        pmu_program(ctrs[i], pmu_select(pmu_here(), PMU_INSTRUCTIONS, PMU_KERNEL),
                    i ? 0 : start_of(PERIOD));
    event_buffer_arm(pmi.ctr, PERIOD);
    pmu_start(PMU_BIT(ctrs[0]) | PMU_BIT(ctrs[1]));
    irql_lower(old);
    for (unsigned i = 0; i < 8 * PERIOD && !calls(); i++)
        asm volatile("");
    irql_raise(PROFILE_LEVEL);
    pmu_stop(PMU_BIT(ctrs[0]) | PMU_BIT(ctrs[1]));
    event_buffer_arm(pmi.ctr, 0);
    pmi.overflows += pmu_read(ctrs[1]) / PERIOD;
    irql_lower(passive);
}

TEST(windows, buffer,
     "an NMI at any instruction of the interrupt of an event buffer: each record is handed over "
     "once, and the level is right [HC-52 slow]")
{
    SKIP_WITHOUT_PMIS();
    uint64_t all = pmu_counters_for(pmu_here(), PMU_INSTRUCTIONS),
             able = all & event_buffer_counters(pmu_here()), others = all & ~(able & -able);
    SKIP_IF(!able, "no records");
    SKIP_IF(!others, "this needs two counters");
    pmi.ctr = bit_lowest(able);
    unsigned truth = bit_lowest(others);
    struct list list = { 3, { buffered(sum_records, 0, 2), single(pmi.ctr), single(truth) } };
    HANDLE handle;
    test_run_on(0);
    pmi.overflows = pmi.handled = pmi.wrong_level = 0;
    REQUIRE_OK(take_on(cpu_set_one(0), &list, &handle));
    const struct step_window window = pmi_window(NULL);
    unsigned instructions = step_nmis(&window, fill_buffer, &truth);
    free_and_check(handle);
    CHECK(pmi.handled > instructions && (instructions > 10 || vpmu_steps()));
    CHECK_EQ(pmi.wrong_level, false);
    CHECK_EQ(pmi.handled, pmi.overflows);
    test_note("an NMI at each of %u instructions", instructions);
}

/* --- Ring 3's GS base. --- */

static struct runner enters;

static void two_rounds(void *)
{
    uint64_t before = peek(enters.process, &user_spinning);
    for (unsigned i = 0; i < PEEK_TRIES && peek(enters.process, &user_spinning) < before + 2; i++)
        sched_switch(WrYieldExecution);
}

static void check_entries(uint64_t gs_base)
{
    enters = start_on(user_enter, (uint64_t)syscall_entry, cpu_set_one(0));
    REQUIRE(enters.thread != NULL);
    CHECK(process_write(enters.process, (uint64_t)&user_gs, &gs_base, sizeof gs_base));
    const struct step_window call = { code_of(syscall_entry), STEP_NMI, 0, enters.thread };
    const struct step_window fault = { trap_stubs[EXC_PAGE_FAULT], STEP_NMI, 2, enters.thread };
    unsigned calls = step_nmis(&call, two_rounds, NULL),
             faults = step_nmis(&fault, two_rounds, NULL);
    CHECK(calls > 80 && faults > 30); /* their code has some 95 and 190 instructions */
    CHECK_EQ(enters.thread->ended, 0);
    end_by_force(enters.process, enters.thread);
}

TEST(windows, ring3_gs,
     "an NMI at any instruction of a system call and of a page fault of ring 3 finds the kernel's "
     "GS, whatever ring 3's is: 0, this CPU's block or its lower half, another's, nothing's")
{
    const uint64_t block = (uint64_t)cpus[0], other = (uint64_t)cpus[cpu_count - 1];
    const uint64_t bases[] = { USER_GS_LEFT, 0,          block, block - (UINT64_C(1) << 32),
                               other,        KERNEL_LIKE };
    SKIP_IF_SAFE();
    SKIP_IF_STEPPED();
    test_run_on(0);
    for (unsigned i = 0; i < (fpu_facts.bases ? ARRAY_SIZE(bases) : 1); i++)
        check_entries(bases[i]);
}

/* --- The switch of stacks. --- */

static uint64_t other_rounds;

static void yield_once(void *)
{
    uint64_t before = other_rounds;
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
    const struct step_window window = { code_of(switch_stacks), STEP_NMI, 0, NULL };
    uint32_t ended = 0;
    uint64_t rounds = other_rounds;
    struct thread *other =
        team_start(count_rounds, &ended, cpu_set_one(0), thread_current()->priority);
    unsigned instructions = step_nmis(&window, yield_once, NULL);
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

static void enable_and_disable(void *)
{
    CHECK_OK(user_profile(true, 0));
    CHECK_OK(user_profile(false, 0));
}

static void check_fenced(void (*from)(void), void (*scenario)(void *))
{
    const struct step_window window = { code_of(from), STEP_NMI, 0, NULL };
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

TEST(windows, closed_all, "after all handles were closed at once numbers begin at the lowest again")
{
    HANDLE first, second;
    REQUIRE_OK(NtCreateEvent(&first, EVENT_ALL_ACCESS, NULL, NotificationEvent, FALSE));
    handle_close_all(NULL);
    REQUIRE_OK(NtCreateEvent(&second, EVENT_ALL_ACCESS, NULL, NotificationEvent, FALSE));
    CHECK(second == first);
    CHECK_STATUS(NtClose(second), STATUS_SUCCESS);
}
