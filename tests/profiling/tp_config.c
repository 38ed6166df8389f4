/* SPDX-License-Identifier: MIT */
/* KeSetHardwareCounterConfiguration and KeQueryHardwareCounterConfiguration, called as by a
 * driver in ring 0. Their effect on threads is in tp_threads.c and tp_counts.c. No test here
 * needs a counter that counts.
 *
 * Source: ntddk.h and its pages; what they leave open is as in TP-01 to TP-32 of tests/contract.md.
 */
#include "hal/owners.h"
#include "hal/pmc.h"
#include "kernel/counting/thread_profiling.h"
#include "kernel/profiling/counter_config.h"
#include "tests/harness/counter_list.h"
#include "tests/harness/kinds.h"
#include "tests/harness/profile.h"

#define FILL 0xa5
#define UNMAPPED ((PHARDWARE_COUNTER)0x1000)
#define NON_CANONICAL ((PHARDWARE_COUNTER)0x0123456789abcdef)

static HARDWARE_COUNTER element(unsigned n)
{
    return (HARDWARE_COUNTER){ PMCCounter, 0, pmu_rdpmc_index(nth_counter(n)) };
}

static NTSTATUS set_one(HARDWARE_COUNTER element_)
{
    return KeSetHardwareCounterConfiguration(&element_, 1);
}

static void empty(void)
{
    CHECK_STATUS(KeSetHardwareCounterConfiguration(NULL, 0), STATUS_SUCCESS);
}

/* Checks that the configuration consists of these elements in this order, and that the query
 * writes nothing else. */
static void configured(const HARDWARE_COUNTER *wanted, ULONG n)
{
    HARDWARE_COUNTER array[MAX_HW_COUNTERS + 1];
    ULONG count = 1234;
    memset(array, FILL, sizeof array);
    CHECK_OK(KeQueryHardwareCounterConfiguration(array, MAX_HW_COUNTERS, &count));
    CHECK_EQ(count, n);
    for (ULONG i = 0; i < n; i++) {
        CHECK_EQ(array[i].Type, PMCCounter);
        CHECK_EQ(array[i].Reserved, 0);
        CHECK_EQ(array[i].Index, wanted[i].Index);
    }
    const uint8_t *bytes = (const uint8_t *)&array[n];
    bool untouched = true;
    for (size_t i = 0; i < sizeof array - n * sizeof array[0]; i++)
        untouched = untouched && bytes[i] == FILL;
    CHECK(untouched);
}

TEST(tp_config, empties,
     "at first, and by a Count of 0, with an array or without, the configuration is empty; without "
     "counters no other is accepted [TP-05 TP-06 TP-08 TP-29]")
{
    HARDWARE_COUNTER one = { PMCCounter, 0, 0 };
    configured(NULL, 0);
    if (test_has_pmu())
        CHECK_STATUS(set_one(element(0)), STATUS_SUCCESS);
    else
        CHECK_STATUS(set_one(one), STATUS_NOT_IMPLEMENTED);
    CHECK_STATUS(KeSetHardwareCounterConfiguration(&one, 0), STATUS_SUCCESS);
    configured(NULL, 0);
    CHECK_STATUS(KeSetHardwareCounterConfiguration(NULL, 0), STATUS_SUCCESS);
    CHECK_STATUS(KeSetHardwareCounterConfiguration(UNMAPPED, 0), STATUS_SUCCESS);
    configured(NULL, 0);
}

TEST(tp_config, rejects_more_than_max,
     "a Count of 17 or more is refused, the array is not read, and nothing changes; so is a NULL "
     "array with elements [TP-01 TP-02 TP-03 TP-07]")
{
    HARDWARE_COUNTER c[MAX_HW_COUNTERS + 1] = { { PMCCounter, 0, 0 } },
                                         before = { PMCCounter, 0, 0 };
    static const ULONG counts[] = {
        MAX_HW_COUNTERS + 1, 18, 32, 0x7fffffff, 0x80000000, 0xffffffff
    };
    bool some = test_has_pmu();
    if (some) {
        before = element(0);
        CHECK_STATUS(set_one(before), STATUS_SUCCESS);
    }
    CHECK_STATUS(KeSetHardwareCounterConfiguration(c, MAX_HW_COUNTERS + 1),
                 STATUS_INVALID_PARAMETER);
    for (unsigned i = 0; i < ARRAY_SIZE(counts); i++) {
        CHECK_STATUS(KeSetHardwareCounterConfiguration(NULL, counts[i]), STATUS_INVALID_PARAMETER);
        CHECK_STATUS(KeSetHardwareCounterConfiguration(UNMAPPED, counts[i]),
                     STATUS_INVALID_PARAMETER);
        CHECK_STATUS(KeSetHardwareCounterConfiguration(NON_CANONICAL, counts[i]),
                     STATUS_INVALID_PARAMETER);
    }
    for (ULONG n = 1; n <= MAX_HW_COUNTERS; n++)
        CHECK_STATUS(KeSetHardwareCounterConfiguration(NULL, n), STATUS_INVALID_PARAMETER);
    configured(&before, some);
    empty();
}

TEST(tp_config, full,
     "1 to 16 elements are kept in order, duplicates too, in place of those before, more or fewer; "
     "the caller may reuse its array [TP-04 TP-09 TP-10 TP-11 TP-18 TP-28]")
{
    SKIP_WITHOUT_PMU();
    HARDWARE_COUNTER wanted[MAX_HW_COUNTERS] = { { 0 } }, c[MAX_HW_COUNTERS];
    for (unsigned i = 0; i < 2 * MAX_HW_COUNTERS; i++) {
        ULONG n = i < MAX_HW_COUNTERS ? i + 1 : 2 * MAX_HW_COUNTERS - i;
        for (ULONG k = 0; k < n; k++)
            c[k] = wanted[k] = element((k * 5 + i + 1) % 3);
        CHECK_STATUS(KeSetHardwareCounterConfiguration(c, n), STATUS_SUCCESS);
        memset(c, FILL, sizeof c);
        configured(wanted, n);
    }
    empty();
}

/* The kernel's own; tp_enable.layout looks at what programs have. */
TEST(tp_config, query_sizes,
     "a query with exactly enough capacity succeeds; one with less writes only the number [TP-12 "
     "TP-13 TP-14 TP-15]")
{
    SKIP_WITHOUT_PMU();
    HARDWARE_COUNTER c[MAX_HW_COUNTERS], got[MAX_HW_COUNTERS], untouched[MAX_HW_COUNTERS];
    memset(untouched, FILL, sizeof untouched);
    for (ULONG i = 0; i < MAX_HW_COUNTERS; i++)
        c[i] = element(i % 2);
    for (ULONG n = 1; n <= MAX_HW_COUNTERS; n++) {
        CHECK_STATUS(KeSetHardwareCounterConfiguration(c, n), STATUS_SUCCESS);
        for (ULONG capacity = 0; capacity <= MAX_HW_COUNTERS; capacity++) {
            ULONG count = 1234, written = capacity < n ? 0 : n;
            memset(got, FILL, sizeof got);
            CHECK_STATUS(KeQueryHardwareCounterConfiguration(got, capacity, &count),
                         capacity < n ? STATUS_BUFFER_TOO_SMALL : STATUS_SUCCESS);
            CHECK_EQ(count, n);
            CHECK(memcmp(got, c, written * sizeof c[0]) == 0);
            CHECK(memcmp(&got[written], untouched, (MAX_HW_COUNTERS - written) * sizeof c[0]) == 0);
        }
    }
    empty();
}

TEST(tp_config, query_null, "a query without an array returns the number of elements [TP-16 TP-17]")
{
    ULONG count = 1234;
    CHECK_STATUS(KeQueryHardwareCounterConfiguration(NULL, 0, &count), STATUS_SUCCESS);
    CHECK_EQ(count, 0);
    CHECK_OK(KeQueryHardwareCounterConfiguration(NULL, MAX_HW_COUNTERS, &count));
    CHECK_EQ(count, 0);
    CHECK_STATUS(KeQueryHardwareCounterConfiguration(NULL, 0, NULL), STATUS_INVALID_PARAMETER);
    SKIP_WITHOUT_PMU();
    HARDWARE_COUNTER c[] = { element(0), element(1), element(0) };
    CHECK_STATUS(KeSetHardwareCounterConfiguration(c, 3), STATUS_SUCCESS);
    CHECK_STATUS(KeQueryHardwareCounterConfiguration(NULL, 0, &count), STATUS_BUFFER_TOO_SMALL);
    CHECK_EQ(count, 3);
    CHECK_STATUS(KeQueryHardwareCounterConfiguration(NULL, 3, &count), STATUS_INVALID_PARAMETER);
    CHECK_STATUS(KeQueryHardwareCounterConfiguration(c, 3, NULL), STATUS_INVALID_PARAMETER);
    configured(c, 3);
    empty();
}

/* Refused as the only element, as the first and as the last one, and nothing changes. */
static void refused_element(HARDWARE_COUNTER bad)
{
    HARDWARE_COUNTER before[] = { element(1), element(0) };
    HARDWARE_COUNTER first[] = { bad, element(0) }, last[MAX_HW_COUNTERS];
    for (unsigned i = 0; i < MAX_HW_COUNTERS; i++)
        last[i] = i == MAX_HW_COUNTERS - 1 ? bad : element(0);
    CHECK_STATUS(KeSetHardwareCounterConfiguration(before, 2), STATUS_SUCCESS);
    CHECK_STATUS(set_one(bad), STATUS_INVALID_PARAMETER);
    CHECK_STATUS(KeSetHardwareCounterConfiguration(first, 2), STATUS_INVALID_PARAMETER);
    CHECK_STATUS(KeSetHardwareCounterConfiguration(last, MAX_HW_COUNTERS),
                 STATUS_INVALID_PARAMETER);
    configured(before, 2);
    empty();
    CHECK_STATUS(set_one(bad), STATUS_INVALID_PARAMETER);
    configured(NULL, 0);
}

TEST(tp_config, bad_elements,
     "types other than PMCCounter, each bit of Reserved, and an Index for which the processor has "
     "no counter are refused; each counter's RDPMC selector is accepted, of fixed ones too [TP-24 "
     "TP-25 TP-26 TP-27]")
{
    SKIP_WITHOUT_PMU();
    static const ULONG types[] = {
        MaxHardwareCounterType, 2, 0x100, 0x7fffffff, 0x80000000, 0xffffffff
    };
    static const ULONG64 never[] = { 0x40000020, 0x80000000, 0xc0000000, 0xffffffff, ~UINT64_C(0) };
    const HARDWARE_COUNTER good = element(0);
    for (unsigned i = 0; i < ARRAY_SIZE(types); i++)
        refused_element((HARDWARE_COUNTER){ (HARDWARE_COUNTER_TYPE)types[i], 0, good.Index });
    for (unsigned bit = 0; bit < 32; bit++) {
        refused_element((HARDWARE_COUNTER){ PMCCounter, 1u << bit, good.Index });
        refused_element((HARDWARE_COUNTER){ PMCCounter, 0, good.Index | UINT64_C(1) << 32 << bit });
    }
    for (unsigned i = 0; i < ARRAY_SIZE(never); i++)
        refused_element((HARDWARE_COUNTER){ PMCCounter, 0, never[i] });
    for (unsigned ctr = 0; ctr < 64; ctr++) {
        HARDWARE_COUNTER c = { PMCCounter, 0, pmu_rdpmc_index(ctr) };
        if (!(common_counters() >> ctr & 1)) {
            refused_element(c);
            continue;
        }
        CHECK_STATUS(set_one(c), STATUS_SUCCESS);
        configured(&c, 1);
        empty();
    }
}

TEST(tp_config, irql,
     "both routines work at APC_LEVEL as at PASSIVE_LEVEL, on every CPU [TP-30 TP-31]")
{
    HARDWARE_COUNTER one = { PMCCounter, 0, 0 };
    bool some = test_has_pmu();
    for (unsigned cpu = 0; test_run_on_each(cpu); cpu++) {
        KIRQL old = irql_raise(APC_LEVEL);
        if (some) {
            one = element(cpu % 2);
            CHECK_STATUS(set_one(one), STATUS_SUCCESS);
        }
        configured(&one, some);
        irql_lower(old);
        configured(&one, some);
        old = irql_raise(APC_LEVEL);
        empty();
        configured(NULL, 0);
        CHECK_EQ(irql_current(), APC_LEVEL);
        irql_lower(old);
    }
}

/* The counter that this took since is refused at each place of a list; the list before it stays. */
static void refused_owned(uint64_t available)
{
    uint64_t taken = available & ~hal_counters_available(cpu_all());
    REQUIRE(taken != 0 && bit_count(available) > 1);
    const HARDWARE_COUNTER bad = { PMCCounter, 0, pmu_rdpmc_index(bit_lowest(taken)) };
    const HARDWARE_COUNTER good = { PMCCounter, 0,
                                    pmu_rdpmc_index(bit_lowest(available & ~taken)) };
    HARDWARE_COUNTER first[] = { bad, good }, last[] = { good, good, bad };
    CHECK_STATUS(set_one(good), STATUS_SUCCESS);
    CHECK_STATUS(set_one(bad), STATUS_WMI_ALREADY_ENABLED);
    CHECK_STATUS(KeSetHardwareCounterConfiguration(first, 2), STATUS_WMI_ALREADY_ENABLED);
    CHECK_STATUS(KeSetHardwareCounterConfiguration(last, 3), STATUS_WMI_ALREADY_ENABLED);
    CHECK_STATUS(KeSetHardwareCounterConfiguration(first, MAX_HW_COUNTERS + 1),
                 STATUS_INVALID_PARAMETER);
    configured(&good, 1);
    empty();
}

TEST(tp_config, sampled,
     "a counter that a profile source or a counter set has on any CPU is refused [TP-19]")
{
    SKIP_WITHOUT_SOURCE();
    KPROFILE_SOURCE source = SOURCE;
    PMC_HANDLE set = NULL;
    const unsigned cpu = cpu_count - 1;
    const uint64_t available = hal_counters_available(cpu_all());
    test_run_on(0); /* on another, if there is one */
    REQUIRE_STATUS(hal_profile_reserve(source, cpu_set_one(cpu)), STATUS_SUCCESS);
    hal_profile_start(source, cpu_set_one(cpu));
    refused_owned(available);
    hal_profile_stop(source, cpu_set_one(cpu));
    REQUIRE_STATUS(HalAllocatePmcCounterSet(cpu, &source, 1, &set), STATUS_SUCCESS);
    refused_owned(available);
    HalFreePmcCounterSet(set);
    for_each_bit(ctr, available)
        CHECK_STATUS(set_one((HARDWARE_COUNTER){ PMCCounter, 0, pmu_rdpmc_index((unsigned)ctr) }),
                     STATUS_SUCCESS);
    empty();
}
