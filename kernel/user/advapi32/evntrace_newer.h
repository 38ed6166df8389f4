/* SPDX-License-Identifier: MIT */
/* What evntrace.h of Windows has and mingw-w64's has not, and GUIDs from the documentation of the
 * kernel's events, which no header has. */
#pragma once
#include <evntrace.h>

#define TraceLbrConfigurationInfo 20
#define TraceLbrEventListInfo 21
#define TraceMaxPmcCounterQuery 22
#define TracePmcCounterOwners 25
#define TracePmcSessionInformation 27

/* What a list of branches leaves out, and what makes it a call stack. */
typedef ULONG TRACE_LBR_CONFIGURATION;
#define EVNTRACE_LBR_SAMPLED 0x400
ULONG TraceConfigureLastBranchRecord(TRACEHANDLE TraceId, TRACE_LBR_CONFIGURATION LbrConfiguration,
                                     const CLASSIC_EVENT_ID *Events, ULONG EventCount);

static const GUID ThreadGuid __attribute__((
    unused)) = { 0x3d6fa8d1, 0xfe05, 0x11d0, { 0x9d, 0xda, 0x00, 0xc0, 0x4f, 0xd7, 0xba, 0x7c } };
static const GUID PerfInfoGuid __attribute__((
    unused)) = { 0xce1dbfb4, 0x137e, 0x4da6, { 0x87, 0xb0, 0x3f, 0x59, 0xaa, 0x10, 0x2c, 0xbc } };
static const GUID LastBranchGuid __attribute__((
    unused)) = { 0x99134383, 0x5248, 0x43fc, { 0x83, 0x4b, 0x52, 0x94, 0x54, 0xe7, 0x5d, 0xf3 } };
static const GUID StackWalkGuid __attribute__((
    unused)) = { 0xdef2fe46, 0x7bd6, 0x4b80, { 0xbd, 0x94, 0xf5, 0x7f, 0xe2, 0x0d, 0x0c, 0xe3 } };
