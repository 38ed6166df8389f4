/* SPDX-License-Identifier: MIT */
/* The console: what programs print goes to the machine's, and there is no input. NT: it has no
 * colours, no title, no window. */
#include "kernel32.h"

BOOL WINAPI VerifyConsoleIoHandle(HANDLE handle);
BOOL WINAPI VerifyConsoleIoHandle(HANDLE handle)
{
    return is_output(handle) || handle == STANDARD_INPUT || fail(ERROR_INVALID_HANDLE);
}

BOOL WINAPI GetConsoleMode(HANDLE hConsoleHandle, LPDWORD lpMode)
{
    if (!VerifyConsoleIoHandle(hConsoleHandle))
        return FALSE;
    *lpMode = ENABLE_PROCESSED_OUTPUT | ENABLE_WRAP_AT_EOL_OUTPUT;
    return TRUE;
}

BOOL WINAPI SetConsoleMode(HANDLE hConsoleHandle, DWORD dwMode)
{
    return VerifyConsoleIoHandle(hConsoleHandle);
}

UINT WINAPI GetConsoleCP(void) { return CP_UTF8; }
UINT WINAPI GetConsoleOutputCP(void) { return CP_UTF8; }
BOOL WINAPI SetConsoleOutputCP(UINT wCodePageID) { return IsValidCodePage(wCodePageID); }
BOOL WINAPI SetConsoleCP(UINT wCodePageID) { return IsValidCodePage(wCodePageID); }

BOOL WINAPI WriteConsoleA(HANDLE hConsoleOutput, CONST VOID *lpBuffer, DWORD nNumberOfCharsToWrite,
                          LPDWORD lpNumberOfCharsWritten, LPVOID lpReserved)
{
    return WriteFile(hConsoleOutput, lpBuffer, nNumberOfCharsToWrite, lpNumberOfCharsWritten, NULL);
}

BOOL WINAPI WriteConsoleW(HANDLE hConsoleOutput, CONST VOID *lpBuffer, DWORD nNumberOfCharsToWrite,
                          LPDWORD lpNumberOfCharsWritten, LPVOID lpReserved)
{
    const WCHAR *text = lpBuffer;
    char bytes[3 * 64];
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

WINBOOL WINAPI GetConsoleScreenBufferInfo(HANDLE hConsoleOutput,
                                          PCONSOLE_SCREEN_BUFFER_INFO lpConsoleScreenBufferInfo)
{
    if (!is_output(hConsoleOutput))
        return fail(ERROR_INVALID_HANDLE);
    *lpConsoleScreenBufferInfo = (CONSOLE_SCREEN_BUFFER_INFO){ .dwSize = { 80, 25 },
                                                               .wAttributes = 7,
                                                               .srWindow = { 0, 0, 79, 24 },
                                                               .dwMaximumWindowSize = { 80, 25 } };
    return TRUE;
}

WINBOOL WINAPI SetConsoleTextAttribute(HANDLE hConsoleOutput, WORD wAttributes)
{
    return is_output(hConsoleOutput) || fail(ERROR_INVALID_HANDLE);
}

WINBOOL WINAPI SetConsoleTitleA(LPCSTR lpConsoleTitle) { return TRUE; }

/* Nobody presses Ctrl-C. */
WINBOOL WINAPI SetConsoleCtrlHandler(PHANDLER_ROUTINE HandlerRoutine, WINBOOL Add) { return TRUE; }
