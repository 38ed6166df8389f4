/* SPDX-License-Identifier: MIT */
/* Executes the guest's code in the host, block by block, where otherwise each instruction would be
 * single-stepped because its events must be decoded. kept_blocks.c has the blocks,
 * translate.c makes them. Before a part executes, its one access to memory is looked up (places.c)
 * as the processor would: what is not plain RAM, or would fault or change the page tables, is left
 * to a step, and so is each instruction that is in no block. No counter wraps in a run, so that all
 * is counted at its end. Callers hold the token. */
#include "kernel/base/boot_info.h"
#include "kernel/base/layout.h"
#include "kernel/base/msr.h"
#include "kernel/base/string.h"
#include "kernel/base/x86.h"
#include "pmu/virt/blocks/hot_code.h"
#include "pmu/virt/blocks/places.h"
#include "pmu/virt/quirk.h"

#define NEAR_TICKS 16 /* of the alarm: closer to a wrap than this, blocks cost less than an exit */
enum { RUNS_MOST = 4096 };
_Static_assert(RUN_MOST + BLOCK_INSTRUCTIONS < SUM_MOST, "the sums of a run");
#define CR4_PKS (1u << 24)
#define CR0_AM (1u << 18)
#define MXCSR_MASKS 0x1f80u /* of all exceptions */
#define XCR0_AVX 6u         /* XMM and YMM registers */
#define BMI 0x108u          /* BMI1, BMI2 */
#define LOW_FLAGS 0xd5u     /* SF ZF AF PF CF */
#define RFLAGS_OF (1u << 11)

static unsigned hot_runs = 400; /* from so many runs on a block is hot */

BOOT_OPTIONS("hot=");

void blocks_start(void)
{
    char word[8];
    places_start();
    if (boot_option("hot", word, sizeof word) && !strcmp(word, "all"))
        hot_runs = 1;
}

static enum vectors allowed; /* in this run */

/* The block after `last`, mostly the one that followed it before. */
static inline struct block *next_block(struct vcpu *v, struct block *last)
{
    struct block **link = &last->way[v->vmcb.rip == last->way[true].rip].link, *b = *link;
    if (b->rip == v->vmcb.rip && b->checked == places_time)
        return b;
    b = block_look_up(v, allowed);
    if (b)
        *link = b;
    return b;
}

/* ... after a hot one, which goes on with it from now on, if it is hot too and may follow. */
static struct block *next_of_hot(struct vcpu *v, struct block *last)
{
    uint64_t time = places_time;
    struct block *b = block_look_up(v, allowed);
    if (!b || !b->hot || time != places_time)
        return b;
    if (block_computes_target(last))
        block_add_target(b);
    else
        block_link(last, v->vmcb.rip == last->way[true].rip, b);
    return b;
}

static inline void add_executed(struct vcpu *v, uint64_t small)
{
    const struct sums s = whole_sums(small);
    v->stack.state.sums.word[0] += s.word[0];
    v->stack.state.sums.word[1] += s.word[1];
}

/* Jcc's condition. */
static bool condition_holds(uint64_t flags, unsigned condition)
{
    static const uint16_t any[8] = { 1, 0x100, 0x4000, 0x4100, 0x8000, 0x400, 0, 0x4000 };
    bool yes = flags & any[condition >> 1];
    if (condition >= 12)
        yes |= (flags >> 15 ^ flags) & 1; /* SF is not OF */
    return yes != (condition & 1);
}

/* LOOPNE, LOOPE, LOOP, JRCXZ. */
static bool loop_jumps(struct block_state *s, unsigned condition)
{
    uint64_t mask = condition & LOOP_ECX ? UINT32_MAX : UINT64_MAX, *rcx = &s->r[RCX];
    if ((condition & 3) == 3)
        return !(*rcx & mask);
    *rcx = (*rcx - 1) & mask;
    return *rcx && (condition & 2 || (s->flags >> 14 & 1) == (condition & 1));
}

/* Executes the code. */
static inline void execute_code(struct block_state *s, const uint8_t *from)
{
    asm volatile("push %%rbp\n"
                 "mov %%rsp, %c[host](%%rcx)\n"
                 "mov %%rcx, %%rsp\n"
                 "call *%%rax\n"
                 "mov %c[host](%%rsp), %%rsp\n"
                 "pop %%rbp"
                 : "+a"(from), "+c"(s)
                 : [host] "i"(offsetof(struct block_state, host_rsp))
                 : "rbx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15",
                   "memory", "cc");
}

/* ... of hot blocks; what it returns. */
static unsigned execute_hot(struct block_state *s, const uint8_t *from)
{
    asm volatile("push %%rbp\n"
                 "lea 1f(%%rip), %%rdx\n"
                 "push %%rdx\n"
                 "mov %%rsp, %c[host](%%rcx)\n"
                 "mov %%rcx, %%rsp\n"
                 "jmp blocks_enter\n"
                 "1: pop %%rbp"
                 : "+a"(from), "+c"(s)
                 : [host] "i"(offsetof(struct block_state, host_rsp))
                 : "rbx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15",
                   "memory", "cc");
    return (unsigned)(uint64_t)from;
}

static inline void record_branch(struct vcpu *v, const struct block *b, bool user, bool wrong)
{
    struct records *r = &v->pmu.records;
    uint64_t from = b->rip + b->from;
    bool alone = b->conditional && b->instructions == 1 && b->condition < LOOPS;
    if (r->plain || (r->plain_if_right && !wrong && !alone)) {
        if (!(r->hides[user] >> b->branch_class & 1))
            records_push(r, b->branch_class, from, v->vmcb.rip, wrong);
        return;
    }
    records_add(v, b->branch_class, alone ? records_from(r, from) : from, v->vmcb.rip, wrong);
    count_record(v);
}

/* What predictions and lists see of it. */
static inline void look_at_branch(struct vcpu *v, const struct block *b, bool user, bool jumps)
{
    bool taken = b->branch_class && jumps, wrong = false;
    if (b->conditional) {
        taken = jumps && b->way[true].rip != b->way[false].rip;
        wrong = predict_wrong(&v->predictor, b->rip + b->branch, taken);
    }
    if (wrong)
        count_event(v, EVENT_MISPREDICTED);
    if (v->pmu.records.on && taken)
        record_branch(v, b, user, wrong);
}

/* The block ended, by its condition. */
static inline void end_block(struct vcpu *v, struct block *b, bool user)
{
    struct block_state *s = &v->stack.state;
    bool jumps = true;
    if (b->conditional && b->condition >= LOOPS)
        jumps = loop_jumps(s, b->condition);
    else if (b->conditional)
        jumps = condition_holds(s->flags, b->condition);
    v->vmcb.rip = b->way[jumps].rip;
    add_executed(v, b->way[jumps].sums);
    if (block_predicts)
        look_at_branch(v, b, user, jumps);
}

/* A part's first instruction must be stepped. */
static struct block *stop_before(struct vcpu *v, const struct block *b, const struct part *p)
{
    v->vmcb.rip = b->rip + p->offset;
    add_executed(v, p->before);
    return NULL;
}

static struct block *run_cold(struct vcpu *v, struct block *b, bool user)
{
    struct block_state *s = &v->stack.state;
    for (const struct part *p = b->part;; p++) {
        if ((p->access || p->special) && !part_begin(v, p, b))
            return stop_before(v, b, p);
        if (p->code)
            execute_code(s, p->code);
        if (p->last)
            break;
    }
    end_block(v, b, user);
    return next_block(v, b);
}

static uint64_t processor_flags(uint64_t kept)
{
    return (kept >> 8 & LOW_FLAGS) | (kept & 1 ? RFLAGS_OF : 0);
}

static uint64_t kept_flags(uint64_t flags)
{
    return (flags & LOW_FLAGS) << 8 | (flags & RFLAGS_OF ? 1 : 0);
}

/* From the block on; what its code returns, or that it jumps; or HOT_STOPPED: a part must be
 * stepped. */
enum { HOT_STOPPED = 0x400 };
static unsigned run_hot_code(struct vcpu *v, struct block *b)
{
    struct block_state *s = &v->stack.state;
    const uint8_t *code = b->enter + HOT_FLAGS;
    for (;;) {
        unsigned at = execute_hot(s, code);
        if (at >= HOT_ENDED)
            return at;
        b = s->block;
        const struct part *p = &b->part[at];
        if (!part_begin(v, p, b))
            return HOT_STOPPED | at;
        if (part_computes_target(p))
            return HOT_ENDED | true;
        code = p->code;
    }
}

/* A part of the block is not done, which was counted as a whole. */
static void stop_hot(struct vcpu *v, const struct block *b, const struct part *p)
{
    struct block_state *s = &v->stack.state;
    const struct sums all = whole_sums(b->way[block_jumps_back(b)].sums);
    for (unsigned i = 0; i < SUM_WORDS; i++)
        s->sums.word[i] -= all.word[i];
    s->sums.word[1] += (uint64_t)b->instructions << SUM_INSTRUCTIONS;
    s->left += b->instructions;
    stop_before(v, b, p);
}

/* n: instructions that may be executed. */
static __attribute__((noinline)) struct block *run_hot(struct vcpu *v, struct block *b, bool user,
                                                       uint64_t n)
{
    struct block_state *s = &v->stack.state;
    struct block *first = b;
    s->left = (int64_t)n;
    s->flags = processor_flags(s->flags);
    unsigned at = run_hot_code(v, b);
    b = s->block;
    s->flags = kept_flags(s->flags);
    if (at & HOT_STOPPED)
        stop_hot(v, b, &b->part[at & (HOT_STOPPED - 1)]);
    if (at & HOT_NOT_BEGUN)
        s->left += b->instructions;
    s->sums.word[1] += (n - (uint64_t)s->left) << SUM_INSTRUCTIONS;
    if (at & HOT_STOPPED)
        return NULL;
    v->vmcb.rip = at & HOT_NOT_BEGUN ? b->rip : b->way[at & 1].rip;
    if (block_predicts)
        look_at_branch(v, first, user, !first->conditional || v->vmcb.rip == first->way[true].rip);
    return at & HOT_NOT_BEGUN ? b : next_of_hot(v, b);
}

/* What the guest's state allows. */
static enum vectors vectors_of(const struct vcpu *v)
{
    static enum vectors most;
    if (!most) {
        struct cpuid c = cpuid(1, 0), s = cpuid(7, 0);
        bool four = c.ecx >> 9 & 1 && c.ecx >> 20 & 1; /* SSSE3, SSE4.2 */
        most = four && (s.ebx & BMI) == BMI && c.ecx >> 28 & 1 && s.ebx >> 5 & 1 ? VECTORS_AVX2
               : four                                                            ? VECTORS_SSE4
                                                                                 : VECTORS_SSE2;
    }
    if (v->vmcb.cr0 & (CR0_EM | CR0_TS) || !(v->vmcb.cr4 & CR4_OSFXSR) ||
        (stmxcsr() & MXCSR_MASKS) != MXCSR_MASKS)
        return NO_VECTORS;
    bool avx =
        most == VECTORS_AVX2 && v->vmcb.cr4 & CR4_OSXSAVE && (xgetbv(0) & XCR0_AVX) == XCR0_AVX;
    return most == VECTORS_AVX2 && !avx ? VECTORS_SSE4 : most;
}

static void load_state(struct vcpu *v)
{
    struct block_state *s = &v->stack.state;
    uint64_t flags = v->vmcb.rflags;
    __builtin_memcpy(s->r, &v->r, sizeof v->r);
    s->r[RAX] = v->vmcb.rax;
    s->r[RSP] = v->vmcb.rsp;
    s->r[SLOT_FS] = rdmsr(MSR_FS_BASE);
    s->r[SLOT_GS] = rdmsr(MSR_GS_BASE);
    v->stack.state.pkru = v->vmcb.cr4 & CR4_PKE ? rdpkru() : 0;
    s->flags = kept_flags(flags);
}

static void store_state(struct vcpu *v)
{
    const struct block_state *s = &v->stack.state;
    __builtin_memcpy(&v->r, s->r, sizeof v->r);
    v->vmcb.rax = s->r[RAX];
    v->vmcb.rsp = s->r[RSP];
    v->vmcb.rflags &= ~(uint64_t)(LOW_FLAGS | RFLAGS_OF);
    v->vmcb.rflags |= processor_flags(s->flags);
}

/* Whether all code would be stepped here. */
static bool must_step_all(const struct vcpu *v, bool user)
{
    return v->pmu.decoding[user] || count_left(v, user) <= NEAR_TICKS * alarm_tick;
}

/* Whether the guest would be stepped here, and its state is one in which only memory matters. */
static bool may_run(const struct vcpu *v)
{
    const struct vmcb *g = &v->vmcb;
    bool user = g->cpl == 3;
    if (virt_step || v->pmu.pmi || ds_waits(&v->pmu, user) || g->inject & INJECT_VALID ||
        v->step.iret || (v->nmi.pending && !v->nmi.blocked))
        return false;
    if (!v->rep.inside && !must_step_all(v, user))
        return false;
    if (!(g->efer & EFER_LMA) || !(g->cs.attributes & SEGMENT_LONG) || g->shadow ||
        g->dr7 & DR7_ANY || g->cr4 & CR4_PKS)
        return false;
    const bool aligned = user && g->cr0 & CR0_AM && g->rflags & RFLAGS_AC;
    return !aligned && !(g->rflags & (RFLAGS_TF | RFLAGS_VM)); /* RF is only of breakpoints */
}

static void count_run(struct vcpu *v, bool user)
{
    const struct sums *sums = &v->stack.state.sums;
    uint64_t events[EVENT_RECORDS + 1] = { 0 };
    for (enum event e = EVENT_BRANCHES; e <= EVENT_MISSES; e++)
        events[e] = sums->word[sum_word(e)] >> sum_shift(e) & (SUM_MOST - 1);
    events[EVENT_NOT_TAKEN] = events[EVENT_BRANCHES] - events[EVENT_TAKEN] - events[EVENT_FAR];
    events[EVENT_COND_TAKEN] = events[EVENT_CONDITIONAL] - events[EVENT_NOT_TAKEN];
    count_block(v, user, sums->word[1] >> SUM_INSTRUCTIONS, events);
}

/* Executes the block, if it is hot also others that follow, but where branches are looked at;
 * `left` instructions may be executed. The next; NULL: what comes must be stepped. */
static struct block *run_block(struct vcpu *v, struct block *b, bool user, uint64_t left)
{
    const bool goes_on = !block_predicts || hot_runs == 1;
    if (!b->hot && goes_on && ++b->runs == hot_runs)
        block_heat(v, b);
    return !b->hot ? run_cold(v, b, user)
                   : run_hot(v, b, user, block_predicts ? b->instructions : left);
}

/* Returns whether it ended because it was long. */
static bool run_blocks(struct vcpu *v, bool user)
{
    uint64_t left = count_block_left(v, user), most = left > RUN_MOST ? RUN_MOST : left, done = 0;
    const struct sums *sums = &v->stack.state.sums;
    load_state(v);
    v->stack.state.sums = (struct sums){ { 0, 0 } };
    block_predicts = v->pmu.predicts && v->pmu.decoding[user];
    allowed = vectors_of(v);
    blocks_keep_links(v, user, allowed);
    struct block *b = block_look_up(v, allowed);
    bool all = must_step_all(v, user), fits = true;
    uint64_t n = 0; /* what was executed last */
    while (b && (fits = done + b->instructions < most) &&
           (all || rep_stays(v, (uint64_t)b->code - DIRECT_MAP, (unsigned)n + b->instructions))) {
        b = run_block(v, b, user, most - 1 - done);
        n = (sums->word[1] >> SUM_INSTRUCTIONS) - done;
        done += n;
    }
    store_state(v);
    if (done) {
        v->vmcb.rflags &= ~(uint64_t)RFLAGS_RF;
        count_run(v, user);
    }
    return b && !fits && left > RUN_MOST;
}

/* A pending interrupt, which the next entry injects. */
static bool take_interrupt(struct vcpu *v, bool user)
{
    uint32_t taken = interrupt_take(v, 0);
    if (!taken)
        return false;
    interrupt_inject(v, taken);
    if (virt_quirks.vmrun)
        count_extra(v, user, 1); /* it ends the run of any hypervisor's guest */
    return true;
}

void blocks_run(struct vcpu *v, uint64_t end)
{
    bool user = v->vmcb.cpl == 3;
    if (!may_run(v))
        return;
    places_forget();
    for (unsigned i = 0; i < RUNS_MOST && v->stack.nmis == v->nmi.seen; i++) {
        if (take_interrupt(v, user))
            return;
        bool more =
            run_blocks(v, user) || (rep_counts_one(v, user) && (strings_run(v) || system_run(v)));
        if (!more || v->pmu.pmi || ds_waits(&v->pmu, user) || rdtsc() >= end)
            break;
    }
}
