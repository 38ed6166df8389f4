/* SPDX-License-Identifier: MIT */
/* The virtual PMU's own events, by the codes of the processor that each model is: what its decoder
 * says of every kind of instruction, its models of prediction and caches, thresholds and edges of
 * events that are not in every cycle. */
#include "tests/harness/lab.h"

/* As in struct lab_op. */
enum kind {
    LOADS,
    STORES,
    BRANCHES,
    CONDITIONAL,
    TAKEN,
    FAR,
    MISPREDICTED,
    REFERENCES,
    MISSES,
    SLOTS,
    KINDS
};
#define CODE(number, mask) ((mask) << 8 | (number))
#define UMASK2(mask) ((uint64_t)(mask) << 40)
static const struct events {
    const char *model;    /* or machine, which counts more than its model */
    uint64_t code[KINDS]; /* 0: the model has no such event */
    /* clang-format off */
} all_events[] = {
    { "intel-v1", { [BRANCHES] = 0xc4, [MISPREDICTED] = 0xc5, [REFERENCES] = CODE(0x2e, 0x4f),
                    [MISSES] = CODE(0x2e, 0x41) } },
    { "intel-v2", { CODE(0xc0, 1), CODE(0xc0, 2), 0xc4, 0, 0, 0, 0xc5, CODE(0x2e, 0x4f), CODE(0x2e, 0x41), 0 } },
    { "intel-v3", { CODE(0x0b, 1), CODE(0x0b, 2), 0xc4, CODE(0xc4, 1), 0, 0, 0xc5, CODE(0x2e, 0x4f), CODE(0x2e, 0x41), 0 } },
    { "intel-v4", { CODE(0xd0, 0x81), CODE(0xd0, 0x82), 0xc4, CODE(0xc4, 1), CODE(0xc4, 0x20), CODE(0xc4, 0x40),
                    0xc5, CODE(0x2e, 0x4f), CODE(0x2e, 0x41), 0 } },
    { "intel-v5", { CODE(0xd0, 0x81), CODE(0xd0, 0x82), 0xc4, CODE(0xc4, 0x11), CODE(0xc4, 0x20), CODE(0xc4, 0x40),
                    0xc5, CODE(0x2e, 0x4f), CODE(0x2e, 0x41), CODE(0xa4, 1) } },
    { "intel-v6", { CODE(0xd0, 0x81), CODE(0xd0, 0x82), 0xc4, CODE(0xc4, 0x11) | UMASK2(1), CODE(0xc4, 0x20),
                    CODE(0xc4, 0x40), 0xc5, CODE(0x2e, 0x4f), CODE(0x2e, 0x41), CODE(0xa4, 1) } },
    { "intel-kvm", { CODE(0xd0, 0x81), CODE(0xd0, 0x82), 0xc4, CODE(0xc4, 0x11), CODE(0xc4, 0x20), CODE(0xc4, 0x40),
                     0xc5, CODE(0x2e, 0x4f), CODE(0x2e, 0x41), 0 } },
    { "haswell", { CODE(0xd0, 0x81), CODE(0xd0, 0x82), 0xc4, CODE(0xc4, 1), CODE(0xc4, 0x20), CODE(0xc4, 0x40),
                   0xc5, CODE(0x2e, 0x4f), CODE(0x2e, 0x41), 0 } },
    { "intel-small", { CODE(0xd0, 0x81), CODE(0xd0, 0x82), 0xc4, CODE(0xc4, 0x7e), CODE(0xc4, 0xc0), CODE(0xc4, 0xbf),
                       0xc5, CODE(0x2e, 0x4f), CODE(0x2e, 0x41), 0 } },
    { "amd-k7", { 0, 0, 0xc2, 0, 0xc4, 0xc6, 0xc3, CODE(0x7d, 7), CODE(0x7e, 7), 0 } },
    { "amd-ext", { CODE(0x29, 5), CODE(0x29, 6), 0xc2, 0xd1, 0xc4, 0xc6, 0xc3, CODE(0x60, 0xff), CODE(0x64, 9), 0 } },
    { "amd-v2", { CODE(0x29, 5), CODE(0x29, 6), 0xc2, 0xd1, 0xc4, 0xc6, 0xc3, CODE(0x60, 0xff), CODE(0x64, 9), 0 } },
    { "amd-zen5", { CODE(0x29, 5), CODE(0x29, 6), 0xc2, 0xd1, 0xc4, 0xc6, 0xc3, CODE(0x60, 0xff), CODE(0x64, 9), 0 } },
};
/* clang-format on */

#define INVERT (1u << 23)
#define EDGE (1u << 18)
#define THRESHOLD(n) ((uint64_t)(n) << 24)

static uint8_t buffer[512] __attribute__((aligned(64)));
static void (*body)(const struct events *events);

static const struct events *events_of(const char *name)
{
    for (unsigned i = 0; i < ARRAY_SIZE(all_events); i++)
        if (!strcmp(name, all_events[i].model))
            return &all_events[i];
    return NULL;
}

static const struct events *events_here(void)
{
    char machine[17], model[17];
    vpmu_machine(machine);
    vpmu_model(model);
    const struct events *events = events_of(machine);
    return events ? events : events_of(model);
}

static void on_cpu(unsigned)
{
    const struct events *events = events_here();
    REQUIRE(events != NULL);
    body(events);
}

static void run_decoded(void (*function)(const struct events *))
{
    SKIP_WITHOUT_VPMU();
    body = function;
    lab_run(on_cpu, LAB_ANY);
}

static uint64_t count_decoded(uint64_t code, uint64_t bits, void (*work)(uint64_t),
                              uint64_t argument)
{
    return lab_count(0, code | bits | PMU_KERNEL, 0, work, argument);
}

/* Its own test (vpmu_quirks.vmrun) says how. */
#define SKIP_IF_ENTRIES_COUNT()                                                                    \
    SKIP_IF(vpmu_quirk("vmrun"), "entries into the guest count as branches")

static void each_instruction(const struct events *events)
{
    SKIP_IF_ENTRIES_COUNT();
    uint64_t at = (uint64_t)buffer, failed = 0;
    for (unsigned kind = LOADS; kind <= FAR; kind++) {
        if (!events->code[kind])
            continue;
        uint64_t none = count_decoded(events->code[kind], 0, lab_ops->code, at);
        for (const struct lab_op *op = lab_ops; op < lab_ops_end; op++) {
            if (!lab_has_op(op))
                continue;
            uint64_t found = count_decoded(events->code[kind], 0, op->code, at) - none,
                     wanted = op->effects >> 8 * kind & 0xff;
            if (!CHECK_EQ(found, wanted) && failed++ < 20)
                test_note("%s: kind %u", op->name, kind);
        }
    }
}

/* lab_loop: DEC and JNZ, 2 n instructions; then RET. */
static void prediction(const struct events *events)
{
    uint64_t n = test_long() ? 1000 : 200;
    uint64_t wrong = count_decoded(events->code[MISPREDICTED], 0, lab_loop, n);
    CHECK_BECAUSE(wrong, 1, n / 10, "the first iteration and the last, by the stated model");
    CHECK_EQ(count_decoded(events->code[MISPREDICTED], 0, lab_loop, n), 2);
    CHECK_EQ(count_decoded(events->code[MISPREDICTED], 0, lab_loop, 1), 0);
    /* Unit masks of event C4h: not taken, of Skylake and later; taken, of Ice Lake and later. */
    if (events->code[TAKEN] == CODE(0xc4, 0x20))
        CHECK_EQ(count_decoded(CODE(0xc4, 0x10), 0, lab_loop, n), 1);
    if (events->code[CONDITIONAL] == CODE(0xc4, 0x11))
        CHECK_EQ(count_decoded(CODE(0xc4, 0x01), 0, lab_loop, n), n - 1);
}

/* Two lines of the first cache: no third one takes the place of both. */
static uint8_t halves[2][4096] __attribute__((aligned(128)));

#define LOADS_OF(n)                                                                                \
    static void load_flushed_##n(uint64_t times)                                                   \
    {                                                                                              \
        while (times--)                                                                            \
            asm volatile("clflush %0\nmfence\nmov %0,%%al" : "+m"(halves[n]) : : "rax", "memory"); \
    }                                                                                              \
    static void load_again_##n(uint64_t times)                                                     \
    {                                                                                              \
        while (times--)                                                                            \
            asm volatile("mov %0,%%al" : "+m"(halves[n]) : : "rax", "memory");                     \
    }
LOADS_OF(0)
LOADS_OF(1)

/* How many more of 101 loads miss than do without any. */
static uint64_t miss_again(uint64_t code, void (*flushed)(uint64_t), void (*again)(uint64_t))
{
    count_decoded(code, 0, flushed, 1);
    uint64_t once = count_decoded(code, 0, flushed, 1);
    CHECK_EQ(count_decoded(code, 0, flushed, 101) - once, 100);
    return count_decoded(code, 0, again, 101) - (once - 1);
}

/* Two lines that are one prefetch: one of them misses. */
static void load_pairs(uint64_t times)
{
    while (times--)
        asm volatile("clflush %0\nclflush %1\nmfence\nmov %0,%%al\nmov %1,%%al"
                     : "+m"(halves[0][128]), "+m"(halves[0][192])
                     :
                     : "rax", "memory");
}

static void caches(const struct events *events)
{
    for (unsigned kind = REFERENCES; kind <= MISSES; kind++) {
        count_decoded(events->code[kind], 0, load_pairs, 1);
        uint64_t once = count_decoded(events->code[kind], 0, load_pairs, 1);
        CHECK_EQ(count_decoded(events->code[kind], 0, load_pairs, 101) - once,
                 kind == MISSES ? 100 : 200);
        uint64_t code = events->code[kind], one = miss_again(code, load_flushed_0, load_again_0),
                 other = miss_again(code, load_flushed_1, load_again_1);
        CHECK(one == 0 || other == 0); /* the stack may take the line of one of them */
    }
}

/* In a cycle an instruction retires, and it is a branch or not. */
static void thresholds(const struct events *events)
{
    SKIP_IF(vpmu_quirk("ipc"), "instructions share cycles");
    SKIP_IF_ENTRIES_COUNT();
    /* What enabling counts too much (quirk wrmsr) is no cycle. */
    uint64_t n = test_long() ? 500 : 50, offset = vpmu_quirk("wrmsr"),
             branches = events->code[BRANCHES];
    uint64_t all = lab_expected(&lab_loop_work, LAB_INSTRUCTIONS, n) - offset,
             some = lab_expected(&lab_loop_work, LAB_BRANCHES, n);
    CHECK_EQ(count_decoded(branches, 0, lab_loop, n), some);
    CHECK_EQ(count_decoded(branches, THRESHOLD(1), lab_loop, n), some);
    CHECK_EQ(count_decoded(branches, THRESHOLD(2), lab_loop, n), 0);
    CHECK_EQ(count_decoded(branches, THRESHOLD(1) | INVERT, lab_loop, n), all - some);
    CHECK_EQ(count_decoded(branches, THRESHOLD(2) | INVERT, lab_loop, n), all);
    /* CALL; each JNZ after its DEC; RET directly after the last JNZ. */
    CHECK_EQ(count_decoded(branches, EDGE, lab_loop, n), 1 + n);
    CHECK_EQ(count_decoded(0xc0, EDGE, lab_loop, n),
             1 + vpmu_quirk("emulraw")); /* the WRMSR beside the loop */
    CHECK_EQ(count_decoded(0xc0, THRESHOLD(2) | INVERT, lab_loop, n), all + offset);
    if (!events->code[SLOTS])
        return;
    uint64_t slots = count_decoded(events->code[SLOTS], 0, lab_loop, n), each = slots / all;
    CHECK_BECAUSE(each, 5, 8, "issued in each cycle, by the model");
    CHECK_EQ(slots, each * all);
    CHECK_EQ(count_decoded(events->code[SLOTS], THRESHOLD(each), lab_loop, n), all);
    CHECK_EQ(count_decoded(events->code[SLOTS], THRESHOLD(each + 1), lab_loop, n), 0);
}

/* A branch counter that overflows in the middle, and one of instructions beside it. */
static unsigned pmis(uint64_t code, uint64_t start, uint64_t n)
{
    lab_catch();
    lab_count(0, code | PMU_KERNEL | PMU_INTERRUPT, start & pmu_mask(pmu_here(), 0), lab_loop, n);
    lab_loop(lab_late(1));
    unsigned found = lab_caught.pmis;
    lab_release();
    return found;
}

static void overflow_at_branch(const struct events *events)
{
    SKIP_IF_ENTRIES_COUNT();
    uint64_t n = test_long() ? 200 : 50;
    uint64_t some = lab_expected(&lab_loop_work, LAB_BRANCHES, n);
    struct lab_range one = lab_pmis(1);
    CHECK_BECAUSE(pmis(events->code[BRANCHES], -some, n), one.low, one.high, one.why);
    CHECK_EQ(pmis(events->code[BRANCHES], -some - 1, n), 0);
    CHECK_BECAUSE(pmis(events->code[BRANCHES], -1ull, n), one.low, one.high, one.why);
}

TEST(vpmu, instructions,
     "every kind of instruction loads, stores and branches as its manual says [VP-53 slow]")
{
    run_decoded(each_instruction);
}
TEST(vpmu, prediction, "a loop has two mispredictions, as the model says [VP-54]")
{
    run_decoded(prediction);
}
TEST(vpmu, caches,
     "a load after CLFLUSH misses, the next one hits, one of its neighbour too [VP-57 slow]")
{
    run_decoded(caches);
}
TEST(vpmu, thresholds,
     "thresholds, their inverse and edges of events, and slots, exactly [VP-60 slow]")
{
    run_decoded(thresholds);
}
TEST(vpmu, overflow, "a counter of branches overflows at exactly the right branch [VP-65 VP-67]")
{
    run_decoded(overflow_at_branch);
}
