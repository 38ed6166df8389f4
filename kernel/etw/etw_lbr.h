/* SPDX-License-Identifier: MIT */
/* For kernel/etw only: last branches at events (ETW_LBR_SUPPORT). One
 * session at a time has the lists of all processors. They run from the moment when options and
 * hooks are both given until the session stops. L: guard, all of these. */
#pragma once
#include "kernel/ke/etw_stream.h"

/* What the lists leave out, EVNTRACE_LBR_FLAGS; again in place of the options before.
 * STATUS_INVALID_PARAMETER: not a system logger, unknown bits, a call stack without calls or
 * returns; STATUS_PRIVILEGE_NOT_HELD: no SeSystemProfilePrivilege; STATUS_WMI_ALREADY_ENABLED: the
 * lists run; STATUS_NOT_SUPPORTED: a processor without a list, or whose list cannot do that;
 * STATUS_DEVICE_BUSY: somebody else has the lists. NT: all but the first are our choice. */
NTSTATUS etw_lbr_set_options(struct etw_logger *logger, ULONG options);
/* The events before which branches are recorded. STATUS_INVALID_PARAMETER: none, more than four,
 * not a system logger; STATUS_PRIVILEGE_NOT_HELD; STATUS_NOT_SUPPORTED: a hook that has no records
 * here, or a processor without a list; STATUS_WMI_ALREADY_ENABLED. */
NTSTATUS etw_lbr_set_hooks(struct etw_logger *logger, const ULONG *hooks, ULONG count);
/* Stops and gives back the lists, if the session has them. */
void etw_lbr_free(struct etw_logger *logger);
