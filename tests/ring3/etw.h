/* SPDX-License-Identifier: MIT */
/* Trace sessions for tests in ring 3. */
#pragma once
#include "tests/ring3/helpers.h"
#define NtTraceControl ZwTraceControl
#define NtSetSystemInformation ZwSetSystemInformation
#define NtQuerySystemInformation ZwQuerySystemInformation
#include "tests/harness/etw_session.h"
