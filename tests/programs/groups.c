/* SPDX-License-Identifier: MIT */
/* Processor groups as a program sees them: counts, numbers, affinities. */
#define _WIN32_WINNT 0x0601
#define WIN32_LEAN_AND_MEAN
#include <windows.h>
#include "check.h"

#define HERE GetCurrentThread()

/* What functions without a group say is of the group where the thread is. */
static void check_group(WORD group, DWORD processors)
{
    GROUP_AFFINITY all = { ~0ull >> (64 - processors), group, { 0 } }, one = all, was, now;
    DWORD_PTR own, system_mask;
    SYSTEM_INFO info;
    PROCESSOR_NUMBER number;
    IS(GetActiveProcessorCount(group), processors);
    IS(SetThreadGroupAffinity(HERE, &all, &was), TRUE);
    IS(GetThreadGroupAffinity(HERE, &now), TRUE);
    IS(now.Mask, all.Mask);
    IS(now.Group, group);
    GetSystemInfo(&info);
    IS(info.dwNumberOfProcessors, processors);
    IS(info.dwActiveProcessorMask, all.Mask);
    IS(GetProcessAffinityMask(GetCurrentProcess(), &own, &system_mask), TRUE);
    IS(own, all.Mask);
    IS(system_mask, all.Mask);
    for (DWORD i = 0; i<processors; i += processors> 1 ? processors - 1 : 1) {
        one.Mask = 1ull << i;
        IS(SetThreadGroupAffinity(HERE, &one, &was), TRUE);
        Sleep(1);
        GetCurrentProcessorNumberEx(&number);
        IS(number.Group, group);
        IS(number.Number, i);
        IS(number.Reserved, 0);
        IS(GetCurrentProcessorNumber(), i);
    }
    IS(SetThreadAffinityMask(HERE, 1), one.Mask);
    IS(GetThreadGroupAffinity(HERE, &now), TRUE);
    IS(now.Mask, 1);
    IS(now.Group, group);
}

static void check_refusals(WORD groups)
{
    GROUP_AFFINITY good = { 1, 0, { 0 } }, bad = good, was;
    IS(SetThreadGroupAffinity(HERE, &good, NULL), TRUE);
    bad.Group = groups;
    FAILS(SetThreadGroupAffinity(HERE, &bad, &was), FALSE, ERROR_INVALID_PARAMETER);
    bad = good, bad.Mask = 0;
    IS(SetThreadGroupAffinity(HERE, &bad, &was), FALSE);
    bad = good, bad.Reserved[2] = 1;
    IS(SetThreadGroupAffinity(HERE, &bad, &was), FALSE);
    IS(GetActiveProcessorCount(groups), 0);
    FAILS(GetThreadGroupAffinity(NULL, &was), FALSE, ERROR_INVALID_HANDLE);
}

int main(void)
{
    GROUP_AFFINITY first;
    WORD groups = GetActiveProcessorGroupCount();
    DWORD total = 0;
    IS(GetThreadGroupAffinity(HERE, &first), TRUE);
    IS(first.Group, 0); /* the primary group of a thread that may run everywhere */
    for (WORD group = 0; group < groups; group++) {
        check_group(group, GetActiveProcessorCount(group));
        total += GetActiveProcessorCount(group);
    }
    IS(total, GetActiveProcessorCount(ALL_PROCESSOR_GROUPS));
    check_refusals(groups);
    printf("%u groups, %lu processors, %d checks, %d wrong\n", groups, total, checks, failures);
    return failures != 0;
}
