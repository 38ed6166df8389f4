/* SPDX-License-Identifier: MIT */
/* Information about the machine, and Windows' version. */
#include "kernel32.h"
#include "kernel/nt/nt_shared.h"
#include <cpuid.h>

#define LOWEST 0x10000ull
#define HIGHEST 0x7ffffffeffffull

#define GROUP_SIZE 64u

/* Groups are filled in the order of processors. 0: there is no such group. */
static DWORD group_count(WORD group)
{
    DWORD all = teb()->peb->processors, before = group * GROUP_SIZE;
    DWORD rest = all > before ? all - before : 0;
    return rest < GROUP_SIZE ? rest : GROUP_SIZE;
}

static DWORD_PTR mask_of_count(DWORD count) { return count ? ~0ull >> (GROUP_SIZE - count) : 0; }

/* Processors of the caller's primary group, of which functions without a group speak. */
static DWORD own_count(void)
{
    GROUP_AFFINITY own;
    return GetThreadGroupAffinity(CURRENT_THREAD, &own) ? group_count(own.Group) : 0;
}

static DWORD_PTR all_processors(void) { return mask_of_count(own_count()); }

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
                       .dwNumberOfProcessors = own_count(),
                       .dwProcessorType = 8664, /* PROCESSOR_AMD_X8664 */
                       .dwAllocationGranularity = 0x10000,
                       .wProcessorLevel = (WORD)(a >> 8 & 0xf),
                       .wProcessorRevision =
                           (WORD)(((a >> 12 & 0xf0) | (a >> 4 & 0xf)) << 8 | (a & 0xf)) };
}

VOID WINAPI GetNativeSystemInfo(LPSYSTEM_INFO lpSystemInfo) { GetSystemInfo(lpSystemInfo); }

DWORD WINAPI GetActiveProcessorCount(WORD GroupNumber)
{
    return GroupNumber == ALL_PROCESSOR_GROUPS ? teb()->peb->processors : group_count(GroupNumber);
}

WORD WINAPI GetActiveProcessorGroupCount(void)
{
    return (WORD)((teb()->peb->processors + GROUP_SIZE - 1) / GROUP_SIZE);
}

WINBOOL WINAPI GetProcessAffinityMask(HANDLE hProcess, PDWORD_PTR lpProcessAffinityMask,
                                      PDWORD_PTR lpSystemAffinityMask)
{
    *lpProcessAffinityMask = *lpSystemAffinityMask = all_processors();
    return TRUE;
}

WINBOOL WINAPI IsProcessorFeaturePresent(DWORD ProcessorFeature)
{
    const struct shared_data *shared = (const struct shared_data *)SHARED_DATA_USER;
    return ProcessorFeature < sizeof shared->processor_features &&
           shared->processor_features[ProcessorFeature];
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

/* --- Conditions on the version, three bits for each field: ntdll's VerSetConditionMask. --- */

static bool meets(DWORDLONG conditions, unsigned field, DWORD is, DWORD wanted)
{
    switch (conditions >> 3 * field & 7) {
    case VER_EQUAL: return is == wanted;
    case VER_GREATER: return is > wanted;
    case VER_GREATER_EQUAL: return is >= wanted;
    case VER_LESS: return is < wanted;
    case VER_LESS_EQUAL: return is <= wanted;
    }
    return false;
}

/* Of the fields that make up the version the first that differs decides, or else the last. NT:
 * suites and product types are not known. */
WINBOOL WINAPI VerifyVersionInfoW(LPOSVERSIONINFOEXW lpVersionInformation, DWORD dwTypeMask,
                                  DWORDLONG dwlConditionMask)
{
    const struct peb *peb = teb()->peb;
    const OSVERSIONINFOEXW *info = lpVersionInformation;
    const struct {
        unsigned field; /* as VER_MAJORVERSION is 1 << 1 */
        DWORD is, wanted;
    } versions[] = { { 1, peb->major, info->dwMajorVersion },
                     { 0, peb->minor, info->dwMinorVersion },
                     { 5, 0, info->wServicePackMajor },
                     { 4, 0, info->wServicePackMinor } };
    bool right = true, decided = false;
    if (!dwTypeMask || !dwlConditionMask || (dwTypeMask & (VER_SUITENAME | VER_PRODUCT_TYPE)))
        return fail(ERROR_BAD_ARGUMENTS);
    for (unsigned i = 0; i < ARRAYSIZE(versions) && !decided; i++)
        if (dwTypeMask >> versions[i].field & 1) {
            right = meets(dwlConditionMask, versions[i].field, versions[i].is, versions[i].wanted);
            decided = versions[i].is != versions[i].wanted;
        }
    if (dwTypeMask & VER_BUILDNUMBER)
        right = right && meets(dwlConditionMask, 2, peb->build, info->dwBuildNumber);
    if (dwTypeMask & VER_PLATFORMID)
        right = right && meets(dwlConditionMask, 3, peb->platform, info->dwPlatformId);
    return right || fail(ERROR_OLD_WIN_VERSION);
}

WINBOOL WINAPI GetComputerNameA(LPSTR lpBuffer, LPDWORD nSize)
{
    static const char name[] = "NTPMU";
    DWORD room = *nSize;
    *nSize = room < sizeof name ? sizeof name : sizeof name - 1;
    if (room < sizeof name)
        return fail(ERROR_BUFFER_OVERFLOW);
    memcpy(lpBuffer, name, sizeof name);
    return TRUE;
}

/* NT: a process may run on all processors, of all groups; only threads have affinities. */
WINBOOL WINAPI SetProcessAffinityMask(HANDLE hProcess, DWORD_PTR dwProcessAffinityMask)
{
    if (!dwProcessAffinityMask || (dwProcessAffinityMask & ~all_processors()))
        return fail(ERROR_INVALID_PARAMETER);
    return dwProcessAffinityMask == all_processors() || fail(ERROR_NOT_SUPPORTED);
}
