/* SPDX-License-Identifier: MIT */
/* Two threads and a lock, a condition variable and the like: the second one's call comes at each
 * instruction of the first one's, which is stepped by TF. */
#include "tests/ring3/helpers.h"

#define TRAP_FLAG 0x100
#define IDLE 50u    /* yields in which the first thread makes no step: it waits */
#define LOST_MS 500 /* for a wait that nobody ends */
#define YIELDS 3u   /* until the other thread has done it, or waits */

static SRWLOCK lock;
static CONDITION_VARIABLE variable;
static CRITICAL_SECTION section;
static INIT_ONCE once;
static LONG word;
static uint64_t flag; /* what is waited for */

static const struct pair {
    const char *name;
    void (*before)(void); /* by the second thread, before the first one's call; or NULL */
    bool (*first)(void);  /* false: a wake was lost */
    void (*second)(void);
} * pair;
static uint64_t go, done, ready; /* atomic */
static unsigned wanted, at;      /* instructions */
static bool stepping, came;      /* to the instruction */

static LONG on_step(PEXCEPTION_POINTERS e)
{
    if (e->ExceptionRecord->ExceptionCode != (DWORD)STATUS_SINGLE_STEP)
        return EXCEPTION_CONTINUE_SEARCH;
    if (!stepping)
        return EXCEPTION_CONTINUE_EXECUTION;
    if (at++ < wanted) {
        e->ContextRecord->EFlags |= TRAP_FLAG;
        return EXCEPTION_CONTINUE_EXECUTION;
    }
    came = !__atomic_exchange_n(&go, 1, __ATOMIC_ACQ_REL);
    for (unsigned i = 0; i < YIELDS && !__atomic_load_n(&done, __ATOMIC_ACQUIRE); i++)
        SwitchToThread();
    return EXCEPTION_CONTINUE_EXECUTION;
}

static DWORD other_thread(PVOID unused)
{
    SetThreadAffinityMask(GetCurrentThread(), 1);
    unsigned seen = 0;
    if (pair->before)
        pair->before();
    __atomic_store_n(&ready, 1, __ATOMIC_RELEASE);
    for (unsigned idle = 0; !__atomic_load_n(&go, __ATOMIC_ACQUIRE) && idle < IDLE; idle++) {
        SwitchToThread();
        unsigned now = __atomic_load_n(&at, __ATOMIC_RELAXED);
        idle = now == seen ? idle : 0;
        seen = now;
    }
    __atomic_store_n(&go, 1, __ATOMIC_RELEASE);
    pair->second();
    __atomic_store_n(&done, 1, __ATOMIC_RELEASE);
    return 0;
}

/* The second call at that instruction of the first, or later; false: the first has fewer. */
static bool run_at(unsigned instruction)
{
    flag = go = done = ready = at = came = 0;
    word = 0;
    once = (INIT_ONCE)INIT_ONCE_STATIC_INIT;
    wanted = instruction;
    HANDLE other = ring3_start(other_thread, NULL);
    while (!__atomic_load_n(&ready, __ATOMIC_ACQUIRE))
        SwitchToThread();
    stepping = true;
    asm volatile("pushfq\n\torq $0x100, (%%rsp)\n\tpopfq" : : : "memory", "cc");
    bool woken = pair->first();
    stepping = false;
    if (!CHECK(woken) || !CHECK_EQ(WaitForSingleObject(other, LOST_MS), WAIT_OBJECT_0))
        test_note("%s: at instruction %u", pair->name, instruction);
    ring3_end(other);
    return came;
}

static void set_flag(void) { __atomic_store_n(&flag, 1, __ATOMIC_RELEASE); }

/* --- Locks. --- */

static void take_lock(void) { AcquireSRWLockExclusive(&lock); }
static void leave_lock(void) { ReleaseSRWLockExclusive(&lock); }
static void leave_shared(void) { ReleaseSRWLockShared(&lock); }
static void share_lock(void) { AcquireSRWLockShared(&lock); }
static void pass_lock(void) { take_lock(), leave_lock(); }
static void pass_shared(void) { share_lock(), leave_shared(); }
static bool passes_lock(void) { return pass_lock(), true; }
static bool passes_shared(void) { return pass_shared(), true; }
static void take_section(void) { EnterCriticalSection(&section); }
static void leave_section(void) { LeaveCriticalSection(&section); }
static void pass_section(void) { take_section(), leave_section(); }
static bool passes_section(void) { return pass_section(), true; }

/* --- Waits. --- */

static bool sleep_in(void (*take)(void), BOOL (*sleep_once)(void), void (*leave)(void))
{
    BOOL woken = TRUE;
    take();
    while (woken && !flag)
        woken = sleep_once();
    leave();
    return woken;
}

#define SHARED CONDITION_VARIABLE_LOCKMODE_SHARED
static BOOL in_lock(void) { return SleepConditionVariableSRW(&variable, &lock, LOST_MS, 0); }
static BOOL in_share(void) { return SleepConditionVariableSRW(&variable, &lock, LOST_MS, SHARED); }
static BOOL in_section(void) { return SleepConditionVariableCS(&variable, &section, LOST_MS); }
static bool sleep_alone(void) { return sleep_in(take_lock, in_lock, leave_lock); }
static bool sleep_shared(void) { return sleep_in(share_lock, in_share, leave_shared); }
static bool sleep_section(void) { return sleep_in(take_section, in_section, leave_section); }

static void wake_one(void)
{
    take_lock();
    set_flag();
    leave_lock();
    WakeConditionVariable(&variable);
}

static void wake_all(void)
{
    take_section();
    set_flag();
    leave_section();
    WakeAllConditionVariable(&variable);
}

static bool wait_for_word(void)
{
    LONG zero = 0;
    BOOL woken = TRUE;
    while (woken && !*(volatile LONG *)&word)
        woken = WaitOnAddress(&word, &zero, sizeof word, LOST_MS);
    return woken;
}

static void write_word(void)
{
    __atomic_store_n(&word, 1, __ATOMIC_RELEASE);
    WakeByAddressSingle(&word);
}

static void begin_once(void)
{
    BOOL pending = FALSE;
    CHECK(InitOnceBeginInitialize(&once, 0, &pending, NULL) && pending);
}

static bool finds_it_done(void)
{
    BOOL pending = TRUE;
    return InitOnceBeginInitialize(&once, 0, &pending, NULL) && !pending;
}

static void complete_once(void) { CHECK(InitOnceComplete(&once, 0, NULL)); }

static const struct pair pairs[] = {
    { "acquire, release", take_lock, passes_lock, leave_lock },
    { "acquire, release shared", share_lock, passes_lock, leave_shared },
    { "share, release", take_lock, passes_shared, leave_lock },
    { "pass, pass", NULL, passes_lock, pass_lock },
    { "share, pass", NULL, passes_shared, pass_lock },
    { "pass, share", NULL, passes_lock, pass_shared },
    { "enter, leave", take_section, passes_section, leave_section },
    { "pass section, pass section", NULL, passes_section, pass_section },
    { "sleep, wake", NULL, sleep_alone, wake_one },
    { "sleep shared, wake", NULL, sleep_shared, wake_one },
    { "sleep in section, wake all", NULL, sleep_section, wake_all },
    { "wait for a word, write it", NULL, wait_for_word, write_word },
    { "begin once, complete", begin_once, finds_it_done, complete_once },
};

TEST_USER(wakes, pairs,
          "who leaves a lock, wakes or completes at any instruction of who enters, sleeps or waits "
          "lets him go on [slow]")
{
    PVOID h = AddVectoredExceptionHandler(TRUE, on_step);
    InitializeCriticalSection(&section);
    InitializeSRWLock(&lock);
    InitializeConditionVariable(&variable);
    SetThreadAffinityMask(GetCurrentThread(), 1);
    for (pair = pairs; pair < pairs + ARRAYSIZE(pairs); pair++) {
        unsigned n = 0;
        for (unsigned next = 0; run_at(next); next = at + (test_long() ? 0 : 5))
            n++;
        CHECK(n > 2);
        if (test_long())
            test_note("%s: at %u instructions", pair->name, n);
    }
    DeleteCriticalSection(&section);
    RemoveVectoredExceptionHandler(h);
}
