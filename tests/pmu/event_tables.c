/* SPDX-License-Identifier: MIT */
/* The event tables in pmu/events: each family gets its own, and what the manuals say of single rows
 * holds. The tables are tested on every machine; on one with a PMU its own table is also
 * programmed, row by row. */
#include "tests/harness/lab.h"

struct processor {
    uint8_t family, model;
    bool small_core;
    const char *name;
};

/* clang-format off */
static const struct processor processors[] = {
    { 0x06, 0x1a, false, "Nehalem" },         { 0x06, 0x2c, false, "Westmere" },
    { 0x06, 0x2a, false, "Sandy Bridge" },    { 0x06, 0x3a, false, "Sandy Bridge" },
    { 0x06, 0x3c, false, "Sandy Bridge" },    { 0x06, 0x3d, false, "Broadwell" },
    { 0x06, 0x5e, false, "Skylake" },         { 0x06, 0x55, false, "Skylake server" },
    { 0x06, 0x7e, false, "Ice Lake" },        { 0x06, 0x6a, false, "Ice Lake" },
    { 0x06, 0x8f, false, "Sapphire Rapids" }, { 0x06, 0xcf, false, "Sapphire Rapids" },
    { 0x06, 0xad, false, "Sapphire Rapids" }, { 0x06, 0x97, false, "Golden Cove" },
    { 0x06, 0x97, true, "Gracemont" },        { 0x06, 0xbe, true, "Gracemont" },
    { 0x06, 0xaa, false, "Golden Cove" },     { 0x06, 0xaa, true, "Crestmont" },
    { 0x06, 0xbd, false, "Lion Cove" },       { 0x06, 0xc6, true, "Skymont" },
    { 0x06, 0xc5, true, "Skymont" },          { 0x06, 0xaf, false, "Crestmont" },
    { 0x06, 0x5c, false, "Goldmont" },        { 0x06, 0x7a, false, "Goldmont" },
    { 0x06, 0x86, false, "Tremont" },         { 0x06, 0x37, false, "Silvermont" },
    { 0x06, 0x8a, false, "Ice Lake" },        { 0x06, 0x8a, true, "Tremont" },
    { 0x06, 0x0f, false, "Core 2" },          { 0x06, 0x1d, false, "Core 2" },
    { 0x06, 0x0e, false, "Core" },            { 0x06, 0xff, false, "architectural" },
    { 0x13, 0x01, true, "architectural" },
    { 0x0f, 0x05, false, "K8" },        { 0x10, 0x04, false, "K10" },
    { 0x11, 0x03, false, "Turion" },    { 0x12, 0x01, false, "Llano" },
    { 0x14, 0x02, false, "Bobcat" },    { 0x15, 0x02, false, "Bulldozer" }, { 0x16, 0x30, false, "Jaguar" },
    { 0x17, 0x01, false, "Zen" },       { 0x18, 0x00, false, "Zen" },
    { 0x17, 0x31, false, "Zen 2" },     { 0x17, 0x71, false, "Zen 2" },
    { 0x19, 0x01, false, "Zen 3" },     { 0x19, 0x21, false, "Zen 3" }, { 0x19, 0x50, false, "Zen 3" },
    { 0x19, 0x11, false, "Zen 4" },     { 0x19, 0x61, false, "Zen 4" }, { 0x19, 0x78, false, "Zen 4" },
    { 0x19, 0xa0, false, "Zen 4" },     { 0x1a, 0x02, false, "Zen 5" },
};
/* clang-format on */
#define COUNT ARRAY_SIZE(processors)

static bool is_intel(const struct processor *p) { return p->family == 0x06 || p->family == 0x13; }

static const struct pmu_table *table_of(const struct processor *p)
{
    return is_intel(p) ? intel_table(p->family, p->model,
                                     p->small_core ? INTEL_SMALL_CORE : INTEL_LARGE_CORE)
                       : amd_table(p->family, p->model);
}

static const struct pmu_table *table_named(const char *name)
{
    for (unsigned i = 0; i < COUNT; i++)
        if (strcmp(processors[i].name, name) == 0)
            return table_of(&processors[i]);
    test_note("no processor has the table %s", name);
    return &intel_architectural;
}

TEST(event_tables, chosen,
     "every family and both kinds of cores of Alder Lake have their table, unknown ones the "
     "generic table [S-4.4 S-4.5]")
{
    for (unsigned i = 0; i < COUNT; i++)
        CHECK(strcmp(table_of(&processors[i])->name, processors[i].name) == 0);
}

TEST(event_tables, rows,
     "every row has a counter, a code, and a threshold where it inverts [S-4.6]")
{
    for (unsigned i = 0; i < COUNT; i++)
        for (unsigned event = 0; event < PMU_EVENT_COUNT; event++) {
            const struct pmu_table *table = table_of(&processors[i]);
            const struct pmu_event_row *row = pmu_row(table, (enum pmu_event)event);
            if (!row)
                continue;
            uint64_t counters = pmu_row_counters(table, row);
            CHECK(counters != 0);
            CHECK(!(row->flags & ~(PMU_EDGE | PMU_INVERT | PMU_THRESHOLD(255))));
            CHECK(!(row->flags & PMU_INVERT) || row->flags >> 24);
            CHECK(row->code ? row->code <= (is_intel(&processors[i]) ? 0xff : 0xfff)
                            : counters >> PMU_FIXED);
        }
}

/* With the unit mask in the low byte. */
static unsigned whole_code(const struct pmu_table *table, enum pmu_event event)
{
    const struct pmu_event_row *row = pmu_row(table, event);
    return row ? (unsigned)row->code << 8 | row->umask : 0;
}

TEST(event_tables, general,
     "all tables have instructions, branches, misses and cycles by the codes that never changed "
     "[S-4.2]")
{
    for (unsigned i = 0; i < COUNT; i++) {
        const struct pmu_table *table = table_of(&processors[i]);
        bool intel = is_intel(&processors[i]);
        CHECK_EQ(whole_code(table, PMU_INSTRUCTIONS), 0xc000);
        CHECK_EQ(whole_code(table, PMU_CYCLES), intel ? 0x3c00 : 0x7600);
        CHECK_EQ(whole_code(table, PMU_BRANCHES), intel ? 0xc400 : 0xc200);
        CHECK_EQ(whole_code(table, PMU_BRANCH_MISSES), intel ? 0xc500 : 0xc300);
        bool no_l2 = strcmp(table->name, "Jaguar") == 0; /* which has counters of its own */
        CHECK_EQ(!pmu_row(table, PMU_LLC_REFERENCES), no_l2);
        CHECK_EQ(!pmu_row(table, PMU_LLC_MISSES), no_l2);
        if (intel) {
            CHECK_EQ(whole_code(table, PMU_LLC_REFERENCES), 0x2e4f);
            CHECK_EQ(whole_code(table, PMU_LLC_MISSES), 0x2e41);
            CHECK_EQ(whole_code(table, PMU_BUS_CYCLES), 0x3c01);
        }
        CHECK(!pmu_row(table,
                       PMU_INTEGER_INSTRUCTIONS)); /* nobody counts these: absent, not guessed */
    }
}

/* What a table takes from its base or not, and the facts that tests/pmu/libpfm.t cannot compare,
 * AMD's constraints and the newest models: 0 counters, the event is absent. */
static const struct fact {
    const char *name;
    enum pmu_event event;
    uint16_t code;
    uint64_t counters;
} facts[] = {
    { "Core 2", PMU_LOADS, 0xc0, PMU_FIRST(2) },
    { "Core 2", PMU_ISSUE_2, 0, 0 },
    { "Westmere", PMU_L1D_ACCESSES, 0, 0 },
    { "Ice Lake", PMU_LOADS, 0xd0, PMU_FIRST(4) },
    { "Ice Lake", PMU_BRANCH_RECORDS, 0xcc, PMU_FIRST(8) },
    { "Golden Cove", PMU_CYCLES, 0x3c, PMU_ANY_GP | PMU_FIX(1) },
    { "Gracemont", PMU_LOADS, 0xd0, PMU_FIRST(6) },
    { "Goldmont", PMU_BRANCH_RECORDS, 0, 0 },
    { "Lion Cove", PMU_L1D_MISSES, 0x51, PMU_FIRST(10) },
    { "Lion Cove", PMU_LOADS, 0xd0, PMU_FIRST(4) },
    { "Lion Cove", PMU_BRANCH_RECORDS, 0xe4, PMU_FIRST(10) },
    { "Lion Cove", PMU_CONDITIONAL_BRANCHES, 0, 0 },
    { "Crestmont", PMU_PIPELINE_DRY, 0x71, PMU_FIRST(8) },
    { "Skymont", PMU_PIPELINE_DRY, 0x9c, PMU_FIRST(8) },
    { "Skymont", PMU_BRANCH_RECORDS, 0xe4, PMU_FIRST(8) },
    { "Skymont", PMU_CONDITIONAL_BRANCHES, 0xc4, PMU_FIRST(8) },
    { "architectural", PMU_REF_CYCLES, 0, PMU_FIX(2) },
    { "K8", PMU_LOADS, 0, 0 },
    { "K8", PMU_ISSUE_4, 0, 0 },
    { "K10", PMU_STORES, 0, 0 },
    { "K10", PMU_CYCLES, 0x76, PMU_ANY_GP },
    { "Bobcat", PMU_LLC_MISSES, 0x7e, PMU_ANY_GP },
    { "Bobcat", PMU_FP_INSTRUCTIONS, 0xcb, PMU_ANY_GP },
    { "Jaguar", PMU_LOADS, 0x29, PMU_ANY_GP },
    { "Jaguar", PMU_PIPELINE_DRY, 0, 0 },
    { "Bulldozer", PMU_CYCLES, 0x76, PMU_FIRST(3) },
    { "Bulldozer", PMU_LLC_MISSES, 0x7e, PMU_FIRST(3) },
    { "Bulldozer", PMU_PIPELINE_DRY, 0xd0, PMU_FIRST(3) },
    { "Bulldozer", PMU_INSTRUCTIONS, 0xc0, PMU_FIRST(6) },
    { "Bulldozer", PMU_LOADS, 0x29, PMU_FIRST(6) },
    { "Zen", PMU_CYCLES, 0x76, PMU_ANY_GP },
    { "Zen", PMU_INTERRUPTS, 0, 0 },
    { "Zen 3", PMU_PIPELINE_FROZEN, 0, 0 },
    { "Zen 3", PMU_INTERRUPTS, 0x2c, PMU_ANY_GP },
    { "Zen 4", PMU_REF_CYCLES, 0x120, PMU_ANY_GP },
    { "Zen 4", PMU_LOCKED, 0, 0 },
    { "Zen 5", PMU_PIPELINE_FROZEN, 0x1a0, PMU_ANY_GP },
};

TEST(event_tables, constraints,
     "events that only some counters count are marked so, and absent events are marked absent "
     "[S-4.4 S-4.5 S-4.6]")
{
    for (unsigned i = 0; i < ARRAY_SIZE(facts); i++) {
        const struct pmu_table *table = table_named(facts[i].name);
        const struct pmu_event_row *row = pmu_row(table, facts[i].event);
        CHECK_EQ(row ? pmu_row_counters(table, row) : 0, facts[i].counters);
        CHECK_EQ(row ? row->code : 0, facts[i].code);
    }
}

LAB_TEST(pmu_table, programmed,
         "each row of this processor's table is taken by each counter that it names [VP-29 VP-61 "
         "slow]")
{
    for (unsigned event = 0; event < PMU_EVENT_COUNT; event++)
        for (uint64_t rest = pmu_counters_for(pmu_here(), (enum pmu_event)event) & PMU_ANY_GP; rest;
             rest &= rest - 1) {
            unsigned ctr = (unsigned)__builtin_ctzll(rest);
            uint64_t select = pmu_select(pmu_here(), (enum pmu_event)event, PMU_KERNEL);
            lab_count(ctr, select, 0, lab_loop, 10);
            CHECK_EQ(lab_rdmsr(pmu_select_msr(pmu_here(), ctr)) & ~(uint64_t)PMU_ENABLE, select);
            pmu_clear(PMU_BIT(ctr));
        }
}

LAB_TEST(pmu_table, conditional_branches,
         "conditional branches, the event that no interrupt disturbs, exactly [VP-53]")
{
    unsigned step = test_long() ? 199 : 19;
    if (!pmu_counters_for(pmu_here(), PMU_CONDITIONAL_BRANCHES))
        SKIP("the processor does not count the event there");
    for (uint64_t rest = pmu_counters_for(pmu_here(), PMU_CONDITIONAL_BRANCHES); rest;
         rest &= rest - 1) {
        unsigned ctr = (unsigned)__builtin_ctzll(rest);
        uint64_t select = pmu_select(pmu_here(), PMU_CONDITIONAL_BRANCHES, PMU_KERNEL);
        for (unsigned i = 0, n = 1; i < (test_long() ? 4 : 2); i++, n += step) {
            LAB_CHECK_COUNT(lab_count(ctr, select, 0, lab_loop, n), n);
            LAB_CHECK_COUNT(lab_count(ctr, select, 0, lab_branches, n), 2 * n);
        }
        pmu_clear(PMU_BIT(ctr));
    }
}
