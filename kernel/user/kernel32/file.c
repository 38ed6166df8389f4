/* SPDX-License-Identifier: MIT */
/* Standard handles; reading and writing devices. NT: there are no files. */
#include "kernel32.h"

#define PART 256u /* characters in one write_console */

static HANDLE standard[] = { STANDARD_INPUT, STANDARD_OUTPUT, STANDARD_ERROR };

NTSTATUS NTAPI NtReadFile(HANDLE FileHandle, HANDLE Event, PIO_APC_ROUTINE ApcRoutine,
                          PVOID ApcContext, PIO_STATUS_BLOCK IoStatusBlock, PVOID Buffer,
                          ULONG Length, PLARGE_INTEGER ByteOffset, PULONG Key);
NTSTATUS NTAPI NtWriteFile(HANDLE FileHandle, HANDLE Event, PIO_APC_ROUTINE ApcRoutine,
                           PVOID ApcContext, PIO_STATUS_BLOCK IoStatusBlock, PVOID Buffer,
                           ULONG Length, PLARGE_INTEGER ByteOffset, PULONG Key);

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

static BOOL write_standard(const char *text, DWORD length, LPDWORD written)
{
    DWORD done = 0;
    while (done < length) {
        DWORD left = length - done, part = left < PART ? left : PART;
        if (!succeeded(write_console(text + done, part)))
            return FALSE;
        done += part;
    }
    if (written)
        *written = done;
    return TRUE;
}

typedef NTSTATUS NTAPI transfer_function(HANDLE file, HANDLE event, PIO_APC_ROUTINE routine,
                                         PVOID context, PIO_STATUS_BLOCK block, PVOID buffer,
                                         ULONG length, PLARGE_INTEGER offset, PULONG key);

/* Waits, whatever lpOverlapped says; its event is signaled. */
static NTSTATUS transfer_bytes(transfer_function *function, HANDLE file, PVOID buffer, DWORD length,
                               LPDWORD done, LPOVERLAPPED overlapped)
{
    IO_STATUS_BLOCK block = { .Information = 0 };
    LARGE_INTEGER at;
    if (overlapped)
        at.QuadPart = (LONGLONG)((ULONG64)overlapped->OffsetHigh << 32 | overlapped->Offset);
    NTSTATUS status = function(file, overlapped ? overlapped->hEvent : NULL, NULL, NULL, &block,
                               buffer, length, overlapped ? &at : NULL, NULL);
    if (done)
        *done = (DWORD)block.Information;
    if (overlapped) {
        overlapped->Internal = (ULONG_PTR)status;
        overlapped->InternalHigh = block.Information;
    }
    return status;
}

BOOL WINAPI WriteFile(HANDLE hFile, LPCVOID lpBuffer, DWORD nNumberOfBytesToWrite,
                      LPDWORD lpNumberOfBytesWritten, LPOVERLAPPED lpOverlapped)
{
    if (is_output(hFile))
        return write_standard(lpBuffer, nNumberOfBytesToWrite, lpNumberOfBytesWritten);
    return succeeded(transfer_bytes(NtWriteFile, hFile, (PVOID)lpBuffer, nNumberOfBytesToWrite,
                                    lpNumberOfBytesWritten, lpOverlapped));
}

/* The console has no input: it is at the end of file. At the end of a device the number read is 0;
 * with lpOverlapped that is an error. */
BOOL WINAPI ReadFile(HANDLE hFile, LPVOID lpBuffer, DWORD nNumberOfBytesToRead,
                     LPDWORD lpNumberOfBytesRead, LPOVERLAPPED lpOverlapped)
{
    if (hFile == STANDARD_INPUT) {
        if (lpNumberOfBytesRead)
            *lpNumberOfBytesRead = 0;
        return TRUE;
    }
    NTSTATUS status = transfer_bytes(NtReadFile, hFile, lpBuffer, nNumberOfBytesToRead,
                                     lpNumberOfBytesRead, lpOverlapped);
    return (status == STATUS_END_OF_FILE && !lpOverlapped) || succeeded(status);
}

/* Context is the routine. */
static VOID NTAPI completed(PVOID context, PIO_STATUS_BLOCK block, ULONG reserved)
{
    DWORD error = NT_SUCCESS(block->Status) ? 0 : RtlNtStatusToDosError(block->Status);
    (void)reserved;
    ((LPOVERLAPPED_COMPLETION_ROUTINE)context)(error, (DWORD)block->Information,
                                               (LPOVERLAPPED)block);
}
C_ASSERT(offsetof(OVERLAPPED, Internal) == 0 && offsetof(OVERLAPPED, InternalHigh) == 8);

/* NT: the transfer has ended before these return; the routine is called in an alertable wait. */
static BOOL transfer_then_call(transfer_function *function, HANDLE file, PVOID buffer, DWORD length,
                               LPOVERLAPPED overlapped, LPOVERLAPPED_COMPLETION_ROUTINE routine)
{
    LARGE_INTEGER at;
    if (!overlapped || !routine || is_output(file) || file == STANDARD_INPUT)
        return fail(ERROR_INVALID_PARAMETER);
    at.QuadPart = (LONGLONG)((ULONG64)overlapped->OffsetHigh << 32 | overlapped->Offset);
    teb()->last_error = ERROR_SUCCESS;
    return succeeded(function(file, NULL, completed, (PVOID)routine, (PIO_STATUS_BLOCK)overlapped,
                              buffer, length, &at, NULL));
}

BOOL WINAPI ReadFileEx(HANDLE hFile, LPVOID lpBuffer, DWORD nNumberOfBytesToRead,
                       LPOVERLAPPED lpOverlapped,
                       LPOVERLAPPED_COMPLETION_ROUTINE lpCompletionRoutine)
{
    return transfer_then_call(NtReadFile, hFile, lpBuffer, nNumberOfBytesToRead, lpOverlapped,
                              lpCompletionRoutine);
}

BOOL WINAPI WriteFileEx(HANDLE hFile, LPCVOID lpBuffer, DWORD nNumberOfBytesToWrite,
                        LPOVERLAPPED lpOverlapped,
                        LPOVERLAPPED_COMPLETION_ROUTINE lpCompletionRoutine)
{
    return transfer_then_call(NtWriteFile, hFile, (PVOID)lpBuffer, nNumberOfBytesToWrite,
                              lpOverlapped, lpCompletionRoutine);
}

/* NT: whoever asks finds the transfer ended. */
BOOL WINAPI GetOverlappedResult(HANDLE hFile, LPOVERLAPPED lpOverlapped,
                                LPDWORD lpNumberOfBytesTransferred, WINBOOL bWait)
{
    (void)hFile, (void)bWait;
    *lpNumberOfBytesTransferred = (DWORD)lpOverlapped->InternalHigh;
    return succeeded((NTSTATUS)lpOverlapped->Internal);
}

BOOL WINAPI FlushFileBuffers(HANDLE hFile)
{
    return is_output(hFile) ? TRUE : fail(ERROR_INVALID_HANDLE);
}
