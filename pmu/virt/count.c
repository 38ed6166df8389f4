/* SPDX-License-Identifier: MIT */
/* Common to all models: adds retired instructions to the running counters; overflow; PMI; accesses
 * of their MSRs. Cycles follow a simple model: one per instruction (or per ipc=
 * instructions), none in HLT, each with as many slots as the core has. */
#include "kernel/base/bits.h"
#include "pmu/virt/quirk.h"
#include "pmu/virt/vcpu.h"

static bool counter_runs(const struct counter *c, bool user)
{
    return c->event && (user ? c->user : c->kernel);
}

/* With the quirk wrap0 a counter that wraps to exactly 0 overflows at its next event only; one that
 * writes records is armed at once. */
static void add_events(struct vcpu *v, unsigned counter, uint64_t n)
{
    struct counter *c = &v->pmu.counters[counter];
    uint64_t mask = counter_mask(v->pmu.model);
    bool late = c->late && n;
    if (n && v->pmu.ds.armed & counter_status(counter))
        ds_event(&v->pmu, counter);
    if (virt_quirks.bug == BUG_CARRY && (c->value + n) >> 31 != c->value >> 31)
        v->pmu.status |= counter_status(counter);
    c->value += n;
    c->late = virt_quirks.wrap0 && !c->pebs && (c->value == mask + 1 || (c->late && !n));
    if (c->pebs && c->value > mask)
        v->pmu.ds.armed |= counter_status(counter);
    else if (late || (c->value > mask && !c->late))
        pmi_overflow(v, counter);
    c->value &= mask;
}

/* Instructions and iterations of this CPU in its current tick of `per`, such as a cycle. */
static uint64_t in_tick(const struct vcpu *v, uint64_t per)
{
    return (v->retired[0] + v->retired[1] + v->iterations) % per;
}

/* How many ticks of `per` instructions end within the next n. */
static uint64_t ticks_within(const struct vcpu *v, uint64_t n, uint64_t per)
{
    return (in_tick(v, per) + n) / per;
}

/* How many of the counter's events an instruction with these effects has; below: a cycle. */
static unsigned in_instruction(const struct counter *c, uint32_t effects)
{
    return c->event >= EVENT_BRANCHES ? effects >> c->event & 1 : c->event == EVENT_INSTRUCTIONS;
}

static unsigned in_cycle(const struct vcpu *v, const struct counter *c)
{
    return c->event == EVENT_SLOTS ? v->pmu.model->slots
                                   : c->event == EVENT_CYCLES || c->event == EVENT_BUS_CYCLES;
}

static uint64_t occurrences(const struct vcpu *v, const struct counter *c, uint64_t n,
                            uint32_t effects)
{
    if (c->event == EVENT_BUS_CYCLES)
        return ticks_within(v, n, virt_quirks.ipc * virt_quirks.ref);
    return n * in_instruction(c, effects) + ticks_within(v, n, virt_quirks.ipc) * in_cycle(v, c);
}

/* Whether the condition of a counter (threshold, edge) holds in a cycle with n events. */
static bool meets_condition(const struct counter *c, uint64_t n)
{
    if (!c->threshold)
        return n;
    return (c->equal ? n == c->threshold : n >= c->threshold) != c->invert;
}

/* Counts `cycles` cycles of n events each. With edge detection, only the cycle in which the
 * condition begins counts. */
static uint64_t count_condition(struct counter *c, uint64_t n, uint64_t cycles)
{
    bool holds = meets_condition(c, n), held = c->held;
    if (!cycles)
        return 0;
    c->held = holds;
    return !c->edge ? cycles * holds : holds && !held;
}

/* Counts cycles by their condition. The first cycle has begun before these n instructions; the
 * others are complete. */
static uint64_t in_cycles(const struct vcpu *v, struct counter *c, uint64_t n, uint32_t effects)
{
    uint64_t ipc = virt_quirks.ipc, cycles = ticks_within(v, n, ipc), left = ipc - in_tick(v, ipc);
    unsigned each = in_instruction(c, effects);
    if (!cycles) {
        c->in_cycle += n * each;
        return 0;
    }
    uint64_t counted = count_condition(c, c->in_cycle + left * each + in_cycle(v, c), 1);
    counted += count_condition(c, ipc * each + in_cycle(v, c), cycles - 1);
    c->in_cycle = (n - left) % ipc * each;
    return counted;
}

static void count_events(struct vcpu *v, bool user, uint64_t n, uint32_t effects)
{
    for_each_bit(i, v->pmu.runs[user]) {
        struct counter *c = &v->pmu.counters[i];
        if (counter_runs(c, user))
            add_events(v, i,
                       c->threshold || c->edge ? in_cycles(v, c, n, effects)
                                               : occurrences(v, c, n, effects));
    }
}

static void retire_instructions(struct vcpu *v, bool user, uint64_t n, uint32_t effects)
{
    if (v->pmu.counting && n) {
        unsigned dues = pmi_pass(&v->pmu, n);
        count_events(v, user, n, effects);
        pmi_now(v, dues);
    }
    v->retired[user] += n;
    v->pmu.unordered[user] += n;
}

void count_add(struct vcpu *v, bool user, uint64_t n) { retire_instructions(v, user, n, 0); }
void count_unseen(struct vcpu *v, bool user, uint64_t n) { count_events(v, user, n, 0); }

static bool in_iteration(const struct vcpu *v, const struct counter *c)
{
    return (c->event == EVENT_BUS_CYCLES || in_cycle(v, c)) && !c->threshold && !c->edge;
}

void count_iterations(struct vcpu *v, bool user, uint64_t n)
{
    for_each_bit(i, v->pmu.runs[user]) {
        const struct counter *c = &v->pmu.counters[i];
        if (counter_runs(c, user) && in_iteration(v, c))
            add_events(v, i, occurrences(v, c, n, 0));
    }
    v->iterations += n;
}

void count_one(struct vcpu *v, bool user, uint32_t effects)
{
    retire_instructions(v, user, 1, effects);
    if (effects & EFFECT(EVENT_FAR))
        count_extra(v, user, virt_quirks.far);
}

void count_smi(struct vcpu *v)
{
    for (unsigned i = 0; i < COUNTER_MAX; i++)
        if (v->pmu.counters[i].event == EVENT_SMIS)
            add_events(v, i, 1);
}

void count_record(struct vcpu *v)
{
    struct records *r = &v->pmu.records;
    for (unsigned i = 0; i < COUNTER_MAX && r->gained; i++) {
        struct counter *c = &v->pmu.counters[i];
        if (c->event != EVENT_RECORDS || !counter_runs(c, v->vmcb.cpl == 3))
            continue;
        if (c->threshold || c->edge)
            c->in_cycle++;
        else
            add_events(v, i, 1);
    }
    r->gained = false;
}

void count_extra(struct vcpu *v, bool user, uint64_t n)
{
    for_each_bit(i, v->pmu.runs[user]) {
        const struct counter *c = &v->pmu.counters[i];
        bool sees = c->event == EVENT_INSTRUCTIONS || c->event == EVENT_BRANCHES;
        if (counter_runs(c, user) && sees && !c->threshold && !c->edge)
            add_events(v, i, n);
    }
}

void count_taken_in_ring3(struct vcpu *v, uint64_t inject)
{
    if ((inject & INJECT_TYPE) != INJECT_SOFT_INT) /* INT n retires, and counts once already */
        count_extra(v, true, virt_quirks.irq3);
}

static bool is_uncounted(const struct vcpu *v)
{
    static const uint64_t codes[] = {
        [UNCOUNTED_CPUID] = EXIT_CPUID, [UNCOUNTED_RDMSR] = EXIT_MSR,
        [UNCOUNTED_WRMSR] = EXIT_MSR,   [UNCOUNTED_RDPMC] = EXIT_RDPMC,
        [UNCOUNTED_HLT] = EXIT_HLT,     [UNCOUNTED_DR] = EXIT_WRITE_DR7,
    };
    uint64_t kind = virt_quirks.uncounted, code = v->vmcb.exit_code;
    bool write = v->vmcb.exit_info1 & 1;
    return kind && kind < ARRAY_SIZE(codes) && code == codes[kind] &&
           (code != EXIT_MSR || write == (kind == UNCOUNTED_WRMSR));
}

/* The events of an instruction that the host executed: as of any other, but for quirks. */
static uint64_t emulated_events(const struct vcpu *v, struct counter *c)
{
    int64_t n = virt_quirks.noemul || is_uncounted(v) ? 0 : 1;
    bool instructions = c->event == EVENT_INSTRUCTIONS;
    if (c->event == EVENT_BRANCHES && virt_quirks.bug == BUG_CPUID)
        return v->vmcb.exit_code == EXIT_CPUID;
    if (instructions && c->enabled_now)
        n += (int64_t)virt_quirks.wrmsr;
    if (n <= 0)
        return 0;
    if (instructions && virt_quirks.emulraw)
        return (uint64_t)n;
    return c->threshold || c->edge ? in_cycles(v, c, (uint64_t)n, 0)
                                   : occurrences(v, c, (uint64_t)n, 0);
}

void count_emulated(struct vcpu *v, bool user)
{
    struct pmu *p = &v->pmu;
    unsigned dues = pmi_pass(p, 1);
    uint64_t status = p->status;
    bool pmi = p->pmi;
    for (unsigned i = 0; i < COUNTER_MAX && p->counting; i++) {
        struct counter *c = &p->counters[i];
        if (counter_runs(c, user))
            add_events(v, i, emulated_events(v, c));
        c->enabled_now = false;
    }
    if (virt_quirks.bug == BUG_QUIET) {
        p->status = status;
        p->pmi = pmi;
    }
    pmi_now(v, dues);
    v->retired[user]++;
    v->pmu.unordered[user]++;
}

/* Instructions until the k-th tick of `per` from now. */
static uint64_t until_tick(const struct vcpu *v, uint64_t k, uint64_t per)
{
    uint64_t n;
    return __builtin_mul_overflow(k, per, &n) ? UINT64_MAX : n - in_tick(v, per);
}

/* A lower bound of the instructions until a counter has counted `left` more. Not for counters of
 * decoded events: without blocks (blocks.c) each instruction is single-stepped with those. */
static uint64_t instructions_left(const struct vcpu *v, const struct counter *c, uint64_t left)
{
    uint64_t ipc = virt_quirks.ipc, each = in_cycle(v, c);
    if (c->edge || c->threshold) {
        bool all = meets_condition(c, ipc * in_instruction(c, 0) + each);
        bool never =
            c->edge ? left > 1 || (ipc == 1 && (c->held || !all)) : !all && (left > 1 || ipc == 1);
        return never ? UINT64_MAX : until_tick(v, left, ipc);
    }
    if (c->event == EVENT_INSTRUCTIONS)
        return left;
    if (c->event == EVENT_BUS_CYCLES)
        return until_tick(v, left, ipc * virt_quirks.ref);
    return each ? until_tick(v, (left + each - 1) / each, ipc) : UINT64_MAX;
}

/* Of those that count in iterations, or of all. */
static uint64_t least_left(const struct vcpu *v, bool user, bool iterations, uint64_t least)
{
    for_each_bit(i, v->pmu.runs[user]) {
        const struct counter *c = &v->pmu.counters[i];
        bool armed = v->pmu.ds.armed & counter_status(i);
        if (!counter_runs(c, user) || !(c->pmi || c->pebs) || (iterations && !in_iteration(v, c)))
            continue;
        uint64_t wrap = counter_mask(v->pmu.model) - c->value + 1;
        uint64_t events = c->late || armed ? 1 : wrap + (virt_quirks.wrap0 && !c->pebs);
        uint64_t left = instructions_left(v, c, events);
        least = left < least ? left : least;
    }
    return least;
}

uint64_t count_left(const struct vcpu *v, bool user)
{
    return least_left(v, user, false, pmi_left(&v->pmu));
}

uint64_t count_iterations_left(const struct vcpu *v, bool user)
{
    return least_left(v, user, true, UINT64_MAX);
}

/* The clock's events occur as in n instructions, the decoded ones as `events` says. */
void count_block(struct vcpu *v, bool user, uint64_t n, const uint64_t events[])
{
    pmi_pass(&v->pmu, n);
    for_each_bit(i, v->pmu.runs[user]) {
        struct counter *c = &v->pmu.counters[i];
        if (counter_runs(c, user))
            add_events(v, i,
                       c->event >= EVENT_BRANCHES ? events[c->event] : occurrences(v, c, n, 0));
    }
    v->retired[user] += n;
    v->pmu.unordered[user] += n;
}

uint64_t count_block_left(const struct vcpu *v, bool user)
{
    uint64_t least = ds_waits(&v->pmu, user) ? 0 : pmi_left(&v->pmu);
    for_each_bit(i, v->pmu.runs[user]) {
        const struct counter *c = &v->pmu.counters[i];
        if (!counter_runs(c, user))
            continue;
        if (c->threshold || c->edge || c->late)
            return 0;
        uint64_t left = counter_mask(v->pmu.model) - c->value + 1;
        if (c->event < EVENT_BRANCHES)
            left = instructions_left(v, c, left);
        least = left < least ? left : least;
    }
    return least;
}

bool count_rdmsr(struct vcpu *v, uint32_t msr, uint64_t *value)
{
    v->statistics.rdmsr++;
    platform_spin(virt_quirks.exitcost);
    if (v->pmu.model->ops->read(&v->pmu, msr, value))
        return true;
    *value = 0;
    return virt_quirks.ignoremsrs;
}

bool count_wrmsr(struct vcpu *v, uint32_t msr, uint64_t value)
{
    bool before[COUNTER_MAX];
    for (unsigned i = 0; i < COUNTER_MAX; i++)
        before[i] = v->pmu.counters[i].event;
    v->statistics.wrmsr++;
    platform_spin(virt_quirks.exitcost);
    if (!v->pmu.model->ops->write(&v->pmu, msr, value))
        return virt_quirks.ignoremsrs && !v->pmu.model->ops->read(&v->pmu, msr, &value);
    count_refresh(v);
    for (unsigned i = 0; i < COUNTER_MAX; i++)
        v->pmu.counters[i].enabled_now = v->pmu.counters[i].event && !before[i];
    return true;
}

bool count_rdpmc(struct vcpu *v, uint32_t selector, uint64_t *value)
{
    platform_spin(virt_quirks.exitcost);
    early_look(v);
    return v->pmu.model->ops->rdpmc(&v->pmu, selector, value);
}
