/* SPDX-License-Identifier: MIT */
/* The lists of last branches of pmu/branches.c, which one trace session at a time has. A filter has
 * the same bits as Windows' flags and as LBR_SELECT; a call stack needs jumps and far branches
 * hidden, which is added here. Sources: Microsoft's page for TraceConfigureLastBranchRecord; SDM
 * volume 3, "Filtering of Last Branch Records". */
#include "hal/branch_owner.h"
#include "kernel/base/assert.h"
#include "kernel/base/refuse.h"
#include "pmu/branches.h"

_Static_assert(HAL_BRANCHES_FILTER == (1u << PMU_HIDE_COUNT) - 1, "the bits of the filter");
_Static_assert(HAL_BRANCHES_CALL_STACK == PMU_CALL_STACK, "the bits of the filter");
_Static_assert(HAL_BRANCHES_MAX == PMU_BRANCHES_MAX, "the longest list");
#define NOT_OF_STACKS                                                                              \
    (1u << PMU_HIDE_JCC | 1u << PMU_HIDE_IND_JMP | 1u << PMU_HIDE_REL_JMP | 1u << PMU_HIDE_FAR)

static bool claimed; /* atomic */
static struct pmu_gate gates[MAX_CPUS];

static const struct pmu_branches *of_this_cpu(void) { return pmu_branches_of(pmu_here()); }

bool hal_branches_can(uint32_t hidden)
{
    for_all_cpus(cpu) {
        const struct pmu_branches *b = pmu_branches_of(pmu_of(cpu));
        if (!b->depth || (hidden && b->form == PMU_BRANCHES_OLD) ||
            (hidden & HAL_BRANCHES_CALL_STACK && !b->call_stack))
            return false;
    }
    return true;
}

bool hal_branches_claim(void)
{
    return !claim_fails() && !__atomic_exchange_n(&claimed, true, __ATOMIC_ACQ_REL);
}

void hal_branches_release(void)
{
    bool was = __atomic_exchange_n(&claimed, false, __ATOMIC_RELEASE);
    ASSERT(was);
}

void hal_branches_end(void)
{
    wrmsr(of_this_cpu()->control, 0);
    pmu_branches_clear(of_this_cpu());
}

void hal_branches_begin(uint32_t hidden)
{
    if (hidden & HAL_BRANCHES_CALL_STACK)
        hidden |= NOT_OF_STACKS;
    hal_branches_end();
    gates[cpu_number()] = pmu_branches_gate(of_this_cpu(), hidden);
    hal_branches_resume();
}

void hal_branches_pause(void)
{
    const struct pmu_gate *gate = &gates[cpu_number()];
    wrmsr(gate->msr, gate->off);
}

void hal_branches_resume(void)
{
    const struct pmu_gate *gate = &gates[cpu_number()];
    wrmsr(gate->msr, gate->on);
}

unsigned hal_branches_take(struct hal_branch list[HAL_BRANCHES_MAX])
{
    struct pmu_branch all[PMU_BRANCHES_MAX];
    unsigned depth = pmu_branches_read(of_this_cpu(), all), n = 0;
    for (unsigned i = 0; i < depth; i++)
        if (all[i].from)
            list[n++] = (struct hal_branch){ all[i].from, all[i].to };
    pmu_branches_clear(of_this_cpu());
    return n;
}
