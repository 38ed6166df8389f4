/* SPDX-License-Identifier: MIT */
/* All CPUs share the clock, so one at a time runs its guest: the holder of the token. The others
 * wait in the host by CLI and HLT with GIF set, where only an NMI wakes them. The holder passes the
 * token on at PAUSE, at HLT and at the end of its slice, to the next CPU whose guest is awake. Once
 * in a round it calls the roll of those that sleep: all at the same time look for interrupts, and
 * wait again. All functions but wait_for_token() and answer_roll() run on the holder. Without an
 * instruction clock there is no token. QEMU changes the CPU only at PAUSE, HLT or a timer's
 * deadline: each wait loop has PAUSE. */
#include "kernel/base/layout.h"
#include "kernel/base/x86.h"
#include "pmu/virt/vcpu.h"

/* Instructions, plus up to JITTER: a guest that samples itself must not see a fixed period. */
#define SLICE 170000
#define JITTER 60000
#define NAP 100000 /* clock units: how long an interrupt may wait while all CPUs sleep */

static struct vcpu *members[MAX_CPUS]; /* in the order they came; entries below member_count stay */
static unsigned member_count;          /* atomic; grows under members_lock */
static uint32_t members_lock;
static struct vcpu *holder; /* atomic; written by the holder only */
static struct vcpu *giver;  /* L: the token */

unsigned token_members(void) { return __atomic_load_n(&member_count, __ATOMIC_ACQUIRE); }
struct vcpu *token_member(unsigned number) { return members[number]; }
static struct vcpu *current_holder(void) { return __atomic_load_n(&holder, __ATOMIC_ACQUIRE); }
static bool is_halted(struct vcpu *v)
{
    return __atomic_load_n(&v->token.halted, __ATOMIC_ACQUIRE);
}

bool token_needed(void) { return token_members() > 1; }

/* NMIs since the last call that were neither the token's nor the alarm's belong to the guest. */
void token_collect_nmis(struct vcpu *v)
{
    uint32_t now = __atomic_load_n(&v->stack.nmis, __ATOMIC_RELAXED);
    unsigned n = now - v->nmi.seen;
    v->nmi.seen = now;
    if (n && __atomic_exchange_n(&v->token.nmi, 0, __ATOMIC_ACQ_REL))
        n--;
    v->alarm.rang = n && alarm_due(v);
    if (v->alarm.rang)
        n--;
    if (n)
        v->nmi.pending = true;
}

/* Looks for what ends the HLT of this CPU's guest; `taken`: an interrupt that was let in. */
static void look_for_wakeup(struct vcpu *v, uint32_t taken)
{
    token_collect_nmis(v);
    v->token.awake = false;
    if (v->token.parked)
        return;
    v->token.taken = interrupt_take(v, taken);
    v->token.awake = v->token.taken || (v->nmi.pending && !v->nmi.blocked);
}

/* Answers the holder's roll call: it waits until this CPU has looked and waits again. */
static void answer_roll(struct vcpu *v)
{
    if (!__atomic_load_n(&v->token.asked, __ATOMIC_ACQUIRE))
        return;
    __atomic_store_n(&v->token.halted, 0, __ATOMIC_RELAXED);
    look_for_wakeup(v, 0);
    __atomic_store_n(&v->token.asked, 0, __ATOMIC_RELEASE);
}

/* Waits until this CPU has the token and the CPU that passed it sleeps. */
static void wait_for_token(struct vcpu *v)
{
    for (;;) {
        token_collect_nmis(v); /* the alarm's too, before the next holder uses it */
        if (current_holder() == v)
            break;
        answer_roll(v);
        svm_wait(&v->token.halted, &v->stack.nmis, v->nmi.seen);
    }
    while (giver && !is_halted(giver))
        pause();
    pause(); /* lets the giver get from its flag to its HLT */
}

static void wake_host(struct vcpu *v)
{
    __atomic_store_n(&v->token.nmi, 1, __ATOMIC_RELEASE);
    host_apic_send(v->host_apic_id, ICR_NMI);
}

/* It waits, and need not answer. */
static bool has_answered(struct vcpu *v)
{
    return !__atomic_load_n(&v->token.asked, __ATOMIC_ACQUIRE) && is_halted(v);
}

/* Asks all CPUs that sleep, but for v itself. */
static void call_roll(const struct vcpu *v)
{
    unsigned n = token_members();
    pause(); /* an NMI that the guest sent to a sleeping CPU must not merge with ours */
    for (unsigned i = 0; i < n; i++)
        if (members[i] != v && !members[i]->token.awake) {
            __atomic_store_n(&members[i]->token.asked, 1, __ATOMIC_RELEASE);
            wake_host(members[i]);
        }
    for (unsigned i = 0; i < n; i++)
        while (members[i] != v && !has_answered(members[i]))
            pause();
    pause(); /* as in wait_for_token() */
}

static struct vcpu *first_awake(unsigned from)
{
    for (unsigned i = from; i < token_members(); i++)
        if (members[i]->token.awake)
            return members[i];
    return NULL;
}

/* Which CPU gets the token next: one that is awake, v too; NULL: all sleep. */
static struct vcpu *next_member(const struct vcpu *v)
{
    struct vcpu *next = first_awake(v->token.member + 1);
    if (next)
        return next;
    call_roll(v);
    return first_awake(0);
}

static void pass_token(struct vcpu *v, struct vcpu *to)
{
    v->statistics.passes++;
    pause(); /* as in call_roll() */
    __atomic_store_n(&v->token.halted, 0, __ATOMIC_RELAXED);
    giver = v;
    __atomic_store_n(&holder, to, __ATOMIC_RELEASE);
    wake_host(to);
    wait_for_token(v);
}

/* Begins a slice of this CPU. */
static void begin_slice(struct vcpu *v)
{
    uint64_t now = rdtsc();
    v->clock.left_at = now; /* what others ran, and sleep, is time */
    v->token.slice_end = now + SLICE + (now * 2654435761u >> 16) % JITTER;
}

/* Lets the other CPUs that are awake run once each, then begins a slice. */
static void run_others(struct vcpu *v)
{
    struct vcpu *to = next_member(v);
    if (to != v)
        pass_token(v, to);
    begin_slice(v);
}

void token_join(struct vcpu *v)
{
    if (virt_step)
        return;
    struct vcpu *nobody = NULL;
    bool first =
        __atomic_compare_exchange_n(&holder, &nobody, v, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
    v->token.awake = !v->token.parked;
    while (__atomic_exchange_n(&members_lock, 1, __ATOMIC_ACQUIRE))
        pause();
    v->token.member = member_count;
    members[v->token.member] = v;
    __atomic_store_n(&member_count, v->token.member + 1, __ATOMIC_RELEASE);
    __atomic_store_n(&members_lock, 0, __ATOMIC_RELEASE);
    if (v->token.awake && !first)
        wake_host(current_holder()); /* makes it leave its guest, which may have run alone */
    if (!first)
        wait_for_token(v);
    begin_slice(v);
}

uint64_t token_slice(struct vcpu *v)
{
    if (virt_step || !token_needed())
        return UINT64_MAX;
    if (rdtsc() >= v->token.slice_end)
        run_others(v);
    return v->token.slice_end;
}

void token_pause(struct vcpu *v)
{
    if (token_needed())
        run_others(v);
    else
        pause();
}

/* All guests sleep: this CPU halts too, for a limited time if it has other CPUs to ask. */
static void halt_all(struct vcpu *v)
{
    uint32_t seen = v->nmi.seen, taken = 0;
    if (token_needed())
        alarm_want(v, rdtsc() + NAP);
    if (v->vmcb.rflags & RFLAGS_IF)
        taken = svm_halt();
    else
        svm_wait(&v->token.halted, &v->stack.nmis, seen);
    look_for_wakeup(v, taken);
}

void token_halt(struct vcpu *v)
{
    apic_timer_stop(v);
    look_for_wakeup(v, 0);
    while (!v->token.awake) {
        struct vcpu *to = token_needed() ? next_member(v) : NULL;
        if (to)
            pass_token(v, to);
        else
            halt_all(v);
    }
    apic_timer_go_on(v);
    if (v->token.taken)
        interrupt_inject(v, v->token.taken);
    begin_slice(v);
}
