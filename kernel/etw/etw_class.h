/* SPDX-License-Identifier: MIT */
#pragma once
#include "kernel/nt/nt_trace.h"

/* Class 0x1F only; others STATUS_INVALID_INFO_CLASS. PASSIVE_LEVEL. */
NTSTATUS NtSetSystemInformation(ULONG SystemInformationClass, PVOID SystemInformation,
                                ULONG SystemInformationLength);
NTSTATUS NtQuerySystemInformation(ULONG SystemInformationClass, PVOID SystemInformation,
                                  ULONG SystemInformationLength, PULONG ReturnLength);
