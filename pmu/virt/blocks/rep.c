/* SPDX-License-Identifier: MIT */
/* With QEMU's instruction clock each iteration of a repeated string instruction counts. So, while
 * instructions are counted, code that has such instructions does not run freely: blocks.c and steps
 * execute it. Nested paging (nested.c) finds it. L: the token. */
#include "kernel/base/boot_info.h"
#include "kernel/base/layout.h"
#include "kernel/base/print.h"
#include "kernel/base/string.h"
#include "kernel/base/x86.h"
#include "pmu/virt/guest.h"
#include "pmu/virt/blocks/nested.h"
#include "pmu/virt/vcpu.h"

/* A step costs as much as so many instructions in blocks. */
enum { STEP_COST = 2000 };
/* So many entries after a CPU counted instructions or decoded them, nested paging ends. */
enum { QUIET_MOST = 64 };
#define FAULT_FETCH 16

static bool wanted;
static unsigned quiet = QUIET_MOST; /* L: the token; entries since then */

BOOT_OPTIONS("rep=");

void rep_start(void)
{
    char word[8] = "";
    wanted = !boot_option("rep", word, sizeof word) || strcmp(word, "off");
    if (!wanted)
        print("# vpmu: rep=off: a repeated string instruction counts its iterations while only "
              "instructions and cycles count\n");
}

/* Whether code is searched. Not where the guest steps or has breakpoints: a step of ours where
 * one is due would lose the guest's own steps. */
static bool searches_code(const struct vcpu *v, bool user)
{
    return wanted && v->pmu.instructions[user] && !v->pmu.decoding[user] &&
           !(v->vmcb.dr7 & DR7_ANY) && !(v->vmcb.rflags & RFLAGS_TF && !v->step.active);
}

bool rep_counts_one(const struct vcpu *v, bool user)
{
    return v->pmu.decoding[user] || searches_code(v, user);
}

void rep_enter(struct vcpu *v)
{
    bool user = v->vmcb.cpl == 3 && !(v->vmcb.inject & INJECT_VALID);
    bool search = !virt_step && searches_code(v, user) && !v->step.active;
    const struct pmu *p = &v->pmu;
    bool counts = p->instructions[0] || p->instructions[1] || p->decoding[0] || p->decoding[1];
    quiet = counts ? 0 : quiet + (quiet < QUIET_MOST);
    if (virt_foreign)
        nested_open(v->step.active && v->step.alone);
    v->vmcb.nested_cr3 = nested_root(search, wanted && !virt_step && quiet < QUIET_MOST);
    v->vmcb.nested_paging = v->vmcb.nested_cr3 != 0;
}

static uint64_t rip_page(const struct vcpu *v)
{
    bool wide = guest_in_long_mode(v);
    uint64_t rip = wide ? v->vmcb.rip : (uint32_t)(v->vmcb.cs.base + v->vmcb.rip);
    return guest_physical(v, rip) & -PAGE_SIZE;
}

void rep_fault(struct vcpu *v)
{
    uint64_t physical = v->vmcb.exit_info2 & -PAGE_SIZE;
    if (!nested_reaches(physical))
        virt_end_guest(v, "accesses a physical address beyond those that are mapped");
    if (!(v->vmcb.exit_info1 & FAULT_FETCH)) {
        if (v->run.inject_failed)
            v->vmcb.inject = v->run.injected;
        nested_written(physical);
    } else if (nested_search(physical, guest_ram_page(physical), guest_in_long_mode(v))) {
        v->rep.inside = true;
        v->rep.once = rip_page(v) != physical;
    }
}

bool rep_stays(struct vcpu *v, uint64_t physical, unsigned instructions)
{
    struct rep *r = &v->rep;
    if (!searches_code(v, v->vmcb.cpl == 3))
        return false;
    if (nested_has_strings(physical)) {
        r->stays = REP_STAYS;
        return true;
    }
    if (r->stays < instructions)
        return false;
    r->stays -= instructions;
    return true;
}

void rep_decide(struct vcpu *v)
{
    struct rep *r = &v->rep;
    if (r->inside && !r->once)
        r->inside = rep_stays(v, rip_page(v), STEP_COST);
    r->once = false;
}
