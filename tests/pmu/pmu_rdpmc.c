/* SPDX-License-Identifier: MIT */
/* Conformance: RDPMC: every form of the index, in ring 0, and in ring 3 with CR4.PCE set and clear.
 */
#include "tests/harness/lab.h"
#include "tests/ring3/pmu_rdpmc.h"

#define PERF_CAPABILITIES 0x345u
#define FAST 0x80000000u

/* PERF_METRICS has an index where PERF_CAPABILITIES says so: large cores since Ice Lake. Of this
 * CPU. */
static void has_metrics(void *has)
{
    uint64_t capabilities = 0;
    *(bool *)has =
        lab_is_intel() && !rdmsr_fault(PERF_CAPABILITIES, &capabilities) && capabilities >> 15 & 1;
}

/* KVM on AMD, before Linux 6.9: bit 30 is ignored, as bit 31 is but for the length. */
static bool drops_bit_30(void)
{
    uint64_t value;
    return !lab_is_intel() && !rdpmc_fault(RDPMC_FIXED, &value);
}

/* Indices that no counter of such a CPU has; how many. */
static unsigned bad_indices(const struct pmu_kind *pmu, bool metrics, uint32_t *bad)
{
    unsigned n = 0;
    uint64_t fixed = pmu->reported >> PMU_FIXED;
    /* AMD: 6 to 15 are other counters. */
    bool uncore = cpuid(0x80000001, 0).ecx & (1u << 24 | 1u << 28);
    if (lab_is_intel() || !uncore)
        for (unsigned i = 0; i < 32; i++)
            if (!(pmu->reported >> i & 1))
                bad[n++] = i;
    for (unsigned bit = 5; bit < 29; bit++)
        bad[n++] = 1u << bit;
    bad[n++] = 64;
    bad[n++] = 65;
    for (unsigned i = 0; i < 20; i++)
        if (!(fixed >> i & 1) && !(drops_bit_30() && pmu->reported >> i & 1))
            bad[n++] = RDPMC_FIXED + i;
    bad[n++] = RDPMC_FIXED | 1u << 15;
    bad[n++] = RDPMC_FIXED | 1u << 16;
    if (!metrics)
        bad[n++] = RDPMC_METRICS;
    bad[n++] = 0xffffffff;
    bad[n++] = 0x7fffffff;
    return n;
}
#define BAD_MAX 96

/* Any value that was written comes back by its own index, upper halves of RAX and RDX clear. */
LAB_EACH(pmu_rdpmc, each_counter, "its index reads it, zero-extended [VP-41 VP-42 VP-88]")
{
    uint32_t index = pmu_rdpmc_index(ctr);
    CHECK_EQ(index, lab_is_fixed(ctr) ? 0x40000000 + ctr - PMU_FIXED : ctr); /* the manual's */
    CHECK_EQ(pmu_rdpmc_counter(index), ctr);
    for (uint64_t value = 1; value <= pmu_mask(pmu_here(), ctr); value = value * 3 + 1) {
        uint64_t rax = 0, rdx = 0,
                 written =
                     value <= pmu_max_period(pmu_here(), ctr) ? value : pmu_mask(pmu_here(), ctr);
        lab_wrmsr(pmu_write_msr(pmu_here(), ctr), written);
        asm volatile("mov $-1,%%rax\nmov $-1,%%rdx\nrdpmc" : "=&a"(rax), "=&d"(rdx) : "c"(index));
        CHECK_EQ(rax, written & 0xffffffff);
        CHECK_EQ(rdx, written >> 32);
    }
}

/* ECX is what counts, not RCX; RDPMC itself is an instruction. */
LAB_EACH(pmu_rdpmc_counts, each_counter, "RDPMC counts as one; RCX's upper half is ignored [VP-48]")
{
    uint32_t index = pmu_rdpmc_index(ctr), first, second;
    uint64_t wide = UINT64_C(0xabcdef0000000000) | index, value;
    lab_wrmsr(pmu_write_msr(pmu_here(), ctr), 0x1234);
    asm volatile("rdpmc" : "=a"(value) : "c"(wide) : "rdx");
    CHECK_EQ(value, 0x1234);
    if (!(pmu_counters_for(pmu_here(), PMU_INSTRUCTIONS) >> ctr & 1))
        return;
    pmu_program(ctr, lab_select(ctr, PMU_KERNEL), 0);
    pmu_start(PMU_BIT(ctr));
    asm volatile("lfence\nrdpmc\nmov %%eax,%0\nlfence\nrdpmc"
                 : "=&r"(first), "=&a"(second)
                 : "c"(index)
                 : "rdx");
    pmu_stop(PMU_BIT(ctr));
    /* The first RDPMC, the MOV and the LFENCE: silicon's rule. A hypervisor may intercept RDPMC,
     * which then counts as exits do. */
    const struct pmu_spread *exit = &pmu_here()->measured.exit;
    bool intercepted = pmu_stable(exit) && second - first != 3;
    CHECK_EQ(second - first, 2 + (intercepted ? (uint64_t)exit->low : 1));
}

static void reads_without_bit_30(void)
{
    uint64_t value = 0;
    for_each_bit(ctr, pmu_here()->counters) {
        lab_wrmsr(pmu_write_msr(pmu_here(), ctr), 0x1234567 + ctr);
        CHECK_EQ(rdpmc_fault(RDPMC_FIXED | ctr, &value), 0);
        CHECK_EQ(value, 0x1234567 + ctr);
    }
}

LAB_TEST(pmu_rdpmc, bad_indices, "no other index reads anything: #GP [VP-43 VP-45]")
{
    uint32_t bad[BAD_MAX];
    bool metrics;
    has_metrics(&metrics);
    unsigned n = bad_indices(pmu_here(), metrics, bad);
    CHECK(n > 30 && n <= BAD_MAX);
    for (unsigned i = 0; i < n; i++) {
        uint64_t value;
        if (!CHECK_EQ(rdpmc_fault(bad[i], &value), LAB_GP_FAULT))
            test_note("index %x", bad[i]);
    }
    if (drops_bit_30())
        reads_without_bit_30();
}

/* Bit 31, the fast read of older processors: refused, or the low half. */
LAB_EACH(pmu_rdpmc_fast, each_counter, "bit 31: refused, or the low half [VP-44]")
{
    uint64_t value = 0, wide = UINT64_C(0xffffffff89abcdef) & pmu_mask(pmu_here(), ctr);
    lab_wrmsr(pmu_write_msr(pmu_here(), ctr), wide);
    CHECK_EQ(rdpmc(pmu_rdpmc_index(ctr)), wide);
    unsigned fault = rdpmc_fault(FAST | pmu_rdpmc_index(ctr), &value);
    CHECK(fault == LAB_GP_FAULT || fault == 0);
    if (!fault)
        CHECK_EQ(value, 0x89abcdef);
}

/* A thread of its own for each try: #GP ends it. CR4.PCE is set while a thread with counters runs.
 */
static NTSTATUS in_ring3(void (*function)(void), uint64_t argument, unsigned cpu, uint64_t *value)
{
    struct process *process = user_process();
    struct thread *thread =
        user_thread("rdpmc", process, (uint64_t)function, argument, cpu_set_one(cpu));
    NTSTATUS status = STATUS_NO_MEMORY;
    if (user_wait(thread)) {
        status = thread->exit_status;
        CHECK(user_read(process, value, (uint64_t)&user_rdpmc_value, sizeof *value));
        object_release(&thread->object);
    }
    if (process)
        object_release(&process->object);
    return status;
}

static void ring3_index(unsigned ctr)
{
    HANDLE handle;
    uint64_t value = 0;
    unsigned configured;
    SKIP_WITHOUT_RDPMC();
    if (isolate_on)
        SKIP("the policy is isolate"); /* which shows a thread its own counter only */
    SKIP_IF(!(pmu_some_counters(EVERYWHERE) >> ctr & 1), "the counter is left out");
    /* The configuration that lets ring 3 read takes one counter itself: any other than the tested.
     */
    configured = (unsigned)__builtin_ctzll(common_counters() & ~PMU_BIT(ctr));
    REQUIRE_STATUS(HalAllocateHardwareCounters(NULL, 0, NULL, &handle), STATUS_SUCCESS);
    REQUIRE(counting_configure(&configured, 1));
    for (unsigned cpu = 0; cpu < cpu_count; cpu++) {
        if (!(pmu_of(cpu)->counters >> ctr & 1))
            continue;
        test_run_on(cpu);
        pmu_write(ctr, 0x1234567);
        test_run_anywhere();
        CHECK_OK(in_ring3(user_rdpmc_allowed, pmu_rdpmc_index(ctr), cpu, &value));
        CHECK_EQ(value, 0x1234567);
        CHECK_STATUS(in_ring3(user_rdpmc_plain, pmu_rdpmc_index(ctr), cpu, &value),
                     STATUS_PRIVILEGED_INSTRUCTION);
        CHECK_EQ(value, USER_RDPMC_NOTHING);
    }
    CHECK_STATUS(KeSetHardwareCounterConfiguration(NULL, 0), STATUS_SUCCESS);
    CHECK_STATUS(HalFreeHardwareCounters(handle), STATUS_SUCCESS);
}

TEST(pmu_rdpmc_ring3, bad_indices,
     "with CR4.PCE set, bad indices raise #GP in ring 3 too [VP-43 VP-45 VP-46 slow]")
{
    uint32_t bad[BAD_MAX];
    uint64_t value = 0;
    unsigned ctr;
    SKIP_WITHOUT_PMU();
    REQUIRE(counting_start(PMU_INSTRUCTIONS, PMU_USER, &ctr));
    for (unsigned cpu = 0; cpu < cpu_count; cpu++) {
        bool metrics = false;
        smp_call(cpu_set_one(cpu), has_metrics, &metrics);
        unsigned n = bad_indices(pmu_of(cpu), metrics, bad);
        for (unsigned i = cpu; i < n; i += 9) {
            CHECK_STATUS(in_ring3(user_rdpmc_allowed, bad[i], cpu, &value),
                         STATUS_PRIVILEGED_INSTRUCTION);
            CHECK_EQ(value, USER_RDPMC_NOTHING);
        }
    }
    counting_stop();
}

static void refused_in_ring3(uint32_t msr, unsigned cpu)
{
    uint64_t value;
    CHECK_STATUS(in_ring3(user_rdmsr, msr, cpu, &value), STATUS_PRIVILEGED_INSTRUCTION);
    CHECK_STATUS(in_ring3(user_wrmsr, msr, cpu, &value), STATUS_PRIVILEGED_INSTRUCTION);
}

/* The first while something counts too: then a hypervisor may see each exception. */
TEST(pmu_rdpmc_ring3, msrs,
     "RDMSR and WRMSR of the PMU's registers raise #GP in ring 3 [VP-13 slow]")
{
    HANDLE handle;
    SKIP_WITHOUT_PMU();
    REQUIRE_STATUS(HalAllocateHardwareCounters(NULL, 0, NULL, &handle), STATUS_SUCCESS);
    for (unsigned cpu = 0; cpu < cpu_count; cpu++) {
        const struct pmu_kind *pmu = pmu_of(cpu);
        const uint32_t msrs[] = {
            pmu_counter_msr(pmu, 0), pmu_select_msr(pmu, 0), pmu_write_msr(pmu, 0),
            pmu->msr.fixed_counter,  pmu->msr.fixed_control, pmu->msr.global_control,
            pmu->msr.global_status,  pmu->msr.global_clear,
        };
        /* A thread's start, step by step, takes seconds. */
        if (pmu->counters && (!vpmu_present() || !vpmu_steps())) {
            unsigned ctr = bit_lowest(pmu->counters);
            test_run_on(cpu);
            pmu_program(ctr, pmu_select(pmu, PMU_INSTRUCTIONS, PMU_USER), 0);
            pmu_start(PMU_BIT(ctr));
            refused_in_ring3(msrs[0], cpu);
            test_run_on(cpu);
            pmu_clear(PMU_BIT(ctr));
        }
        for (unsigned i = 0; i < ARRAY_SIZE(msrs); i++)
            if (msrs[i])
                refused_in_ring3(msrs[i], cpu);
    }
    test_run_anywhere();
    CHECK_STATUS(HalFreeHardwareCounters(handle), STATUS_SUCCESS);
}

/* One after the other on each CPU: allowed, not, allowed: PCE follows the thread. */
TEST_EACH(pmu_rdpmc_ring3, each_counter,
          "ring 3 reads it with CR4.PCE set, #GP with it clear [VP-46]")
{
    ring3_index(ctr);
}
