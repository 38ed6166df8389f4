/* SPDX-License-Identifier: MIT */
/* For the files of kernel/user/advapi32 only. Linked with our tests they include this file, with
 * our own headers; in the library they include advapi32/trace.h, with mingw-w64's. */
#pragma once
#include "evntcons.h"
#include "kernel/user/advapi32/trace_control.h"
