/* SPDX-License-Identifier: MIT */
/* Counters at events: the two lists of a session, and the sources whose interrupts are events.
 *
 * The guard protects the lists. When both are set, each processor changes the layout of its own
 * records. The sources to sample are system-wide; each is read and written as a whole. Order of the
 * statuses: Geoff Chappell's studies. */
#include "hal/machine/smp.h"
#include "kernel/etw/etw_pmc.h"
#include "hal/owners.h"
#include "hal/pmc.h"
#include "hal/profile_interrupt.h"
#include "hal/sources.h"
#include "kernel/base/cpu.h"
#include "kernel/mm/phys.h"

static bool samples_time, samples_events; /* L: guard */

ULONG etw_pmc_max(void)
{
    unsigned n = hal_counter_count();
    return n < ETW_PMC_COUNTERS_MAX ? n : ETW_PMC_COUNTERS_MAX;
}

/* --- The lists. L: guard, all of these. --- */

static PETW_PMC_SUPPORT support(struct etw_logger *logger)
{
    size_t end = offsetof(ETW_PMC_SUPPORT, ProcessorCtrs) + MAX_CPUS * sizeof(PMC_HANDLE);
    _Static_assert(sizeof(ETW_PMC_SUPPORT) + MAX_CPUS * sizeof(PMC_HANDLE) +
                           ETW_PMC_COUNTERS_MAX * 4 <=
                       PAGE_SIZE,
                   "one page");
    if (!logger->pmc) {
        logger->pmc = phys_alloc(1);
        if (logger->pmc)
            logger->pmc->Source = (PKPROFILE_SOURCE)(void *)((uint8_t *)logger->pmc + end);
    }
    return logger->pmc;
}

struct form {
    const struct etw_logger *logger;
    uint32_t hooks;
};

static void form_here(void *argument)
{
    const struct form *form = argument;
    const ETW_PMC_SUPPORT *pmc = form->logger->pmc;
    etw_stream_form(form->logger->streams[cpu_number()], form->hooks, pmc->CountersCount,
                    pmc->ProcessorCtrs[cpu_number()]);
}

/* Counters are collected only when both lists are set. */
static void begin_collecting(const struct etw_logger *logger)
{
    struct form form = { logger, 0 };
    for (ULONG i = 0; i < logger->pmc->HookIdCount; i++)
        form.hooks |= etw_hooks_of_id(logger->pmc->HookId[i]);
    if (logger->pmc->CountersCount && form.hooks)
        smp_call(SMP_ALL, form_here, &form);
}

static void free_sets(PETW_PMC_SUPPORT pmc)
{
    for_all_cpus(cpu) {
        if (pmc->ProcessorCtrs[cpu])
            HalFreePmcCounterSet(pmc->ProcessorCtrs[cpu]);
        pmc->ProcessorCtrs[cpu] = NULL;
    }
}

NTSTATUS etw_pmc_set_sources(struct etw_logger *logger, const ULONG *sources, ULONG count)
{
    NTSTATUS status = STATUS_SUCCESS;
    if (!count || count > ETW_PMC_COUNTERS_MAX || (etw_pmc_max() && count > etw_pmc_max()))
        return STATUS_INVALID_PARAMETER;
    if (logger->mode & EVENT_TRACE_USE_PAGED_MEMORY)
        return STATUS_INVALID_PARAMETER;
    PETW_PMC_SUPPORT pmc = support(logger);
    if (!pmc)
        return STATUS_NO_MEMORY;
    if (pmc->CountersCount)
        return STATUS_WMI_ALREADY_ENABLED;
    for (ULONG i = 0; i < count; i++)
        pmc->Source[i] = (KPROFILE_SOURCE)sources[i];
    for (unsigned cpu = 0; cpu < cpu_count && NT_SUCCESS(status); cpu++)
        status = HalAllocatePmcCounterSet(cpu, pmc->Source, count, &pmc->ProcessorCtrs[cpu]);
    if (!NT_SUCCESS(status)) {
        free_sets(pmc);
        if (!pmc->HookIdCount)
            etw_pmc_free(logger);
        return status;
    }
    pmc->CountersCount = count;
    begin_collecting(logger);
    return STATUS_SUCCESS;
}

NTSTATUS etw_pmc_set_hooks(struct etw_logger *logger, const ULONG *hooks, ULONG count)
{
    if (!count || count > ETW_MAX_PMC_EVENTS)
        return STATUS_INVALID_PARAMETER;
    if (logger->mode & EVENT_TRACE_USE_PAGED_MEMORY)
        return STATUS_INVALID_PARAMETER;
    for (ULONG i = 0; i < count; i++)
        if (!etw_hooks_of_id(hooks[i]))
            return STATUS_NOT_SUPPORTED; /* our choice */
    PETW_PMC_SUPPORT pmc = support(logger);
    if (!pmc)
        return STATUS_NO_MEMORY;
    if (pmc->HookIdCount)
        return STATUS_WMI_ALREADY_ENABLED;
    for (ULONG i = 0; i < count; i++)
        pmc->HookId[i] = (USHORT)hooks[i];
    pmc->HookIdCount = count;
    begin_collecting(logger);
    return STATUS_SUCCESS;
}

void etw_pmc_free(struct etw_logger *logger)
{
    if (!logger->pmc)
        return;
    free_sets(logger->pmc);
    phys_free(logger->pmc, 1);
    logger->pmc = NULL;
}

/* --- Sampling. --- */

static NTSTATUS begin_sampling(KPROFILE_SOURCE source)
{
    NTSTATUS status = hal_profile_reserve(source, cpu_all());
    if (NT_SUCCESS(status))
        hal_profile_start(source, cpu_all());
    return status;
}

static void stop_sources(unsigned count)
{
    hal_profile_collect(cpu_all());
    for (unsigned i = 0; i < count; i++)
        if (etw_sampled[i])
            hal_profile_stop((KPROFILE_SOURCE)etw_sampled[i], cpu_all());
}

/* Starts all of the list or none. */
static NTSTATUS start_sources(void)
{
    for (unsigned i = 0; i < ETW_MAX_PROFILING_SOURCES; i++) {
        NTSTATUS status =
            etw_sampled[i] ? begin_sampling((KPROFILE_SOURCE)etw_sampled[i]) : STATUS_SUCCESS;
        if (!NT_SUCCESS(status)) {
            stop_sources(i);
            return status;
        }
    }
    return STATUS_SUCCESS;
}

static void set_sampled(const ULONG *sources, ULONG count)
{
    for (unsigned i = 0; i < ETW_MAX_PROFILING_SOURCES; i++)
        __atomic_store_n(&etw_sampled[i], i < count ? sources[i] : 0, __ATOMIC_RELAXED);
}

NTSTATUS etw_sampling_configure(const ULONG *sources, ULONG count)
{
    ULONG before[ETW_MAX_PROFILING_SOURCES];
    if (count > ETW_MAX_PROFILING_SOURCES)
        return STATUS_INVALID_PARAMETER;
    for (ULONG i = 0; i < count; i++)
        if (sources[i] == ProfileTime || !hal_source_supported((KPROFILE_SOURCE)sources[i]))
            return STATUS_NOT_SUPPORTED;
    for (unsigned i = 0; i < ETW_MAX_PROFILING_SOURCES; i++)
        before[i] = etw_sampled[i];
    if (samples_events)
        stop_sources(ETW_MAX_PROFILING_SOURCES);
    set_sampled(sources, count);
    NTSTATUS status = samples_events ? start_sources() : STATUS_SUCCESS;
    if (!NT_SUCCESS(status)) {
        set_sampled(before, ETW_MAX_PROFILING_SOURCES);
        if (!NT_SUCCESS(start_sources())) /* somebody else took a counter meanwhile */
            set_sampled(before, 0);
    }
    return status;
}

NTSTATUS etw_sampling_update(uint32_t hooks)
{
    bool time = hooks >> ETW_PROFILE & 1, events = hooks >> ETW_PMC & 1;
    NTSTATUS status = events && !samples_events ? start_sources() : STATUS_SUCCESS;
    if (!NT_SUCCESS(status))
        return status;
    if (!events && samples_events)
        stop_sources(ETW_MAX_PROFILING_SOURCES);
    samples_events = events;
    if (time && !samples_time)
        status = begin_sampling(ProfileTime); /* it needs no counter */
    else if (!time && samples_time)
        hal_profile_stop(ProfileTime, cpu_all());
    samples_time = time;
    return status;
}
