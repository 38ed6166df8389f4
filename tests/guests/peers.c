/* SPDX-License-Identifier: MIT */
/* What the suites of peers, kvm-unit-tests' pmu, pmu_lbr and pmu_pebs and the selftests of KVM, ask
 * of a PMU, as a guest that knows of it what CPUID says: each counter and event, overflow with and
 * without its interrupt, status, thresholds, writes, RDPMC, instructions that a hypervisor
 * emulates, what must fault. Exact where they have ranges: here a cycle is an instruction. */
#include "kernel/base/rdpmc.h"
#include "tests/harness/questions.h"
#include "tests/guests/guest.h"

void measured(uint32_t msr, uint64_t on, uint64_t loops, uint64_t off);
void streamed(uint32_t msr, uint64_t on, uint64_t loops, uint64_t off);
void emulated(uint32_t msr, uint64_t on, uint64_t off);
void strings(uint32_t msr, uint64_t on, uint64_t off);
uint64_t rewritten(void);
uint64_t try_rdpmc(uint32_t selector, uint64_t *value);
uint64_t on_clean_stack(uint64_t top, uint32_t msr, uint64_t on, const uint64_t *entry);
extern const uint8_t clean_interrupt[];
extern uint64_t dirs[];

enum { LOOPS = 100, LINES = 4096 };
enum { VECTOR = 0x40, GP = 13, LVT_PMI = 0x340, FIXED = 0x309, FIXED_CONTROL = 0x38d };
enum { CLEAN_VECTOR = VECTOR + 16, STACK = 26 << 20, ACCESSED = 0x20, DIRTY = 0x40 };
enum { EMULATED = 10 * 5 + 2 + 4, STRINGS = 5 + 4 };
#define ON 0x430000ul /* enabled, both rings */
#define INTERRUPT (1ul << 20)
#define MISC_LEGAL 0x400c51889ul /* bit 7 is read-only */
#define NONE 0u

static unsigned failures, checks, interrupts, counters, fixed, width, version;
static bool intel, full_width;
static uint64_t expected; /* instructions of measured() */
static uint64_t flags;    /* in the frame of the last exception */
/* Of the vendor; NONE: the model lacks it. */
static uint32_t control, status, clear, set;

static void check_that(const char *what, unsigned number, bool holds)
{
    checks++;
    failures += !holds;
    if (holds)
        return;
    say("FAIL: ");
    say(what);
    say(" ");
    put((char)('0' + number));
    say("\n");
}

bool trap_handler(struct frame *frame)
{
    if (frame->vector == VECTOR) {
        interrupts++;
        APIC(0xb0) = 0;
        return false;
    }
    flags = frame->rflags;
    if (!expected_fault(frame)) {
        say("FAIL: an exception\n");
        end(1);
    }
    return false;
}

static uint32_t counter_msr(unsigned i)
{
    return intel ? 0xc1 + i : counters > 4 ? 0xc0010201 + 2 * i : 0xc0010004 + i;
}

static uint32_t select_msr(unsigned i)
{
    return intel ? 0x186 + i : counters > 4 ? 0xc0010200 + 2 * i : 0xc0010000 + i;
}

static uint64_t counter_mask(void) { return (1ul << width) - 1; }

/* Begins and ends with everything off. */
static uint64_t count_code(void (*code)(uint32_t, uint64_t, uint64_t, uint64_t), uint64_t loops,
                           unsigned i, uint64_t select, uint64_t from)
{
    try_wrmsr(counter_msr(i), from);
    if (control != NONE) {
        try_wrmsr(select_msr(i), select);
        code(control, 1ul << i, loops, 0);
        try_wrmsr(select_msr(i), 0);
    } else {
        code(select_msr(i), select, loops, 0);
    }
    return rdmsr(counter_msr(i));
}

static uint64_t count_from(unsigned i, uint64_t select, uint64_t from)
{
    return count_code(measured, LOOPS, i, select, from);
}

static uint64_t count_loops(unsigned i, uint64_t select) { return count_from(i, select, 0); }

/* Lines in order: of two that are one prefetch, one misses; then the stack's. */
static void stream(unsigned i)
{
    check_that("references in order", i,
               count_code(streamed, LINES, i, ON | 0x4f2e, 0) == LINES + 1);
    check_that("misses in order", i,
               count_code(streamed, LINES, i, ON | 0x412e, 0) == LINES / 2 + 1);
}

static void find_pmu(void)
{
    uint32_t r[4];
    uint64_t value = 0;
    intel = is_intel();
    cpuid(intel ? 0xa : 0x80000001, r);
    if (intel) {
        version = r[0] & 0xff;
        counters = r[0] >> 8 & 0xff;
        width = r[0] >> 16 & 0xff;
        fixed = version > 1 ? r[3] & 31 : 0;
        full_width = !try_rdmsr(0x345, &value) && value >> 13 & 1;
        if (version >= 6) { /* leaf 0Ah says what both kinds of a hybrid have, this one what is */
            cpuid_at(0x23, 1, r);
            counters = 32 - (uint32_t)__builtin_clz(r[0]);
            fixed = 32 - (uint32_t)__builtin_clz(r[1]);
        }
    } else {
        counters = r[2] >> 23 & 1 ? 6 : 4;
        width = 48;
        cpuid(0x80000000, r);
        bool has_leaf = r[0] >= 0x80000022;
        cpuid(0x80000022, r);
        version = has_leaf && r[0] & 1 ? 2 : 1;
        full_width = true;
    }
    if (version > 1) {
        control = intel ? 0x38f : 0xc0000301;
        status = intel ? 0x38e : 0xc0000300;
        clear = intel ? 0x390 : 0xc0000302;
        set = !intel ? 0xc0000303 : version >= 4 ? 0x391 : NONE;
    }
    uint64_t random = 1;
    for (unsigned i = 0; i < LOOPS; i++, expected += random >> 30 & 1)
        random = random * 0x41c64e6d + 12345;
    expected += 8 * LOOPS + 4;
}

static void events(unsigned i)
{
    check_that("instructions", i, count_loops(i, ON | 0xc0) == expected);
    check_that("cycles", i, count_loops(i, ON | (intel ? 0x3c : 0x76)) == expected);
    check_that("branches", i, count_loops(i, ON | (intel ? 0xc4 : 0xc2)) == 2 * LOOPS);
    /* Every other toss of a coin is guessed wrong; a fifth is far below chance's reach. */
    uint64_t wrong = count_loops(i, ON | (intel ? 0xc5 : 0xc3));
    check_that("mispredicted branches", i, wrong > LOOPS / 5 && wrong < LOOPS);
    if (intel) {
        uint64_t reference = count_loops(i, ON | 0x13c);
        check_that("reference cycles", i, reference && reference <= expected);
        check_that("references of the last cache", i, count_loops(i, ON | 0x4f2e) == LOOPS);
        check_that("misses", i, count_loops(i, ON | 0x412e) == LOOPS);
        stream(i);
    }
    /* Skylake and later. */
    uint64_t not_taken = expected - (8 * LOOPS + 4) + 1;
    if (intel && version >= 4)
        check_that("branches not taken", i, count_loops(i, ON | 0x10c4) == not_taken);
    if (intel && version == 5)
        check_that("conditional ones taken", i,
                   count_loops(i, ON | 0x01c4) == 2 * LOOPS - not_taken);
    check_that("ring 0 alone", i, count_loops(i, (ON & ~0x10000ul) | 0xc0) == expected);
    check_that("ring 3 alone", i, count_loops(i, (ON & ~0x20000ul) | 0xc0) == 0);
    check_that("an event that is none", i, count_loops(i, ON | 0xffff) == 0);
    check_that("not enabled", i, count_loops(i, (ON & ~0x400000ul) | 0xc0) == 0);
    check_that("a threshold of one", i, count_loops(i, ON | 0xc0 | 1ul << 24) == expected);
    check_that("of more than there are in a cycle", i, count_loops(i, ON | 0xc0 | 9ul << 24) == 0);
}

static unsigned taken(void)
{
    interrupts = 0;
    asm volatile("sti\nnop\nnop\ncli");
    return interrupts;
}

static void overflow(unsigned i)
{
    uint64_t from = -(expected - 1) & counter_mask(), bit = 1ul << i;
    APIC(LVT_PMI) = VECTOR;
    check_that("overflow", i, count_from(i, ON | 0xc0, from) == 1);
    check_that("no interrupt unasked", i, taken() == 0);
    if (status != NONE) {
        check_that("its status", i, rdmsr(status) == bit);
        try_wrmsr(clear, bit);
        check_that("cleared", i, rdmsr(status) == 0);
    }
    check_that("overflow with an interrupt", i, count_from(i, ON | 0xc0 | INTERRUPT, from) == 1);
    check_that("one interrupt", i, taken() == 1);
    check_that("the APIC's entry is masked on Intel's", i, APIC(LVT_PMI) >> 16 == intel);
    if (status != NONE)
        try_wrmsr(clear, bit);
    check_that("one short of it", i,
               count_from(i, ON | 0xc0 | INTERRUPT, from - 2) == counter_mask());
    check_that("none yet", i, taken() == 0 && (status == NONE || !rdmsr(status)));
    if (set != NONE) {
        check_that("status set", i, !try_wrmsr(set, bit) && rdmsr(status) == bit);
        try_wrmsr(clear, bit);
    }
}

/* RDPMC; writes, whole and of 32 bits; of a counter that runs. */
static void writes(unsigned i)
{
    uint64_t value = 0, wide = 0xff0123456789 & counter_mask();
    try_wrmsr(counter_msr(i), wide);
    uint64_t kept = intel ? 0x23456789 : wide;
    check_that("written", i, rdmsr(counter_msr(i)) == kept);
    check_that("RDPMC", i, !try_rdpmc(i, &value) && value == kept);
    check_that("RDPMC has no fast mode", i, try_rdpmc(i | 1u << 31, &value) == GP);
    if (intel) {
        try_wrmsr(counter_msr(i), 0x80000000);
        check_that("32 bits are signed", i,
                   rdmsr(counter_msr(i)) == (-0x80000000ul & counter_mask()));
        uint64_t fault = try_wrmsr(0x4c1 + i, wide);
        check_that("full-width writes", i,
                   full_width ? !fault && rdmsr(counter_msr(i)) == wide : fault == GP);
        check_that("no wider", i, try_wrmsr(0x4c1 + i, counter_mask() + 1) == GP);
    }
    /* Between the write and the loops: a call and its return. */
    try_wrmsr(select_msr(i), ON | 0xc0);
    measured(control == NONE ? select_msr(i) : control, control == NONE ? ON | 0xc0 : 1ul << i,
             LOOPS, control == NONE ? ON | 0xc0 : 1ul << i);
    try_wrmsr(counter_msr(i), 0);
    measured(control == NONE ? select_msr(i) : control, control == NONE ? ON | 0xc0 : 1ul << i,
             LOOPS, 0);
    value = rdmsr(counter_msr(i));
    check_that("a write while it runs", i, value >= expected && value < expected + 100);
    try_wrmsr(select_msr(i), 0);
}

/* Each of them counts once, and takes the counter over its end. */
static void emulation(unsigned i)
{
    uint32_t msr = control == NONE ? select_msr(i) : control;
    uint64_t on = control == NONE ? ON | 0xc0 : 1ul << i, from = -20ul & counter_mask();
    try_wrmsr(select_msr(i), control == NONE ? 0 : ON | 0xc0);
    try_wrmsr(counter_msr(i), 0);
    emulated(msr, on, 0);
    check_that("emulated instructions", i, rdmsr(counter_msr(i)) == EMULATED);
    try_wrmsr(counter_msr(i), from);
    emulated(msr, on, 0);
    check_that("overflow among them", i, rdmsr(counter_msr(i)) == EMULATED - 20);
    check_that("its status", i, status == NONE || rdmsr(status) == 1ul << i);
    if (status != NONE)
        try_wrmsr(clear, 1ul << i);
    try_wrmsr(counter_msr(i), 0);
    strings(msr, on, 0);
    check_that("a repeated string instruction is one", i, rdmsr(counter_msr(i)) == STRINGS);
    try_wrmsr(select_msr(i), 0);
}

/* The processor, or a hypervisor in its place, stores an interrupt's frame: the stack's page is
 * accessed and dirty then. */
static void frame_marks_its_page(unsigned i)
{
    bool global = control != NONE;
    uint32_t starts = global ? control : select_msr(i);
    uint64_t *entry = &dirs[STACK >> 21], select = ON | 0xc0 | INTERRUPT;
    *entry &= ~(uint64_t)(ACCESSED | DIRTY);
    asm volatile("invlpg (%0)" : : "r"((uint64_t)STACK) : "memory");
    APIC(LVT_PMI) = CLEAN_VECTOR;
    try_wrmsr(counter_msr(i), -(uint64_t)LOOPS & counter_mask());
    if (global)
        try_wrmsr(select_msr(i), select);
    uint64_t found = on_clean_stack(STACK + 0x1000, starts, global ? 1ul << i : select, entry);
    try_wrmsr(starts, 0);
    try_wrmsr(select_msr(i), 0);
    if (status != NONE)
        try_wrmsr(clear, 1ul << i);
    check_that("an interrupt's frame marks its page", i, found & ACCESSED && found & DIRTY);
}

/* What decoding must not change: a fault's frame has RF, whoever delivers it, and code that was
 * executed before is read again where a PUSH has written. */
static void while_branches_count(void)
{
    uint64_t value;
    try_wrmsr(select_msr(0), ON | (intel ? 0xc4 : 0xc2));
    if (control != NONE)
        try_wrmsr(control, 1);
    bool faulted = try_rdpmc(31, &value) == GP;
    uint64_t fault_flags = flags, returned = rewritten();
    try_wrmsr(control != NONE ? control : select_msr(0), 0);
    try_wrmsr(select_msr(0), 0);
    check_that("a fault while branches count", 0, faulted && fault_flags >> 16 & 1);
    check_that("code that a PUSH has written", 0, returned == 012);
}

/* Instructions, cycles, reference cycles; slots are several in a cycle. */
static void fixed_counter(unsigned i)
{
    uint64_t value = 0, from = -(expected - 1) & counter_mask();
    try_wrmsr(FIXED_CONTROL, 3ul << 4 * i);
    try_wrmsr(FIXED + i, 0);
    measured(control, 1ul << (32 + i), LOOPS, 0);
    uint64_t counted = rdmsr(FIXED + i);
    check_that("fixed counter", i,
               i < 3 ? counted == expected : counted && counted % expected == 0);
    check_that("RDPMC of it", i, !try_rdpmc(i | RDPMC_FIXED, &value) && value == counted);
    if (i < 3) {
        APIC(LVT_PMI) = VECTOR;
        try_wrmsr(FIXED_CONTROL, 0xbul << 4 * i);
        try_wrmsr(FIXED + i, from);
        measured(control, 1ul << (32 + i), LOOPS, 0);
        check_that("its overflow", i, rdmsr(FIXED + i) == 1 && rdmsr(status) == 1ul << (32 + i));
        check_that("its interrupt", i, taken() == 1);
        try_wrmsr(clear, 1ul << (32 + i));
    }
    try_wrmsr(FIXED_CONTROL, 0);
}

static void together(void)
{
    uint64_t all = (1ul << counters) - 1, nibbles = 0;
    for (unsigned i = 0; i < counters; i++) {
        try_wrmsr(counter_msr(i), 0);
        try_wrmsr(select_msr(i), ON | 0xc0);
    }
    for (unsigned i = 0; i < fixed; i++) {
        try_wrmsr(FIXED + i, 0);
        nibbles |= 3ul << 4 * i;
        all |= 1ul << (32 + i);
    }
    if (fixed)
        try_wrmsr(FIXED_CONTROL, nibbles);
    measured(control, all, LOOPS, 0);
    for (unsigned i = 0; i < counters; i++) {
        check_that("all at once", i, rdmsr(counter_msr(i)) == expected);
        try_wrmsr(select_msr(i), 0);
    }
    for (unsigned i = 0; i < fixed && i < 3; i++)
        check_that("all at once, fixed", i, rdmsr(FIXED + i) == expected);
    if (fixed)
        try_wrmsr(FIXED_CONTROL, 0);
}

/* Whatever is asked, counts and answers stay. */
static void questions_change_nothing(void)
{
    try_wrmsr(select_msr(0), ON | 0xc0);
    if (control != NONE)
        try_wrmsr(control, 1);
    struct questions q = questions_ask(0);
    if (control != NONE)
        try_wrmsr(control, 0);
    try_wrmsr(select_msr(0), 0);
    check_that("the same answers", 0, q.answers[0] == q.answers[1]);
    check_that("RDPMC after questions", 0, q.exact[0] == q.exact[1]);
    check_that("RDPMC lacks nothing", 0, !q.lacking[0] && !q.lacking[1]);
}

/* What is not there: #GP by Intel, dropped by AMD. */
static void absent(void)
{
    uint64_t value = 0;
    check_that("RDPMC of no counter", 0, try_rdpmc(counters, &value) == GP);
    check_that("RDPMC of no fixed counter", 0, try_rdpmc(fixed | RDPMC_FIXED, &value) == GP);
    check_that("reserved bits of DEBUGCTL", 0, try_wrmsr(0x1d9, 1ul << 32) == GP);
    if (!intel) {
        check_that("reserved bits of a select", 0,
                   !try_wrmsr(select_msr(0), 1ul << 63) && !rdmsr(select_msr(0)));
        check_that("PEBS", 0, try_rdmsr(0x3f1, &value) == GP);
        if (control == NONE) {
            check_that("no global control", 0, try_rdmsr(0xc0000301, &value) == GP);
            return;
        }
        check_that("bits of no counter", 0,
                   !try_wrmsr(control, ~0ul) && rdmsr(control) == (1ul << counters) - 1);
        try_wrmsr(control, 0);
        check_that("status is not written", 0, !try_wrmsr(status, 1) && !rdmsr(status));
        return;
    }
    check_that("a counter that is none", 0,
               try_rdmsr(0xc1 + counters, &value) == GP && try_wrmsr(0xc1 + counters, 0) == GP);
    check_that("a select that is none", 0,
               try_rdmsr(0x186 + counters, &value) == GP && try_wrmsr(0x186 + counters, 0) == GP);
    check_that("a fixed counter that is none", 0, try_rdmsr(FIXED + fixed, &value) == GP);
    check_that("reserved bits of a select", 0, try_wrmsr(0x186, 1ul << 50) == GP);
    check_that("MISC_ENABLE: a PMU, no BTS, no PEBS", 0, (rdmsr(0x1a0) & 0x1880) == 0x1880);
    value = rdmsr(0x1a0);
    check_that("MISC_ENABLE keeps what is written", 0,
               !try_wrmsr(0x1a0, MISC_LEGAL & ~0x80ul) && rdmsr(0x1a0) == MISC_LEGAL);
    try_wrmsr(0x1a0, value);
    check_that("PEBS", 0, try_rdmsr(0x3f1, &value) == GP && try_wrmsr(0x3f1, 1) == GP);
    check_that("PERF_CAPABILITIES", 0,
               try_wrmsr(0x345, 0) == GP && (try_rdmsr(0x345, &value) || !(value & 0xfc0)));
    if (version < 2) {
        check_that("no global registers", 0,
                   try_rdmsr(0x38f, &value) == GP && try_rdmsr(0x38d, &value) == GP);
        return;
    }
    check_that("bits of no counter", 0,
               try_wrmsr(control, 1ul << 31) == GP && try_wrmsr(FIXED_CONTROL, ~0ul) == GP);
    check_that("status is not written", 0, try_wrmsr(status, 0) == GP);
    check_that("nor cleared where nothing is", 0, try_wrmsr(clear, 1ul << 31) == GP);
    check_that("nor set before version 4", 0, try_wrmsr(0x391, 0) == (version < 4 ? GP : 0));
}

void payload_main(uint32_t magic, uint32_t info)
{
    (void)magic, (void)info;
    for (unsigned v = 0; v < 32; v++)
        set_gate(v, stubs[v], 8, 0, 0x8e);
    set_gate(VECTOR, stubs[VECTOR], 8, 0, 0x8e);
    set_gate(CLEAN_VECTOR, clean_interrupt, 8, 0, 0x8e);
    mask_pics();
    find_pmu();
    if (control != NONE)
        try_wrmsr(control, 0);
    for (unsigned i = 0; i < counters; i++) {
        events(i);
        overflow(i);
        writes(i);
        emulation(i);
        frame_marks_its_page(i);
    }
    for (unsigned i = 0; i < fixed; i++)
        fixed_counter(i);
    if (control != NONE)
        together();
    absent();
    questions_change_nothing();
    while_branches_count();
    say("peers: ");
    for (unsigned by = 1000; by; by /= 10)
        put((char)('0' + checks / by % 10));
    say(" checks\n");
    end(failures ? 1 : 0);
}
