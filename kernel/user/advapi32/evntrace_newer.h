/* SPDX-License-Identifier: MIT */
/* What evntrace.h of Windows has and mingw-w64's has not, and GUIDs from the documentation of the
 * kernel's events, which no header has. */
#pragma once
#include <evntrace.h>

#define TraceMaxPmcCounterQuery 22
#define TraceStackCachingInfo 24
#define TracePmcCounterOwners 25
#define TraceUnifiedStackCachingInfo 26
#define TracePmcSessionInformation 27
#define TraceContextRegisterInfo 28

typedef struct {
    BOOLEAN Enabled;
    UCHAR Reserved[3];
    ULONG CacheSize, BucketCount;
} TRACE_STACK_CACHING_INFO;
typedef struct {
    ULONG RegisterTypes; /* ETW_CONTEXT_REGISTER_TYPES */
    ULONG Reserved;
} TRACE_CONTEXT_REGISTER_INFO;

static const GUID ThreadGuid __attribute__((
    unused)) = { 0x3d6fa8d1, 0xfe05, 0x11d0, { 0x9d, 0xda, 0x00, 0xc0, 0x4f, 0xd7, 0xba, 0x7c } };
static const GUID PerfInfoGuid __attribute__((
    unused)) = { 0xce1dbfb4, 0x137e, 0x4da6, { 0x87, 0xb0, 0x3f, 0x59, 0xaa, 0x10, 0x2c, 0xbc } };
static const GUID StackWalkGuid __attribute__((
    unused)) = { 0xdef2fe46, 0x7bd6, 0x4b80, { 0xbd, 0x94, 0xf5, 0x7f, 0xe2, 0x0d, 0x0c, 0xe3 } };
