/* SPDX-License-Identifier: MIT */
/* Last-branch records. What there is follows from CPUID, PERF_CAPABILITIES and the registers
 * themselves, whose faults are caught: hypervisors report the format without the registers, or
 * take a write and forget it. A CPU that does not keep the bit that records has no list. Sources:
 * SDM volume 3, "Last Branch, Interrupt, and Exception Recording" and "Last Branch Records"; AMD64
 * APM volume 2, "Debug and Performance Resources". */
#include "kernel/base/string.h"
#include "pmu/branches.h"

#define MSR_PERF_CAPABILITIES 0x345
#define MSR_DEBUGCTL 0x1d9
#define FORMAT_MASK 0x3fu
#define FORMAT_FLAGS 3u /* Nehalem */
#define FORMAT_TSX 4u   /* Haswell: the first with call stacks */
#define FORMAT_INFO 5u  /* and later: misprediction in LBR_INFO; 3 and 4: in FROM[63] */
#define FORMAT_TIME 6u  /* Goldmont: cycles in TO[63:48], the rest in FROM */
#define FORMAT_ARCHITECTURAL 0x3fu
#define LEAF_V2 0x80000022u
#define OLD_MAX 8u
#define ARCH_DEPTH 0x14cf /* a write empties the list */
#define MISPREDICTED (1ul << 63)
#define AMD_VALID (1ul << 63) /* of TO */

static bool can_read(uint32_t msr)
{
    uint64_t value;
    return !msr || !rdmsr_fault(msr, &value);
}

/* An entry's register: one that is not there may read 0 and ignore what is written. Who starts a
 * list empties it first. */
static bool keeps_value(uint32_t msr)
{
    uint64_t value = 0;
    return !wrmsr_fault(msr, 2) && !rdmsr_fault(msr, &value) && value == 2;
}

/* Of AMD's register all else stays, for Zen 3 wants 11b in bits 4:3. */
static bool keeps_enable(struct pmu_branches *b)
{
    uint64_t value = 0;
    bool there = !rdmsr_fault(b->control, &value);
    b->others = b->form == PMU_BRANCHES_AMD ? value & ~b->enable : 0;
    bool kept = there && !wrmsr_fault(b->control, b->others | b->enable) &&
                !rdmsr_fault(b->control, &value) && (value & b->enable);
    wrmsr_fault(b->control, b->others);
    return kept;
}

bool pmu_branches_left_on(void)
{
    static const struct {
        uint32_t msr;
        unsigned bit;
    } places[] = { { MSR_DEBUGCTL, 0 }, { 0x14ce, 0 }, { 0xc000010f, 6 } };
    uint64_t value = 0;
    for (unsigned i = 0; i < sizeof places / sizeof places[0]; i++)
        if (!rdmsr_fault(places[i].msr, &value) && value >> places[i].bit & 1)
            return true;
    return false;
}

/* Intel's, by its format; the depth is how many registers keep a value. */
static struct pmu_branches describe_intel(unsigned format)
{
    /* Knights Landing says 1 and has the newer registers. */
    bool old = format < FORMAT_FLAGS && keeps_value(0x40), arch = format == FORMAT_ARCHITECTURAL;
    if (arch)
        return (struct pmu_branches){ .form = PMU_BRANCHES_ARCH,
                                      .format = format,
                                      .from = 0x1500,
                                      .to = 0x1600,
                                      .info = 0x1200,
                                      .stride = 1,
                                      .control = 0x14ce,
                                      .enable = 1,
                                      .call_stack = cpuid(0x1c, 0).ebx >> 2 & 1 };
    return (struct pmu_branches){ .form = old ? PMU_BRANCHES_OLD : PMU_BRANCHES_STACK,
                                  .format = format,
                                  .from = old ? 0x40 : 0x680,
                                  .to = old ? 0x60 : 0x6c0,
                                  .info =
                                      format >= FORMAT_INFO && format != FORMAT_TIME ? 0xdc0 : 0,
                                  .stride = 1,
                                  .top = 0x1c9,
                                  .filter = old ? 0 : 0x1c8,
                                  .control = MSR_DEBUGCTL,
                                  .enable = 1,
                                  .call_stack = format >= FORMAT_TSX };
}

static struct pmu_branches describe_any(void)
{
    uint64_t capabilities = 0;
    bool intel = cpuid(1, 0).ecx & 1u << 15 && !rdmsr_fault(MSR_PERF_CAPABILITIES, &capabilities);
    if (intel && capabilities & FORMAT_MASK)
        return describe_intel(capabilities & FORMAT_MASK);
    if (cpuid(0x80000000, 0).eax >= LEAF_V2 && cpuid(LEAF_V2, 0).eax & 1u << 1)
        return (struct pmu_branches){ .form = PMU_BRANCHES_AMD,
                                      .from = 0xc0010300,
                                      .to = 0xc0010301,
                                      .stride = 2,
                                      .filter = 0xc000010e,
                                      .control = 0xc000010f,
                                      .enable = 1u << 6 };
    return (struct pmu_branches){ 0 };
}

void pmu_branches_probe(struct pmu_branches *b)
{
    *b = describe_any();
    unsigned most = b->form == PMU_BRANCHES_OLD   ? OLD_MAX
                    : b->form == PMU_BRANCHES_AMD ? cpuid(LEAF_V2, 0).ebx >> 4 & 0x3f
                                                  : PMU_BRANCHES_MAX;
    bool there =
        b->form && keeps_enable(b) && can_read(b->info) && can_read(b->top) && can_read(b->filter);
    while (there && b->depth < most && b->depth < PMU_BRANCHES_MAX &&
           keeps_value(b->from + b->depth * b->stride) && can_read(b->to + b->depth * b->stride))
        b->depth++;
    if (!b->depth)
        *b = (struct pmu_branches){ 0 };
}

/* IA32_LBR_CTL: its bits let through what `hidden` hides. */
static uint64_t arch_control(uint32_t hidden)
{
    static const uint8_t hides[] = { PMU_HIDE_JCC,      PMU_HIDE_REL_JMP,  PMU_HIDE_IND_JMP,
                                     PMU_HIDE_REL_CALL, PMU_HIDE_IND_CALL, PMU_HIDE_RET,
                                     PMU_HIDE_FAR };
    uint64_t control = (~hidden & 3u) << 1 | (hidden & PMU_CALL_STACK ? 1u << 3 : 0);
    for (unsigned i = 0; i < sizeof hides; i++)
        control |= (~hidden >> hides[i] & 1u) << (16 + i);
    return control;
}

struct pmu_gate pmu_branches_gate(const struct pmu_branches *b, uint32_t hidden)
{
    if (b->filter)
        wrmsr(b->filter, hidden);
    return (struct pmu_gate){ b->control,
                              b->others | b->enable |
                                  (b->form == PMU_BRANCHES_ARCH ? arch_control(hidden) : 0),
                              b->others };
}

/* An entry that begins nowhere is empty, whatever the other registers keep. */
void pmu_branches_clear(const struct pmu_branches *b)
{
    if (b->form == PMU_BRANCHES_ARCH) {
        wrmsr(ARCH_DEPTH, rdmsr(ARCH_DEPTH));
        return;
    }
    for (unsigned i = 0; i < b->depth * b->stride; i += b->stride)
        wrmsr(b->from + i, 0);
}

/* 48 bits of an address, or AMD's 58, with their sign: above them some formats have flags. */
static uint64_t address_of(const struct pmu_branches *b, uint64_t value)
{
    unsigned unused = b->form == PMU_BRANCHES_AMD ? 6 : 16;
    return (uint64_t)((int64_t)(value << unused) >> unused);
}

/* Entry n, the newest is 0. False: it is empty, and so is each older one. All 0: it is AMD's, of a
 * path that was not taken after all. */
static bool read_entry(const struct pmu_branches *b, unsigned top, unsigned n, struct pmu_branch *e)
{
    uint32_t i = (b->top ? (top - n) % b->depth : n) * b->stride;
    uint64_t from = rdmsr(b->from + i);
    if (!from)
        return false;
    uint64_t to = rdmsr(b->to + i);
    *e = (struct pmu_branch){ 0 };
    if (b->form == PMU_BRANCHES_AMD && !(to & AMD_VALID))
        return true;
    uint64_t flags = b->info ? rdmsr(b->info + i) : b->form == PMU_BRANCHES_OLD ? 0 : from;
    *e = (struct pmu_branch){ address_of(b, from), address_of(b, to), flags & MISPREDICTED };
    return true;
}

static bool is_readable(const struct pmu_branches *b)
{
    return b->depth && !(rdmsr(b->control) & b->enable);
}

static unsigned newest(const struct pmu_branches *b)
{
    return b->top ? (unsigned)rdmsr(b->top) : 0;
}

unsigned pmu_branches_read(const struct pmu_branches *b, struct pmu_branch list[PMU_BRANCHES_MAX])
{
    if (!is_readable(b))
        return 0;
    struct pmu_branch entry;
    unsigned top = newest(b), kept = 0, wrong = 0;
    memset(list, 0, b->depth * sizeof *list);
    for (unsigned n = 0; n < b->depth && read_entry(b, top, n, &entry); n++)
        if (entry.from)
            list[kept++] = entry;
        else
            wrong++;
    return b->depth - wrong;
}
