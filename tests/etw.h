/* SPDX-License-Identifier: MIT */
/* Trace sessions for tests in ring 0. */
#pragma once
#include "kernel/etw.h"
#include "tests/etw_session.h"
