/* SPDX-License-Identifier: MIT */
/* The event tables in pmu/events: each family gets its own, and what the manuals say of single rows holds. The tables are
 * tested on every machine; on one with a PMU its own table is also programmed, row by row. */
#include "tests/lab.h"

struct processor {
    uint8_t family, model;
    bool small_core;
    const struct pmu_event_row *table;
};

static const struct processor processors[] = {
    { 0x06, 0x1a, false, intel_nehalem_events },      { 0x06, 0x2c, false, intel_nehalem_events },
    { 0x06, 0x2a, false, intel_sandy_bridge_events }, { 0x06, 0x3a, false, intel_haswell_events },
    { 0x06, 0x3c, false, intel_haswell_events },      { 0x06, 0x3d, false, intel_broadwell_events },
    { 0x06, 0x5e, false, intel_skylake_events },      { 0x06, 0x55, false, intel_skylake_server_events },
    { 0x06, 0x7e, false, intel_ice_lake_events },     { 0x06, 0x6a, false, intel_ice_lake_events },
    { 0x06, 0x8f, false, intel_sapphire_rapids_events }, { 0x06, 0xcf, false, intel_sapphire_rapids_events },
    { 0x06, 0x97, false, intel_golden_cove_events },  { 0x06, 0x97, true, intel_gracemont_events },
    { 0x06, 0xbe, true, intel_gracemont_events },     { 0x06, 0x5c, false, intel_goldmont_events },
    { 0x06, 0x37, false, intel_silvermont_events },   { 0x06, 0xad, false, intel_granite_rapids_events },
    { 0x06, 0x0f, false, intel_core2_events }, { 0x06, 0x1d, false, intel_core2_events },
    { 0x06, 0x0e, false, intel_architectural_events }, { 0x06, 0xff, false, intel_architectural_events },
    { 0x13, 0x01, true, intel_architectural_events },
    { 0x0f, 0x05, false, amd_k8_events },   { 0x10, 0x04, false, amd_10h_events }, { 0x12, 0x01, false, amd_10h_events },
    { 0x15, 0x02, false, amd_bulldozer_events }, { 0x16, 0x00, false, amd_10h_events },
    { 0x17, 0x01, false, amd_zen1_events }, { 0x17, 0x31, false, amd_zen2_events }, { 0x17, 0x71, false, amd_zen2_events },
    { 0x18, 0x00, false, amd_zen1_events }, { 0x19, 0x01, false, amd_zen3_events }, { 0x19, 0x21, false, amd_zen3_events },
    { 0x19, 0x50, false, amd_zen3_events }, { 0x19, 0x11, false, amd_zen4_events }, { 0x19, 0x61, false, amd_zen4_events },
    { 0x19, 0x78, false, amd_zen4_events }, { 0x19, 0xa0, false, amd_zen4_events }, { 0x1a, 0x02, false, amd_zen5_events },
};
#define COUNT (sizeof processors / sizeof *processors)

static bool is_intel(const struct processor *p) { return p->family == 0x06 || p->family == 0x13; }

TEST(event_tables, chosen, "every family and both cores of Alder Lake get their table, unknown ones the generic [S-4.4 S-4.5]")
{
    for (unsigned i = 0; i < COUNT; i++) {
        const struct processor *p = &processors[i];
        CHECK((is_intel(p) ? intel_table(p->family, p->model, p->small_core) : amd_table(p->family, p->model)) ==
              p->table);
    }
}

TEST(event_tables, rows, "every row has a counter, a code and a threshold where it inverts [S-4.6]")
{
    for (unsigned i = 0; i < COUNT; i++)
        for (unsigned event = 0; event < PMU_EVENT_COUNT; event++) {
            const struct pmu_event_row *row = &processors[i].table[event];
            if (!row->name)
                continue;
            CHECK(row->counters != 0);
            CHECK(!(row->flags & ~(PMU_EDGE | PMU_INVERT | PMU_THRESHOLD(255))));
            CHECK(!(row->flags & PMU_INVERT) || row->flags >> 24);
            CHECK(row->code ? row->code <= (is_intel(&processors[i]) ? 0xff : 0xfff) : row->counters >> PMU_FIXED);
        }
}

TEST(event_tables, general, "all have instructions, branches, misses and cycles, by the code that never changed [S-4.2]")
{
    for (unsigned i = 0; i < COUNT; i++) {
        const struct pmu_event_row *table = processors[i].table;
        bool intel = is_intel(&processors[i]);
        CHECK_EQ(table[PMU_INSTRUCTIONS].code, 0xc0);
        CHECK_EQ(table[PMU_CYCLES].code, intel ? 0x3c : 0x76);
        CHECK_EQ(table[PMU_BRANCHES].code, intel ? 0xc4 : 0xc2);
        CHECK_EQ(table[PMU_BRANCH_MISSES].code, intel ? 0xc5 : 0xc3);
        CHECK(table[PMU_LLC_REFERENCES].name && table[PMU_LLC_MISSES].name);
        CHECK(!table[PMU_INTEGER_INSTRUCTIONS].name); /* nobody counts these: absent, not guessed */
    }
}

TEST(event_tables, constraints, "events that only some counters count say so [S-4.6]")
{
    CHECK_EQ(intel_nehalem_events[PMU_L1D_MISSES].counters, PMU_FIRST(2));
    CHECK_EQ(intel_nehalem_events[PMU_L1D_ACCESSES].counters, PMU_FIRST(2));
    CHECK_EQ(intel_ice_lake_events[PMU_LOADS].counters, PMU_FIRST(4));
    CHECK_EQ(intel_ice_lake_events[PMU_STORES].counters, PMU_FIRST(4));
    CHECK_EQ(intel_architectural_events[PMU_REF_CYCLES].counters, PMU_FIX(2));
    CHECK_EQ(amd_bulldozer_events[PMU_CYCLES].counters, PMU_FIRST(3));
    CHECK_EQ(amd_bulldozer_events[PMU_LLC_MISSES].counters, PMU_FIRST(3));
    CHECK_EQ(amd_bulldozer_events[PMU_INSTRUCTIONS].counters, PMU_FIRST(6));
    CHECK_EQ(amd_zen4_events[PMU_REF_CYCLES].code, 0x120);
    CHECK(!amd_k8_events[PMU_LOADS].name && !amd_10h_events[PMU_STORES].name);
}

static void program_each_row(unsigned unused)
{
    (void)unused;
    for (unsigned event = 0; event < PMU_EVENT_COUNT; event++)
        for (uint64_t rest = pmu_counters_for((enum pmu_event)event) & PMU_ANY_GP; rest; rest &= rest - 1) {
            unsigned ctr = (unsigned)__builtin_ctzll(rest);
            uint64_t select = pmu_select((enum pmu_event)event, PMU_KERNEL);
            lab_count(ctr, select, 0, lab_loop, 10);
            CHECK_EQ(lab_rdmsr(pmu_select_msr(ctr)) & ~(uint64_t)PMU_ENABLE, select);
            pmu_clear(PMU_BIT(ctr));
        }
}

TEST(pmu_table, programmed, "each row of this processor's table is taken by each counter that it names [VP-29 VP-61]")
{
    lab_run(program_each_row, LAB_ANY);
}

static void conditional(unsigned unused)
{
    (void)unused;
    if (!pmu_counters_for(PMU_CONDITIONAL_BRANCHES))
        SKIP("the processor does not count the event there");
    for (uint64_t rest = pmu_counters_for(PMU_CONDITIONAL_BRANCHES); rest; rest &= rest - 1) {
        unsigned ctr = (unsigned)__builtin_ctzll(rest);
        uint64_t select = pmu_select(PMU_CONDITIONAL_BRANCHES, PMU_KERNEL);
        for (unsigned n = 1; n < 600; n += 199) {
            LAB_CHECK_COUNT(lab_count(ctr, select, 0, lab_loop, n), n);
            LAB_CHECK_COUNT(lab_count(ctr, select, 0, lab_branches, n), 2 * n);
        }
        pmu_clear(PMU_BIT(ctr));
    }
}

TEST(pmu_table, conditional_branches, "conditional branches, the event that no interrupt disturbs, exactly [C-2g VP-53]")
{
    lab_run(conditional, LAB_ANY);
}
