/* SPDX-License-Identifier: MIT */
/* LoadLibrary and GetProcAddress over one table of exports. NT: a program that loads ntoskrnl.exe
 * on Windows gets a private copy, whose calls have no effect; here they are system calls. */
#include "kernel/user/stdlib.h"
#include "kernel/user/string.h"
#include "kernel/user/ntddk.h"
#include "evntrace.h"

struct library {
    const char *name;
    bool kernel; /* exports what drivers call, and no Win32 */
};

struct exported {
    const char *name;
    void (*address)(void);
    bool kernel;
};

static const struct library libraries[] = {
    { "ntoskrnl.exe", true },  { "hal.dll", true },         { "ntdll.dll", false },
    { "kernel32.dll", false }, { "kernelbase.dll", false }, { "advapi32.dll", false },
    { "sechost.dll", false },
};

/* clang-format off */
#define OF_KERNEL(name) { #name, (void (*)(void))(name), true }
#define OF_USER(name) { #name, (void (*)(void))(name), false }
/* Both names of a service. */
#define SERVICE(name)                                                                          \
    { "Nt" #name, (void (*)(void))Zw##name, false }, { "Zw" #name, (void (*)(void))Zw##name, false }
static const struct exported exports[] = {
    OF_KERNEL(KeSetHardwareCounterConfiguration), OF_KERNEL(KeQueryHardwareCounterConfiguration),
    SERVICE(Close), SERVICE(TerminateThread), SERVICE(TerminateProcess), SERVICE(DelayExecution),
    SERVICE(WaitForSingleObject), SERVICE(YieldExecution), SERVICE(CreateThreadEx), SERVICE(SetInformationThread),
    SERVICE(QueryInformationThread), SERVICE(AllocateVirtualMemory), SERVICE(FreeVirtualMemory),
    SERVICE(ProtectVirtualMemory), SERVICE(DuplicateObject), SERVICE(GetCurrentProcessorNumber),
    SERVICE(QueryPerformanceCounter), SERVICE(ReadThreadProfilingData), SERVICE(CreateProfile),
    SERVICE(CreateProfileEx), SERVICE(StartProfile), SERVICE(StopProfile), SERVICE(QueryIntervalProfile),
    SERVICE(SetIntervalProfile), OF_USER(RtlAdjustPrivilege),
    OF_USER(RtlEnableThreadProfiling), OF_USER(RtlDisableThreadProfiling), OF_USER(RtlQueryThreadProfiling),
    OF_USER(RtlReadThreadProfilingData), OF_USER(RtlNtStatusToDosError),
    OF_USER(EnableThreadProfiling), OF_USER(DisableThreadProfiling), OF_USER(QueryThreadProfiling),
    OF_USER(ReadThreadProfilingData), OF_USER(CreateThread), OF_USER(WaitForSingleObject),
    OF_USER(WaitForMultipleObjects), OF_USER(CloseHandle), OF_USER(Sleep), OF_USER(GetCurrentThread),
    OF_USER(GetCurrentThreadId), OF_USER(GetCurrentProcess), OF_USER(GetCurrentProcessId),
    OF_USER(SetThreadAffinityMask), OF_USER(GetCurrentProcessorNumber), OF_USER(GetExitCodeThread),
    OF_USER(GetLastError), OF_USER(SetLastError), OF_USER(SwitchToThread), OF_USER(ExitThread), OF_USER(ExitProcess),
    OF_USER(QueryPerformanceCounter), OF_USER(QueryPerformanceFrequency), OF_USER(GetTickCount),
    OF_USER(GetTickCount64), OF_USER(VirtualAlloc), OF_USER(VirtualFree), OF_USER(LoadLibraryA),
    OF_USER(GetModuleHandleA), OF_USER(GetProcAddress), OF_USER(FreeLibrary),
    SERVICE(TraceControl), SERVICE(SetSystemInformation), SERVICE(QuerySystemInformation),
    OF_USER(StartTraceW), OF_USER(StartTraceA), OF_USER(ControlTraceW), OF_USER(ControlTraceA), OF_USER(OpenTraceW),
    OF_USER(OpenTraceA), OF_USER(ProcessTrace), OF_USER(CloseTrace), OF_USER(TraceSetInformation),
    OF_USER(TraceQueryInformation),
};
/* clang-format on */

/* Whether `name` is the library's, in any case, with or without its extension. */
static bool is_named(const char *library, const char *name)
{
    char base[32];
    strncpy(base, library, sizeof base - 1);
    base[sizeof base - 1] = 0;
    if (_stricmp(base, name) == 0)
        return true;
    *strchr(base, '.') = 0;
    return _stricmp(base, name) == 0;
}

/* ERROR_MOD_NOT_FOUND. Folders before the name are ignored. */
HMODULE LoadLibraryA(LPCSTR LibFileName)
{
    const char *folder = strrchr(LibFileName, '\\'), *name = folder ? folder + 1 : LibFileName;
    for (unsigned i = 0; i < sizeof libraries / sizeof libraries[0]; i++)
        if (is_named(libraries[i].name, name))
            return (HMODULE)(size_t)&libraries[i];
    SetLastError(ERROR_MOD_NOT_FOUND);
    return NULL;
}

/* NT: NULL, the program itself, is kernel32 here: a program's exports are not known. */
HMODULE GetModuleHandleA(LPCSTR ModuleName)
{
    return LoadLibraryA(ModuleName ? ModuleName : "kernel32");
}

/* ERROR_INVALID_HANDLE: not a library's; ERROR_PROC_NOT_FOUND. */
FARPROC GetProcAddress(HMODULE Module, LPCSTR ProcName)
{
    const struct library *library = Module;
    if (library < libraries || library >= libraries + sizeof libraries / sizeof libraries[0]) {
        SetLastError(ERROR_INVALID_HANDLE);
        return NULL;
    }
    for (unsigned i = 0; i < sizeof exports / sizeof exports[0]; i++)
        if (exports[i].kernel == library->kernel && strcmp(exports[i].name, ProcName) == 0)
            return (FARPROC)exports[i].address;
    SetLastError(ERROR_PROC_NOT_FOUND);
    return NULL;
}

BOOL FreeLibrary(HMODULE LibModule)
{
    (void)LibModule;
    return TRUE;
}
