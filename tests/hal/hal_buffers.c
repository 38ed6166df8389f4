/* SPDX-License-Identifier: MIT */
/* Event buffers: who may have them, and that their handler gets each record that a processor wrote,
 * once. How many that are a second counter of the same event says, which the same WRMSR starts and
 * stops.
 *
 * Sources: ntddk.h and its pages; SDM volume 3, "Processor Event Based Sampling". */
#include "kernel/base/sanitize/kasan.h"
#include "pmu/pebs/pebs.h"
#include "tests/harness/lab.h"
#include "tests/harness/records.h"

#define PERIOD                                                                                     \
    (KASAN_ON ? 20000u : 2000u) /* the way to a handler, where counters pause, is shorter */
#define THRESHOLD 16u
#define ITERATIONS (25 * PERIOD) /* of two instructions */
#define MSR_PEBS_ENABLE 0x3f1
#define MSR_DS_AREA 0x600
#define RDI 7

/* --- What a handler saw, by CPU. --- */

static struct seen {
    uint64_t calls, records, of[2]; /* of: by counter */
    uint64_t wrong;                 /* of all that a call promises */
    uint64_t last;                  /* what was left of the loop in the record before */
    uint64_t most;                  /* records of a call */
    uint64_t overflows;
} seen[MAX_CPUS];
static HANDLE owner;
static uint32_t entry_size;
static bool slow;

/* The loop's first instruction counts RDI down: a record that comes twice is noticed. */
static void note_record(struct seen *s, const struct pebs_record *r)
{
    for (unsigned ctr = 0; ctr < ARRAY_SIZE(s->of); ctr++)
        s->of[ctr] += r->applicable >> ctr & 1;
    if (!(r->groups & PEBS_GPR) || r->address - (uint64_t)lab_loop >= 6)
        return;
    uint64_t left = 2 * r->gpr[RDI] + (r->address == (uint64_t)lab_loop); /* instructions */
    s->wrong += left >= s->last;
    s->last = left;
}

static void note_records(PVOID buffer, ULONGLONG size, ULONGLONG count, HANDLE handle)
{
    struct seen *s = &seen[cpu_number()];
    const uint8_t *at = buffer;
    struct pebs_record r;
    s->calls++;
    s->records += count;
    s->most = count > s->most ? count : s->most;
    s->wrong += handle != owner || irql_current() != PROFILE_LEVEL || size != entry_size || !count;
    for (ULONGLONG i = 0; i < count; i++, at += size)
        if (pebs_read(at, &r) && r.size == size)
            note_record(s, &r);
        else
            s->wrong++;
    for (unsigned i = 0; slow && i < 10 * PERIOD; i++)
        asm volatile("");
}

static void note_overflow(ULONGLONG bits, HANDLE handle)
{
    struct seen *s = &seen[cpu_number()];
    s->overflows++;
    s->wrong += bits != PMU_BIT(1) || handle != owner;
}

/* --- Counters 0 and 1, of which some write records, and one that counts. --- */

static struct run {
    uint64_t writers, counters, data_cfg;
    bool interrupts_off;
    unsigned truth;
    uint64_t counted[MAX_CPUS];
} run;

static void program(unsigned ctr, uint64_t period)
{
    const uint64_t start = -period & pmu_mask(pmu_here(), ctr);
    const bool writes = run.writers >> ctr & 1;
    uint64_t select =
        pmu_select(pmu_here(), PMU_INSTRUCTIONS, PMU_KERNEL | (period ? PMU_INTERRUPT : 0));
    pmu_program(ctr, select | (writes && pebs_facts()->groups ? PMU_ADAPTIVE : 0), start);
    if (writes)
        pebs_set_reload((struct ds_area *)rdmsr(MSR_DS_AREA), ctr, start);
}

static void program_all(void)
{
    for_each_bit(ctr, run.counters)
        program((unsigned)ctr, (ctr + 1) * PERIOD);
    program(run.truth, 0);
    CHECK(pebs_enable(run.writers, run.data_cfg));
}

/* One of a team: on its CPU, where the PMI alone comes through. */
static void run_here(void *unused)
{
    const uint64_t all = run.counters | PMU_BIT(run.truth);
    (void)unused;
    KIRQL passive = irql_raise(IPI_LEVEL), old = irql_raise(PROFILE_LEVEL);
    seen[cpu_number()].last = ~0ul;
    program_all();
    irql_lower(run.interrupts_off ? PROFILE_LEVEL : old);
    pmu_start(all);
    lab_loop(ITERATIONS);
    pmu_stop(all);
    irql_lower(old);
    run.counted[cpu_number()] = pmu_read(run.truth);
    irql_lower(passive);
}

/* Of counter 0 or 1: one that has overflowed writes its record at the next event, at which it is
 * set back. */
static uint64_t records_of(unsigned ctr, unsigned cpu)
{
    return run.writers >> ctr & 1 ? run.counted[cpu] / ((ctr + 1) * PERIOD + 1) : 0;
}

static void check_cpu(unsigned cpu)
{
    const struct seen *s = &seen[cpu];
    for (unsigned ctr = 0; ctr < ARRAY_SIZE(s->of); ctr++)
        CHECK_EQ(s->of[ctr], records_of(ctr, cpu));
    CHECK(s->records >= THRESHOLD);
    CHECK_EQ(s->wrong, 0);
}

/* The list's owner writes records on every CPU, and is freed. */
static bool run_list(struct list list, struct run plan)
{
    HANDLE truth;
    uint64_t free = hal_counters_available(cpu_all()) & common_instructions() & ~3ul;
    memset(seen, 0, sizeof seen);
    run = plan;
    run.truth = bit_lowest(free);
    entry_size = pebs_record_size(run.data_cfg);
    if (!CHECK_OK(take_one(BY_NULL, run.truth, &truth)))
        return false;
    if (CHECK_OK(take_on(BY_NULL, &list, &owner))) {
        team_run(run_here, cpu_count);
        free_and_check(owner);
    }
    free_and_check(truth);
    for (unsigned cpu = 0; cpu < cpu_count; cpu++)
        check_cpu(cpu);
    return true;
}

/* --- Who may have one. --- */

TEST(hal_buffers, not_there,
     "where a processor writes no records an event buffer is refused, before a counter that is "
     "taken is noticed [HC-33]")
{
    SKIP_WITHOUT_PMU();
    SKIP_IF(writes_records(), "the processor writes records");
    const PHYSICAL_COUNTER_RESOURCE_DESCRIPTOR buffer = buffered(ignore_records, 0, 1);
    unsigned ctr = nth_counter(0);
    HANDLE handle = NULL;
    REFUSED(STATUS_NOT_SUPPORTED, buffer);
    CHECK_OK(take_one(BY_NULL, ctr, &handle));
    REFUSED(STATUS_NOT_SUPPORTED, single(ctr), buffer);
    REFUSED(STATUS_NOT_SUPPORTED, buffer, single(ctr));
    free_and_check(handle);
}

/* By the manual's table of groups: memory, registers, XMM, and branches of 24 bytes each. */
static bool can_write(ULONG size)
{
    static const uint16_t bytes[] = { 32, 144, 256 };
    const struct pebs_facts *facts = pebs_facts();
    for (unsigned groups = 0; facts->groups && groups < 8; groups++) {
        ULONG sum = 32, most = facts->lbr_depth;
        for (unsigned i = 0; i < 3; i++)
            sum += groups >> i & 1 ? bytes[i] : 0;
        if (size >= sum && size - sum <= 24 * most && (size - sum) % 24 == 0)
            return true;
    }
    return !size || size == facts->smallest;
}

TEST(hal_buffers, sizes,
     "every size of records that the processor's groups add up to is taken, and no other [HC-54]")
{
    SKIP_WITHOUT_RECORDS();
    for (ULONG size = 0; size <= 2048; size++) {
        struct list list = { 1, { buffered(ignore_records, size, 1) } };
        HANDLE handle;
        NTSTATUS status = take_on(BY_NULL, &list, &handle);
        CHECK_STATUS(status, can_write(size) ? STATUS_SUCCESS : STATUS_INVALID_PARAMETER);
        if (NT_SUCCESS(status))
            free_and_check(handle);
    }
}

TEST(hal_buffers, two_owners,
     "a processor's event buffer has one owner, and who wants everything waits for it; processors "
     "that do not overlap have one each [HC-55 HC-21]")
{
    SKIP_WITHOUT_RECORDS();
    const unsigned last = cpu_count - 1;
    struct list list = { 1, { buffered(ignore_records, 0, 1) } };
    HANDLE first, second;
    REQUIRE_OK(take_on(cpu_set_one(0), &list, &first));
    REFUSED(STATUS_INSUFFICIENT_RESOURCES, buffered(ignore_records, 0, 1));
    REFUSED(STATUS_INSUFFICIENT_RESOURCES, single(nth_counter(0)), buffered(ignore_records, 0, 1));
    CHECK_STATUS(take_on(BY_NULL, NULL, &second), STATUS_INSUFFICIENT_RESOURCES);
    if (last) {
        CHECK_OK(take_on(cpu_set_one(last), &list, &second));
        free_and_check(second);
    }
    free_and_check(first);
    REQUIRE_OK(take_on(BY_NULL, NULL, &first));
    REFUSED(STATUS_INSUFFICIENT_RESOURCES, buffered(ignore_records, 0, 1));
    free_and_check(first);
}

/* --- Each record, once. --- */

TEST(hal_buffers, each_record,
     "on every processor the handler gets each record once, when as many are written as the "
     "threshold says, and the last ones in the free [HC-52 HC-53 HC-57]")
{
    SKIP_WITHOUT_RECORDS();
    struct run plan = { .writers = 1, .counters = 1, .data_cfg = pebs_facts()->groups & PEBS_GPR };
    ULONG size = pebs_record_size(plan.data_cfg);
    if (!run_list((struct list){ 2, { single(0), buffered(note_records, size, THRESHOLD) } }, plan))
        return;
    for (unsigned cpu = 0; cpu < cpu_count; cpu++) {
        CHECK_EQ(seen[cpu].calls, (records_of(0, cpu) + THRESHOLD - 1) / THRESHOLD);
        CHECK_EQ(seen[cpu].most, THRESHOLD);
    }
}

TEST(hal_buffers, several,
     "records of two counters come once each, those of both at once too [HC-52]")
{
    SKIP_WITHOUT_RECORDS();
    run_list((struct list){ 2, { range(0, 1), buffered(note_records, 0, THRESHOLD) } },
             (struct run){ .writers = 3, .counters = 3 });
}

TEST(hal_buffers, with_overflows,
     "of an owner whose one counter writes records and the other interrupts each handler gets its "
     "own [HC-56]")
{
    SKIP_WITHOUT_RECORDS();
    run_list((struct list){ 3,
                            { range(0, 1), overflow(note_overflow),
                              buffered(note_records, 0, THRESHOLD) } },
             (struct run){ .writers = 1, .counters = 3 });
    for (unsigned cpu = 0; cpu < cpu_count; cpu++)
        CHECK_EQ(seen[cpu].overflows, 1); /* nobody arms it again */
}

TEST(hal_buffers, alone,
     "a buffer alone gets the records of counters that another owner has [HC-56]")
{
    SKIP_WITHOUT_RECORDS();
    HANDLE counter;
    REQUIRE_OK(take_one(BY_NULL, 0, &counter));
    run_list((struct list){ 1, { buffered(note_records, 0, THRESHOLD) } },
             (struct run){ .writers = 1, .counters = 1 });
    free_and_check(counter);
}

TEST(hal_buffers, slow_handler,
     "a handler that lasts longer than a buffer takes to fill loses no record [HC-52]")
{
    SKIP_WITHOUT_RECORDS();
    slow = true;
    run_list((struct list){ 2, { single(0), buffered(note_records, 0, 1) } },
             (struct run){ .writers = 1, .counters = 1 });
    slow = false;
    for (unsigned cpu = 0; cpu < cpu_count; cpu++)
        CHECK_EQ(seen[cpu].most, 1);
}

TEST(
    hal_buffers, interrupts_off,
    "what is written while the interrupt cannot come is there when it comes; a threshold above the "
    "buffer is a smaller one [HC-52 HC-53]")
{
    SKIP_WITHOUT_RECORDS();
    const struct list all = { 2, { single(0), buffered(note_records, 0, 1) } };
    run_list(all, (struct run){ .writers = 1, .counters = 1, .interrupts_off = true });
    for (unsigned cpu = 0; cpu < cpu_count; cpu++)
        CHECK_EQ(seen[cpu].calls, 1);
    run_list((struct list){ 2, { single(0), buffered(note_records, 0, ~0u) } },
             (struct run){ .writers = 1, .counters = 1 });
}

/* --- The end. --- */

static void registers_here(void *found)
{
    uint64_t left = rdmsr(MSR_DS_AREA) | rdmsr(MSR_PEBS_ENABLE);
    __atomic_fetch_or((uint64_t *)found, left, __ATOMIC_RELAXED);
}

TEST(hal_buffers, after_free,
     "a free leaves no processor with an area, or with counters that write records, whoever has "
     "the counters [HC-57]")
{
    SKIP_WITHOUT_RECORDS();
    struct list list = { 1, { buffered(ignore_records, 0, 1) } };
    uint64_t found = 0;
    HANDLE counters;
    run = (struct run){ .writers = 1, .counters = 1, .truth = 1 };
    REQUIRE_OK(take_on(BY_NULL, &(struct list){ 1, { range(0, 1) } }, &counters));
    REQUIRE_OK(take_on(BY_NULL, &list, &owner));
    team_run(run_here, cpu_count);
    smp_call(cpu_all(), registers_here, &found);
    CHECK(found & 1 && found > 1);
    free_and_check(owner);
    found = 0;
    smp_call(cpu_all(), registers_here, &found);
    CHECK_EQ(found, 0);
    free_and_check(counters);
}
