/* SPDX-License-Identifier: MIT */
/* Folders and the names in them. NT: there are no files; C:\ is the current folder. */
#include "kernel32.h"

static BOOL find_nothing(void) { return fail(ERROR_FILE_NOT_FOUND); }

HANDLE WINAPI FindFirstFileExW(LPCWSTR lpFileName, FINDEX_INFO_LEVELS fInfoLevelId,
                               LPVOID lpFindFileData, FINDEX_SEARCH_OPS fSearchOp,
                               LPVOID lpSearchFilter, DWORD dwAdditionalFlags)
{
    find_nothing();
    return INVALID_HANDLE_VALUE;
}

/* No search has begun. */
WINBOOL WINAPI FindNextFileW(HANDLE hFindFile, LPWIN32_FIND_DATAW lpFindFileData)
{
    return fail(ERROR_INVALID_HANDLE);
}

WINBOOL WINAPI FindClose(HANDLE hFindFile) { return fail(ERROR_INVALID_HANDLE); }

DWORD WINAPI GetFileAttributesW(LPCWSTR lpFileName)
{
    find_nothing();
    return INVALID_FILE_ATTRIBUTES;
}

WINBOOL WINAPI GetFileAttributesExW(LPCWSTR lpFileName, GET_FILEEX_INFO_LEVELS fInfoLevelId,
                                    LPVOID lpFileInformation)
{
    return find_nothing();
}

WINBOOL WINAPI DeleteFileW(LPCWSTR lpFileName) { return find_nothing(); }

WINBOOL WINAPI RemoveDirectoryW(LPCWSTR lpPathName) { return find_nothing(); }

WINBOOL WINAPI CreateDirectoryW(LPCWSTR lpPathName, LPSECURITY_ATTRIBUTES lpSecurityAttributes)
{
    return fail(ERROR_ACCESS_DENIED);
}

/* Copies text as Get...W functions do: its length, or the length needed with the NUL. */
static DWORD give_path(const WCHAR *text, DWORD length, LPWSTR to, DWORD room)
{
    if (length >= room)
        return length + 1;
    memcpy(to, text, length * sizeof *to);
    to[length] = 0;
    return length;
}

DWORD WINAPI GetCurrentDirectoryW(DWORD nBufferLength, LPWSTR lpBuffer)
{
    return give_path(L"C:\\", 3, lpBuffer, nBufferLength);
}

/* NT: "." and ".." stay. 0: ERROR_INVALID_NAME, none or one too long. */
DWORD WINAPI GetFullPathNameW(LPCWSTR lpFileName, DWORD nBufferLength, LPWSTR lpBuffer,
                              LPWSTR *lpFilePart)
{
    WCHAR whole[MAX_PATH + 4] = L"C:\\";
    int n = lstrlenW(lpFileName);
    if (!n || n > MAX_PATH)
        return (DWORD)fail(ERROR_INVALID_NAME);
    bool rooted = *lpFileName == '\\' || *lpFileName == '/';
    DWORD before = lpFileName[1] == ':' || (rooted && lpFileName[1] == *lpFileName) ? 0
                   : rooted                                                         ? 2
                                                                                    : 3;
    for (int i = 0; i <= n; i++)
        whole[before + (DWORD)i] = lpFileName[i] == '/' ? '\\' : lpFileName[i];
    DWORD length = give_path(whole, before + (DWORD)n, lpBuffer, nBufferLength);
    DWORD part = length;
    while (length < nBufferLength && part && lpBuffer[part - 1] != '\\')
        part--;
    if (lpFilePart)
        *lpFilePart = part < length && length < nBufferLength ? lpBuffer + part : NULL;
    return length;
}

WINBOOL WINAPI AreFileApisANSI(void) { return TRUE; }

/* --- Of what is open: the console and devices, which have no size and no place. --- */

static BOOL no_place(HANDLE file)
{
    return fail(is_output(file) || file == STANDARD_INPUT ? ERROR_INVALID_FUNCTION
                                                          : ERROR_INVALID_HANDLE);
}

WINBOOL WINAPI GetFileSizeEx(HANDLE hFile, PLARGE_INTEGER lpFileSize) { return no_place(hFile); }

WINBOOL WINAPI SetFilePointerEx(HANDLE hFile, LARGE_INTEGER liDistanceToMove,
                                PLARGE_INTEGER lpNewFilePointer, DWORD dwMoveMethod)
{
    return no_place(hFile);
}

WINBOOL WINAPI SetEndOfFile(HANDLE hFile) { return no_place(hFile); }

/* The console is at its end. The last parameter's type differs between mingw-w64 12 and 14. */
BOOL WINAPI read_console(HANDLE hConsoleInput, LPVOID lpBuffer, DWORD nNumberOfCharsToRead,
                         LPDWORD lpNumberOfCharsRead, LPVOID pInputControl) asm("ReadConsoleW");
BOOL WINAPI read_console(HANDLE hConsoleInput, LPVOID lpBuffer, DWORD nNumberOfCharsToRead,
                         LPDWORD lpNumberOfCharsRead, LPVOID pInputControl)
{
    if (hConsoleInput != STANDARD_INPUT)
        return fail(ERROR_INVALID_HANDLE);
    *lpNumberOfCharsRead = 0;
    return TRUE;
}

WINBOOL WINAPI GetNumberOfConsoleInputEvents(HANDLE hConsoleInput, LPDWORD lpNumberOfEvents)
{
    if (hConsoleInput != STANDARD_INPUT)
        return fail(ERROR_INVALID_HANDLE);
    *lpNumberOfEvents = 0;
    return TRUE;
}
