/* SPDX-License-Identifier: MIT */
/* The quirk deadline: the local APIC's timer interrupts when the TSC has come to
 * IA32_TSC_DEADLINE. Without it CPUID offers none. Source: Intel SDM vol. 3 "TSC-Deadline Mode". */
#include "tests/harness/lab.h"

enum { TSC_DEADLINE = 0x6e0, LVT_TIMER = 0x320, INITIAL = 0x380, CURRENT = 0x390, DIVIDE = 0x3e0 };
#define MODE_DEADLINE (1u << 18)
#define LATE 100000u /* clock: ten exits, and what other quirks add to them */

static uint64_t came; /* TSC, in the handler */

static uint32_t read_apic(unsigned at)
{
    return apic_x2 ? (uint32_t)lab_rdmsr(MSR_X2APIC + at / 16) : *apic_mmio(at);
}

static void note_time(void) { came = rdtsc(); }

static void check_deadline(uint64_t deadline)
{
    uint64_t from = rdtsc(), end = deadline > from ? deadline : from;
    lab_caught.pmis = 0;
    lab_wrmsr(TSC_DEADLINE, deadline);
    if (deadline > from + LATE)
        CHECK_EQ(lab_rdmsr(TSC_DEADLINE), deadline);
    while (!__atomic_load_n(&lab_caught.pmis, __ATOMIC_ACQUIRE) && rdtsc() < end + 2 * LATE)
        pause();
    if (CHECK_EQ(lab_caught.pmis, 1))
        CHECK_BECAUSE(came, end, end + LATE, "an exit, and its interrupt");
    CHECK_EQ(lab_rdmsr(TSC_DEADLINE), 0);
}

/* 64 s ahead: the timer has the time that is left, divided by 16; 0 ends it. */
static void check_far(void)
{
    uint64_t left = 64000000000, deadline = rdtsc() + left;
    lab_caught.pmis = 0;
    lab_wrmsr(TSC_DEADLINE, deadline);
    CHECK_EQ(lab_rdmsr(TSC_DEADLINE), deadline);
    CHECK_EQ(read_apic(DIVIDE), 3);
    CHECK_BECAUSE(16ul * read_apic(CURRENT), left - left / 100, left + left / 100,
                  "the TSC's rate was measured");
    lab_wrmsr(TSC_DEADLINE, UINT64_MAX); /* no time is past it */
    lab_loop(1000);
    CHECK_EQ(lab_rdmsr(TSC_DEADLINE), UINT64_MAX);
    lab_wrmsr(TSC_DEADLINE, 0);
    CHECK_EQ(lab_rdmsr(TSC_DEADLINE), 0);
    CHECK_EQ(read_apic(CURRENT), 0);
    CHECK_EQ(lab_caught.pmis, 0);
}

/* CPUID 1.ECX[24]. Outside this mode IA32_TSC_DEADLINE reads 0 and ignores writes; in it a time
 * that is past interrupts at once, and 0 ends the wait. */
VPMU_TEST(vpmu_quirks, deadline,
          "the timer interrupts once, when the TSC has come to the deadline; in its other modes "
          "there is none; without the quirk CPUID offers none [VP-94]")
{
    uint32_t lvt = read_apic(LVT_TIMER), divide = read_apic(DIVIDE), initial = read_apic(INITIAL);
    CHECK_EQ(cpuid(1, 0).ecx >> 24 & 1, vpmu_quirk("deadline"));
    if (!vpmu_quirk("deadline"))
        return;
    lab_catch();
    lab_caught.action = note_time;
    lab_wrmsr(TSC_DEADLINE, rdtsc() + LATE);
    CHECK_EQ(lab_rdmsr(TSC_DEADLINE), 0);
    CHECK_EQ(read_apic(INITIAL), initial);
    apic_write(INITIAL, 0);
    apic_write(LVT_TIMER, MODE_DEADLINE | APIC_PMI_VECTOR);
    for (unsigned i = 0; i < 4; i++)
        check_deadline(rdtsc() + i * 1000000);
    check_deadline(1);
    check_far();
    apic_write(LVT_TIMER, lvt);
    apic_write(DIVIDE, divide);
    apic_write(INITIAL, initial);
    lab_release();
}
