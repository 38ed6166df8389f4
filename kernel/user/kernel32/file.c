/* SPDX-License-Identifier: MIT */
/* Standard handles. NT: there are no files, and devices are not read or written. */
#include "kernel32.h"

static HANDLE standard[] = { STANDARD_INPUT, STANDARD_OUTPUT, STANDARD_ERROR };

/* Refuses devices, and looks at no other argument. */
NTSTATUS NTAPI NtReadFile(HANDLE FileHandle);
NTSTATUS NTAPI NtWriteFile(HANDLE FileHandle, HANDLE Event, PVOID ApcRoutine, PVOID ApcContext,
                           PIO_STATUS_BLOCK IoStatusBlock, PVOID Buffer, ULONG Length,
                           PLARGE_INTEGER ByteOffset, PULONG Key);

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
    if (is_output(hFile) || hFile == STANDARD_INPUT)
        return FILE_TYPE_CHAR;
    fail(ERROR_INVALID_HANDLE);
    return FILE_TYPE_UNKNOWN;
}

BOOL WINAPI WriteFile(HANDLE hFile, LPCVOID lpBuffer, DWORD nNumberOfBytesToWrite,
                      LPDWORD lpNumberOfBytesWritten, LPOVERLAPPED lpOverlapped)
{
    IO_STATUS_BLOCK block = { 0 };
    NTSTATUS status = NtWriteFile(hFile, NULL, NULL, NULL, &block, (PVOID)lpBuffer,
                                  nNumberOfBytesToWrite, NULL, NULL);
    if (lpNumberOfBytesWritten)
        *lpNumberOfBytesWritten = NT_SUCCESS(status) ? (DWORD)block.Information : 0;
    return succeeded(status);
}

/* The console has no input: it is at the end of file. */
BOOL WINAPI ReadFile(HANDLE hFile, LPVOID lpBuffer, DWORD nNumberOfBytesToRead,
                     LPDWORD lpNumberOfBytesRead, LPOVERLAPPED lpOverlapped)
{
    if (lpNumberOfBytesRead)
        *lpNumberOfBytesRead = 0;
    return hFile == STANDARD_INPUT || succeeded(NtReadFile(hFile));
}

/* NT: whoever asks finds the transfer ended. */
BOOL WINAPI GetOverlappedResult(HANDLE hFile, LPOVERLAPPED lpOverlapped,
                                LPDWORD lpNumberOfBytesTransferred, WINBOOL bWait)
{
    *lpNumberOfBytesTransferred = (DWORD)lpOverlapped->InternalHigh;
    return succeeded((NTSTATUS)lpOverlapped->Internal);
}

BOOL WINAPI FlushFileBuffers(HANDLE hFile)
{
    return is_output(hFile) ? TRUE : fail(ERROR_INVALID_HANDLE);
}
