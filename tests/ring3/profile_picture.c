/* SPDX-License-Identifier: MIT */
/* Where a program executes its instructions, by a histogram of its own code: what a user of profile
 * objects wants, and looks at. Three loops run for known shares of it. */
#include "kernel/base/print.h"
#include "tests/ring3/helpers.h"

#define LOG2 4
#define BUCKETS 16
#define WIDTH 50     /* characters of a bar of 100 % */
#define SAMPLES 450u /* at the least */
#define ROUNDS 25
#define ITERATIONS 211u /* on average */

uint64_t hot_mix(uint64_t iterations), hot_add(uint64_t iterations), hot_turn(uint64_t iterations),
    hot_end(uint64_t iterations);

static const struct {
    const char *name;
    uint64_t (*start)(uint64_t);
    unsigned share; /* of seven */
} loops[] = { { "hot_mix", hot_mix, 4 }, { "hot_add", hot_add, 2 }, { "hot_turn", hot_turn, 1 } };
#define LOOPS ARRAY_SIZE(loops)

static ULONG buckets[BUCKETS];

static void work_rounds(unsigned rounds)
{
    /* No round is as long as the one before, or some interval would be a whole number of them and
     * always hit one loop. */
    static uint32_t random = 1;
    for (unsigned round = 0; round < rounds; round++) {
        random = random * 1664525 + 1013904223;
        uint32_t iterations = ITERATIONS / 2 + (random >> 16) % ITERATIONS;
        for (unsigned i = 0; i < LOOPS; i++)
            loops[i].start(loops[i].share * iterations);
    }
}

/* Samples of the bucket's function up to the next function. */
static uint64_t samples_of(unsigned loop)
{
    uint64_t first = ((uint64_t)loops[loop].start - (uint64_t)hot_mix) >> LOG2, n = 0;
    uint64_t last =
        ((uint64_t)(loop + 1 < LOOPS ? loops[loop + 1].start : hot_end) - (uint64_t)hot_mix) >>
        LOG2;
    for (uint64_t i = first; i < last; i++)
        n += buckets[i];
    return n;
}

static uint64_t all_samples(void)
{
    uint64_t total = 0;
    for (unsigned i = 0; i < LOOPS; i++)
        total += samples_of(i);
    return total;
}

static void draw(uint64_t total)
{
    test_note("by instructions, every 10,000, %lu samples", total);
    for (unsigned i = 0; i < LOOPS; i++) {
        char bar[WIDTH + 1];
        uint64_t n = samples_of(i);
        unsigned length = (unsigned)(n * WIDTH / total);
        memset(bar, '#', length);
        bar[length] = 0;
        test_note("  %-10s %-50s %3lu %%", loops[i].name, bar, n * 100 / total);
    }
}

TEST_USER(profile_picture, by_instructions,
          "a program's histogram by retired instructions, drawn: three loops have the shares that "
          "they retire")
{
    const unsigned samples = test_long() ? SAMPLES : SAMPLES / 3;
    HANDLE profile;
    ULONG before;
    BOOLEAN was;
    REQUIRE_OK(RtlAdjustPrivilege(SE_SYSTEM_PROFILE_PRIVILEGE, TRUE, FALSE, &was));
    NTSTATUS status = ZwCreateProfile(&profile, NtCurrentProcess(), (PVOID)(uint64_t)hot_mix,
                                      (uint64_t)hot_end - (uint64_t)hot_mix, LOG2, buckets,
                                      sizeof buckets, ProfileTotalIssues, ~0ull);
    SKIP_IF(status == STATUS_NOT_SUPPORTED, "no PMU");
    REQUIRE_OK(status);
    CHECK_OK(ZwQueryIntervalProfile(ProfileTotalIssues, &before));
    CHECK_OK(ZwSetIntervalProfile(10000, ProfileTotalIssues));
    CHECK_OK(ZwStartProfile(profile));
    while (all_samples() < samples) /* a host may let few come */
        work_rounds(ROUNDS);
    CHECK_OK(ZwStopProfile(profile));
    CHECK_OK(NtClose(profile));
    CHECK_OK(ZwSetIntervalProfile(before, ProfileTotalIssues));
    uint64_t total = all_samples();
    draw(total);
    /* Five standard deviations of a sample of that size, which are at most 250 % / sqrt(n). */
    unsigned slack = 1;
    while (slack * slack * total < 250 * 250)
        slack++;
    for (unsigned i = 0; i < LOOPS; i++)
        CHECK_RANGE(samples_of(i) * 100 / total + slack, loops[i].share * 100 / 7,
                    loops[i].share * 100 / 7 + 2 * slack);
}
