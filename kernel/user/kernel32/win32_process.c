/* SPDX-License-Identifier: MIT */
/* The process: its end, its command line, its environment. */
#include "kernel32.h"

VOID WINAPI ExitProcess(UINT uExitCode) { RtlExitUserProcess((NTSTATUS)uExitCode); }
HANDLE WINAPI GetCurrentProcess(void) { return CURRENT_PROCESS; }
DWORD WINAPI GetCurrentProcessId(void) { return (DWORD)teb()->process_id; }

BOOL WINAPI TerminateProcess(HANDLE hProcess, UINT uExitCode)
{
    return succeeded(NtTerminateProcess(hProcess, (NTSTATUS)uExitCode));
}

LPWSTR WINAPI GetCommandLineW(void) { return parameters()->CommandLine.Buffer; }

LPSTR WINAPI GetCommandLineA(void)
{
    static char line[4 * START_LINE_MAX];
    const UNICODE_STRING *wide = &parameters()->CommandLine;
    if (!line[0])
        give_narrow(wide->Buffer, wide->Length / 2u, line, sizeof line);
    return line;
}

VOID WINAPI GetStartupInfoW(LPSTARTUPINFOW lpStartupInfo)
{
    *lpStartupInfo = (STARTUPINFOW){ .cb = sizeof *lpStartupInfo };
}

VOID WINAPI GetStartupInfoA(LPSTARTUPINFOA lpStartupInfo)
{
    *lpStartupInfo = (STARTUPINFOA){ .cb = sizeof *lpStartupInfo };
}

BOOL WINAPI IsDebuggerPresent(void) { return teb()->peb->being_debugged; }

VOID WINAPI OutputDebugStringA(LPCSTR lpOutputString)
{
    size_t n = strlen(lpOutputString);
    for (size_t part; n; n -= part, lpOutputString += part) {
        part = n < 256 ? n : 256;
        write_console(lpOutputString, (ULONG)part);
    }
}

/* NT: there is one process. */
HANDLE WINAPI OpenProcess(DWORD dwDesiredAccess, BOOL bInheritHandle, DWORD dwProcessId)
{
    HANDLE handle;
    if (dwProcessId != GetCurrentProcessId()) {
        fail(ERROR_INVALID_PARAMETER);
        return NULL;
    }
    return succeeded(NtDuplicateObject(CURRENT_PROCESS, CURRENT_PROCESS, CURRENT_PROCESS, &handle,
                                       dwDesiredAccess, 0, 0))
               ? handle
               : NULL;
}

VOID WINAPI OutputDebugStringW(LPCWSTR lpOutputString)
{
    char part[64];
    while (*lpOutputString) {
        ULONG n = 0;
        while (n < sizeof part && *lpOutputString)
            part[n++] = (char)*lpOutputString++;
        write_console(part, n);
    }
}
