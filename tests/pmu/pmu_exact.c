/* SPDX-License-Identifier: MIT */
/* Exactness: the single-step trap as an oracle that shares nothing with the counters, faults and
 * string instructions in ring 0. What traps add to ring 3 is measured.traps' and exact's. */
#include "tests/harness/lab.h"

/* The traps of a stretch run with TF, less those around, against its table and its count. */
LAB_EACH(pmu_oracle, each_counting_instructions,
         "its count is the number of single-step traps [VP-52]")
{
    static const struct lab_work *const works[] = { &lab_loop_work, &lab_memory_work,
                                                    &lab_branches_work, &lab_exits_work };
    SKIP_WITHOUT_COUNT_OF(PMU_INSTRUCTIONS, ctr);
    for (unsigned i = 0; i < ARRAY_SIZE(works); i++)
        for (unsigned n = 1; n < 30; n += 9) {
            lab_catch();
            lab_steps(works[i]->code, n);
            uint64_t steps = lab_caught.steps - LAB_STEPS_AROUND;
            lab_release();
            CHECK_EQ(steps, (uint64_t)works[i]->each[LAB_INSTRUCTIONS] * n +
                                works[i]->once[LAB_INSTRUCTIONS]);
            LAB_CHECK_COUNT(lab_count(ctr, lab_select(ctr, PMU_KERNEL), 0, works[i]->code, n),
                            steps + lab_before() + LAB_AFTER +
                                lab_of_exits(works[i], LAB_INSTRUCTIONS, n));
        }
}

/* A fault does not retire its instruction: RDPMC of no counter, in ring 0, resumed after it. */
static uint64_t fault_cost(unsigned ctr, unsigned faults)
{
    uint64_t value;
    pmu_program(ctr, lab_select(ctr, PMU_USER), 0);
    pmu_start(PMU_BIT(ctr));
    for (unsigned i = 0; i < faults; i++)
        rdpmc_fault(64, &value);
    pmu_stop(PMU_BIT(ctr));
    return pmu_read(ctr);
}

LAB_EACH(pmu_faults, each_counting_instructions,
         "a fault in ring 0 adds nothing to ring 3, and always the same to ring 0 [VP-52]")
{
    SKIP_WITHOUT_COUNT_OF(PMU_INSTRUCTIONS, ctr);
    CHECK_EQ(fault_cost(ctr, 20), 0); /* ring 0 faults: nothing of it is ring 3's */
    uint64_t value, few, many, select = lab_select(ctr, PMU_KERNEL);
    uint64_t counts[3];
    for (unsigned i = 0; i < 3; i++) {
        pmu_program(ctr, select, 0);
        pmu_start(PMU_BIT(ctr));
        for (unsigned n = 0; n < 10 * (i + 1); n++)
            rdpmc_fault(64, &value);
        pmu_stop(PMU_BIT(ctr));
        counts[i] = pmu_read(ctr);
    }
    few = counts[1] - counts[0];
    many = counts[2] - counts[1];
    if (pmu_here()->exact)
        CHECK_EQ(many, few); /* each fault costs the same */
    CHECK_BECAUSE(few, 10 * 20, 10 * 2000, "an exception's way in and out");
    if (ctr == 0)
        test_note("a fault and its handler: %lu instructions of ring 0", few / 10);
}

enum { ELEMENTS = 1000 };
static uint64_t strings[2][ELEMENTS]; /* zeros; several pages */
static const uint64_t *string_end;    /* RDI in the end */

#define NO_DEVICE 0x80 /* port of POST codes */
#define REPEATED(name, end, value, code)                                                           \
    __attribute__((section(".repeated"))) static void name(uint64_t n)                             \
    {                                                                                              \
        uint64_t *to = strings[0] + (end), *from = strings[1] + (end), a = (value);                \
        asm volatile(code                                                                          \
                     : "+D"(to), "+S"(from), "+c"(n), "+a"(a)                                      \
                     : "d"(NO_DEVICE)                                                              \
                     : "memory", "cc");                                                            \
        string_end = to;                                                                           \
    }
REPEATED(stosb, 0, 0, "rep stosb")
REPEATED(stosw, 0, 0, "rep stosw")
REPEATED(stosq, 0, 0, "rep stosq")
REPEATED(movsb, 0, 0, "rep movsb")
REPEATED(movsl, 0, 0, "rep movsl")
REPEATED(movsq_down, ELEMENTS - 1, 0, "std\nrep movsq\ncld")
REPEATED(lodsw, 0, 0, "rep lodsw")
REPEATED(lodsq, 0, 0, "rep lodsq")
REPEATED(cmpsb, 0, 0, "repe cmpsb")
REPEATED(cmpsq_down, ELEMENTS - 1, 0, "std\nrepe cmpsq\ncld")
REPEATED(scasb, 0, 1, "repne scasb")
REPEATED(scasl, 0, 0, "repe scasl")
REPEATED(insb, 0, 0, "rep insb")
REPEATED(insl, 0, 0, "rep insl")
REPEATED(outsb, 0, 0, "rep outsb")
REPEATED(outsw, 0, 0, "rep outsw")

/* Ring 3 has all forms but those of ports: exact.strings. */
LAB_EACH(pmu_rep, each_counting_instructions,
         "a string instruction counts once, however often it repeats [VP-52 slow]")
{
    SKIP_WITHOUT_COUNT_OF(PMU_INSTRUCTIONS, ctr);
    static const struct {
        void (*code)(uint64_t);
        unsigned step;
    } works[] = { { stosb, 333 }, { stosw, 333 }, { stosq, 333 }, { movsb, 333 },
                  { movsl, 333 }, { lodsw, 333 }, { lodsq, 333 }, { movsq_down, 333 },
                  { cmpsb, 333 }, { scasb, 333 }, { scasl, 333 }, { cmpsq_down, 333 },
                  { insb, 3 },    { insl, 3 },    { outsb, 3 },   { outsw, 3 } };
    uint64_t select = lab_select(ctr, PMU_KERNEL);
    for (unsigned i = 0; i < ARRAY_SIZE(works); i++) {
        uint64_t once = lab_count(ctr, select, 0, works[i].code, 1);
        CHECK_BECAUSE(once, lab_before() + 3, 40, "a call, a few instructions and a return");
        for (unsigned n = 0; n <= 3 * works[i].step; n += works[i].step) {
            LAB_CHECK_COUNT(lab_count(ctr, select, 0, works[i].code, n), once);
            CHECK(string_end + 1 >= strings[0] && string_end <= strings[1]); /* not the wrong way */
        }
    }
}
