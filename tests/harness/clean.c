/* SPDX-License-Identifier: MIT */
#include "tests/harness/clean.h"
#include "kernel/driver/pool.h"
#include "kernel/etw/etw_pmc.h"
#include "kernel/etw/etw_session.h"
#include "kernel/ke/mutex.h"
#include "kernel/ke/timer.h"
#include "tests/harness/invariants.h"
#include "tests/harness/lab.h"

#define LOOK_NS 10000000u /* from look to look at threads that shall end */
#define POLITE 10         /* looks */
#define LOOKS 40
#define TICKS 50 /* for threads that end: they give their pages back a little after they signal */
#define TICKS_FAILED 5

static unsigned first_id; /* the runner's thread, older than all of the tests' */
static uint64_t intervals_at_boot[SOURCE_IDS];

/* --- Threads. --- */

static void end_thread(struct thread *thread, bool by_force)
{
    if (thread->process && !by_force)
        thread_terminate(thread, STATUS_TIMEOUT);
    else
        thread_kill(thread, by_force);
}

/* How many there are of one kind. */
static unsigned end_threads(bool ring3, bool by_force)
{
    unsigned n = 0;
    struct thread *thread;
    for (unsigned id = first_id; (thread = thread_after(id)) != NULL;) {
        id = thread->id;
        if (ring3 == !!thread->process) {
            end_thread(thread, by_force);
            n++;
        }
        object_release(&thread->object);
    }
    return n;
}

static void end_kind(bool ring3)
{
    for (unsigned i = 0; i < LOOKS && end_threads(ring3, i > POLITE); i++)
        sched_wait(NULL, clock_ns() + LOOK_NS, DelayExecution);
}

/* Kernel threads first: a test may work on what belongs to its threads in ring 3. */
void clean_threads(void)
{
    end_kind(false);
    end_kind(true);
    struct thread *thread = thread_after(first_id);
    if (thread && thread->state == THREAD_RUNNING) {
        char owed[160];
        smp_owed(owed, sizeof owed);
        panic("thread %s cannot be ended on CPU %u%s", thread->name, thread->cpu, owed);
    }
    if (thread)
        object_release(&thread->object);
}

/* --- The rest: how much there is, and the end of it. --- */

uint64_t clean_thread_count(void)
{
    uint64_t n = 0;
    struct thread *thread;
    for (unsigned id = 0; (thread = thread_after(id)) != NULL; n++) {
        id = thread->id;
        object_release(&thread->object);
    }
    return n;
}

static unsigned mutexes_known; /* each was given up when its thread ended */
static uint64_t mutexes(void) { return mutex_abandoned() - mutexes_known; }
static void know_mutexes(void) { mutexes_known = mutex_abandoned(); }
static uint64_t handles(void) { return handle_count(); }
static void close_handles(void) { handle_close_all(NULL); }
static uint64_t objects(void) { return profiles_started(); }
static uint64_t samplers(void) { return hal_profile_users(); }
static uint64_t sets(void) { return hal_pmc_sets(); }
static uint64_t owners(void) { return hal_counters_owned(); }
static uint64_t users(void) { return counter_config_users(); }
static uint64_t handler(void) { return hal_pmi_has_driver(); }
static void take_handler_off(void) { hal_pmi_set_driver(NULL); }
static uint64_t pages(void) { return phys_total_pages() - phys_free_pages(); }

uint64_t clean_sources(void)
{
    uint64_t n = 0;
    for (const struct source_row *row = source_added; row < source_added + SOURCES_ADDED_MAX; row++)
        n += row->name != NULL;
    return n;
}

/* Those that nobody uses. */
static void remove_sources(void)
{
    for (const struct source_row *row = source_added; row < source_added + SOURCES_ADDED_MAX; row++)
        if (row->name)
            hal_source_remove((KPROFILE_SOURCE)row->id);
}

static uint64_t slots(void) { return thread_profiling_slots(); }
static uint64_t pool(void) { return pool_blocks(); }

static uint64_t set_timers(void)
{
    unsigned n = 0;
    KIRQL irql = sched_lock();
    for (const KTIMER *timer = NULL; (timer = timer_next(timer)) != NULL;)
        n++;
    sched_unlock(irql);
    return n;
}

/* To threads that are older than all of the tests'. */
static uint64_t references(void)
{
    uint64_t n = 0;
    struct thread *thread;
    for (unsigned id = 0; (thread = thread_after(id)) != NULL && id < first_id;) {
        id = thread->id;
        n += id <= first_id ? __atomic_load_n(&thread->object.refs, __ATOMIC_RELAXED) - 1 : 0;
        object_release(&thread->object);
    }
    if (thread)
        object_release(&thread->object);
    return n;
}

static uint64_t configured_counters(void)
{
    HARDWARE_COUNTER array[MAX_HW_COUNTERS];
    ULONG n = 0;
    KeQueryHardwareCounterConfiguration(array, MAX_HW_COUNTERS, &n);
    return n;
}

static void configure_none(void) { KeSetHardwareCounterConfiguration(NULL, 0); }

static uint64_t sessions(void)
{
    unsigned n = 0;
    for (unsigned i = 0; i < ETW_LOGGERS; i++)
        n += etw_loggers[i] != NULL;
    return n;
}

/* Consumers had handles, which are closed. */
void clean_sessions(void)
{
    etw_enter();
    for (unsigned i = 0; i < ETW_LOGGERS; i++) {
        struct etw_logger *logger = etw_loggers[i];
        if (!logger)
            continue;
        etw_stop(logger);
        if (!logger->connected)
            etw_free(logger);
    }
    etw_leave();
}

/* Not the number of them, but it changes when one does. */
static uint64_t intervals(void)
{
    uint64_t sum = 0;
    ULONG alignment = 0;
    for (unsigned i = 0; i < SOURCE_IDS; i++)
        sum = sum * 31 + source_interval((KPROFILE_SOURCE)i);
    NtQueryIntervalProfile(ProfileAlignmentFixup, &alignment);
    return sum * 31 + alignment;
}

static void reset_intervals(void)
{
    memcpy(source_intervals, intervals_at_boot, sizeof source_intervals);
    NtSetIntervalProfile(0, ProfileAlignmentFixup);
}

/* In the order in which they are put back. */
static const struct kind {
    const char *name;
    uint64_t (*now)(void);
    void (*put_back)(void); /* NULL: what was not put back before is lost */
} kinds[] = {
    { "threads", clean_thread_count, clean_threads },
    { "mutexes", mutexes, know_mutexes },
    { "handles", handles, close_handles },
    { "started profile objects", objects, profiles_stop_all },
    { "trace sessions", sessions, clean_sessions },
    { "counter sets", sets, hal_pmc_release_all },
    { "samplers", samplers, hal_profile_release_all },
    { "threads that count", users, NULL },
    { "configured counters", configured_counters, configure_none },
    { "handlers of the counters' interrupt", handler, take_handler_off },
    { "counter owners", owners, hal_counters_release_all },
    { "added sources", clean_sources, remove_sources },
    { "intervals", intervals, reset_intervals },
    { "profiling slots", slots, NULL },
    { "timers", set_timers, NULL },
    { "blocks of pool", pool, NULL },
    { "references to older threads", references, NULL },
    { "invariants", invariants_broken, invariants_restore },
    { "pages", pages, NULL },
};
#define KINDS ARRAY_SIZE(kinds)
_Static_assert(KINDS <= CLEAN_KINDS, "clean_count");

static uint64_t before[KINDS], after[KINDS];

static void look_around(uint64_t *found)
{
    for (unsigned i = 0; i < KINDS; i++)
        found[i] = kinds[i].now();
}

void clean_init(void)
{
    first_id = thread_current()->id;
    memcpy(intervals_at_boot, source_intervals, sizeof source_intervals);
    invariants_init();
    for (size_t size = 16; size < PAGE_SIZE; size *= 2)
        pool_free(pool_allocate(size)); /* the pool keeps the page of its first small block */
    /* Until kernel_main has let go of this thread, which it started. */
    for (unsigned i = 0;
         i < LOOKS && __atomic_load_n(&thread_current()->object.refs, __ATOMIC_RELAXED) > 1; i++)
        sched_wait(NULL, clock_ns() + sched_tick_ns(), DelayExecution);
}

/* Which invariants hold is no question of before. */
void clean_begin(void)
{
    for (unsigned i = 0; i < KINDS; i++)
        before[i] = kinds[i].now == invariants_broken ? 0 : kinds[i].now();
}

static bool left_something(void) { return memcmp(before, after, sizeof before) != 0; }

static void wait_for_end(unsigned ticks)
{
    look_around(after);
    for (; ticks && left_something(); ticks--) {
        sched_wait(NULL, clock_ns() + sched_tick_ns(), DelayExecution);
        look_around(after);
    }
}

/* Of the kinds that can be put back, or of what is still gone. */
static size_t list(char *text, size_t size, size_t n, const char *head, bool lost)
{
    const char *separator = head;
    for (unsigned i = 0; i < KINDS; i++) {
        if (after[i] == before[i] || (!lost && !kinds[i].put_back))
            continue;
        n += print_to(text + n, size - n, "%s %s", separator, kinds[i].name);
        if (kinds[i].now != intervals)
            n += print_to(text + n, size - n, " %ld", (int64_t)(after[i] - before[i]));
        separator = ",";
    }
    return n;
}

void clean_count(uint64_t *found) { look_around(found); }

/* The pages come last. */
bool clean_unchanged(const uint64_t *before_it, bool pages_too)
{
    uint64_t found[CLEAN_KINDS];
    const unsigned n = KINDS - !pages_too;
    look_around(found);
    for (unsigned i = 0; i < TICKS && memcmp(found, before_it, n * sizeof found[0]); i++) {
        sched_wait(NULL, clock_ns() + sched_tick_ns(), DelayExecution);
        look_around(found);
    }
    for (unsigned i = 0; i < n; i++)
        if (found[i] != before_it[i])
            print("# %s: %ld more than before\n", kinds[i].name,
                  (int64_t)(found[i] - before_it[i]));
    return !memcmp(found, before_it, n * sizeof found[0]);
}

static void put_back(void)
{
    for (unsigned i = 0; i < KINDS; i++)
        if (kinds[i].put_back && kinds[i].now() != before[i])
            kinds[i].put_back();
    counting_forget();
}

static void reset(void)
{
    etw_enter();
    etw_sampling_configure(NULL, 0);
    etw_leave();
    lab_forget();
    invariants_restore();
}

bool clean_end(bool failed)
{
    char text[400];
    wait_for_end(failed ? TICKS_FAILED : TICKS);
    bool left = left_something();
    if (left) {
        size_t n = list(text, sizeof text, 0, "# left behind:", false);
        invariants_print();
        put_back();
        wait_for_end(TICKS_FAILED);
        list(text, sizeof text, n, n ? "; lost:" : "# lost:", true);
        print("%s\n", text);
    }
    if (failed || left)
        reset();
    return !left;
}
