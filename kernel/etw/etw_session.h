/* SPDX-License-Identifier: MIT */
/* Sessions: their start, stop, masks and buffers. */
#pragma once
#include "kernel/ke/etw_stream.h"

extern const struct object_type trace_type;
/* The guard: held at PASSIVE_LEVEL and across IPIs; waiters yield. */
void etw_enter(void);
void etw_leave(void);
/* L: guard, all of these. NULL: no such session runs. Only the low 16 bits of the handle are
 * used. */
struct etw_logger *etw_find(TRACEHANDLE handle);
struct etw_logger *etw_find_name(const char *name);
NTSTATUS etw_start(const char *name, const WMI_LOGGER_INFORMATION *info,
                   struct etw_logger **started);
void etw_stop(struct etw_logger *logger);
void etw_flush(struct etw_logger *logger);
/* STATUS_NOT_SUPPORTED, STATUS_DEVICE_BUSY: a source that the masks enable cannot be sampled;
 * nothing has changed. */
NTSTATUS etw_set_masks(struct etw_logger *logger, const PERFINFO_GROUPMASK *masks);
/* The masks that EnableFlags stand for. */
PERFINFO_GROUPMASK etw_masks_of_flags(ULONG flags);
/* Statuses and buffers as of EtwRealtimeReadCode. */
NTSTATUS etw_read(struct etw_logger *logger, uint8_t *out, ULONG length, ULONG *returned);

/* For one that has stopped, without the guard too. It is freed when it has no consumer. */
void etw_free(struct etw_logger *logger);
uint64_t etw_lost(const struct etw_logger *logger);
