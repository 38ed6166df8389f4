/* SPDX-License-Identifier: MIT */
/* The quirk early: RDPMC does not wait until the instructions before it have retired, so that it
 * shows up to N of them too few; never fewer than at the last serializing event, or than it showed
 * before. An LFENCE just before it waits, on AMD if it is serializing. Exits are serializing but
 * for those of SYSCALL and SYSRET, of RDPMC itself, and of the virtual PMU's own business. Sources:
 * SDM volume 2, RDPMC; AMD64 APM volume 3, LFENCE and RDPMC. */
#include "kernel/base/string.h"
#include "pmu/virt/guest.h"
#include "pmu/virt/quirk.h"
#include "pmu/virt/vcpu.h"
#include "pmu/virt/vmcb.h"

#define NEAR 16u /* bytes before RDPMC: a compiler may put the selector's load in between */

void early_serialize(struct vcpu *v)
{
    struct pmu *p = &v->pmu;
    if (!virt_quirks.early)
        return;
    p->unordered[0] = p->unordered[1] = 0;
    for (unsigned i = 0; i < COUNTER_MAX; i++)
        p->counters[i].shown = p->counters[i].value;
}

static bool is_fenced(const struct vcpu *v)
{
    static const uint8_t lfence[3] = { 0x0f, 0xae, 0xe8 };
    uint8_t before[NEAR];
    uint64_t at = v->vmcb.rip + (v->vmcb.cs.attributes & SEGMENT_LONG ? 0 : v->vmcb.cs.base);
    unsigned beyond = NEAR - guest_read(v, at - NEAR, before, NEAR);
    for (unsigned i = 0; i + 3 + beyond <= NEAR; i++)
        if (!memcmp(before + i, lfence, 3))
            return v->pmu.model->ops->fences(&v->pmu);
    return false;
}

/* Of the last n instructions, first those of this ring: how many this counter may have counted. */
static uint64_t counted_of(const struct vcpu *v, const struct counter *c, uint64_t n)
{
    bool user = v->vmcb.cpl == 3;
    uint64_t here = n < v->pmu.unordered[user] ? n : v->pmu.unordered[user];
    uint64_t most = (user ? c->user : c->kernel) ? here : 0;
    most += (user ? c->kernel : c->user) ? n - here : 0;
    if (!c->event || c->value < c->shown) /* it has wrapped */
        return 0;
    return most < c->value - c->shown ? most : c->value - c->shown;
}

void early_look(struct vcpu *v)
{
    struct pmu *p = &v->pmu;
    if (!virt_quirks.early)
        return;
    if (is_fenced(v))
        early_serialize(v);
    uint64_t n = p->unordered[0] + p->unordered[1];
    n = n < virt_quirks.early ? n : virt_quirks.early;
    for (unsigned i = 0; i < COUNTER_MAX; i++) {
        struct counter *c = &p->counters[i];
        c->lack = virt_random(v) % (counted_of(v, c, n) + 1);
    }
}
