/* SPDX-License-Identifier: MIT */
/* Information about the machine, and Windows' version. */
#include "kernel32.h"
#include <cpuid.h>

#define LOWEST 0x10000ull
#define HIGHEST 0x7ffffffeffffull

static DWORD_PTR all_processors(void)
{
    DWORD n = teb()->peb->processors;
    return n < 64 ? (1ull << n) - 1 : ~0ull;
}

VOID WINAPI GetSystemInfo(LPSYSTEM_INFO lpSystemInfo)
{
    unsigned a, b, c, d;
    __cpuid(1, a, b, c, d);
    *lpSystemInfo =
        (SYSTEM_INFO){ .wProcessorArchitecture = PROCESSOR_ARCHITECTURE_AMD64,
                       .dwPageSize = 4096,
                       .lpMinimumApplicationAddress = (LPVOID)LOWEST,
                       .lpMaximumApplicationAddress = (LPVOID)HIGHEST,
                       .dwActiveProcessorMask = all_processors(),
                       .dwNumberOfProcessors = teb()->peb->processors,
                       .dwProcessorType = 8664, /* PROCESSOR_AMD_X8664 */
                       .dwAllocationGranularity = 0x10000,
                       .wProcessorLevel = (WORD)(a >> 8 & 0xf),
                       .wProcessorRevision =
                           (WORD)(((a >> 12 & 0xf0) | (a >> 4 & 0xf)) << 8 | (a & 0xf)) };
}

VOID WINAPI GetNativeSystemInfo(LPSYSTEM_INFO lpSystemInfo) { GetSystemInfo(lpSystemInfo); }

DWORD WINAPI GetActiveProcessorCount(WORD GroupNumber)
{
    return GroupNumber && GroupNumber != ALL_PROCESSOR_GROUPS ? 0 : teb()->peb->processors;
}

WORD WINAPI GetActiveProcessorGroupCount(void) { return 1; }

WINBOOL WINAPI GetProcessAffinityMask(HANDLE hProcess, PDWORD_PTR lpProcessAffinityMask,
                                      PDWORD_PTR lpSystemAffinityMask)
{
    (void)hProcess;
    *lpProcessAffinityMask = *lpSystemAffinityMask = all_processors();
    return TRUE;
}

static const struct {
    DWORD feature, leaf;
    unsigned reg, bit; /* EAX 0 to EDX 3 */
} features[] = {
    { PF_XMMI_INSTRUCTIONS_AVAILABLE, 1, 3, 25 }, { PF_XMMI64_INSTRUCTIONS_AVAILABLE, 1, 3, 26 },
    { PF_RDTSC_INSTRUCTION_AVAILABLE, 1, 3, 4 },  { PF_SSE3_INSTRUCTIONS_AVAILABLE, 1, 2, 0 },
    { PF_COMPARE_EXCHANGE128, 1, 2, 13 },         { PF_NX_ENABLED, 0x80000001, 3, 20 },
    { PF_COMPARE_EXCHANGE_DOUBLE, 1, 3, 8 },      { PF_MMX_INSTRUCTIONS_AVAILABLE, 1, 3, 23 },
    { PF_XSAVE_ENABLED, 1, 2, 27 /* OSXSAVE */ },
};

WINBOOL WINAPI IsProcessorFeaturePresent(DWORD ProcessorFeature)
{
    for (unsigned i = 0; i < ARRAYSIZE(features); i++)
        if (features[i].feature == ProcessorFeature) {
            unsigned r[4] = { 0 };
            __get_cpuid(features[i].leaf, &r[0], &r[1], &r[2], &r[3]);
            return r[features[i].reg] >> features[i].bit & 1;
        }
    return FALSE;
}

DWORD WINAPI GetVersion(void)
{
    const struct peb *peb = teb()->peb;
    return peb->major | peb->minor << 8 | (DWORD)peb->build << 16;
}

static WINBOOL version(OSVERSIONINFOEXW *info, size_t plain, size_t extended)
{
    const struct peb *peb = teb()->peb;
    if (info->dwOSVersionInfoSize != plain && info->dwOSVersionInfoSize != extended)
        return fail(ERROR_INSUFFICIENT_BUFFER);
    info->dwMajorVersion = peb->major;
    info->dwMinorVersion = peb->minor;
    info->dwBuildNumber = peb->build;
    info->dwPlatformId = peb->platform;
    memset(info->szCSDVersion, 0,
           info->dwOSVersionInfoSize - offsetof(OSVERSIONINFOEXW, szCSDVersion));
    return TRUE;
}

WINBOOL WINAPI GetVersionExW(LPOSVERSIONINFOW lpVersionInformation)
{
    return version((OSVERSIONINFOEXW *)lpVersionInformation, sizeof(OSVERSIONINFOW),
                   sizeof(OSVERSIONINFOEXW));
}

WINBOOL WINAPI GetVersionExA(LPOSVERSIONINFOA lpVersionInformation)
{
    return version((OSVERSIONINFOEXW *)lpVersionInformation, sizeof(OSVERSIONINFOA),
                   sizeof(OSVERSIONINFOEXA));
}

/* NT: a process may run on all processors; only threads have affinities. */
WINBOOL WINAPI SetProcessAffinityMask(HANDLE hProcess, DWORD_PTR dwProcessAffinityMask)
{
    (void)hProcess;
    if (!dwProcessAffinityMask || (dwProcessAffinityMask & ~all_processors()))
        return fail(ERROR_INVALID_PARAMETER);
    return dwProcessAffinityMask == all_processors() || fail(ERROR_NOT_SUPPORTED);
}
