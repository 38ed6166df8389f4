/* SPDX-License-Identifier: MIT */
/* The virtual PMU survives its guest: any RDPMC selector, SVM instructions, exceptions of all kinds
 * while it counts; and it hides what it does not have. Any value to any register: guests/fuzz. Not
 * to be seen from inside: VP-47 (RDPMC in real mode: the guest starts in long mode). */
#include "pmu/branches.h"
#include "tests/harness/lab.h"

enum { VECTOR_UD = 6 };

/* From a counter that never repeats. */
static uint64_t some_noise(uint64_t *seed)
{
    *seed = *seed * 6364136223846793005 + 1442695040888963407;
    return *seed ^ *seed >> 29;
}

VPMU_TEST(vpmu, any_selector,
          "RDPMC accepts the selectors of the model's counters and no others [VP-43 VP-45 slow]")
{
    uint64_t value, seed = 2;
    unsigned found = 0, there = 0;
    bool drops_bit_30 = vpmu_quirk("fastrdpmc") && !lab_is_intel();
    for (uint32_t n = 0; n < 300; n++) {
        bool ok = !rdpmc_fault(n, &value), fixed_ok = !rdpmc_fault(RDPMC_FIXED + n, &value);
        CHECK_EQ(ok, n < PMU_FIXED && pmu_here()->reported >> n & 1);
        bool fixed = n < PMU_FIXED && pmu_here()->reported >> (PMU_FIXED + n) & 1;
        CHECK_EQ(fixed_ok, fixed || (ok && drops_bit_30));
        found += ok + fixed;
    }
    for (uint64_t rest = pmu_here()->reported; rest; rest &= rest - 1)
        there++;
    CHECK_EQ(found, there);
    for (unsigned n = 0; n < 1000; n++) {
        uint32_t selector = (uint32_t)some_noise(&seed) | 1u << 12;
        CHECK_EQ(rdpmc_fault(selector, &value), LAB_GP_FAULT);
    }
}

/* The exception's vector, 0 if there was none. */
#define FAULT_OF(instruction) FAULT_WITH(0x1000, instruction)
#define FAULT_WITH(rax, instruction)                                                               \
    __extension__({                                                                                \
        uint64_t vector_ = (rax);                                                                  \
        asm volatile("1: " instruction "\n\txor %%eax, %%eax\n2:\n" FIXUP("1b", "2b")              \
                     : "+a"(vector_)                                                               \
                     : "c"(0)                                                                      \
                     : "memory", "cc");                                                            \
        vector_;                                                                                   \
    })

static void check_svm(void)
{
    CHECK_EQ(FAULT_OF("vmrun"), VECTOR_UD);
    CHECK_EQ(FAULT_OF("vmload"), VECTOR_UD);
    CHECK_EQ(FAULT_OF("vmsave"), VECTOR_UD);
    CHECK_EQ(FAULT_OF("vmmcall"), VECTOR_UD);
    CHECK_EQ(FAULT_OF("stgi"), VECTOR_UD);
    CHECK_EQ(FAULT_OF("clgi"), VECTOR_UD);
    CHECK_EQ(FAULT_OF("skinit"), VECTOR_UD);
    CHECK_EQ(FAULT_OF("invlpga"), VECTOR_UD);
    uint64_t there = 0; /* Bochs' MONITOR looks at the address first */
    CHECK_EQ(FAULT_WITH((uint64_t)&there, "monitor"), VECTOR_UD);
    CHECK_EQ(FAULT_OF("mwait"), VECTOR_UD);
    CHECK_EQ(FAULT_OF("ud2"), VECTOR_UD);
}

VPMU_TEST(vpmu, svm_instructions,
          "SVM instructions raise #UD, as on a processor without SVM, and so do MONITOR and MWAIT; "
          "while a counter runs, too")
{
    check_svm();
    pmu_program(0, pmu_select(pmu_here(), PMU_INSTRUCTIONS, PMU_KERNEL), 0);
    pmu_start(PMU_BIT(0));
    check_svm();
    pmu_stop(PMU_BIT(0));
    CHECK_BECAUSE(pmu_read(0), 18, 100000, "it counted on");
}

VPMU_TEST(vpmu, dr7_upper_half, "a write of DR7's upper half raises #GP")
{
    CHECK_EQ(FAULT_WITH(1ul << 32 | 0x400, "mov %%rax, %%dr7"), LAB_GP_FAULT);
    CHECK_EQ(FAULT_WITH(0x400ul, "mov %%rax, %%dr7"), 0);
}

VPMU_TEST(vpmu, slots_reported,
          "CPUID reports the architectural event of slots where fixed counter 3 counts them")
{
    struct cpuid c = cpuid(0xa, 0);
    bool event = c.eax >> 24 > 7 && !(c.ebx >> 7 & 1);
    CHECK_EQ(event, lab_is_intel() && ((c.edx & 31) > 3 || c.ecx >> 3 & 1));
}

/* What Linux does to find out whether there are last-branch registers: their top, and what each
 * record has. A value that does not come back says that there are none. */
static void probe_last_branches(void)
{
    static const uint32_t intel[] = { 0x1c8, 0x1c9, 0x40, 0x60, 0x680, 0x69f, 0x6c0, 0x6df, 0xdc0 };
    uint64_t value = 0, again = 0;
    if (pmu_branches_of(pmu_here())->depth)
        return;
    if (!lab_is_intel() && !vpmu_quirk("brs"))
        for (uint32_t n = 0; n < 32; n++)
            lab_absent(0xc0010300 + n);
    for (unsigned i = 0; i < ARRAY_SIZE(intel) && lab_is_intel(); i++) {
        unsigned fault = rdmsr_fault(intel[i], &value);
        CHECK(!fault || fault == LAB_GP_FAULT);
        if (fault)
            continue;
        fault = wrmsr_fault(intel[i], value ^ 0xffff);
        CHECK(!fault || fault == LAB_GP_FAULT);
        CHECK_EQ(rdmsr_fault(intel[i], &again), 0);
        CHECK_EQ(again, value);
    }
}

VPMU_TEST(vpmu, hidden,
          "features that the model lacks are not reported: RTM, IBPB, SVM, LBR, PEBS, MONITOR "
          "[VP-63 VP-81 VP-83 VP-84 VP-85]")
{
    uint64_t value = 0;
    CHECK_EQ(cpuid(7, 0).ebx >> 11 & 1, 0);         /* RTM */
    CHECK_EQ(cpuid(7, 0).edx >> 26 & 1, 0);         /* IBPB */
    CHECK_EQ(cpuid(1, 0).ecx >> 3 & 1, 0);          /* MONITOR */
    CHECK_EQ(cpuid(0x80000001, 0).ecx >> 2 & 1, 0); /* SVM */
    CHECK_EQ(cpuid(1, 0).edx >> 21 & 1, 0);         /* DS */
    CHECK_EQ(rdmsr(MSR_EFER) >> 12 & 1, 0);         /* SVME */
    CHECK_EQ(wrmsr_fault(MSR_EFER, rdmsr(MSR_EFER) | 1u << 12), LAB_GP_FAULT);
    lab_absent(0x3f1); /* PEBS */
    if (!rdmsr_fault(0x345, &value)) {
        CHECK_EQ(value & 0xf00, 0); /* of PEBS */
        unsigned format = value & 0x3f;
        CHECK_EQ(cpuid(7, 0).edx >> 19 & 1, format == 0x3f);
        CHECK_EQ(!rdmsr_fault(0x680, &value),
                 (format >= 3 && format != 0x3f) || vpmu_quirk("ignoremsrs"));
    }
    if (pmu_here()->msr.global_status && !lab_is_intel())
        CHECK_EQ(lab_rdmsr(pmu_here()->msr.global_status), 0);
    CHECK_EQ(rdmsr_fault(0x1d9, &value), 0);
    CHECK_EQ(value & 1, 0); /* no LBR is running */
    probe_last_branches();
}

VPMU_TEST(vpmu, memory_types, "a reserved memory type in the PAT raises #GP, others are kept")
{
    static const uint8_t reserved[] = { 2, 3, 8, 0xff };
    uint64_t before = 0, value = 0;
    if (!CHECK(!rdmsr_fault(MSR_PAT, &before)))
        return;
    for (unsigned i = 0; i < 64; i += 8) {
        for (unsigned n = 0; n < ARRAY_SIZE(reserved); n++)
            CHECK(wrmsr_fault(MSR_PAT, (before & ~(0xfful << i)) | (uint64_t)reserved[n] << i));
        CHECK(!wrmsr_fault(MSR_PAT, before));
        CHECK(!rdmsr_fault(MSR_PAT, &value) && value == before);
    }
}
