/* SPDX-License-Identifier: MIT */
/* What CPUID may say, and what is made of it: leaves of processors that no machine here has, and of
 * none. */
#include "tests/harness/kernel.h"
#include "tests/pmu/fake_pmu.h"

#define LEAF(version, gp, width, length)                                                           \
    ((version) | (gp) << 8 | (width) << 16 | (uint32_t)(length) << 24)

/* Leaves 0Ah that no processor has yet, or should have: EAX, EBX, ECX, EDX, and the counters found
 * in them. */
/* clang-format off */
static const struct {
    struct cpuid leaf;
    uint64_t counters;
    enum pmu_verdict verdict;
} strange[] = {
    { { LEAF(7, 8, 48, 12), 0, 0x7f, 48 << 5 | 0 }, PMU_FIRST(8) | PMU_FIRST(7) << PMU_FIXED, PMU_OK },
    { { LEAF(255, 8, 48, 32), 0, 0xf, 48 << 5 | 4 }, PMU_FIRST(8) | PMU_FIRST(4) << PMU_FIXED, PMU_OK },
    { { LEAF(5, 4, 48, 8), 0, 0xa5, 48 << 5 | 0 }, PMU_FIRST(4) | UINT64_C(0xa5) << PMU_FIXED, PMU_OK },  /* holes */
    { { LEAF(5, 4, 48, 8), 0, 0x8, 48 << 5 | 2 }, PMU_FIRST(4) | UINT64_C(0xb) << PMU_FIXED, PMU_OK },
    { { LEAF(4, 4, 48, 8), 0, 0xff, 48 << 5 | 3 }, PMU_FIRST(4) | UINT64_C(7) << PMU_FIXED, PMU_OK }, /* ECX is not v4's */
    { { LEAF(5, 64, 48, 8), 0, ~0u, 48 << 5 | 31 }, PMU_FIRST(18) | PMU_FIRST(16) << PMU_FIXED, PMU_OK },
    { { LEAF(5, 255, 48, 255), ~0u, ~0u, ~0u }, PMU_FIRST(18) | PMU_FIRST(16) << PMU_FIXED, PMU_WIDTH_LIES },
    { { LEAF(5, 0, 48, 8), 0, 0, 0 }, 0, PMU_NO_COUNTERS },
    { { LEAF(1, 0, 0, 0), 0, 0, 0 }, 0, PMU_NO_COUNTERS },
    { { LEAF(1, 2, 48, 7), 0, 0xff, 48 << 5 | 3 }, PMU_FIRST(2), PMU_OK }, /* version 1 has no fixed ones */
    { { LEAF(5, 0, 48, 8), 0, 3, 48 << 5 }, UINT64_C(3) << PMU_FIXED, PMU_OK }, /* fixed ones alone */
    { { LEAF(3, 4, 0, 7), 0, 0, 0 }, PMU_FIRST(4), PMU_WIDTH_LIES },
    { { LEAF(3, 4, 20, 7), 0, 0, 0 }, PMU_FIRST(4), PMU_WIDTH_LIES },
    { { LEAF(3, 4, 200, 7), 0, 0, 0 }, PMU_FIRST(4), PMU_WIDTH_LIES },
    { { LEAF(3, 4, 48, 0), 0, 0, 0 }, PMU_FIRST(4), PMU_OK }, /* no event at all: registers are what is proved */
};
/* clang-format on */

TEST(diagnosis, strange_leaves,
     "leaves with any number of counters, holes, version, width and length give the right verdict "
     "[S-1.1 C-1a]")
{
    for (unsigned i = 0; i < ARRAY_SIZE(strange); i++) {
        struct pmu_kind kind = { .table = &intel_architectural };
        CHECK(intel_facts(&kind, &(struct intel_leaves){ .pmu = strange[i].leaf }));
        CHECK_EQ(kind.reported, strange[i].counters);
        fake_make(&kind, GOOD, 0);
        struct pmu_finding found = pmu_diagnose(&kind, &fake_access);
        if (!CHECK_EQ(found.verdict, strange[i].verdict))
            test_note("leaf %u: %s; counters %lx", i, pmu_verdict_text(found.verdict), found.bad);
    }
    struct pmu_kind none = { 0 };
    CHECK(!intel_facts(&none, &(struct intel_leaves){ .pmu = { LEAF(0, 8, 48, 8), 0, 0, 0 } }));
}

TEST(diagnosis, strange_amd_leaves,
     "leaf 8000_0022 with any number of counters, and AMD processors without the extended "
     "counters [S-1.4 C-1a]")
{
    for (unsigned n = 0; n < 32; n++) {
        struct pmu_kind kind = { 0 };
        struct cpuid v2 = { .eax = 1, .ebx = n };
        CHECK(amd_facts(&kind, true, &v2));
        CHECK_EQ(kind.reported, PMU_FIRST(n & 0xf));
        CHECK_EQ(kind.version, 2);
        CHECK(amd_facts(&kind, false, &v2));
        CHECK_EQ(kind.reported, PMU_FIRST(4));
        CHECK_EQ(kind.version, 1);
        v2.eax = ~1u; /* other features than PerfMonV2 */
        CHECK(amd_facts(&kind, true, &v2));
        CHECK_EQ(kind.reported, PMU_FIRST(6));
        CHECK_EQ(kind.version, 1);
    }
}

/* What Intel says with leaf 23h: its first subleaf, counters, fixed ones, events; registers at
 * 1900h or not. */
static const struct {
    uint32_t subleaves, gp, fixed, events;
    bool v6_registers;
    uint64_t counters;
} extended[] = {
    { 0xb, 0x3ff, 0xf, 0xff, true, PMU_FIRST(10) | PMU_FIRST(4) << PMU_FIXED },  /* Lion Cove */
    { 0xb, 0xbf, 0xb, 0xff, true, UINT64_C(0xbf) | UINT64_C(0xb) << PMU_FIXED }, /* holes in both */
    { 0xb, ~0u, ~0u, ~0u, true, PMU_ANY_GP | PMU_FIRST(16) << PMU_FIXED },
    { 0xb, ~0u, 0, 0, false, PMU_FIRST(18) }, /* the old registers have space for no more */
    { 0xb, 0, 7, 3, true, UINT64_C(7) << PMU_FIXED },
    { 0xb, 0x80000001, 0x80000001, 3, true, UINT64_C(0x80000001) | UINT64_C(1) << PMU_FIXED },
    { 0x1, 0x3ff, 0xf, 0xff, true,
      PMU_FIRST(8) | PMU_FIRST(3) << PMU_FIXED }, /* subleaf 1 does not count */
    { 0x0, 0x3ff, 0xf, 0xff, false, PMU_FIRST(8) | PMU_FIRST(3) << PMU_FIXED },
};

TEST(diagnosis, bitmaps,
     "leaf 23h reports counters and events by bitmaps, with holes; without it leaf 0Ah does "
     "[S-1.1 C-1a]")
{
    for (unsigned i = 0; i < ARRAY_SIZE(extended); i++) {
        struct pmu_kind kind = { .table = &intel_architectural };
        struct intel_leaves leaves = {
            .pmu = { LEAF(6, 8, 48, 7), 0, 7, 48 << 5 | 3 },
            .full_width_writes = true,
            .v6_registers = extended[i].v6_registers,
            .extended = { { .eax = extended[i].subleaves },
                          { extended[i].gp, extended[i].fixed, 0, 0 },
                          { 0 },
                          { .eax = extended[i].events } },
        };
        CHECK(intel_facts(&kind, &leaves));
        CHECK_EQ(kind.reported, extended[i].counters);
        CHECK_EQ(kind.gp_reported, bit_count(extended[i].counters & PMU_ANY_GP));
        CHECK_EQ(kind.events & 0xff, extended[i].subleaves & 8 ? extended[i].events & 0xff : 0x7f);
        CHECK_EQ(pmu_select_msr(&kind, 9), extended[i].v6_registers ? 0x1925 : 0x18f);
        CHECK_EQ(pmu_write_msr(&kind, 9), extended[i].v6_registers ? 0x1924 : 0x4ca);
        CHECK_EQ(pmu_counter_msr(&kind, 9), extended[i].v6_registers ? 0x1924 : 0xca);
        CHECK_EQ(pmu_counter_msr(&kind, PMU_FIXED + 3), extended[i].v6_registers ? 0x198c : 0x30c);
        CHECK_EQ(kind.gp_write_width, 48);
    }
}

TEST(diagnosis, any_thread,
     "AnyThread is a flag of versions 3 and later whose 0Ah.EDX[15] is clear [VP-07 VP-22]")
{
    for (unsigned version = 1; version < 8; version++)
        for (unsigned none = 0; none < 2; none++) {
            struct pmu_kind kind = { .table = &intel_architectural };
            CHECK(intel_facts(&kind, &(struct intel_leaves){ .pmu = { LEAF(version, 4, 48, 7), 0, 0,
                                                                      48 << 5 | none << 15 } }));
            kind.counters = kind.reported;
            bool has = version >= 3 && !none;
            CHECK_EQ(kind.select_flags & PMU_ANY_THREAD, has ? PMU_ANY_THREAD : 0);
            CHECK_EQ(pmu_raw_counters(&kind, 0xc0, PMU_ANY_THREAD) & PMU_ANY_GP,
                     has ? PMU_FIRST(4) : 0);
            CHECK_EQ(pmu_raw_counters(&kind, 0xc0, PMU_EDGE | PMU_INVERT | PMU_THRESHOLD(7)),
                     PMU_FIRST(4));
        }
}

TEST(diagnosis, codes,
     "event codes above FFh, and those beyond the K8's, are used only where a select has them "
     "[S-4.5]")
{
    struct pmu_kind intel = { .table = &intel_architectural };
    CHECK(
        intel_facts(&intel, &(struct intel_leaves){ .pmu = { LEAF(4, 4, 48, 7), 0, 0, 48 << 5 } }));
    intel.counters = intel.reported;
    CHECK_EQ(pmu_raw_counters(&intel, 0xff, 0), PMU_FIRST(4));
    CHECK_EQ(pmu_raw_counters(&intel, 0x100, 0), 0);
    for (unsigned family = 0x0f; family < 0x1b; family++) {
        struct pmu_kind amd = { .family = family, .table = amd_table(family, 0) };
        CHECK(amd_facts(&amd, family >= 0x15, &(struct cpuid){ 0 }));
        amd.counters = amd.reported;
        CHECK_EQ(pmu_raw_counters(&amd, 0x1c3, 0) != 0, family != 0x0f);
        CHECK_EQ(pmu_raw_counters(&amd, 0x1000, 0), 0);
        CHECK_EQ(pmu_raw_counters(&amd, 0xc3, PMU_ANY_THREAD), 0);
    }
}

TEST(diagnosis, unknown_models,
     "an unknown model, and an unexpected kind of core, is reported as such [S-4.4]")
{
    static const uint8_t hybrid[] = { 0x97, 0x9a, 0xb7, 0xba, 0xbf, 0xaa,
                                      0xac, 0xb5, 0xbd, 0xc6, 0xc5 };
    for (unsigned i = 0; i < sizeof hybrid; i++) {
        CHECK(intel_table(6, hybrid[i], INTEL_LARGE_CORE) !=
              intel_table(6, hybrid[i], INTEL_SMALL_CORE));
        CHECK(intel_table(6, hybrid[i], INTEL_SMALL_CORE) != &intel_architectural);
    }
    CHECK(strcmp(intel_table(6, INTEL_MODEL_ARROW_LAKE_H, INTEL_TINY_CORE)->name, "Crestmont") ==
          0);
    CHECK(intel_table(6, 0x5e, INTEL_LARGE_CORE) != &intel_architectural);
    CHECK(intel_table(6, 0x5e, INTEL_SMALL_CORE) == &intel_architectural); /* Skylake has none */
    CHECK(intel_table(6, 0xfe, INTEL_LARGE_CORE) == &intel_architectural);
    CHECK(intel_table(0x13, 1, INTEL_LARGE_CORE) == &intel_architectural);
    for (unsigned family = 0; family < 0x20; family++)
        CHECK_EQ(amd_is_known(family, 0x44), family >= 0x0f && family <= 0x1a && family != 0x13);
    static const uint8_t newer[] = { 0x50, 0x5f, 0x80, 0xaf, 0xc0, 0xff };
    for (unsigned i = 0; i < sizeof newer; i++)
        CHECK(!amd_is_known(0x1a, newer[i]) && amd_table(0x1a, newer[i]) == amd_table(0x1a, 0x44));
}
