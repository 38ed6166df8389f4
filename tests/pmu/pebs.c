/* SPDX-License-Identifier: MIT */
/* Conformance: what is in the records that a processor writes (PEBS). A program whose instructions
 * have names runs while a counter writes one each few instructions, and each field of each record
 * is compared with what the same program leaves behind in single steps. */
#include "tests/harness/lbr_list.h"
#include "tests/harness/pebs_list.h"

#define ALWAYS PEBS_STEPS_MAX /* a buffer for as many records as there can be */
#define CTR0 PMU_BIT(0)
#define ENTRIES 4u

static uint64_t all_groups(void)
{
    return pebs_facts()->groups ? PEBS_GROUPS | PEBS_LBR_ENTRIES(ENTRIES) : 0;
}

/* Of which instruction a record is, the virtual PMU knows. Processors may be some late; their
 * records are compared all the same. */
static void check_step(unsigned step, unsigned wanted)
{
    if (step >= PEBS_STEPS_MAX || step == wanted)
        return;
    test_note("the record that '%s' should have made is of '%s', %d later", pebs_name(wanted),
              pebs_name(step), (int)(step - wanted));
    CHECK(!vpmu_present());
}

/* Records of a counter after `events`, then every second event; how many. */
static unsigned record_every_second(unsigned ctr, uint64_t events, unsigned length,
                                    uint64_t data_cfg)
{
    pebs_prepare(data_cfg, ALWAYS, ALWAYS);
    pebs_arm(ctr, events, 1);
    pebs_record(PMU_BIT(ctr), NULL);
    unsigned count = pebs_count(), wanted = (length - pebs_expected(events) + 1) / 2;
    CHECK_BECAUSE(count, vpmu_present() ? wanted : wanted / 2, wanted,
                  "one for each two instructions; a processor may miss what comes so soon");
    return count;
}

LAB_EACH(pebs_record, each_counting_instructions,
         "each record has the instruction's address and what it left in all registers, in the "
         "order of time, and no other counter's bit; the counter sets no bit of the status "
         "[PE-02 PE-03 PE-04 PE-05 PE-06]")
{
    SKIP_WITHOUT_PEBS();
    SKIP_IF(!(pebs_facts()->counters >> ctr & 1), "this counter writes no records");
    unsigned length = pebs_steps(PMU_BIT(ctr));
    for (uint64_t events = 2; events <= 3; events++) {
        struct pebs_record r;
        uint64_t time = rdtsc();
        unsigned count = record_every_second(ctr, events, length, all_groups());
        for (unsigned n = 0; n < count && pebs_get(n, &r); n++) {
            check_step(pebs_check(&r), pebs_expected(events) + 2 * n);
            CHECK_EQ(r.applicable, PMU_BIT(ctr));
            CHECK(pebs_facts()->format < 3 || r.tsc >= time);
            time = r.tsc;
        }
        CHECK(time < rdtsc());
        CHECK_EQ(lab_rdmsr(pmu_here()->msr.global_status), 0);
        pebs_check_guard();
    }
}

LAB_TEST(pebs_groups, each,
         "each choice of groups makes a record of exactly their bytes, in their order, and the "
         "index moves by so many [PE-03 PE-07]")
{
    SKIP_WITHOUT_PEBS();
    SKIP_WITHOUT_GROUPS();
    unsigned length = pebs_steps(CTR0);
    for (uint64_t groups = 0; groups <= PEBS_GROUPS; groups++) {
        struct pebs_record r;
        uint32_t sum = 32 + (groups & PEBS_MEMORY ? 32 : 0) + (groups & PEBS_GPR ? 144 : 0) +
                       (groups & PEBS_XMM ? 256 : 0) + (groups & PEBS_LBR ? 24 * ENTRIES : 0);
        unsigned count = record_every_second(0, 2, length, groups | PEBS_LBR_ENTRIES(ENTRIES));
        CHECK_EQ(pebs_place.size, sum);
        for (unsigned n = 0; n < count && pebs_get(n, &r); n++) {
            CHECK_EQ(r.groups, groups);
            check_step(pebs_check(&r), pebs_expected(2) + 2 * n);
        }
        pebs_check_guard();
    }
}

/* All counters count the program's instructions, but the first one, which has just wrapped. */
static void check_values(const struct pebs_record *r, uint64_t counters)
{
    uint64_t late = vpmu_present() ? 0 : 8, events = pebs_step_of(r->address) + lab_before() - 1;
    const uint64_t *value = r->value;
    if (!CHECK_EQ(r->counters, counters))
        return;
    for_each_bit(ctr, counters) {
        uint64_t wanted = ctr ? events : 1;
        if (!CHECK_BECAUSE(*value++, wanted, wanted + late,
                           "a processor may take them when it writes the record"))
            test_note("counter %u", (unsigned)ctr);
    }
}

LAB_TEST(pebs_groups, counters,
         "a record has the values that were asked for, of general-purpose counters, then of fixed "
         "ones, as they are at its instruction, before any is set again [PE-03 PE-07 PE-17]")
{
    SKIP_WITHOUT_PEBS();
    SKIP_IF(!(pebs_facts()->groups & PEBS_COUNTERS), "records have no counters");
    const uint64_t all = pmu_here()->counters & (PMU_ANY_GP | PMU_FIX(0)),
                   sets[] = { 0, CTR0, PMU_BIT(1) | PMU_FIX(0), all };
    for (unsigned i = 0; i < ARRAY_SIZE(sets); i++) {
        struct pebs_record r;
        uint64_t asked = sets[i] & all;
        pebs_steps(all);
        pebs_prepare(all_groups() | PEBS_COUNTERS | PEBS_VALUES_OF(asked), ALWAYS, ALWAYS);
        for_each_bit(ctr, all & ~CTR0)
            pmu_program((unsigned)ctr, lab_select((unsigned)ctr, PMU_KERNEL), 0);
        pebs_arm(0, 2, 1);
        pebs_enable(CTR0, pebs_place.data_cfg);
        pebs_run_gated(all, NULL);
        pebs_enable(0, 0);
        REQUIRE(pebs_count() > 4);
        for (unsigned n = 0; n < pebs_count() && pebs_get(n, &r); n++)
            if (pebs_check(&r) < PEBS_STEPS_MAX)
                check_values(&r, asked);
        pebs_check_guard();
    }
}

LAB_TEST(pebs_groups, ignored,
         "a counter without the bit of its select writes the shortest record [PE-08]")
{
    struct pebs_record r;
    SKIP_WITHOUT_PEBS();
    SKIP_WITHOUT_GROUPS();
    pebs_steps(CTR0);
    pebs_prepare(all_groups(), ALWAYS, ALWAYS);
    pebs_place.size = pebs_record_size(0);
    pebs_arm(0, 2, 1);
    pmu_program(0, lab_select(0, PMU_KERNEL), -2ul & pmu_mask(pmu_here(), 0));
    pebs_record(CTR0, NULL);
    REQUIRE(pebs_count() > 2);
    for (unsigned n = 0; n < pebs_count() && pebs_get(n, &r); n++) {
        CHECK_EQ(r.groups, 0);
        pebs_check(&r);
    }
}

/* The newest are the branches that the program's steps up to this one took; without a list all are
 * empty. */
static void check_branches(const struct pebs_record *r, unsigned step, bool on)
{
    unsigned entry = 0;
    uint64_t from, to;
    for (unsigned n = step + 1; n-- && entry < r->lbr_count && on;)
        if (pebs_branch(n, &from, &to)) {
            CHECK_EQ(r->lbr[3 * entry], from);
            CHECK_EQ(r->lbr[3 * entry++ + 1], to);
        }
    for (; entry < r->lbr_count && !on; entry++)
        CHECK_EQ(r->lbr[3 * entry], 0);
}

/* With the list on, or off and empty: a record for every second instruction. */
static void run_with_branches(bool on, unsigned entries, unsigned length)
{
    const struct pmu_branches *b = branches_here();
    struct pmu_gate gate = pmu_branches_gate(b, 0);
    struct pebs_record r;
    pebs_prepare(PEBS_LBR | PEBS_LBR_ENTRIES(entries), ALWAYS, ALWAYS);
    pebs_arm(0, 3, 1);
    wrmsr(gate.msr, gate.off);
    pmu_branches_clear(b);
    pebs_list_gate = on ? gate : (struct pmu_gate){ 0 };
    pebs_record(CTR0, NULL);
    pebs_list_gate = (struct pmu_gate){ 0 };
    CHECK(pebs_count() >= length / 4);
    for (unsigned n = 0; n < pebs_count() && pebs_get(n, &r); n++) {
        unsigned step = pebs_check(&r);
        CHECK_EQ(r.lbr_count, entries < b->depth ? entries : b->depth);
        if (step < PEBS_STEPS_MAX)
            check_branches(&r, step, on);
    }
    pebs_check_guard();
}

LAB_TEST(pebs_groups, branches,
         "a record has the list of branches as it is at its instruction, the newest first, and as "
         "many as were asked for, but no more than there are [PE-09]")
{
    SKIP_WITHOUT_PEBS();
    SKIP_WITHOUT_GROUPS();
    SKIP_WITHOUT_BRANCHES();
    unsigned length = pebs_steps(CTR0);
    run_with_branches(false, ENTRIES, length);
    run_with_branches(true, 1, length);
    run_with_branches(true, ENTRIES, length);
    run_with_branches(true, PMU_BRANCHES_MAX, length);
    run_with_branches(true, PMU_BRANCHES_MAX + 1, length);
}
