/* SPDX-License-Identifier: MIT */
/* The timer of QEMU's local APIC, which counts once in a nanosecond. A count of our own is set now
 * and then: after C1E, and when time is hidden. A periodic timer gets its period back at its next
 * interrupt; until then the guest may read another initial count. L: the token. Source: SDM volume
 * 3, "APIC Timer". */
#include "pmu/virt/apic_timer.h"
#include "kernel/base/x86.h"
#include "pmu/virt/quirk.h"
#include "pmu/virt/vcpu.h"

enum { EOI = 0xb0, IRR = 0x200, LVT_TIMER = 0x320, INITIAL = 0x380, CURRENT = 0x390 };
enum { DIVIDE = 0x3e0 };
#define LVT_VECTOR 0xffu
#define LVT_MASKED (1u << 16)
#define LVT_MODE (3u << 17)
#define LVT_PERIODIC (1u << 17)
#define LVT_DEADLINE (2u << 17)
#define LATE 1000u /* units of the clock: what the way into the guest takes */

static uint32_t mode(void) { return host_apic_read(LVT_TIMER) & LVT_MODE; }

static void set_count(struct apic_timer *t, uint32_t count)
{
    uint32_t initial = host_apic_read(INITIAL);
    if (initial != t->set || !t->period) /* the guest has set it since */
        t->period = mode() == LVT_PERIODIC ? initial : 0;
    t->set = count;
    host_apic_write(INITIAL, count);
}

/* --- Sleep is time, for the timer too. C1E stops it: later it continues from its count. --- */

void apic_timer_stop(struct vcpu *v)
{
    apic_timer_set_back(v);
    v->timer.due = 0;
    bool stops = virt_quirks.c1e && mode() != LVT_DEADLINE;
    v->timer.left = stops ? host_apic_read(CURRENT) : 0;
    if (v->timer.left)
        set_count(&v->timer, 0);
}

void apic_timer_go_on(struct vcpu *v)
{
    if (v->timer.left)
        set_count(&v->timer, v->timer.left);
}

/* --- Hidden time. Its interrupt is due by clock_look(), however long the host works: if it comes
 * before, the timer stands until then, or until the guest runs and may see it. --- */

static unsigned divided_by(void) /* a power of two */
{
    uint32_t divide = host_apic_read(DIVIDE);
    return ((divide & 3) + (divide >> 1 & 4) + 1) % 8;
}

static bool is_pending(void)
{
    uint32_t vector = host_apic_read(LVT_TIMER) & LVT_VECTOR;
    return host_apic_read(IRR + vector / 32 * 16) >> vector % 32 & 1;
}

/* Whether it counts to `due`, and not what the guest has set since. */
static bool is_due(struct vcpu *v)
{
    const struct apic_timer *t = &v->timer;
    return t->due > clock_look(v) && host_apic_read(INITIAL) == t->of;
}

static void count_to(struct apic_timer *t, uint64_t now)
{
    set_count(t, (uint32_t)((t->due - now + LATE) * 1000 / clock_us >> divided_by()) + 1);
    t->of = t->set;
    t->hidden = virt_hidden;
}

static void raise(struct apic_timer *t)
{
    host_apic_write(INITIAL, t->period);
    host_apic_send_self(host_apic_read(LVT_TIMER) & LVT_VECTOR);
    t->period = 0;
    t->due = 0;
    t->raised = true;
}

void apic_timer_set_back(struct vcpu *v)
{
    struct apic_timer *t = &v->timer;
    if (!t->noted)
        return;
    uint64_t now = clock_look(v);
    bool fired = !t->pending && is_pending();
    if (t->stands && t->due <= now)
        raise(t);
    if (t->due > now && fired)
        t->early = t->due;
    if (t->due > now && (t->stands || fired || virt_hidden - t->hidden >= LATE))
        count_to(t, now);
    t->noted = t->stands = false;
}

void apic_timer_note(struct vcpu *v)
{
    struct apic_timer *t = &v->timer;
    if (t->stands && clock_look(v) >= t->due)
        apic_timer_set_back(v);
    if (t->noted || !virt_foreign || virt_step || !v->pmu.counting)
        return;
    t->noted = true;
    t->pending = is_pending();
    if (is_due(v))
        return;
    uint64_t left = host_apic_read(CURRENT);
    t->due = left ? clock_look(v) + (left << divided_by()) * clock_us / 1000 + LATE : 0;
    t->of = host_apic_read(INITIAL);
    t->early = 0;
    t->hidden = virt_hidden;
}

/* Whether the interrupt is the timer's and comes too early. */
static bool waits(struct vcpu *v, uint32_t taken)
{
    struct apic_timer *t = &v->timer;
    if (taken - TAKEN != (host_apic_read(LVT_TIMER) & (LVT_MASKED | LVT_VECTOR)) || t->stands)
        return false;
    bool counts = mode() != LVT_PERIODIC && host_apic_read(CURRENT);
    bool early = clock_look(v) < t->early || (!counts && !t->raised && is_due(v));
    t->early = 0;
    if (!early) {
        t->noted &= t->raised;
        t->raised = false;
        return false;
    }
    host_apic_write(EOI, 0);
    if (counts || !t->due) /* it counts to when it is due; in a sleep too */
        return true;
    set_count(t, 0);
    t->of = 0;
    return t->noted = t->stands = true;
}

uint32_t interrupt_take(struct vcpu *v, uint32_t taken)
{
    if (v->timer.stands)
        apic_timer_note(v);
    if (!taken && v->vmcb.rflags & RFLAGS_IF)
        taken = svm_take_interrupt();
    return taken && waits(v, taken) ? 0 : taken;
}

void interrupt_inject(struct vcpu *v, uint32_t taken)
{
    struct apic_timer *t = &v->timer;
    v->vmcb.inject = (taken - TAKEN) | INJECT_INTERRUPT | INJECT_VALID;
    if (!t->period || taken - TAKEN != (host_apic_read(LVT_TIMER) & LVT_VECTOR))
        return;
    if (host_apic_read(INITIAL) == t->set) /* else the guest has set it again */
        host_apic_write(INITIAL, t->period);
    t->period = 0;
}
