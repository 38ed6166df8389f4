/* SPDX-License-Identifier: MIT */
/* wdm.h for DRIVER=file.cpp: mingw-w64's defines again in C++ what its intrin.h has. */
#pragma once
#ifdef __cplusplus
#include <ntdef.h>
#include <intrin.h>
#define InterlockedBitTestAndSet WdmInterlockedBitTestAndSet
#define InterlockedBitTestAndReset WdmInterlockedBitTestAndReset
#endif
#include_next <wdm.h>
#undef InterlockedBitTestAndSet
#undef InterlockedBitTestAndReset
