/* SPDX-License-Identifier: MIT */
/* Which counter gets which source, where one that few counters can count comes last. */
#include "tests/harness/kernel.h"

static uint64_t counters_of_source(unsigned cpu, unsigned source)
{
    uint64_t select;
    return source_counting(pmu_of(cpu), (KPROFILE_SOURCE)source, &select);
}

/* A source of as many general-purpose counters as can be, and one of some of the lower of them. */
static bool choose_sources(unsigned cpu, unsigned *wide, unsigned *narrow)
{
    *wide = *narrow = 0;
    for (unsigned id = 1; id < SOURCE_IDS; id++)
        if (!(counters_of_source(cpu, id) & ~PMU_ANY_GP) &&
            bit_count(counters_of_source(cpu, id)) >
                (*wide ? bit_count(counters_of_source(cpu, *wide)) : 0))
            *wide = id;
    for (unsigned id = 1; *wide && id < SOURCE_IDS; id++) {
        uint64_t rest = counters_of_source(cpu, *wide) & ~counters_of_source(cpu, id);
        if (counters_of_source(cpu, id) &&
            !(counters_of_source(cpu, id) & ~counters_of_source(cpu, *wide)) &&
            rest > counters_of_source(cpu, id))
            *narrow = id;
    }
    return *narrow != 0;
}

TEST(hal_matching, leaves_the_rare,
     "sources that any counter can count leave a counter for one that only some can count, though "
     "it comes last")
{
    struct source_assignment a;
    ULONG sources[MAX_HW_COUNTERS];
    unsigned wide, narrow;
    SKIP_WITHOUT_PMU();
    SKIP_IF(!choose_sources(0, &wide, &narrow), "every source has the same counters");
    ULONG count = bit_count(counters_of_source(0, wide));
    REQUIRE(count <= MAX_HW_COUNTERS);
    for (ULONG i = 0; i < count; i++)
        sources[i] = i + 1 < count ? wide : narrow;
    REQUIRE_STATUS(source_assign(sources, count, cpu_set_one(0), &a), STATUS_SUCCESS);
    uint64_t taken = 0;
    for (ULONG i = 0; i < count; i++) {
        CHECK(counters_of_source(0, sources[i]) >> a.ctrs[i] & 1);
        CHECK(!(taken >> a.ctrs[i] & 1));
        taken |= PMU_BIT(a.ctrs[i]);
    }
    CHECK_EQ(taken, counters_of_source(0, wide));
}
