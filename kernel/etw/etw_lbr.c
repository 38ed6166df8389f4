/* SPDX-License-Identifier: MIT */
/* A session's last branches: its options, its hooks, the lists. Sources: evntrace.h, Microsoft's
 * page for TraceConfigureLastBranchRecord; ETW_LBR_SUPPORT is as debuggers' symbols have it. */
#include "kernel/etw/etw_lbr.h"
#include "hal/branch_owner.h"
#include "hal/machine/smp.h"
#include "kernel/base/cpu.h"
#include "kernel/base/x86.h"

_Static_assert(ETW_LBR_FILTERS == HAL_BRANCHES_FILTER &&
                   ETW_LBR_CALL_STACK == HAL_BRANCHES_CALL_STACK,
               "flags are filters");
/* Without these there is nothing that a call stack could hold. */
#define ETW_LBR_CALLS_AND_RETURNS 0x38

static NTSTATUS check_caller(const struct etw_logger *logger)
{
    if (!(logger->mode & EVENT_TRACE_SYSTEM_LOGGER_MODE))
        return STATUS_INVALID_PARAMETER;
    return etw_privileged() ? STATUS_SUCCESS : STATUS_PRIVILEGE_NOT_HELD;
}

/* At IPI_LEVEL, at which no hook of this processor is at work. */
static void begin_branches_here(void *argument)
{
    const struct etw_logger *logger = argument;
    struct etw_stream *stream = logger->streams[cpu_number()];
    stream->filters = logger->lbr.LbrOptions;
    uint64_t flags = read_flags();
    cli();
    hal_branches_begin(logger->lbr.LbrOptions);
    write_flags(flags);
}

static void end_branches_here(void *)
{
    uint64_t flags = read_flags();
    cli();
    hal_branches_end(); /* nobody else sees what was in the list */
    write_flags(flags);
}

static void start_if_whole(struct etw_logger *logger)
{
    if (!logger->lbr.LbrHandle || !logger->lbr.HookIdCount)
        return;
    for (ULONG i = 0; i < logger->lbr.HookIdCount; i++)
        logger->branches |= etw_hooks_of_id(logger->lbr.HookId[i]);
    smp_call(SMP_ALL, begin_branches_here, logger);
    etw_tell_followed(logger);
}

NTSTATUS etw_lbr_set_options(struct etw_logger *logger, ULONG options)
{
    NTSTATUS status = check_caller(logger);
    if (!NT_SUCCESS(status))
        return status;
    if (options & ~(ULONG)(ETW_LBR_FILTERS | ETW_LBR_CALL_STACK | ETW_LBR_SAMPLED) ||
        (options & ETW_LBR_CALL_STACK && options & ETW_LBR_CALLS_AND_RETURNS))
        return STATUS_INVALID_PARAMETER;
    if (logger->branches)
        return STATUS_WMI_ALREADY_ENABLED;
    if (options & ETW_LBR_SAMPLED || !hal_branches_can(options))
        return STATUS_NOT_SUPPORTED;
    if (!logger->lbr.LbrHandle && !hal_branches_claim())
        return STATUS_DEVICE_BUSY;
    logger->lbr.LbrHandle = logger->slot + 1;
    logger->lbr.LbrOptions = options;
    start_if_whole(logger);
    return STATUS_SUCCESS;
}

NTSTATUS etw_lbr_set_hooks(struct etw_logger *logger, const ULONG *hooks, ULONG count)
{
    if (!count || count > ETW_MAX_LBR_EVENTS)
        return STATUS_INVALID_PARAMETER;
    NTSTATUS status = check_caller(logger);
    if (!NT_SUCCESS(status))
        return status;
    for (ULONG i = 0; i < count; i++)
        if (!etw_hooks_of_id(hooks[i]))
            return STATUS_NOT_SUPPORTED;
    if (!hal_branches_can(0))
        return STATUS_NOT_SUPPORTED;
    if (logger->branches)
        return STATUS_WMI_ALREADY_ENABLED;
    for (ULONG i = 0; i < count; i++)
        logger->lbr.HookId[i] = (USHORT)hooks[i];
    logger->lbr.HookIdCount = count;
    start_if_whole(logger);
    return STATUS_SUCCESS;
}

void etw_lbr_free(struct etw_logger *logger)
{
    if (logger->branches)
        smp_call(SMP_ALL, end_branches_here, NULL);
    if (logger->lbr.LbrHandle)
        hal_branches_release();
    logger->branches = 0;
    logger->lbr = (ETW_LBR_SUPPORT){ 0 };
}
