/* SPDX-License-Identifier: MIT */
/* A question changes nothing: SDM volume 2 and AMD64 APM volume 3, CPUID. Programs ask a
 * hypervisor's leaves with whatever is in ECX: rr with FFFFFFFFh. */
#include "tests/harness/lab.h"
#include "tests/harness/questions.h"
#include "tests/ring3/vpmu_quirks.h"

VPMU_TEST(vpmu, questions,
          "CPUID of all leaves of hypervisors, with any ECX, changes no count and no later answer "
          "[VP-95]")
{
    unsigned ctr = vpmu_counter();
    uint64_t early = vpmu_quirk("early");
    pmu_program(ctr, pmu_select(pmu_here(), PMU_INSTRUCTIONS, PMU_KERNEL), 0);
    pmu_start(PMU_BIT(ctr));
    struct questions q = questions_ask(pmu_rdpmc_index(ctr));
    pmu_stop(PMU_BIT(ctr));
    CHECK_EQ(q.answers[1], q.answers[0]);
    CHECK_EQ(q.exact[1], q.exact[0]);
    CHECK(q.lacking[0] <= early);
    CHECK(q.lacking[1] <= early);
}

TEST(vpmu, questions_ring3,
     "CPUID of all leaves of hypervisors from ring 3 changes no count and no later answer "
     "[VP-95]")
{
    unsigned ctr;
    SKIP_WITHOUT_RDPMC();
    SKIP_WITHOUT_VPMU();
    REQUIRE(counting_start(PMU_INSTRUCTIONS, PMU_USER, &ctr));
    for (unsigned cpu = 0; cpu < cpu_count; cpu++) {
        struct process *process = user_process();
        uint64_t argument = vpmu_quirk("early") << 32 | pmu_rdpmc_index(ctr);
        user_finish(process, lab_run_user(process, user_questions, argument, cpu));
    }
    test_run_anywhere();
    counting_stop();
}
