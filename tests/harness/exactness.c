/* SPDX-License-Identifier: MIT */
#include "tests/harness/exactness.h"
#include "tests/harness/kernel.h"

static const char *inexact(void)
{
    EACH_KIND(cpu)
        if (pmu_ring3_inexact(pmu_of(cpu)))
            return pmu_ring3_inexact(pmu_of(cpu));
    return NULL;
}

uint64_t exactness(void) { return inexact() ? USER_EXACT_LOOSE : 0; }

void exactness_print(const struct process *process)
{
    struct user_exact_spread s;
    const char *reason = inexact();
    if (!reason || !CHECK(user_read(process, &s, (uint64_t)&user_exact_spread, sizeof s)))
        return;
    test_note("%lu regions, %lu of them exact; instructions too many: %ld to %ld", s.regions,
              s.exact, s.least, s.most);
    test_skip(reason);
}

void exactness_finish(struct process *process, struct thread *thread)
{
    if (user_wait(thread))
        exactness_print(process);
    user_finish(process, thread);
}

void exactness_run(void (*function)(uint64_t), uint64_t argument)
{
    struct process *process = user_process();
    exactness_finish(process, user_start(process, function, argument | exactness()));
}
