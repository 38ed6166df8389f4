/* SPDX-License-Identifier: MIT */
/* What kernel/nt/nt.h is for ring 0: here mingw-w64's headers, and what those lack. It is found
 * before the kernel's own where the tests in ring 3 are compiled. */
#pragma once
#define INITGUID
#include <ntstatus.h>
#define WIN32_NO_STATUS
#include <windows.h>
#include <winternl.h>
#include <intrin.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ABI_SIZE(type, size) C_ASSERT(sizeof(type) == (size))
#define ABI_FIELD(type, field, offset) C_ASSERT(offsetof(type, field) == (offset))

/* Their own is a function of a library; a program has the instruction, as with Microsoft's. */
#define __readpmc(counter) __rdpmc((int)(counter))

/* An exact count: LFENCE waits for the instructions before it, which RDPMC does not. */
static inline unsigned __int64 read_exactly(unsigned long selector)
{
    _mm_lfence();
    return __readpmc(selector);
}

#include "kernel/nt/nt_thread_profiling.h"
#include "kernel/nt/nt_waits.h"

#define NtCurrentProcess() ((HANDLE)(LONG_PTR)-1)
#define NtCurrentThread() ((HANDLE)(LONG_PTR)-2)
#define ThreadBasicInformation ((THREADINFOCLASS)0)
#define ThreadBasePriority ((THREADINFOCLASS)3)
#define ThreadAffinityMask ((THREADINFOCLASS)4)
#define ThreadCounterProfiling ((THREADINFOCLASS)32)
#define THREAD_CREATE_FLAGS_CREATE_SUSPENDED 0x00000001
#define WrQuantumEnd ((KWAIT_REASON)30)
#define WAIT_REASONS 43 /* MaximumWaitReason; that of mingw-w64 leaves the last 16 out */
#define MemoryBasicInformation 0
#define PROFILE_CONTROL 0x0001
#define PROFILE_ALL_ACCESS (0x000F0000 | PROFILE_CONTROL)
#define SE_SYSTEM_PROFILE_PRIVILEGE 11
#define EVENT_QUERY_STATE 0x0001
#define SEMAPHORE_QUERY_STATE 0x0001

typedef struct _THREAD_BASIC_INFORMATION {
    NTSTATUS ExitStatus;
    PVOID TebBaseAddress;
    CLIENT_ID ClientId;
    KAFFINITY AffinityMask;
    LONG Priority, BasePriority;
} THREAD_BASIC_INFORMATION;
