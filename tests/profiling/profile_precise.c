/* SPDX-License-Identifier: MIT */
/* Precise sources: samples are at the instruction that caused the event, where an interrupt comes
 * after it. Loads, stores and branches each have one instruction in lab_memory's loop, so that the
 * truth is known address by address. */
#include "kernel/base/sanitize/kasan.h"
#include "tests/harness/lab.h"
#include "tests/harness/profile.h"
#include "tests/harness/records.h"

#define PERIOD (KASAN_ON ? 50000u : 4096u) /* a handler is shorter */
#define SAMPLES 20u
#define OTHERS 3u /* samples due in interrupt handlers, which load, store and branch, too */
#define PLACES 4u

static const struct event {
    const WCHAR *name;
    UCHAR code, umask;
    uint8_t at; /* which of the loop's instructions */
} events[] = {
    { u"LoadsTest", 0xd0, 0x81, 0 },
    { u"StoresTest", 0xd0, 0x82, 1 },
    { u"BranchesTest", 0xc4, 0, 3 },
};

static NTSTATUS add_precise(const struct event *e, bool precise, KPROFILE_SOURCE *source)
{
    const ULONG any[3] = { ~0u, ~0u, ~0u };
    const UCHAR bytes[8] = { e->code, e->umask, [6] = precise };
    HAL_PROFILE_SOURCE_ADD add = { .InitialInterval = PERIOD };
    CHECK_OK(hal_source_event(3, bytes, any, &add));
    for (unsigned i = 0; e->name[i]; i++)
        add.Description[i] = e->name[i];
    NTSTATUS status = HalSetSystemInformation(HalProfileSourceAdd, sizeof add, &add);
    *source = add.Source;
    return status;
}

/* An object for each instruction of the loop, on the first CPUs. A sample elsewhere is missed. */
static const uint8_t places[PLACES] = { 0, 7, 14, 17 };
static ULONG counts[PLACES];
static HANDLE objects[PLACES];

static void start_objects(KPROFILE_SOURCE source, KAFFINITY affinity)
{
    memset(counts, 0, sizeof counts);
    for (unsigned i = 0; i < PLACES; i++) {
        objects[i] = profile_made((uint64_t)lab_memory + places[i], 1, 2, &counts[i],
                                  sizeof counts[i], source, affinity);
        profile_start(objects[i]);
    }
}

static void end_objects(void)
{
    for (unsigned i = 0; i < PLACES; i++) {
        profile_stop(objects[i]);
        CHECK_OK(NtClose(objects[i]));
    }
}

/* Where the PMI alone comes through: a tick's handler loads, stores and branches, too. */
static void run_loop(void *)
{
    KIRQL old = irql_raise(IPI_LEVEL);
    lab_memory((SAMPLES + 1) * PERIOD);
    irql_lower(old);
}

/* A picture of both ways, of one loop. */
static void print_samples(unsigned at, bool precise)
{
    print("# events of the instruction at +%u, by %s:", places[at],
          precise ? "records" : "interrupts");
    for (unsigned i = 0; i < PLACES; i++)
        if (counts[i])
            print(" %u samples at +%u", counts[i], places[i]);
    print("\n");
}

/* All samples, and those at an address of the loop. */
static void check_samples(unsigned at, bool precise, unsigned on_cpus)
{
    ULONG all = counts[0] + counts[1] + counts[2] + counts[3];
    CHECK_BECAUSE(all, SAMPLES * on_cpus, (SAMPLES + 2) * on_cpus,
                  "the first period may begin before the loop; the PMI has some of the events");
    CHECK_EQ(counts[at], precise ? all : 0);
}

static void remove_precise(KPROFILE_SOURCE source)
{
    CHECK_OK(HalSetSystemInformation(HalProfileSourceRemove, sizeof source, &source));
}

TEST(profile_precise, addresses,
     "on every processor each sample of a precise source is at the instruction that caused the "
     "event; those that interrupt come after it [KP-33]")
{
    const unsigned on_cpus = cpus_of_group() < TEAM_MAX ? cpus_of_group() : TEAM_MAX;
    KPROFILE_SOURCE source;
    SKIP_WITHOUT_RECORDS();
    SKIP_WITHOUT_ADDED_SOURCES();
    SKIP_IF(KASAN_ON, "instrumented code is decoded: this takes minutes");
    SKIP_WITHOUT_VPMU(); /* processors are exact for some events, and on some counters */
    for (unsigned i = 0; i < 2 * ARRAY_SIZE(events); i++) {
        const struct event *e = &events[i / 2];
        REQUIRE_OK(add_precise(e, i % 2, &source));
        start_objects(source, PMU_BIT(on_cpus) - 1);
        team_run(run_loop, on_cpus);
        end_objects();
        print_samples(e->at, i % 2);
        check_samples(e->at, i % 2, on_cpus);
        remove_precise(source);
    }
}

TEST(profile_precise, one_buffer,
     "precise sources need the event buffer: while one samples, another is busy, and an owner gets "
     "none; while an owner has it, none samples; a new interval is valid after two more samples "
     "[KP-34]")
{
    ULONG bucket[2];
    KPROFILE_SOURCE first, second;
    HANDLE one, other, owner;
    struct list list = { 1, { buffered(ignore_records, 0, 1) } };
    SKIP_WITHOUT_RECORDS();
    test_run_on(0);
    REQUIRE_OK(add_precise(&(struct event){ u"FirstTest", 0xc0, 0, 0 }, true, &first));
    REQUIRE_OK(add_precise(&(struct event){ u"SecondTest", 0xc0, 0, 0 }, true, &second));
    one = profile_of_loop(&bucket[0], first, 1);
    other = profile_of_loop(&bucket[1], second, 1);
    profile_start(one);
    CHECK_STATUS(NtStartProfile(other), STATUS_DEVICE_BUSY);
    CHECK_STATUS(take_on(BY_NULL, &list, &owner), STATUS_INSUFFICIENT_RESOURCES);
    CHECK_STATUS(HalSetSystemInformation(HalProfileSourceRemove, sizeof first, &first),
                 STATUS_DEVICE_BUSY);
    profile_stop(one);
    REQUIRE_OK(take_on(BY_NULL, &list, &owner));
    CHECK_STATUS(NtStartProfile(other), STATUS_DEVICE_BUSY);
    free_and_check(owner);
    profile_start(other);
    profile_loop(PERIOD);
    HAL_PROFILE_SOURCE_INTERVAL rare = { second, UINT32_MAX };
    CHECK_OK(HalSetSystemInformation(HalProfileSourceInterval, sizeof rare, &rare));
    profile_loop(4 * PERIOD);
    ULONG then = bucket[1];
    profile_loop(20 * PERIOD);
    CHECK(then > 0 && bucket[1] == then);
    CHECK_OK(NtClose(one));
    CHECK_OK(NtClose(other));
    remove_precise(first);
    remove_precise(second);
    test_run_anywhere();
}

TEST(profile_precise, not_there,
     "where no processor writes records a precise source is refused with STATUS_NOT_SUPPORTED "
     "[KP-34]")
{
    HAL_PROFILE_SOURCE_ADD add = { .EventSelect = 0xc0, .Precise = TRUE, .Description = u"Test" };
    SKIP_IF(writes_records(), "the processor writes records");
    CHECK_STATUS(HalSetSystemInformation(HalProfileSourceAdd, sizeof add, &add),
                 STATUS_NOT_SUPPORTED);
}
