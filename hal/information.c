/* SPDX-License-Identifier: MIT */
/* HalQuerySystemInformation and HalSetSystemInformation: the classes that concern profiling.
 * IRQL PASSIVE_LEVEL. Sources: the enumerations of ntddk.h; structures as ReactOS has them.
 *
 * NT: no source gives the status of a wrong size, or the input of the ownership query. Sources
 * are added, and corruption is reported, with structures of our own. Only the numbers of the
 * classes for handlers of the timer (10) and of DPGO (12) and for notifications (24) are known:
 * they are refused. On Windows the handler of class 1 replaces the kernel's; here the owners'
 * handlers are still called. */
#include "hal/sources.h"
#include "hal/interrupt.h"
#include "hal/owners.h"
#include "hal/pmc.h"
#include "hal/profile_interrupt.h"
#include "kernel/base/assert.h"
#include "kernel/base/bits.h"
#include "kernel/base/cpu.h"
#include "kernel/base/irql.h"
#include "kernel/base/string.h"
#include "pmu/pmu.h"

static NTSTATUS query_source(ULONG size, PVOID buffer, PULONG returned)
{
    HAL_PROFILE_SOURCE_INFORMATION_EX *ex = buffer;
    HAL_PROFILE_SOURCE_INFORMATION *info = buffer;
    ULONG lowest, preset, highest;

    if (size < sizeof *info)
        return STATUS_INFO_LENGTH_MISMATCH;
    KPROFILE_SOURCE source = info->Source;
    bool supported = hal_source_supported(source), extended = size >= sizeof *ex;
    ULONG interval = supported ? hal_source_interval(source) : 0;
    *returned = extended ? sizeof *ex : sizeof *info;
    if (!extended) {
        info->Supported = supported;
        info->Interval = interval;
        return STATUS_SUCCESS;
    }
    *ex = (HAL_PROFILE_SOURCE_INFORMATION_EX){ .Source = source, .Supported = supported };
    if (supported) {
        hal_source_limits(source, &lowest, &preset, &highest);
        ex->Interval = interval;
        ex->DefInterval = preset;
        ex->MinInterval = lowest;
        ex->MaxInterval = highest;
    }
    return STATUS_SUCCESS;
}

/* The entries, followed by the strings that they point to. */
static NTSTATUS query_list(ULONG size, PVOID buffer, PULONG returned)
{
    HAL_PROFILE_SOURCE_LIST *list = buffer;
    ULONG count = 0, needed = 0;
    KPROFILE_SOURCE source = ProfileTime;
    do {
        count++;
        needed += (ULONG)(sizeof *list + (strlen(hal_source_name(source)) + 1) * sizeof(WCHAR));
        source = hal_source_next(source);
    } while (source != ProfileTime);
    *returned = needed;
    if (size < needed)
        return STATUS_INFO_LENGTH_MISMATCH;
    WCHAR *text = (WCHAR *)(list + count);
    for (ULONG i = 0; i < count; i++, source = hal_source_next(source)) {
        list[i] = (HAL_PROFILE_SOURCE_LIST){ source, text };
        const char *name = hal_source_name(source);
        do
            *text++ = (WCHAR)*name;
        while (*name++);
    }
    return STATUS_SUCCESS;
}

KPROFILE_SOURCE hal_counter_source(unsigned ctr, unsigned cpu)
{
    KPROFILE_SOURCE source = hal_profile_source(ctr, cpu);
    return source == ProfileTime ? hal_pmc_source(ctr, cpu) : source;
}

static ETW_PMC_COUNTER_OWNER owner_of_counter(unsigned ctr, unsigned cpu)
{
    ETW_PMC_COUNTER_OWNER owner = { .OwnerType = EtwPmcOwnerFree };
    KPROFILE_SOURCE source = hal_counter_source(ctr, cpu);
    owner.OwnerTag = hal_counter_owner_tag(ctr, cpu);
    owner.ProfileSource = (ULONG)source;
    if (hal_counter_owner_name(ctr, cpu))
        owner.OwnerType = source           ? EtwPmcOwnerTaggedWithSource
                          : owner.OwnerTag ? EtwPmcOwnerTagged
                                           : EtwPmcOwnerUntagged;
    return owner;
}

static NTSTATUS query_ownership(ULONG size, PVOID buffer, PULONG returned)
{
    ETW_PMC_COUNTER_OWNERSHIP_STATUS *status = buffer;
    /* Of the processor that the buffer names; if it names none, all that any processor has. */
    bool named = size >= sizeof status->ProcessorNumber && status->ProcessorNumber < cpu_count;
    uint64_t counters =
        named ? pmu_of(status->ProcessorNumber)->counters : pmu_some_counters(cpu_all());
    ULONG n = 0, count = bit_count(counters);
    *returned = (ULONG)offsetof(ETW_PMC_COUNTER_OWNERSHIP_STATUS, CounterOwners[count]);
    if (size < *returned)
        return STATUS_INFO_LENGTH_MISMATCH;
    if (status->ProcessorNumber >= cpu_count)
        return STATUS_INVALID_PARAMETER;
    status->NumberOfCounters = count;
    for_each_bit(ctr, counters)
        status->CounterOwners[n++] = owner_of_counter((unsigned)ctr, status->ProcessorNumber);
    return STATUS_SUCCESS;
}

static NTSTATUS query_corruption(ULONG size, HAL_PROFILE_CORRUPTION_STATUS *status, PULONG returned)
{
    *returned = sizeof *status;
    if (size < sizeof *status)
        return STATUS_INFO_LENGTH_MISMATCH;
    if (status->ProcessorNumber >= cpu_count)
        return STATUS_INVALID_PARAMETER;
    status->Counters = hal_counters_rewritten(status->ProcessorNumber);
    return STATUS_SUCCESS;
}

static NTSTATUS query_number(ULONG number, ULONG size, PVOID buffer, PULONG returned)
{
    *returned = sizeof number;
    if (size < sizeof number)
        return STATUS_INFO_LENGTH_MISMATCH;
    *(ULONG *)buffer = number;
    return STATUS_SUCCESS;
}

NTSTATUS HalQuerySystemInformation(HAL_QUERY_INFORMATION_CLASS InformationClass, ULONG BufferSize,
                                   PVOID Buffer, PULONG ReturnedLength)
{
    ULONG ignored = 0;
    PULONG returned = ReturnedLength ? ReturnedLength : &ignored;

    ASSERT(irql_current() == PASSIVE_LEVEL);
    *returned = 0;
    switch (InformationClass) {
    case HalProfileSourceInformation: return query_source(BufferSize, Buffer, returned);
    case HalQueryProfileSourceList: return query_list(BufferSize, Buffer, returned);
    case HalQueryProfileIsTimerBasedProfiling: /* a BOOLEAN: TRUE if there are no counters */
        if (BufferSize < sizeof(BOOLEAN))
            return STATUS_INFO_LENGTH_MISMATCH;
        *(BOOLEAN *)Buffer = hal_source_next(ProfileTime) == ProfileTime;
        *returned = sizeof(BOOLEAN);
        return STATUS_SUCCESS;
    case HalQueryProfileNumberOfCounters:
        return query_number(hal_counter_count(), BufferSize, Buffer, returned);
    case HalQueryProfileCorruptionStatus: return query_corruption(BufferSize, Buffer, returned);
    case HalQueryProfileCounterOwnership: return query_ownership(BufferSize, Buffer, returned);
    default: return STATUS_INVALID_INFO_CLASS;
    }
}

static NTSTATUS set_interval(ULONG size, const HAL_PROFILE_SOURCE_INTERVAL *interval)
{
    if (size < sizeof *interval)
        return STATUS_INFO_LENGTH_MISMATCH;
    if (!hal_source_known(interval->Source))
        return STATUS_NOT_SUPPORTED;
    hal_source_set_interval(interval->Source, interval->Interval);
    return STATUS_SUCCESS;
}

static NTSTATUS add_source(ULONG size, HAL_PROFILE_SOURCE_ADD *source)
{
    char name[HAL_SOURCE_NAME_MAX];
    unsigned i = 0, capacity = ARRAY_SIZE(source->Description);
    if (size < sizeof *source)
        return STATUS_INFO_LENGTH_MISMATCH;
    for (; i < capacity && source->Description[i]; i++) {
        if (source->Description[i] > '~' || source->Description[i] < ' ')
            return STATUS_INVALID_PARAMETER;
        name[i] = (char)source->Description[i];
    }
    if (i == capacity)
        return STATUS_INVALID_PARAMETER;
    name[i] = 0;
    uint32_t flags = PMU_THRESHOLD(source->CMask) | (source->CInv ? PMU_INVERT : 0) |
                     (source->AnyThread ? PMU_ANY_THREAD : 0) |
                     (source->EdgeDetect ? PMU_EDGE : 0) | (source->Precise ? SOURCE_PRECISE : 0);
    return hal_source_add(name, source->EventSelect, source->UnitSelect, flags,
                          source->InitialInterval, &source->Source);
}

NTSTATUS HalSetSystemInformation(HAL_SET_INFORMATION_CLASS InformationClass, ULONG BufferSize,
                                 PVOID Buffer)
{
    ASSERT(irql_current() == PASSIVE_LEVEL);
    switch (InformationClass) {
    case HalProfileSourceInterval: return set_interval(BufferSize, Buffer);
    case HalProfileSourceInterruptHandler:
        return BufferSize < sizeof(PMIHANDLER) ? STATUS_INFO_LENGTH_MISMATCH
                                               : hal_pmi_set_driver(*(const PMIHANDLER *)Buffer);
    case HalProfileSourceAdd: return add_source(BufferSize, Buffer);
    case HalProfileSourceRemove:
        if (BufferSize < sizeof(KPROFILE_SOURCE))
            return STATUS_INFO_LENGTH_MISMATCH;
        return hal_source_remove(*(const KPROFILE_SOURCE *)Buffer);
    default: return STATUS_INVALID_INFO_CLASS;
    }
}
