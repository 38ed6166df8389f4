/* SPDX-License-Identifier: MIT */
/* What kernel/nt/nt_trace.h is for ring 0. */
#pragma once
#include "kernel/nt/nt_profile.h"
#include <evntrace.h>
#include <evntcons.h>
#include "kernel/nt/nt_etw.h"
#include "kernel/nt/nt_trace_class.h"
#include "kernel/user/advapi32/evntrace_newer.h"
