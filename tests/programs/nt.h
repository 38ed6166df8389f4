/* SPDX-License-Identifier: MIT */
/* Of programs that call services of ntdll.dll by themselves. */
#pragma once
#include <ntstatus.h>
#define WIN32_NO_STATUS
#define WIN32_LEAN_AND_MEAN
#include <windows.h>
#include <winternl.h>
#include "check.h"

#define KERNEL_ADDRESS ((PVOID)0xffff800000000000)
