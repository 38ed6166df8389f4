/* SPDX-License-Identifier: MIT */
/* Standard handles and the console. NT: there are no files. */
#include "kernel32.h"

#define INPUT ((HANDLE)3)
#define OUTPUT ((HANDLE)7)
#define ERROR_OUTPUT ((HANDLE)11)
#define PART 256u /* of write_console */

static HANDLE standard[] = { INPUT, OUTPUT, ERROR_OUTPUT };

static bool is_output(HANDLE handle) { return handle == OUTPUT || handle == ERROR_OUTPUT; }

HANDLE WINAPI GetStdHandle(DWORD nStdHandle)
{
    DWORD i = STD_INPUT_HANDLE - nStdHandle;
    if (i < ARRAYSIZE(standard))
        return standard[i];
    fail(ERROR_INVALID_HANDLE);
    return INVALID_HANDLE_VALUE;
}

BOOL WINAPI SetStdHandle(DWORD nStdHandle, HANDLE hHandle)
{
    DWORD i = STD_INPUT_HANDLE - nStdHandle;
    if (i >= ARRAYSIZE(standard))
        return fail(ERROR_INVALID_HANDLE);
    standard[i] = hHandle;
    return TRUE;
}

DWORD WINAPI GetFileType(HANDLE hFile)
{
    if (is_output(hFile) || hFile == INPUT)
        return FILE_TYPE_CHAR;
    fail(ERROR_INVALID_HANDLE);
    return FILE_TYPE_UNKNOWN;
}

BOOL WINAPI WriteFile(HANDLE hFile, LPCVOID lpBuffer, DWORD nNumberOfBytesToWrite,
                      LPDWORD lpNumberOfBytesWritten, LPOVERLAPPED lpOverlapped)
{
    DWORD done = 0;
    (void)lpOverlapped;
    if (!is_output(hFile))
        return fail(ERROR_INVALID_HANDLE);
    while (done < nNumberOfBytesToWrite) {
        DWORD left = nNumberOfBytesToWrite - done, part = left < PART ? left : PART;
        if (!succeeded(write_console((const char *)lpBuffer + done, part)))
            return FALSE;
        done += part;
    }
    if (lpNumberOfBytesWritten)
        *lpNumberOfBytesWritten = done;
    return TRUE;
}

/* Nobody types: the end of the file, at once. */
BOOL WINAPI ReadFile(HANDLE hFile, LPVOID lpBuffer, DWORD nNumberOfBytesToRead,
                     LPDWORD lpNumberOfBytesRead, LPOVERLAPPED lpOverlapped)
{
    (void)lpBuffer, (void)nNumberOfBytesToRead, (void)lpOverlapped;
    if (hFile != INPUT)
        return fail(ERROR_INVALID_HANDLE);
    if (lpNumberOfBytesRead)
        *lpNumberOfBytesRead = 0;
    return TRUE;
}

BOOL WINAPI FlushFileBuffers(HANDLE hFile)
{
    return is_output(hFile) ? TRUE : fail(ERROR_INVALID_HANDLE);
}

BOOL WINAPI GetConsoleMode(HANDLE hConsoleHandle, LPDWORD lpMode)
{
    if (!is_output(hConsoleHandle) && hConsoleHandle != INPUT)
        return fail(ERROR_INVALID_HANDLE);
    *lpMode = ENABLE_PROCESSED_OUTPUT | ENABLE_WRAP_AT_EOL_OUTPUT;
    return TRUE;
}

BOOL WINAPI SetConsoleMode(HANDLE hConsoleHandle, DWORD dwMode)
{
    (void)dwMode;
    return is_output(hConsoleHandle) || hConsoleHandle == INPUT ? TRUE : fail(ERROR_INVALID_HANDLE);
}

UINT WINAPI GetConsoleCP(void) { return CP_UTF8; }
UINT WINAPI GetConsoleOutputCP(void) { return CP_UTF8; }
BOOL WINAPI SetConsoleOutputCP(UINT wCodePageID) { return IsValidCodePage(wCodePageID); }
BOOL WINAPI SetConsoleCP(UINT wCodePageID) { return IsValidCodePage(wCodePageID); }

BOOL WINAPI WriteConsoleA(HANDLE hConsoleOutput, CONST VOID *lpBuffer, DWORD nNumberOfCharsToWrite,
                          LPDWORD lpNumberOfCharsWritten, LPVOID lpReserved)
{
    (void)lpReserved;
    return WriteFile(hConsoleOutput, lpBuffer, nNumberOfCharsToWrite, lpNumberOfCharsWritten, NULL);
}

BOOL WINAPI WriteConsoleW(HANDLE hConsoleOutput, CONST VOID *lpBuffer, DWORD nNumberOfCharsToWrite,
                          LPDWORD lpNumberOfCharsWritten, LPVOID lpReserved)
{
    const WCHAR *text = lpBuffer;
    char bytes[3 * 64];
    (void)lpReserved;
    for (DWORD done = 0, part; done < nNumberOfCharsToWrite; done += part) {
        part = nNumberOfCharsToWrite - done < 64 ? nNumberOfCharsToWrite - done : 64;
        int n = WideCharToMultiByte(CP_UTF8, 0, text + done, (int)part, bytes, sizeof bytes, NULL,
                                    NULL);
        if (!WriteFile(hConsoleOutput, bytes, (DWORD)n, NULL, NULL))
            return FALSE;
    }
    if (lpNumberOfCharsWritten)
        *lpNumberOfCharsWritten = nNumberOfCharsToWrite;
    return TRUE;
}
