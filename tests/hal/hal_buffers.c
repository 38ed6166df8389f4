/* SPDX-License-Identifier: MIT */
/* Event buffers: who may have them, and that their handler gets each record that a processor wrote,
 * once. How many that are a second counter of the same event says, which the same WRMSR starts and
 * stops.
 *
 * Sources: ntddk.h and its pages; SDM volume 3, "Processor Event Based Sampling". */
#include "hal/buffers/event_buffer.h"
#include "kernel/base/sanitize/kasan.h"
#include "pmu/pebs/pebs.h"
#include "tests/harness/lab.h"
#include "tests/harness/records.h"

#define PERIOD                                                                                     \
    (KASAN_ON ? 20000u : 2000u) /* the way to a handler, where counters pause, is shorter */
#define THRESHOLD 16u
#define ITERATIONS (25 * PERIOD) /* of two instructions */
#define COST_RECORDS 64u
#define COST_MAX 60u
#define MSR_PEBS_ENABLE 0x3f1
#define MSR_DS_AREA 0x600
#define RDI 7

/* --- What the handlers saw, by CPU. --- */

static struct seen {
    uint64_t calls, records, overflows, of[2]; /* of: by counter */
    uint64_t wrong;                            /* of all that a call promises */
    uint64_t last;                             /* what was left of the loop in the record before */
} seen[MAX_CPUS];
static HANDLE owner;

/* --- Counters 0 and 1, of which some write records, and one that counts. --- */

static struct run {
    const char *name;
    ULONG threshold;
    uint64_t owned, writers, counters; /* owned: by the buffer's owner */
    bool registers, overflows, slow, interrupts_off;
} run;
static unsigned truth;
static uint64_t counted[MAX_CPUS];

static uint64_t data_cfg(void) { return run.registers ? pebs_facts()->groups & PEBS_GPR : 0; }

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
    const uint64_t before = pmu_read(truth); /* all counters pause */
    const uint8_t *at = buffer;
    struct pebs_record r;
    s->calls++;
    s->records += count;
    s->wrong += handle != owner || irql_current() != PROFILE_LEVEL || !count ||
                size != pebs_record_size(data_cfg());
    for (ULONGLONG i = 0; i < count; i++, at += size)
        if (pebs_read(at, &r) && r.size == size)
            note_record(s, &r);
        else
            s->wrong++;
    for (unsigned i = 0; run.slow && i < 10 * PERIOD; i++)
        asm volatile("");
    s->wrong += pmu_read(truth) != before;
}

static void note_overflow(ULONGLONG bits, HANDLE handle)
{
    struct seen *s = &seen[cpu_number()];
    s->overflows++;
    s->wrong += bits != PMU_BIT(1) || handle != owner;
}

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

/* One of a team: on its CPU, where the PMI alone comes through. */
static void run_here(void *)
{
    const uint64_t all = run.counters | PMU_BIT(truth);
    KIRQL passive = irql_raise(IPI_LEVEL), old = irql_raise(PROFILE_LEVEL);
    seen[cpu_number()].last = ~0ul;
    for_each_bit(ctr, run.counters)
        program((unsigned)ctr, (ctr + 1) * PERIOD);
    program(truth, 0);
    CHECK(pebs_enable(run.writers, data_cfg()));
    irql_lower(run.interrupts_off ? PROFILE_LEVEL : old);
    pmu_start(all);
    lab_loop(ITERATIONS);
    pmu_stop(all);
    irql_lower(old);
    counted[cpu_number()] = pmu_read(truth);
    irql_lower(passive);
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

/* By the manual's table of groups: memory, registers, XMM, branches of 24 bytes each,
 * and counters of 8 bytes each behind 16. */
static bool can_write(ULONG size)
{
    static const uint16_t bytes[] = { 32, 144, 256 };
    const struct pebs_facts *facts = pebs_facts();
    const ULONG values = facts->groups & PEBS_COUNTERS ? 2 + bit_count(pmu_here()->reported) : 0;
    for (unsigned groups = 0; facts->groups && groups < 8; groups++) {
        ULONG sum = 32, most = facts->lbr_depth;
        for (unsigned i = 0; i < 3; i++)
            sum += groups >> i & 1 ? bytes[i] : 0;
        for (ULONG n = 0; n <= values; n += n ? 1 : 2)
            if (size >= sum + 8 * n && size - sum - 8 * n <= 24 * most &&
                (size - sum - 8 * n) % 24 == 0)
                return true;
    }
    return !size || size == facts->smallest;
}

TEST(hal_buffers, sizes,
     "every size of records that the processor's groups add up to is taken, and no other [HC-54]")
{
    SKIP_WITHOUT_RECORDS();
    EACH_KIND(cpu) {
        test_run_on(cpu);
        for (ULONG size = 0; size <= 2048; size++) {
            struct list list = { 1, { buffered(ignore_records, size, 1) } };
            HANDLE handle;
            NTSTATUS status = take_on(cpu_set_one(cpu), &list, &handle);
            CHECK_STATUS(status, can_write(size) ? STATUS_SUCCESS : STATUS_INVALID_PARAMETER);
            if (NT_SUCCESS(status))
                free_and_check(handle);
        }
    }
    test_run_anywhere();
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

/* A counter that has overflowed writes its record at the next event, at which it is set back. The
 * calls are by the threshold, and one in the free, if records wait. */
static bool check_cpu(unsigned cpu)
{
    const struct seen *s = &seen[cpu];
    bool ok = CHECK(s->records > THRESHOLD);
    for (unsigned ctr = 0; ctr < ARRAY_SIZE(s->of); ctr++)
        ok &= CHECK_EQ(s->of[ctr],
                       run.writers >> ctr & 1 ? counted[cpu] / ((ctr + 1) * PERIOD + 1) : 0);
    ok &= CHECK_EQ(s->calls,
                   run.interrupts_off ? 1 : (s->records + run.threshold - 1) / run.threshold);
    ok &= CHECK_EQ(s->overflows, run.overflows); /* nobody arms it again */
    return ok & CHECK_EQ(s->wrong, 0);
}

static const struct run runs[] = {
    { .name = "a counter", THRESHOLD, 1, 1, 1, .registers = true },
    { .name = "two counters, at times both at once", THRESHOLD, 3, 3, 3, .slow = false },
    { .name = "a counter beside one that interrupts", THRESHOLD, 3, 1, 3, .overflows = true },
    { .name = "a counter of another owner", THRESHOLD, 0, 1, 1, .slow = false },
    { .name = "a handler slower than a buffer fills", 1, 1, 1, 1, .slow = true },
    { .name = "the interrupt cannot come", 1, 1, 1, 1, .interrupts_off = true },
    { .name = "a threshold above the buffer", 1u << 31, 1, 1, 1, .slow = false },
};

static bool run_on_all(const struct run *plan)
{
    struct list list = { 1, { { 0 } } };
    HANDLE others;
    run = *plan;
    memset(seen, 0, sizeof seen);
    list.Descriptors[0] = buffered(note_records, pebs_record_size(data_cfg()), run.threshold);
    for_each_bit(ctr, run.owned)
        list.Descriptors[list.Count++] = single((ULONG)ctr);
    if (run.overflows)
        list.Descriptors[list.Count++] = overflow(note_overflow);
    bool ok =
        CHECK_OK(take_on(BY_NULL, &list, &owner)) &&
        CHECK_OK(hal_counters_claim("others", cpu_all(),
                                    PMU_BIT(truth) | (run.counters & ~run.owned), NULL, &others));
    if (!ok)
        return false;
    team_run(run_here, cpu_count);
    free_and_check(owner);
    free_and_check(others);
    for (unsigned cpu = 0; cpu < cpu_count; cpu++)
        ok &= check_cpu(cpu);
    return ok;
}

TEST(hal_buffers, each_record,
     "on every processor the handler gets each record once, when as many are written as the "
     "threshold says, and the last ones in the free; the handler of overflows gets the others "
     "[HC-52 "
     "HC-53 HC-56 HC-57]")
{
    SKIP_WITHOUT_RECORDS();
    SKIP_IF(~pmu_common_counters(SMP_ALL) & 3, "this needs two counters");
    truth = bit_lowest(common_instructions() & ~3ul);
    for (unsigned i = 0; i < ARRAY_SIZE(runs); i++) {
        if (!run_on_all(&runs[i]))
            test_note("%s", runs[i].name);
    }
}

/* Of ring 0, beside the loop's. */
static uint64_t retired_around(uint64_t periods)
{
    uint64_t before = vpmu_retired();
    pmu_start(1);
    lab_loop(periods * PERIOD / 2);
    pmu_stop(1);
    return vpmu_retired() - before - periods * PERIOD;
}

static uint64_t handed;
static void count_records(PVOID, ULONGLONG, ULONGLONG count, HANDLE) { handed += count; }

/* The kernel's own, as many as fit below the threshold; the second one's size is damaged then. How
 * many are left. */
static uint64_t record_periods(void)
{
    struct ds_area *area = (struct ds_area *)rdmsr(MSR_DS_AREA);
    const uint64_t all = 1 | PMU_BIT(truth), size = pebs_record_size(0);
    struct pebs_record r;
    for (uint64_t period = 2; period < 9; period += 3) {
        pebs_drain(area);
        program(0, PERIOD);
        program(truth, 0);
        event_buffer_arm(0, period);
        pmu_start(all);
        lab_loop(COST_RECORDS / 2);
        pmu_stop(all);
        CHECK_EQ((area->index - area->base) / size, pmu_read(truth) / period);
    }
    uint64_t *second = (uint64_t *)(area->base + size);
    if (!pebs_facts()->groups)
        return (area->index - area->base) / size;
    *second |= ~0ul << 48;
    CHECK(!pebs_read(second, &r));
    return 1;
}

TEST(hal_buffers, cost,
     "a record costs at most 60 instructions, drained by a threshold of 64: the interrupt, and one "
     "call of the handler; the kernel's own are one each period, and none is handed over beyond "
     "the last [KP-28 HC-52]")
{
    SKIP_WITHOUT_RECORDS();
    truth = bit_lowest(common_instructions() & ~1ul);
    struct list list = { 3,
                         { single(0), single(truth), buffered(count_records, 0, COST_RECORDS) } };
    SKIP_WITHOUT_VPMU();
    run = (struct run){ .writers = 1 };
    REQUIRE_OK(take_on(BY_NULL, &list, &owner));
    test_run_on(0);
    KIRQL old = irql_raise(IPI_LEVEL);
    program(0, PERIOD);
    pebs_enable(1, 0);
    uint64_t without = retired_around(COST_RECORDS / 2);
    uint64_t cost = retired_around(COST_RECORDS / 2 + 2) - without, left = record_periods();
    irql_lower(old);
    handed = 0;
    free_and_check(owner);
    CHECK_EQ(handed, left);
    test_run_anywhere();
    cost_tell(cost / COST_RECORDS, (struct vpmu_accesses){ 0 }, "a record of an event buffer");
    CHECK_RANGE(cost, 100, COST_RECORDS * COST_MAX); /* above: the interrupt's entry */
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
    SKIP_IF(~pmu_common_counters(SMP_ALL) & 3, "this needs two counters");
    struct list list = { 1, { buffered(note_records, pebs_record_size(0), THRESHOLD) } };
    uint64_t found = 0;
    HANDLE counters;
    run = (struct run){ .writers = 1, .counters = 1 };
    seen[0].wrong = seen[0].calls = 0;
    truth = 1;
    REQUIRE_OK(take_on(BY_NULL, &(struct list){ 1, { range(0, 1) } }, &counters));
    REQUIRE_OK(take_on(BY_NULL, &list, &owner));
    team_run(run_here, cpu_count);
    smp_call(cpu_all(), registers_here, &found);
    CHECK(found & 1 && found > 1);
    test_run_on(0);
    pmu_start(PMU_BIT(truth));
    free_and_check(owner);
    CHECK(seen[0].calls > 1 && !seen[0].wrong);
    found = 0;
    smp_call(cpu_all(), registers_here, &found);
    CHECK_EQ(found, 0);
    free_and_check(counters);
    for (unsigned everything = 0; everything < 2; everything++) {
        const uint64_t both = pebs_facts()->counters & 3;
        struct list one = { 1, { single(0) } };
        REQUIRE_OK(take_on(BY_NULL, everything ? NULL : &one, &owner));
        wrmsr(MSR_DS_AREA, everything ? KERNEL_VMA : 0);
        pebs_enable(both, 0);
        free_and_check(owner);
        CHECK_EQ(rdmsr(MSR_PEBS_ENABLE) | rdmsr(MSR_DS_AREA), everything ? 0 : both & ~1ul);
        pebs_enable(0, 0);
    }
    test_run_anywhere();
}
