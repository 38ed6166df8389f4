/* SPDX-License-Identifier: MIT */
/* What a record costs that the processor writes and an event buffer's owner gets. */
#include "pmu/pebs/pebs.h"
#include "tests/harness/kernel.h"
#include "tests/harness/lab.h"
#include "tests/harness/records.h"

#define RECORDS 64u
#define PERIOD 1000u
#define MSR_DS_AREA 0x600
#define COST_MAX 60 /* instructions of a record, with its part of the interrupt */

static uint64_t taken;

static void take_records(PVOID, ULONGLONG, ULONGLONG count, HANDLE) { taken += count; }

static void arm_writer(void)
{
    const uint64_t start = -(uint64_t)PERIOD & pmu_mask(pmu_here(), 0);
    pmu_program(0, pmu_select(pmu_here(), PMU_INSTRUCTIONS, PMU_KERNEL | PMU_INTERRUPT), start);
    pebs_set_reload((struct ds_area *)rdmsr(MSR_DS_AREA), 0, start);
    pebs_enable(1, 0);
}

/* Of ring 0, beside the loop's. */
static uint64_t retired_around(uint64_t iterations)
{
    uint64_t before = vpmu_retired();
    pmu_start(1);
    lab_loop(iterations);
    pmu_stop(1);
    return vpmu_retired() - before - 2 * iterations;
}

TEST(cost, records,
     "a record costs at most 60 instructions, drained by a threshold of 64: the interrupt, and one "
     "call of the handler")
{
    struct list list = { 2, { single(0), buffered(take_records, 0, RECORDS) } };
    HANDLE handle;
    SKIP_WITHOUT_RECORDS();
    SKIP_WITHOUT_VPMU();
    taken = 0;
    REQUIRE_OK(take_on(BY_NULL, &list, &handle));
    test_run_on(0);
    KIRQL old = irql_raise(IPI_LEVEL);
    arm_writer();
    uint64_t without = retired_around((RECORDS / 2) * PERIOD / 2), early = taken;
    uint64_t cost = retired_around((RECORDS / 2 + 2) * PERIOD / 2) - without;
    irql_lower(old);
    CHECK_EQ(early, 0);
    CHECK_EQ(taken, RECORDS);
    free_and_check(handle);
    test_run_anywhere();
    cost_tell(cost / RECORDS, (struct vpmu_accesses){ 0 }, "a record of an event buffer");
    CHECK_RANGE(cost, 100, COST_MAX * RECORDS); /* above: the interrupt's entry */
}
