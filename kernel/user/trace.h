/* SPDX-License-Identifier: MIT */
/* Between the files of kernel/user/advapi32 only: this one where they are linked with our tests, by
 * our own headers; advapi32/trace.h in the library, by those of mingw-w64. */
#pragma once
#include "evntcons.h"
#include "kernel/user/advapi32/trace_control.h"
