/* SPDX-License-Identifier: MIT */
/* What a context switch costs the PMU, counted by the virtual PMU. */
#include "kernel/cpu.h"
#include "kernel/sched.h"
#include "kernel/thread.h"
#include "kernel/x86.h"
#include "tests/counting.h"
#include "tests/test.h"
#include "tests/vpmu.h"

#define SWITCHES 200

bool vpmu_present(void)
{
    struct cpuid r = cpuid(0x40000000, 0);
    return cpu_features.hypervisor && r.ebx == 0x6d70746e && r.ecx == 0x70762d75 && r.edx == 0x756d; /* ntpmu-vpmu */
}

struct vpmu_accesses vpmu_accesses(void)
{
    struct cpuid r = cpuid(0x40000001, 0);
    return (struct vpmu_accesses){ r.eax, r.ebx, r.ecx, r.edx };
}

uint64_t vpmu_retired(void)
{
    struct cpuid r = cpuid(0x40000001, 2);
    return (uint64_t)r.ebx << 32 | r.eax;
}

static void yield_often(void *unused)
{
    (void)unused;
    for (unsigned i = 0; i < SWITCHES; i++)
        sched_switch(WrYieldExecution);
}

/* Two kernel threads on this CPU switch to and fro; the accesses to the PMU meanwhile. */
static struct vpmu_accesses accesses_of_switches(void)
{
    unsigned cpu = cpu_number();
    struct vpmu_accesses before = vpmu_accesses();
    struct thread *other = thread_create("partner", yield_often, NULL, 1ul << cpu);
    if (CHECK(other != NULL)) {
        yield_often(NULL);
        sched_wait(&other->object, SCHED_FOREVER, Executive);
        object_release(&other->object);
    }
    struct vpmu_accesses after = vpmu_accesses();
    return (struct vpmu_accesses){ after.rdpmc - before.rdpmc, after.rdmsr - before.rdmsr,
                                   after.wrmsr - before.wrmsr, after.interrupts - before.interrupts };
}

TEST(tp_switch, unprofiled_is_free,
     "switches between threads without profiling execute no RDPMC and touch no PMU MSR, on every CPU, counters running")
{
    unsigned ctr;
    SKIP_WITHOUT_PMU();
    SKIP_WITHOUT_VPMU();
    REQUIRE(counting_start(PMU_INSTRUCTIONS, PMU_USER, &ctr));
    for (unsigned cpu = 0; cpu < cpu_count; cpu++) {
        test_run_on(cpu);
        uint64_t control = vpmu_accesses().rdpmc;
        rdpmc(pmu_rdpmc_index(ctr));
        CHECK_EQ(vpmu_accesses().rdpmc, control + 1); /* so it does count them */
        struct vpmu_accesses found = accesses_of_switches();
        CHECK_EQ(found.rdpmc, 0);
        CHECK_EQ(found.rdmsr, 0);
        CHECK_EQ(found.wrmsr, 0);
        CHECK_EQ(found.interrupts, 0);
    }
    test_run_anywhere();
    counting_stop();
}
