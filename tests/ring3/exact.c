/* SPDX-License-Identifier: MIT */
/* Exact counts, ring-3 half. A region's count is the difference of two readings less that of an
 * empty region. A reading that a switch fell into was repeated inside (RetryCount), which costs
 * instructions: such a measurement is made again, and how often is reported. */
#include "tests/ring3/exact.h"
#include "kernel/base/bits.h"
#include "tests/ring3/helpers.h"
#include "tests/ring3/work.h"
#include "tests/harness/test.h"
#include "tests/ring3/services.h"

#define READ_ALL                                                                                   \
    (READ_THREAD_PROFILING_FLAG_DISPATCHING | READ_THREAD_PROFILING_FLAG_HARDWARE_COUNTERS)
#define TRIES 100
#define MORE 1000000 /* instructions of readings and calls: far more than there are */

struct region {
    uint64_t count;
    uint32_t switches;
};

static bool read_profile(HANDLE profile, PERFORMANCE_DATA *data)
{
    data->Size = sizeof *data;
    data->Version = PERFORMANCE_DATA_VERSION;
    return ReadThreadProfilingData(profile, READ_ALL, data) == ERROR_SUCCESS;
}

static bool measure_region(HANDLE profile, void (*volatile work)(void), struct region *region)
{
    PERFORMANCE_DATA before, after;
    for (unsigned tries = 0; tries < TRIES; tries++) {
        if (!CHECK(read_profile(profile, &before)))
            return false;
        work();
        if (!CHECK(read_profile(profile, &after)))
            return false;
        if (after.RetryCount == 0) {
            region->count = after.HwCounters[0].Value - before.HwCounters[0].Value;
            region->switches = after.ContextSwitchCount - before.ContextSwitchCount;
            return true;
        }
    }
    return CHECK(!"a reading without a switch inside");
}

struct known {
    void (*work)(void);
    uint64_t instructions;
    unsigned runs;
};

static const struct known all_known[] = {
    { work_1, 1, 100 },          { work_10, 10, 100 },         { work_1000, 1000, 100 },
    { work_100000, 100000, 10 }, { work_1000000, 1000000, 1 },
};

struct user_exact_spread user_exact_spread;
static bool loose; /* as asked for by USER_EXACT_LOOSE */
static unsigned times = 1;

static bool judge(uint64_t counted, uint64_t instructions)
{
    struct user_exact_spread *s = &user_exact_spread;
    int64_t off = (int64_t)(counted - instructions);
    s->least = off < s->least ? off : s->least;
    s->most = off > s->most ? off : s->most;
    s->regions++;
    s->exact += off == 0;
    return loose || CHECK_EQ(counted, instructions);
}

/* False: a region was not counted as it should be. Adds the switches that fell into regions. */
static bool run_known(HANDLE profile, const struct known *known, uint64_t empty, uint64_t *switches)
{
    struct region region;
    for (unsigned run = 0; run < times * known->runs; run++) {
        if (!measure_region(profile, known->work, &region))
            return false;
        *switches += region.switches;
        if (!judge(region.count - empty, known->instructions))
            return false;
    }
    return true;
}

static bool begin_profiling(HANDLE *profile, uint64_t *empty)
{
    struct region region;
    if (!CHECK_EQ(EnableThreadProfiling(GetCurrentThread(), THREAD_PROFILING_FLAG_DISPATCH, 1,
                                        profile),
                  ERROR_SUCCESS) ||
        !measure_region(*profile, work_0, &region))
        return false;
    *empty = region.count;
    return CHECK(*empty > 0);
}

/* Each region as often as all_known says, so many times. */
void user_exact_known(uint64_t how)
{
    HANDLE profile;
    uint64_t empty, switches = 0;
    loose = how & USER_EXACT_LOOSE;
    times = (unsigned)how;
    if (!begin_profiling(&profile, &empty))
        return;
    for (unsigned i = 0; i < ARRAY_SIZE(all_known); i++)
        run_known(profile, &all_known[i], empty, &switches);
    CHECK_EQ(DisableThreadProfiling(profile), ERROR_SUCCESS);
}

/* One of all_known, that many times: its number in bits 63:32, runs below. */
void user_exact_runs(uint64_t what)
{
    struct known known = all_known[(what & ~USER_EXACT_LOOSE) >> 32];
    HANDLE profile;
    uint64_t empty, switches = 0;
    loose = what & USER_EXACT_LOOSE;
    if (!begin_profiling(&profile, &empty))
        return;
    known.runs = (unsigned)what;
    run_known(profile, &known, empty, &switches);
    CHECK_EQ(DisableThreadProfiling(profile), ERROR_SUCCESS);
}

/* PUSH, PUSH, four MOVs, the string instruction, POP, POP, RET, over a page's end; or one MOV makes
 * a NOP the REP prefix: code that changes its own page. */
enum { CODE_PAGES = 64, CODE_MOST = 64, STRINGS_PAGES = 256, STRINGS_LONG = 60000 };
#define AROUND_STRING 9u /* of them, less the RET that the empty region has */

static void append(uint8_t **to, const void *bytes, size_t size)
{
    memcpy(*to, bytes, size);
    *to += size;
}

static void append_mov(uint8_t **to, uint8_t code, uint64_t value)
{
    append(to, (uint8_t[]){ 0x48, code }, 2);
    append(to, &value, sizeof value);
}

/* A form: the size by its log 2, then 32-bit addresses, backwards, REPNE, changes itself. */
enum { NARROW = 4, DOWN = 8, REPNE = 16, CHANGES = 32, FORMS = 64 };

static void write_string_code(uint8_t *to, const uint8_t *data, uint8_t op, unsigned form,
                              uint64_t n)
{
    unsigned shift = form & 3, down = !!(form & DOWN), changes = !!(form & CHANGES);
    uint64_t half = STRINGS_PAGES / 2 * RING3_PAGE, above = form & NARROW ? 0x5a5a5a5a00000000 : 0;
    uint64_t at = (uint64_t)data + (down ? (n ? n - 1 : 0) << shift : 0);
    const uint8_t nop = 0x90, prefix = form & REPNE ? 0xf2 : 0xf3;
    append(&to, "\x56\x57", 2);
    append_mov(&to, 0xbe, at | above);
    append_mov(&to, 0xbf, (at + half) | above);
    append_mov(&to, 0xb9, n | above);
    if (changes)
        append(&to, (uint8_t[]){ 0xc6, 0x05, (uint8_t)down, 0, 0, 0, prefix }, 7);
    else
        append(&to, "\xc6\x44\x24\xf8", 5); /* below RSP */
    append(&to, "\xfd", down);
    append(&to, changes ? &nop : &prefix, 1);
    append(&to, "\x67", !!(form & NARROW));
    append(&to, shift == 1 ? "\x66" : "\x48", shift & 1);
    append(&to, (uint8_t[]){ op + (shift != 0) }, 1);
    append(&to, down ? "\xfc\x5f\x5e\xc3" : "\x5f\x5e\xc3", 3 + down);
}

/* Zeros are compared with zeros: REPE goes on to the end, REPNE stops at once. Of all there is each
 * `every`-th. */
static void run_strings(HANDLE profile, uint8_t *code, uint8_t *data, uint64_t empty,
                        unsigned every)
{
    static const uint8_t ops[] = { 0xa4, 0xa6, 0xaa, 0xac, 0xae };
    static const unsigned counts[] = { 0, 1, 700, STRINGS_LONG };
    uint64_t switches = 0;
    for (unsigned i = 0; i < FORMS * ARRAY_SIZE(ops) * ARRAY_SIZE(counts); i += every) {
        unsigned form = i % FORMS, n = counts[i / FORMS % ARRAY_SIZE(counts)];
        unsigned page = form & CHANGES ? CODE_PAGES - 1 : 1 + i % (CODE_PAGES - 2);
        uint8_t *at = code + page * RING3_PAGE - i / 2 % CODE_MOST;
        uint8_t op = ops[i / FORMS / ARRAY_SIZE(counts)];
        write_string_code(at, data, op, form, n);
        struct known one = { (void (*)(void))at, AROUND_STRING + (form & DOWN ? 2 : 0), 1 };
        if (!run_known(profile, &one, empty, &switches)) {
            test_note("%x, form %x, %u elements, code at %p", op, form, n, (void *)at);
            break;
        }
    }
}

void user_exact_strings(uint64_t how)
{
    HANDLE profile;
    uint64_t empty;
    uint8_t *code = ring3_pages(CODE_PAGES), *data = ring3_pages(STRINGS_PAGES);
    loose = how & USER_EXACT_LOOSE;
    if (!code || !data || !begin_profiling(&profile, &empty))
        return;
    for (unsigned i = 0; i < CODE_PAGES; i++)
        ring3_protect(code + i * RING3_PAGE, PAGE_EXECUTE_READWRITE);
    run_strings(profile, code, data, empty, (unsigned)how);
    CHECK_EQ(DisableThreadProfiling(profile), ERROR_SUCCESS);
}

uint64_t user_exact_ready[2]; /* atomic; threads that are profiled; that have done their work */

static uint64_t value_of(HANDLE profile)
{
    PERFORMANCE_DATA data;
    CHECK(read_profile(profile, &data));
    return data.HwCounters[0].Value;
}

/* Somebody adds `jump` to the counter while it runs: seen in full, before a switch and after it.
 * Then the counter wraps: exact before the switch, and after it nothing is lost or gained. */
void user_exact_jump(uint64_t jump)
{
    static const struct known long_one = { work_1000000, 1000000, 3 };
    HANDLE profile;
    uint64_t empty, grown, switches = 0;
    loose = jump & USER_EXACT_LOOSE;
    jump &= ~USER_EXACT_LOOSE;
    PERFORMANCE_DATA before, now;
    if (!begin_profiling(&profile, &empty) || !CHECK(read_profile(profile, &before)))
        return;
    __atomic_store_n(&user_exact_ready[0], 1, __ATOMIC_RELEASE);
    do {
        if (!CHECK(read_profile(profile, &now)))
            return;
        grown = now.HwCounters[0].Value - before.HwCounters[0].Value;
    } while (grown < jump / 2);
    CHECK_RANGE(grown, jump, jump + UINT32_MAX / 2); /* and what this loop executed */
    CHECK_EQ(now.ContextSwitchCount, before.ContextSwitchCount);
    uint64_t value = now.HwCounters[0].Value;
    Sleep(1); /* a stretch is less than the counter's width */
    CHECK_RANGE(value_of(profile) - value, 1, MORE);
    value = value_of(profile);
    run_known(profile, &long_one, empty, &switches);
    uint64_t done = value_of(profile) - value;
    CHECK_RANGE(done, 3000000, 3000000 + MORE);
    Sleep(1);
    CHECK_RANGE(value_of(profile) - value, done + 1, done + MORE);
    CHECK_EQ(DisableThreadProfiling(profile), ERROR_SUCCESS);
}

/* Profiled, sleeps, works with sleeps between, then sleeps until it is terminated: while it sleeps
 * its counts stand. */
void user_exact_rounds(uint64_t rounds)
{
    HANDLE profile;
    uint64_t empty;
    if (!begin_profiling(&profile, &empty))
        return;
    __atomic_fetch_add(&user_exact_ready[0], 1, __ATOMIC_RELEASE);
    Sleep(100);
    for (uint64_t i = 0; i < rounds; i++) {
        work_100000();
        if (i % 4 == 0)
            Sleep(1);
    }
    __atomic_fetch_add(&user_exact_ready[1], 1, __ATOMIC_RELEASE);
    Sleep(INFINITE);
}

/* Goes on until `wanted` switches fell into measured regions: then exactness survived them. */
void user_exact_switched(uint64_t wanted)
{
    static const struct known long_one = { work_100000, 100000, 10 };
    HANDLE profile;
    uint64_t empty, switches = 0;
    loose = wanted & USER_EXACT_LOOSE;
    wanted &= ~USER_EXACT_LOOSE;
    if (!begin_profiling(&profile, &empty))
        return;
    for (unsigned i = 0; i < 1000 && switches < wanted; i++)
        if (!run_known(profile, &long_one, empty, &switches))
            return;
    CHECK(switches >= wanted);
    CHECK_EQ(DisableThreadProfiling(profile), ERROR_SUCCESS);
}

/* Keeps a process whose libraries are loaded: half a million instructions, of which a virtual PMU
 * may step each that it counts. */
void user_exact_load(uint64_t unused)
{
    __atomic_store_n(&user_exact_ready[0], 1, __ATOMIC_RELEASE);
    Sleep(INFINITE);
}

/* Two RDPMCs with two moves between: RDPMC and two moves retire from reading to reading, on this
 * CPU. The selector, and in the upper half how many instructions that is. */
void user_exact_raw(uint64_t what)
{
    HANDLE profile;
    uint64_t empty, best = ~0ull;
    if (!begin_profiling(&profile, &empty))
        return;
    for (unsigned i = 0; i < 100; i++) {
        uint64_t found = work_pmc_pair((uint32_t)what);
        best = found < best ? found : best; /* a migration in between may add anything */
    }
    CHECK_EQ(best, what >> 32);
    CHECK_EQ(DisableThreadProfiling(profile), ERROR_SUCCESS);
}

/* The instructions of touching pages downwards; 0: a switch fell into the reading. */
static uint64_t touch(HANDLE profile, char *page)
{
    PERFORMANCE_DATA before, after;
    if (!CHECK(read_profile(profile, &before)))
        return 0;
    work_pages(page, USER_EXACT_PAGES);
    if (!CHECK(read_profile(profile, &after)) || after.RetryCount)
        return 0;
    return after.HwCounters[0].Value - before.HwCounters[0].Value;
}

/* Pages of the stack, which grows where they are touched first: a page fault each, and not an
 * instruction more. */
void user_exact_faults(uint64_t how)
{
    HANDLE profile;
    uint64_t empty;
    char here, *page = &here - 4096;
    loose = how & USER_EXACT_LOOSE;
    if (!begin_profiling(&profile, &empty))
        return;
    for (unsigned i = 0; i < USER_EXACT_TOUCHES; i++, page -= USER_EXACT_PAGES * 4096) {
        uint64_t first = touch(profile, page), again = touch(profile, page);
        if (first && again)
            judge(first, again);
    }
    CHECK_RANGE(user_exact_spread.regions, USER_EXACT_TOUCHES / 2,
                USER_EXACT_TOUCHES); /* few readings meet a tick */
    CHECK_EQ(DisableThreadProfiling(profile), ERROR_SUCCESS);
}

void user_exact_spin(uint64_t thousands)
{
    do
        work_1000();
    while (!thousands || --thousands);
}
