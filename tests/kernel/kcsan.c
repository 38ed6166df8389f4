/* SPDX-License-Identifier: MIT */
/* That a build with KCSAN=1 notices what it is for: each kind of race, planted, with both places;
 * and that what looks like one is none. It needs CPUs that run at once (ICOUNT=off). */
#include "kernel/base/sanitize/kcsan.h"
#include "kernel/base/lock.h"
#include "kernel/base/panic.h"
#include "tests/harness/kernel.h"

#define ITERATIONS 20000000u    /* at most; the first few thousand find it */
#define ITERATIONS_NONE 200000u /* without a race */
#define PLANTED __attribute__((noipa)) static void

static uint64_t planted[2];
static uint8_t bytes[32];
static struct lock planted_lock = LOCK("planted", DISPATCH_LEVEL);
static void (*accesses[2])(void); /* of thread 0 and 1 */
static unsigned iterations;       /* of each; who is faster goes on until the other has made them */
static unsigned done;             /* threads that have made them; atomic */
static bool stop;                 /* atomic */
static bool want_unseen;          /* a race with code that is not instrumented */
static struct race found;

/* Of its own: two places are kept once, and any test may meet a value that changed. */
PLANTED read_changed(void) { asm volatile("" : : "r"(planted[0])); }
PLANTED write_plain(void) { planted[0] = 1; }
PLANTED read_plain(void) { asm volatile("" : : "r"(planted[0])); }
PLANTED read_half(void) { asm volatile("" : : "r"(((uint32_t *)planted)[1])); }
PLANTED write_other(void) { planted[1] = 1; }
PLANTED write_marked(void) { __atomic_fetch_add(&planted[0], 1, __ATOMIC_RELAXED); }
PLANTED read_marked(void) { __atomic_load_n(&planted[0], __ATOMIC_RELAXED); }
PLANTED write_volatile(void) { *(volatile uint64_t *)planted = 2; }
PLANTED write_unseen(void) { asm volatile("incq %0" : "+m"(planted[0]) : : "cc"); }
PLANTED copy_bytes(void) { memcpy(bytes, "0123456789abcde", 16); }
PLANTED read_bytes(void) { asm volatile("" : : "r"(bytes[15])); }
PLANTED write_locked(void)
{
    KIRQL irql = lock_acquire(&planted_lock);
    planted[0]++;
    lock_release(&planted_lock, irql);
}

static bool take_race(struct race *race)
{
    return race_take(planted, sizeof planted, race) || race_take(bytes, sizeof bytes, race);
}

/* A write that was about to come when its place began to be watched changes the value, unnamed. */
static bool is_found(void)
{
    while (take_race(&found))
        if (!found.by[1].pc == want_unseen)
            return true;
    return false;
}

static void access_often(void *argument)
{
    unsigned me = argument != NULL;
    for (unsigned i = 1; !__atomic_load_n(&stop, __ATOMIC_RELAXED); i++) {
        accesses[me]();
        if (!me && i % 256 == 0 && is_found())
            __atomic_store_n(&stop, true, __ATOMIC_RELAXED);
        if (i == iterations)
            __atomic_fetch_add(&done, 1, __ATOMIC_RELAXED);
        if (i >= iterations && __atomic_load_n(&done, __ATOMIC_RELAXED) == 2)
            return;
    }
}

static bool race(void (*one)(void), void (*other)(void), unsigned most)
{
    accesses[0] = one;
    accesses[1] = other;
    iterations = most;
    done = 0;
    stop = false;
    team_run(access_often, 2);
    bool is = stop || is_found();
    for (struct race late; take_race(&late);) /* the other thread met one more before it stopped */
        ;
    return is;
}

static const struct race_side *side_of(const char *function)
{
    uint32_t offset;
    for (unsigned i = 0; i < 2; i++)
        if (!strcmp(symbol_of(found.by[i].pc, &offset), function))
            return &found.by[i];
    return NULL;
}

static void check_side(const char *function, unsigned size, bool write, bool marked)
{
    uint32_t offset;
    const struct race_side *side = side_of(function);
    if (!CHECK(side != NULL))
        return;
    CHECK_EQ(side->size, size);
    CHECK_EQ(side->write, write);
    CHECK_EQ(side->marked, marked);
    CHECK(!strcmp(symbol_of(side->caller, &offset), "access_often"));
}

static void check_found(bool is)
{
    CHECK(is);
    CHECK(found.by[0].cpu != found.by[1].cpu);
}

TEST(kcsan, write_read, "a plain write and a plain read are a race: both places, sizes, CPUs")
{
    SKIP_BELOW_CPUS(2);
    check_found(race(write_plain, read_plain, ITERATIONS));
    check_side("write_plain", 8, true, false);
    check_side("read_plain", 8, false, false);
}

TEST(kcsan, overlap, "accesses of different sizes race in the bytes that they share")
{
    SKIP_BELOW_CPUS(2);
    check_found(race(write_plain, read_half, ITERATIONS));
    check_side("write_plain", 8, true, false);
    check_side("read_half", 4, false, false);
    CHECK_EQ(race(write_other, read_half, ITERATIONS_NONE), false);
}

TEST(kcsan, marked, "a plain access races with a marked write; marked ones never do")
{
    SKIP_BELOW_CPUS(2);
    check_found(race(write_marked, read_plain, ITERATIONS));
    check_side("write_marked", 8, true, true);
    check_side("read_plain", 8, false, false);
    check_found(race(write_volatile, read_plain, ITERATIONS));
    check_side("write_volatile", 8, true, true);
    CHECK_EQ(race(write_marked, read_marked, ITERATIONS_NONE), false);
    CHECK_EQ(race(write_marked, write_volatile, ITERATIONS_NONE), false);
    CHECK_EQ(race(read_plain, read_marked, ITERATIONS_NONE), false);
}

TEST(kcsan, once, "two places that race are reported once")
{
    SKIP_BELOW_CPUS(2);
    check_found(race(write_plain, write_volatile, ITERATIONS));
    CHECK_EQ(race(write_plain, write_volatile, ITERATIONS_NONE), false);
}

TEST(kcsan, locked, "what a lock orders is no race, what goes past it is one")
{
    SKIP_BELOW_CPUS(2);
    CHECK_EQ(race(write_locked, write_locked, ITERATIONS_NONE), false);
    check_found(race(write_locked, read_plain, ITERATIONS));
    CHECK(side_of("write_locked") != NULL);
    CHECK(side_of("read_plain") != NULL);
}

TEST(kcsan, unseen, "code without instrumentation is found by the value that it changes")
{
    SKIP_BELOW_CPUS(2);
    want_unseen = true;
    CHECK(race(write_unseen, read_changed, ITERATIONS));
    want_unseen = false;
    CHECK_EQ(found.by[0].pc == 0, false);
    CHECK_EQ(found.by[1].pc, 0);
}

TEST(kcsan, strings, "the bytes of a copy race as those of an access do")
{
    SKIP_BELOW_CPUS(2);
    check_found(race(copy_bytes, read_bytes, ITERATIONS));
    CHECK(side_of("memcpy") != NULL);
    check_side("read_bytes", 1, false, false);
}
