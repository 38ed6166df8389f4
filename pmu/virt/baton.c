/* SPDX-License-Identifier: MIT */
/* All CPUs share the clock, so one at a time runs its guest: the holder of the baton. The others
 * wait in the host by CLI and HLT with GIF set, where only an NMI wakes them. The holder passes the
 * baton on at PAUSE, at HLT and at the end of its slice. All functions but wait() run on the
 * holder. Without an instruction clock there is no baton. QEMU changes the CPU only at PAUSE, HLT
 * or a timer's deadline: each wait loop has PAUSE. */
#include "kernel/base/layout.h"
#include "kernel/base/x86.h"
#include "pmu/virt/svm.h"

/* Instructions, plus up to JITTER: a guest that samples itself must not see a fixed period. */
#define SLICE 170000
#define JITTER 60000
#define NAP 100000 /* clock units: how long an interrupt may wait while all CPUs sleep */

static struct vcpu *members[MAX_CPUS]; /* in the order they came; entries below member_count stay */
static unsigned member_count;          /* atomic; grows under members_lock */
static uint32_t members_lock;
static struct vcpu *holder;  /* atomic; written by the holder only */
static struct vcpu *giver;   /* L: the baton */
static unsigned idle_passes; /* passes in a row from one sleeping CPU to the next; L: the baton */

static unsigned count(void) { return __atomic_load_n(&member_count, __ATOMIC_ACQUIRE); }
static struct vcpu *current_holder(void) { return __atomic_load_n(&holder, __ATOMIC_ACQUIRE); }
static bool is_halted(struct vcpu *v) { return __atomic_load_n(&v->halted, __ATOMIC_ACQUIRE); }

bool baton_needed(void) { return count() > 1; }

/* NMIs since the last call that were neither the baton's nor the alarm's belong to the guest. */
void baton_collect_nmis(struct vcpu *v)
{
    uint32_t now = __atomic_load_n(&v->stack.nmis, __ATOMIC_RELAXED);
    unsigned n = now - v->nmis_seen;
    v->nmis_seen = now;
    if (n && __atomic_exchange_n(&v->baton_nmi, 0, __ATOMIC_ACQ_REL))
        n--;
    v->alarm_rang = n && alarm_due(v);
    if (v->alarm_rang)
        n--;
    if (n)
        v->nmi_pending = true;
}

/* Waits until this CPU has the baton and the CPU that passed it sleeps. */
static void wait(struct vcpu *v)
{
    for (;;) {
        baton_collect_nmis(v); /* the alarm's too, before the next holder uses it */
        if (current_holder() == v)
            break;
        svm_wait(&v->halted, &v->stack.nmis, v->nmis_seen);
    }
    __atomic_store_n(&v->halted, 0, __ATOMIC_RELAXED);
    while (giver && !is_halted(giver))
        pause();
    pause(); /* lets the giver get from its flag to its HLT */
}

static void wake(struct vcpu *v)
{
    __atomic_store_n(&v->baton_nmi, 1, __ATOMIC_RELEASE);
    host_apic_nmi(v->host_apic_id);
}

static struct vcpu *next_member(const struct vcpu *v)
{
    unsigned n = count(), at = v->member;
    return members[(at + 1) % n];
}

static void pass(struct vcpu *v)
{
    struct vcpu *to = next_member(v);
    v->statistics.passes++;
    pause(); /* an NMI that the guest sent to a sleeping CPU must not merge with ours */
    giver = v;
    __atomic_store_n(&holder, to, __ATOMIC_RELEASE);
    wake(to);
    wait(v);
}

/* Begins a slice of this CPU, which is awake: idle passes are counted anew. */
static void run_on(struct vcpu *v)
{
    idle_passes = 0;
    uint64_t now = rdtsc();
    v->left_at = now; /* what others ran, and sleep, is time */
    v->slice_end = now + SLICE + (now * 2654435761u >> 16) % JITTER;
}

static void lock_members(void)
{
    while (__atomic_exchange_n(&members_lock, 1, __ATOMIC_ACQUIRE))
        pause();
}

static void unlock_members(void) { __atomic_store_n(&members_lock, 0, __ATOMIC_RELEASE); }

void baton_join(struct vcpu *v)
{
    if (virt_step)
        return;
    struct vcpu *nobody = NULL;
    bool first =
        __atomic_compare_exchange_n(&holder, &nobody, v, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
    lock_members();
    v->member = member_count;
    members[v->member] = v;
    __atomic_store_n(&member_count, v->member + 1, __ATOMIC_RELEASE);
    unlock_members();
    if (!first) {
        wake(current_holder()); /* makes it leave its guest, which may have run alone */
        wait(v);
    }
    run_on(v);
}

uint64_t baton_slice(struct vcpu *v)
{
    if (virt_step || !baton_needed())
        return UINT64_MAX;
    if (rdtsc() >= v->slice_end) {
        pass(v);
        run_on(v);
    }
    return v->slice_end;
}

void baton_pause(struct vcpu *v)
{
    if (baton_needed()) {
        pass(v);
        run_on(v);
    } else {
        pause();
    }
}

/* Whether the halted guest goes on. */
static bool wakes(struct vcpu *v, uint32_t taken)
{
    if (taken)
        v->vmcb.inject = (taken - TAKEN) | INJECT_INTERRUPT | INJECT_VALID;
    baton_collect_nmis(v);
    return taken || (v->nmi_pending && !v->nmi_blocked);
}

/* All guests sleep: this CPU halts too, for a limited time if it has other CPUs to poll. */
static uint32_t nap(struct vcpu *v)
{
    uint32_t seen = v->nmis_seen, taken = 0;
    idle_passes = 0;
    if (baton_needed())
        alarm_want(v, rdtsc() + NAP);
    if (v->vmcb.rflags & RFLAGS_IF)
        taken = svm_halt();
    else
        svm_wait(&v->halted, &v->stack.nmis, seen);
    return taken;
}

void baton_halt(struct vcpu *v)
{
    uint32_t taken = 0;
    platform_timer_stop(v);
    for (;;) {
        if (v->vmcb.rflags & RFLAGS_IF)
            taken = svm_take_interrupt();
        if (wakes(v, taken))
            break;
        if (baton_needed() && idle_passes < count()) {
            idle_passes++;
            pass(v);
        } else if (wakes(v, taken = nap(v))) {
            break;
        }
    }
    platform_timer_go_on(v);
    if (taken)
        platform_interrupt(v, taken - TAKEN);
    run_on(v);
}
