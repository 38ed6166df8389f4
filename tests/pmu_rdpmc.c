/* SPDX-License-Identifier: MIT */
/* Conformance: RDPMC: every form of the index, in ring 0, and in ring 3 with CR4.PCE set and clear. */
#include "hal/hal.h"
#include "kernel/isolate.h"
#include "kernel/cpu.h"
#include "kernel/irql.h"
#include "kernel/sched.h"
#include "kernel/smp.h"
#include "kernel/thread.h"
#include "kernel/thread_profiling.h"
#include "tests/counting.h"
#include "tests/lab.h"
#include "tests/ring3/pmu_rdpmc.h"
#include "tests/user.h"

#define FIXED 0x40000000u
#define METRICS 0x20000000u
#define FAST 0x80000000u

/* Indices that no counter has, for this processor; ends with 0. */
static unsigned bad_indices(uint32_t *bad)
{
    unsigned n = 0, gp = pmu_caps.gp_reported;
    uint64_t fixed = pmu_caps.reported >> PMU_FIXED;
    bool uncore = cpuid(0x80000001, 0).ecx & (1u << 24 | 1u << 28); /* AMD: 6 to 15 are other counters */
    if (lab_is_intel() || !uncore)
        for (unsigned i = gp; i < 32; i++)
            bad[n++] = i;
    for (unsigned bit = 5; bit < 29; bit++)
        bad[n++] = 1u << bit;
    bad[n++] = 64;
    bad[n++] = 65;
    for (unsigned i = 0; i < 20; i++)
        if (!(fixed >> i & 1))
            bad[n++] = FIXED + i;
    bad[n++] = FIXED | 1u << 15;
    bad[n++] = FIXED | 1u << 16;
    bad[n++] = METRICS;
    bad[n++] = 0xffffffff;
    bad[n++] = 0x7fffffff;
    return n;
}
#define BAD_MAX 96

/* Any value that was written comes back by its own index, upper halves of RAX and RDX clear. */
static void valid(unsigned ctr)
{
    uint32_t index = pmu_rdpmc_index(ctr);
    CHECK_EQ(index, lab_is_fixed(ctr) ? FIXED + ctr - PMU_FIXED : ctr);
    for (uint64_t value = 1; value <= pmu_mask(ctr); value = value * 3 + 1) {
        uint64_t rax = 0, rdx = 0, written = value <= pmu_max_period(ctr) ? value : pmu_mask(ctr);
        lab_wrmsr(pmu_write_msr(ctr), written);
        asm volatile("mov $-1,%%rax\nmov $-1,%%rdx\nrdpmc" : "=&a"(rax), "=&d"(rdx) : "c"(index));
        CHECK_EQ(rax, written & 0xffffffff);
        CHECK_EQ(rdx, written >> 32);
    }
}

/* ECX is what counts, not RCX; RDPMC itself is an instruction. */
static void counted_itself(unsigned ctr)
{
    uint32_t index = pmu_rdpmc_index(ctr), first, second;
    uint64_t wide = UINT64_C(0xabcdef0000000000) | index, value;
    lab_wrmsr(pmu_write_msr(ctr), 0x1234);
    asm volatile("rdpmc" : "=a"(value) : "c"(wide) : "rdx");
    CHECK_EQ(value, 0x1234);
    if (!(pmu_counters_for(PMU_INSTRUCTIONS) >> ctr & 1))
        return;
    pmu_program(ctr, lab_select(ctr, PMU_KERNEL), 0);
    pmu_start(PMU_BIT(ctr));
    asm volatile("rdpmc\nmov %%eax,%0\nrdpmc" : "=&r"(first), "=&a"(second) : "c"(index) : "rdx");
    pmu_stop(PMU_BIT(ctr));
    CHECK_EQ(second - first, 2); /* the first RDPMC and the MOV */
}

static void bad_in_ring0(unsigned unused)
{
    uint32_t bad[BAD_MAX];
    unsigned n = bad_indices(bad);
    (void)unused;
    CHECK(n > 30 && n <= BAD_MAX);
    for (unsigned i = 0; i < n; i++) {
        uint64_t value;
        if (!CHECK_EQ(rdpmc_fault(bad[i], &value), LAB_GP_FAULT))
            test_note("index %x", bad[i]);
    }
}

/* Bit 31, the fast read of older processors: refused, or the low half. */
static void fast(unsigned ctr)
{
    uint64_t value = 0;
    lab_wrmsr(pmu_write_msr(ctr), 0x1234567);
    unsigned fault = rdpmc_fault(FAST | pmu_rdpmc_index(ctr), &value);
    CHECK(fault == LAB_GP_FAULT || (fault == 0 && value == 0x1234567));
}

/* A thread of its own for each try: #GP ends it. CR4.PCE is set while a thread with counters runs. */
static NTSTATUS in_ring3(void (*function)(void), uint64_t argument, unsigned cpu, uint64_t *value)
{
    struct process *process = process_create();
    struct thread *thread =
        process ? thread_create_user("rdpmc", process, (uint64_t)function, argument, 1ul << cpu) : NULL;
    NTSTATUS status = STATUS_NO_MEMORY;
    if (CHECK(thread != NULL)) {
        sched_wait(&thread->object, SCHED_FOREVER, Executive);
        status = thread->exit_status;
        CHECK(process_read(process, value, (uint64_t)&user_rdpmc_value, sizeof *value));
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
    SKIP_WITHOUT_PMU();
    if (isolate_on)
        SKIP("the policy is isolate"); /* which shows a thread its own counter only */
    if (!(pmu_caps.reported >> ctr & 1))
        SKIP("no such counter");
    if (ctr == 0) /* the configuration that lets ring 3 read takes one counter itself: any other than the tested */
        configured = (unsigned)__builtin_ctzll(pmu_caps.counters & ~PMU_BIT(0));
    else
        configured = 0;
    REQUIRE_STATUS(hal_counters_claim("ring 3 index", SMP_ALL, PMU_BIT(ctr) | PMU_BIT(configured), NULL, &handle),
                   STATUS_SUCCESS);
    REQUIRE(counting_configure(&configured, 1));
    for (unsigned cpu = 0; cpu < cpu_count; cpu++) {
        test_run_on(cpu);
        pmu_write(ctr, 0x1234567);
        test_run_anywhere();
        CHECK_STATUS(in_ring3(user_rdpmc_allowed, pmu_rdpmc_index(ctr), cpu, &value), STATUS_SUCCESS);
        CHECK_EQ(value, 0x1234567);
        CHECK_STATUS(in_ring3(user_rdpmc_plain, pmu_rdpmc_index(ctr), cpu, &value), STATUS_PRIVILEGED_INSTRUCTION);
        CHECK_EQ(value, USER_RDPMC_NOTHING);
    }
    CHECK_STATUS(KeSetHardwareCounterConfiguration(NULL, 0), STATUS_SUCCESS);
    CHECK_STATUS(HalFreeHardwareCounters(handle), STATUS_SUCCESS);
}

TEST(pmu_rdpmc_ring3, bad_indices, "with CR4.PCE set, bad indices raise #GP in ring 3 too [VP-43 VP-45 VP-46 C-1.1]")
{
    uint32_t bad[BAD_MAX];
    uint64_t value = 0;
    unsigned ctr;
    SKIP_WITHOUT_PMU();
    unsigned n = bad_indices(bad);
    REQUIRE(counting_start(PMU_INSTRUCTIONS, PMU_USER, &ctr));
    for (unsigned cpu = 0; cpu < cpu_count; cpu++)
        for (unsigned i = cpu; i < n; i += 9) {
            CHECK_STATUS(in_ring3(user_rdpmc_allowed, bad[i], cpu, &value), STATUS_PRIVILEGED_INSTRUCTION);
            CHECK_EQ(value, USER_RDPMC_NOTHING);
        }
    counting_stop();
}

/* One after the other on one CPU: allowed, not, allowed: PCE follows the thread. */
TEST(pmu_rdpmc_ring3, pce_follows, "CR4.PCE belongs to the thread that may read, switch after switch [VP-46 C-1.1]")
{
    uint64_t value;
    unsigned ctr;
    SKIP_WITHOUT_PMU();
    REQUIRE(counting_start(PMU_INSTRUCTIONS, PMU_USER, &ctr));
    for (unsigned cpu = 0; cpu < cpu_count; cpu++)
        for (unsigned i = 0; i < 3; i++) {
            CHECK_STATUS(in_ring3(user_rdpmc_allowed, pmu_rdpmc_index(ctr), cpu, &value), STATUS_SUCCESS);
            CHECK_STATUS(in_ring3(user_rdpmc_plain, pmu_rdpmc_index(ctr), cpu, &value),
                         STATUS_PRIVILEGED_INSTRUCTION);
        }
    counting_stop();
}

TEST(pmu_rdpmc_ring3, msrs, "RDMSR and WRMSR of the PMU's registers raise #GP in ring 3 [VP-13]")
{
    uint64_t value;
    SKIP_WITHOUT_PMU();
    const uint32_t msrs[] = { pmu_counter_msr(0), pmu_select_msr(0), pmu_caps.msr.global_control };
    for (unsigned cpu = 0; cpu < cpu_count; cpu++)
        for (unsigned i = 0; i < sizeof msrs / sizeof *msrs && msrs[i]; i++) {
            CHECK_STATUS(in_ring3(user_rdmsr, msrs[i], cpu, &value), STATUS_PRIVILEGED_INSTRUCTION);
            CHECK_STATUS(in_ring3(user_wrmsr, msrs[i], cpu, &value), STATUS_PRIVILEGED_INSTRUCTION);
        }
}

#define VALID(name, ctr) LAB_TEST(pmu_rdpmc, name, ctr, valid, "its index reads it, zero-extended [VP-41 VP-42 VP-88 C-2a.7]")
#define ITSELF(name, ctr) LAB_TEST(pmu_rdpmc_counts, name, ctr, counted_itself, "RDPMC counts as one; RCX's upper half is ignored [VP-48]")
#define FAST_FORM(name, ctr) LAB_TEST(pmu_rdpmc_fast, name, ctr, fast, "bit 31: refused, or the low half [VP-44 C-2a.7 C-2e]")
#define RING3(name, ctr) \
    TEST(pmu_rdpmc_ring3, name, "ring 3 reads it with CR4.PCE set, #GP with it clear [VP-46 C-1.1 C-2d]") { ring3_index(ctr); }

TEST(pmu_rdpmc, bad_indices, "no other index reads anything: #GP [VP-43 VP-45 C-2a.1 C-2e]") { lab_run(bad_in_ring0, LAB_ANY); }
LAB_EACH(VALID)
LAB_EACH(ITSELF)
LAB_EACH(FAST_FORM)
LAB_EACH(RING3)
