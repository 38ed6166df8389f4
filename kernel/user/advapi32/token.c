/* SPDX-License-Identifier: MIT */
/* Tokens, as far as a program needs them to enable a privilege. NT: there is no security. A process
 * has one token, with the privileges that the kernel checks; its handle is a handle to the
 * process. */
#include "kernel/user/advapi32/trace.h"
#include "kernel/user/ntdll/random.h"

#define NOT_ALL_ASSIGNED 1300

static const struct {
    const WCHAR *name;
    DWORD number;
} privileges[] = {
    { L"SeLockMemoryPrivilege", 4 },     { L"SeTcbPrivilege", 7 },
    { L"SeSecurityPrivilege", 8 },       { L"SeLoadDriverPrivilege", 10 },
    { L"SeSystemProfilePrivilege", 11 }, { L"SeIncreaseBasePriorityPrivilege", 14 },
    { L"SeShutdownPrivilege", 19 },      { L"SeDebugPrivilege", 20 },
};

static BOOL fail_token(DWORD error)
{
    SetLastError(error);
    return FALSE;
}

WINBOOL WINAPI OpenProcessToken(HANDLE ProcessHandle, DWORD DesiredAccess, PHANDLE TokenHandle)
{
    NTSTATUS status = NtDuplicateObject(NtCurrentProcess(), ProcessHandle, NtCurrentProcess(),
                                        TokenHandle, 0, 0, DUPLICATE_SAME_ACCESS);
    return NT_SUCCESS(status) || fail_token(RtlNtStatusToDosError(status));
}

/* ERROR_NO_TOKEN: no thread has a token of its own. */
WINBOOL WINAPI OpenThreadToken(HANDLE ThreadHandle, DWORD DesiredAccess, WINBOOL OpenAsSelf,
                               PHANDLE TokenHandle)
{
    return fail_token(ERROR_NO_TOKEN);
}

/* ERROR_NO_SUCH_PRIVILEGE. */
WINBOOL WINAPI LookupPrivilegeValueW(LPCWSTR lpSystemName, LPCWSTR lpName, PLUID lpLuid)
{
    for (unsigned i = 0; i < ARRAYSIZE(privileges); i++) {
        unsigned n = 0;
        while (lpName[n] && lpName[n] == privileges[i].name[n])
            n++;
        if (lpName[n] == privileges[i].name[n]) {
            *lpLuid = (LUID){ privileges[i].number, 0 };
            return TRUE;
        }
    }
    return fail_token(ERROR_NO_SUCH_PRIVILEGE);
}

WINBOOL WINAPI LookupPrivilegeValueA(LPCSTR lpSystemName, LPCSTR lpName, PLUID lpLuid)
{
    WCHAR name[64];
    unsigned n = 0;
    for (; n < ARRAYSIZE(name) && (name[n] = (UCHAR)lpName[n]); n++)
        ;
    return n < ARRAYSIZE(name) ? LookupPrivilegeValueW(NULL, name, lpLuid)
                               : fail_token(ERROR_NO_SUCH_PRIVILEGE);
}

/* Succeeds with the last error ERROR_NOT_ALL_ASSIGNED where there is no such privilege. NT:
 * PreviousState holds the old state of all entries, not only of those that changed. */
WINBOOL WINAPI AdjustTokenPrivileges(HANDLE TokenHandle, WINBOOL DisableAllPrivileges,
                                     PTOKEN_PRIVILEGES NewState, DWORD BufferLength,
                                     PTOKEN_PRIVILEGES PreviousState, PDWORD ReturnLength)
{
    DWORD error = ERROR_SUCCESS;
    DWORD n = DisableAllPrivileges || !NewState ? 0 : NewState->PrivilegeCount;
    DWORD needed =
        (DWORD)(offsetof(TOKEN_PRIVILEGES, Privileges) + n * sizeof(LUID_AND_ATTRIBUTES));
    if (!DisableAllPrivileges && !NewState)
        return fail_token(ERROR_INVALID_PARAMETER);
    if (ReturnLength)
        *ReturnLength = needed;
    if (PreviousState && BufferLength < needed)
        return fail_token(ERROR_INSUFFICIENT_BUFFER);
    if (PreviousState)
        PreviousState->PrivilegeCount = n;
    for (DWORD i = 0; i < n; i++) {
        LUID_AND_ATTRIBUTES one = NewState->Privileges[i];
        BOOLEAN was = FALSE, on = (one.Attributes & SE_PRIVILEGE_ENABLED) != 0;
        if (!NT_SUCCESS(RtlAdjustPrivilege(one.Luid.LowPart, on, FALSE, &was)))
            error = NOT_ALL_ASSIGNED;
        one.Attributes = was ? SE_PRIVILEGE_ENABLED : 0;
        if (PreviousState)
            PreviousState->Privileges[i] = one;
    }
    if (DisableAllPrivileges)
        for (unsigned i = 0; i < ARRAYSIZE(privileges); i++) {
            BOOLEAN was;
            RtlAdjustPrivilege(privileges[i].number, FALSE, FALSE, &was);
        }
    SetLastError(error);
    return TRUE;
}

/* TokenElevation only: every program runs as administrator. Others: ERROR_INVALID_PARAMETER. */
WINBOOL WINAPI GetTokenInformation(HANDLE TokenHandle,
                                   TOKEN_INFORMATION_CLASS TokenInformationClass,
                                   LPVOID TokenInformation, DWORD TokenInformationLength,
                                   PDWORD ReturnLength)
{
    if (TokenInformationClass != TokenElevation)
        return fail_token(ERROR_INVALID_PARAMETER);
    *ReturnLength = sizeof(TOKEN_ELEVATION);
    if (TokenInformationLength < sizeof(TOKEN_ELEVATION))
        return fail_token(ERROR_BAD_LENGTH);
    ((TOKEN_ELEVATION *)TokenInformation)->TokenIsElevated = TRUE;
    return TRUE;
}

/* bcryptprimitives.dll's. */
BOOL WINAPI ProcessPrng(PBYTE pbData, SIZE_T cbData);
BOOL WINAPI ProcessPrng(PBYTE pbData, SIZE_T cbData)
{
    for (SIZE_T i = 0; i < cbData; i++)
        pbData[i] = (BYTE)random_bits();
    return TRUE;
}

/* RtlGenRandom. */
BOOLEAN NTAPI SystemFunction036(PVOID RandomBuffer, ULONG RandomBufferLength);
BOOLEAN NTAPI SystemFunction036(PVOID RandomBuffer, ULONG RandomBufferLength)
{
    return (BOOLEAN)ProcessPrng(RandomBuffer, RandomBufferLength);
}
