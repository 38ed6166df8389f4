/* SPDX-License-Identifier: MIT */
/* The virtual PMU survives its guest: SVM instructions, exceptions of all kinds while it counts; it
 * hides what it does not have. Any value to any register: guests/fuzz. Not to be seen from inside:
 * VP-47 (RDPMC in real mode: the guest starts in long mode). */
#include "tests/harness/lab.h"

enum { VECTOR_UD = 6 };

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

VPMU_TEST(vpmu, hidden,
          "features that the model lacks are not reported: RTM, IBPB, SVM, LBR, PEBS, MONITOR "
          "[VP-63 VP-81 VP-83 VP-84]")
{
    uint64_t value = 0;
    CHECK_EQ(cpuid(7, 0).ebx >> 11 & 1, 0);         /* RTM */
    CHECK_EQ(cpuid(7, 0).edx >> 26 & 1, 0);         /* IBPB */
    CHECK_EQ(cpuid(1, 0).ecx >> 3 & 1, 0);          /* MONITOR */
    CHECK_EQ(cpuid(0x80000001, 0).ecx >> 2 & 1, 0); /* SVM */
    CHECK_EQ(rdmsr(MSR_EFER) >> 12 & 1, 0);         /* SVME */
    CHECK_EQ(wrmsr_fault(MSR_EFER, rdmsr(MSR_EFER) | 1u << 12), LAB_GP_FAULT);
    bool pebs = !rdmsr_fault(0x345, &value) && value & 0xf00;
    CHECK_EQ(cpuid(1, 0).edx >> 21 & 1, pebs); /* DS */
    if (!rdmsr_fault(0x345, &value)) {
        unsigned format = value & 0x3f;
        CHECK_EQ(cpuid(7, 0).edx >> 19 & 1, format == 0x3f);
        CHECK_EQ(!rdmsr_fault(0x680, &value),
                 (format >= 3 && format != 0x3f) || vpmu_quirk("ignoremsrs"));
    }
    CHECK_EQ(rdmsr_fault(0x1d9, &value), 0);
    CHECK_EQ(value & 1, 0); /* no LBR is running */
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
