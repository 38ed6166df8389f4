/* SPDX-License-Identifier: MIT */
/* What kernel/nt/nt_trace.h is for ring 0. */
#pragma once
#include "kernel/nt/nt_profile.h"
#include <evntrace.h>
#include <evntcons.h>
#include "kernel/nt/nt_etw.h"
#include "kernel/nt/nt_trace_class.h"

/* evntrace.h's list of classes ends too early. */
#define TraceMaxPmcCounterQuery 22
#define TracePmcCounterOwners 25
#define TracePmcSessionInformation 27

/* GUIDs from the documentation of the kernel's events. No header has them. */
static const GUID ThreadGuid __attribute__((
    unused)) = { 0x3d6fa8d1, 0xfe05, 0x11d0, { 0x9d, 0xda, 0x00, 0xc0, 0x4f, 0xd7, 0xba, 0x7c } };
static const GUID PerfInfoGuid __attribute__((
    unused)) = { 0xce1dbfb4, 0x137e, 0x4da6, { 0x87, 0xb0, 0x3f, 0x59, 0xaa, 0x10, 0x2c, 0xbc } };
