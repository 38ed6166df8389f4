/* SPDX-License-Identifier: MIT */
/* However an instruction ends, and whatever counts it - the clock, blocks of code, steps - each
 * event has happened as often, and an overflow interrupts at the same instruction. */
#include "kernel/base/layout.h"
#include "tests/harness/lab.h"

#define LENGTH 70u                         /* of strings, in elements; they cross a page */
#define DIFFERENT 23u                      /* the element that ends a comparison */
#define RESUMES_AT "lea 2f(%%rip),%%rdx\n" /* after a fault */

/* Handlers of faults: whatever counts them, they are short. */
void endings_fault(void);
asm(".pushsection .text\nendings_fault: add $8,%rsp\nmov %rdx,(%rsp)\niretq\n.popsection");

static uint8_t pages[3][PAGE_SIZE] __attribute__((aligned(PAGE_SIZE)));
static uint8_t *behind; /* LENGTH / 2 bytes before what is not mapped */

static uint8_t *string(unsigned n) { return pages[n] + PAGE_SIZE - LENGTH / 2; }

/* From the first string to the third, or to what faults half way; the second is compared. */
#define ENDING(name, to_at, value, code)                                                           \
    static void name(uint64_t n)                                                                   \
    {                                                                                              \
        const uint8_t *from = string(0);                                                           \
        uint8_t *to = (to_at);                                                                     \
        uint64_t a = (value);                                                                      \
        asm volatile(code "\ncld"                                                                  \
                     : "+D"(to), "+S"(from), "+c"(n), "+a"(a)                                      \
                     :                                                                             \
                     : "memory", "cc", "rdx");                                                     \
    }
ENDING(by_count, string(2), 0, "rep movsb")
ENDING(in_a_page, pages[2], 0, "rep stosq")
ENDING(words_down, string(2) + LENGTH, 0, "std\nrep stosw")
ENDING(by_nothing, string(2), 0, "xor %%ecx,%%ecx\nrep stosb")
ENDING(by_difference, string(1), 0, "repe cmpsb")
ENDING(by_find, string(1), 1, "repne scasb")
ENDING(to_the_end, string(1), 2, "repne scasb")
ENDING(by_fault, behind, 0, RESUMES_AT "rep movsb\n2:")
ENDING(compared_fault, behind, 0, RESUMES_AT "repe scasb\n2:")
ENDING(one_fault, behind + LENGTH / 2, 0, RESUMES_AT "mov %%al,(%%rdi)\n2:")
ENDING(one_gp, behind, 0, RESUMES_AT "mov $64,%%ecx\nrdpmc\n2:")
ENDING(one_exit, behind, 0, "xor %%ecx,%%ecx\nrdpmc")

#define ENDS(name) #name, name
static const struct ending {
    const char *name;
    void (*code)(uint64_t n);
} endings[] = {
    { ENDS(by_count) },       { ENDS(in_a_page) }, { ENDS(words_down) }, { ENDS(by_nothing) },
    { ENDS(by_difference) },  { ENDS(by_find) },   { ENDS(to_the_end) }, { ENDS(by_fault) },
    { ENDS(compared_fault) }, { ENDS(one_fault) }, { ENDS(one_gp) },     { ENDS(one_exit) },
};

static const enum pmu_event events[] = { PMU_INSTRUCTIONS, PMU_CYCLES, PMU_BUS_CYCLES,
                                         PMU_BRANCHES,     PMU_LOADS,  PMU_STORES };

/* What another counter wants to know makes the virtual PMU execute blocks, or step. */
enum { VECTOR_GP = 13, VECTOR_PF = 14 };
enum { FREE, BLOCKS, STEPS, MODES };
static const char *const modes[] = { "free", "in blocks", "stepped" };

/* Instructions in which cycles of all kinds are whole. */
static uint64_t per;

static void find_period(void)
{
    uint64_t ipc = vpmu_quirk("ipc"), ref = vpmu_quirk("ref");
    per = (ipc ? ipc : 1) * (ref ? ref : 1);
}

/* Begins each time at the same place of a cycle. What it executes may be stepped: it asks nothing.
 */
static void align(void)
{
    if (per > 1 && per < LAB_SLED) {
        uint64_t skip = vpmu_worked() % per;
        ((void (*)(uint64_t))(void *)(lab_sled_end - (per - skip)))(1);
    }
}

struct outcome {
    uint64_t count, rip;
    unsigned pmis;
};

static unsigned ctrs[2]; /* what is compared; what makes the mode */

static struct outcome run(unsigned mode, enum pmu_event event, uint64_t before,
                          const struct ending *e)
{
    const struct pmu_kind *pmu = pmu_here();
    uint32_t condition = mode == STEPS ? PMU_THRESHOLD(1) : 0;
    pmu_program(ctrs[0], pmu_select(pmu, event, PMU_KERNEL | PMU_INTERRUPT),
                -before & pmu_mask(pmu, ctrs[0]));
    lab_caught.pmis = 0;
    lab_caught.rip = 0;
    pmu_program(ctrs[1],
                mode == FREE ? pmu_select(pmu, PMU_BRANCHES, PMU_USER)
                             : pmu_select(pmu, PMU_BRANCHES, PMU_KERNEL) | condition,
                0);
    pmu_start(PMU_BIT(ctrs[1]));
    struct pmu_gate gate = pmu_gate(ctrs[0]);
    align();
    lab_measure(&gate, e->code, LENGTH);
    pmu_clear(PMU_BIT(ctrs[1]));
    apic_write_pmi_lvt(APIC_PMI_VECTOR);
    return (struct outcome){ pmu_read(ctrs[0]), lab_caught.rip, lab_caught.pmis };
}

static uint64_t compare_modes(enum pmu_event event, uint64_t before, const struct ending *e)
{
    struct outcome first = { 0 };
    for (unsigned mode = FREE; mode < MODES; mode++) {
        struct outcome o = run(mode, event, before, e);
        if (mode == FREE)
            first = o;
        bool same = o.count == first.count && o.rip == first.rip && o.pmis == first.pmis;
        if (!CHECK(same))
            test_note(
                "%s, event %u, overflow after %lu: %s %lx, %u PMIs, at %lx; free %lx, %u, %lx",
                e->name, event, before, modes[mode], o.count, o.pmis, o.rip, first.count,
                first.pmis, first.rip);
    }
    return first.count;
}

static void each_ending(enum pmu_event event)
{
    for (const struct ending *e = endings; e < endings + ARRAY_SIZE(endings); e++) {
        uint64_t all = compare_modes(event, 0, e);
        uint64_t first = 1 + (event + (uint64_t)(e - endings)) % 3; /* each, by some event */
        for (uint64_t n = test_long() ? first : all / 2; n < all; n += test_long() ? 3 : all)
            compare_modes(event, n, e);
    }
}

static bool is_disturbed(void)
{
    static const char *const quirks[] = { "smi",        "nmi",   "contend", "throttle",
                                          "lostpmi",    "skid",  "twice",   "vmrun",
                                          "freeze-lag", "stale", "owned",   "dead" };
    bool disturbed = false;
    for (unsigned i = 0; i < ARRAY_SIZE(quirks); i++)
        disturbed |= vpmu_quirk(quirks[i]);
    return disturbed;
}

static bool choose_pair(enum pmu_event event)
{
    uint64_t able = pmu_counters_for(pmu_here(), event) & PMU_ANY_GP & pmu_here()->counters;
    uint64_t other = pmu_counters_for(pmu_here(), PMU_BRANCHES) & PMU_ANY_GP & pmu_here()->counters;
    ctrs[0] = able ? bit_lowest(able) : 0;
    other &= ~PMU_BIT(ctrs[0]);
    ctrs[1] = other ? bit_lowest(other) : 0;
    return able && other;
}

static void all_endings(unsigned)
{
    find_period();
    lab_catch();
    lab_set_gate(VECTOR_PF, endings_fault);
    lab_set_gate(VECTOR_GP, endings_fault);
    for (unsigned i = 0; i < ARRAY_SIZE(events); i++)
        if (choose_pair(events[i]))
            each_ending(events[i]);
    lab_release();
}

TEST(vpmu, endings,
     "each event counts as often free, in blocks and stepped, however instructions end, and its "
     "overflow comes at the same one [VP-52 VP-65 VP-67 slow]")
{
    SKIP_WITHOUT_VPMU();
    SKIP_IF_STEPPED();
    SKIP_IF(is_disturbed(), "another quirk disturbs the counter");
    void *page = phys_alloc(1);
    REQUIRE(page != NULL);
    memset(string(0), 0, LENGTH);
    memset(string(1), 0, LENGTH);
    string(1)[DIFFERENT] = 1;
    behind = (uint8_t *)vm_window_map(0, virt_to_phys(page), 0) + PAGE_SIZE - LENGTH / 2;
    lab_run(all_endings, LAB_ANY);
    vm_window_unmap(0);
}
