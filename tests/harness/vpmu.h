/* SPDX-License-Identifier: MIT */
/* What the virtual PMU counts of its guest: its own CPUID leaves (pmu/virt/own_leaf.c) are for
 * tests only; the kernel does not know them. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

struct vpmu_accesses {
    uint32_t rdpmc, rdmsr, wrmsr,
        interrupts; /* RDPMCs, PMU MSRs read and written, PMIs; this CPU, since start */
};

bool vpmu_present(void);
/* Once vpmu_present has said so. Its own leaf n, which need not be 4000_000n: another hypervisor's
 * may come first. */
uint32_t vpmu_leaf(unsigned n);
/* The name of its model; 16 characters and a NUL. */
void vpmu_model(char name[17]);
/* The name of its machine; 16 characters and a NUL; "": it is none that has a name. */
void vpmu_machine(char name[17]);
/* Whether it has no instruction clock and steps. */
bool vpmu_steps(void);
/* The value of a quirk that is on (1 if it has none); 0: it is off. The second value of one that
 * has two. */
uint64_t vpmu_quirk(const char *name);
uint64_t vpmu_quirk_second(const char *name);
/* The first counter of this CPU that firmware does not enable from time to time, whatever runs. */
unsigned vpmu_counter(void);
struct vpmu_accesses vpmu_accesses(void); /* zeros where there is none */
struct vpmu_accesses vpmu_accesses_since(struct vpmu_accesses before);
/* Instructions that this CPU retired in ring 0 since start, whether or not a counter counts. */
uint64_t vpmu_retired(void);
/* In both rings, with the iterations of string instructions: a cycle ends where a multiple of the
 * quirk ipc does. While something counts. */
uint64_t vpmu_worked(void);
/* A million instructions one by one, and the ticks meanwhile, outlast what a test may take. */
#define SKIP_IF_STEPPED()                                                                          \
    SKIP_IF(vpmu_present() && vpmu_steps(), "the virtual PMU steps: this takes minutes")
#define SKIP_WITHOUT_VPMU() SKIP_IF(!vpmu_present(), "needs the virtual PMU, which counts accesses")
/* LAB_TEST (lab.h) of the virtual PMU. */
#define VPMU_TEST(group, name, meaning)                                                            \
    static void lab_##group##_##name(unsigned);                                                    \
    TEST(group, name, meaning)                                                                     \
    {                                                                                              \
        SKIP_WITHOUT_VPMU();                                                                       \
        lab_run(lab_##group##_##name, LAB_ANY);                                                    \
    }                                                                                              \
    static void lab_##group##_##name(unsigned unused __attribute__((unused)))
