/* SPDX-License-Identifier: MIT */
/* Processes that configure counters by the driver for ring 3, or find them configured, for
 * tests/profiling/tp_driver.c. */
#include "tests/ring3/helpers.h"

#define INSTRUCTIONS 2 /* KPROFILE_SOURCE */

static NTSTATUS set_configuration(ULONG count)
{
    HARDWARE_COUNTER counter = { PMCCounter, 0, INSTRUCTIONS };
    return KeSetHardwareCounterConfiguration(&counter, count);
}

static ULONG configured_counters(ULONG64 *selector)
{
    HARDWARE_COUNTER found[MAX_HW_COUNTERS];
    ULONG count = FILL;
    CHECK_OK(KeQueryHardwareCounterConfiguration(found, MAX_HW_COUNTERS, &count));
    *selector = count ? found[0].Index : FILL;
    return count;
}

void user_driver_hold(uint64_t give_back)
{
    CHECK_STATUS(set_configuration(1), STATUS_SUCCESS);
    CHECK_EQ(configured_counters(&user_handle), 1);
    if (give_back)
        CHECK_STATUS(set_configuration(0), STATUS_SUCCESS);
    __atomic_store_n(&user_state, 1, __ATOMIC_RELEASE);
    Sleep(INFINITE);
}

void user_driver_set(uint64_t wanted) { CHECK_STATUS(set_configuration(1), (NTSTATUS)wanted); }

void user_driver_wide(uint64_t unused)
{
    (void)unused;
    for (unsigned bit = 32; bit < 64; bit++) {
        HARDWARE_COUNTER counter = { PMCCounter, 0, INSTRUCTIONS | UINT64_C(1) << bit };
        CHECK_STATUS(KeSetHardwareCounterConfiguration(&counter, 1), STATUS_INVALID_PARAMETER);
    }
}

void user_driver_second(uint64_t selector)
{
    ULONG64 found;
    HANDLE profile = NULL;
    PERFORMANCE_DATA data;
    CHECK_STATUS(set_configuration(1), STATUS_WMI_ALREADY_ENABLED);
    CHECK_STATUS(set_configuration(0), STATUS_WMI_ALREADY_ENABLED);
    CHECK_EQ(configured_counters(&found), 1);
    CHECK_EQ(found, selector);
    REQUIRE(EnableThreadProfiling(GetCurrentThread(), 0, 1, &profile) == ERROR_SUCCESS);
    ring3_work(10000);
    ring3_data(&data);
    CHECK_EQ(ReadThreadProfilingData(profile, READ_THREAD_PROFILING_FLAG_HARDWARE_COUNTERS, &data),
             ERROR_SUCCESS);
    CHECK_EQ(data.HwCountersCount, 1);
    CHECK(data.HwCounters[0].Value > 20000);
    ring3_disable(profile);
}
