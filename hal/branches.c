/* SPDX-License-Identifier: MIT */
/* The last branch, of the CPU's kind. No lock. */
#include "hal/branches.h"
#include "pmu/branches.h"

static const struct pmu_branches *of_this_cpu(void) { return pmu_branches_of(pmu_here()); }

uint64_t hal_branches_watch(bool record, bool step)
{
    return pmu_branches_watch(of_this_cpu(), record, step);
}

void hal_branches_stop(void) { pmu_branches_stop(of_this_cpu()); }

struct hal_branch hal_branches_last(uint64_t below)
{
    struct pmu_branch branch = pmu_branches_last(of_this_cpu(), below);
    return (struct hal_branch){ branch.from, branch.to };
}

struct hal_branch hal_branches_exception(void)
{
    struct pmu_branch branch = pmu_branches_exception(of_this_cpu());
    return (struct hal_branch){ branch.from, branch.to };
}
