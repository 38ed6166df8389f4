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

static const struct {
    HARDWARE_COUNTER counter;
    NTSTATUS status;
} refusals[] = {
    { { MaxHardwareCounterType, 0, INSTRUCTIONS }, STATUS_INVALID_PARAMETER },
    { { PMCCounter, 1, INSTRUCTIONS }, STATUS_INVALID_PARAMETER },
    { { PMCCounter, 0, 1 }, STATUS_NOT_SUPPORTED }, /* ProfileAlignmentFixup */
};

/* What refuses a configuration. */
void user_driver_refused(uint64_t unused)
{
    HARDWARE_COUNTER many[MAX_HW_COUNTERS + 1];
    PERFORMANCE_DATA data = { .Size = sizeof data, .Version = PERFORMANCE_DATA_VERSION };
    ULONG count = FILL;
    for (unsigned i = 0; i <= MAX_HW_COUNTERS; i++)
        many[i] = (HARDWARE_COUNTER){ PMCCounter, 0, INSTRUCTIONS };
    for (unsigned i = 0; i < ARRAYSIZE(refusals); i++) {
        HARDWARE_COUNTER counter = refusals[i].counter;
        CHECK_STATUS(KeSetHardwareCounterConfiguration(&counter, 1), refusals[i].status);
    }
    for (unsigned bit = 32; bit < 64; bit++) {
        HARDWARE_COUNTER counter = { PMCCounter, 0, INSTRUCTIONS | UINT64_C(1) << bit };
        CHECK_STATUS(KeSetHardwareCounterConfiguration(&counter, 1), STATUS_INVALID_PARAMETER);
    }
    CHECK_STATUS(KeSetHardwareCounterConfiguration(many, MAX_HW_COUNTERS + 1),
                 STATUS_INVALID_PARAMETER);
    CHECK_STATUS(KeSetHardwareCounterConfiguration(many, MAX_HW_COUNTERS),
                 STATUS_INSUFFICIENT_RESOURCES);
    CHECK_STATUS(KeSetHardwareCounterConfiguration(NULL, 1), STATUS_ACCESS_VIOLATION);
    CHECK_STATUS(KeSetHardwareCounterConfiguration(KERNEL_ADDRESS, 1), STATUS_ACCESS_VIOLATION);
    CHECK_STATUS(set_configuration(1), STATUS_SUCCESS);
    CHECK_STATUS(KeQueryHardwareCounterConfiguration(many, 0, &count), STATUS_BUFFER_TOO_SMALL);
    CHECK_EQ(count, 1);
    HANDLE profile = ring3_enable(0, 1);
    CHECK_STATUS(set_configuration(1), STATUS_WMI_ALREADY_ENABLED);
    CHECK_STATUS(set_configuration(0), STATUS_WMI_ALREADY_ENABLED);
    CHECK_OK(ZwReadThreadProfilingData(profile, 2, &data));
    uint64_t before = data.HwCounters[0].Value; /* the counter runs on */
    CHECK_OK(ZwReadThreadProfilingData(profile, 2, &data));
    CHECK_RANGE(data.HwCounters[0].Value - before, 1, 1000);
    ring3_disable(profile);
    CHECK_STATUS(set_configuration(0), STATUS_SUCCESS);
}

void user_driver_second(uint64_t selector)
{
    ULONG64 found;
    PERFORMANCE_DATA data;
    CHECK_STATUS(set_configuration(1), STATUS_WMI_ALREADY_ENABLED);
    CHECK_STATUS(set_configuration(0), STATUS_WMI_ALREADY_ENABLED);
    CHECK_EQ(configured_counters(&found), 1);
    CHECK_EQ(found, selector);
    HANDLE profile = ring3_enable(0, 1);
    ring3_work(10000);
    ring3_read(profile, READ_THREAD_PROFILING_FLAG_HARDWARE_COUNTERS, &data);
    CHECK_EQ(data.HwCountersCount, 1);
    CHECK(data.HwCounters[0].Value > 20000);
    ring3_disable(profile);
}
