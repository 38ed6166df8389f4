/* SPDX-License-Identifier: MIT */
/* Devices of drivers: CreateFile of \\.\NAME, and of the console; DeviceIoControl. NT: there
 * are no files; other names are not found, and none can be made. */
#include "kernel32.h"
#include <winioctl.h>

#define PREFIX_LENGTH 4

/* \\.\NAME and \\?\NAME become \??\NAME; false for others. */
static bool device_name(const WCHAR *name, UNICODE_STRING *string, WCHAR *buffer)
{
    size_t n = 0;
    while (name[n])
        n++;
    if (n <= PREFIX_LENGTH || n >= MAX_PATH || name[0] != '\\' || name[1] != '\\' ||
        (name[2] != '.' && name[2] != '?') || name[3] != '\\')
        return false;
    for (size_t i = 0; i <= n; i++)
        buffer[i] = name[i];
    buffer[1] = buffer[2] = '?';
    string->Length = (USHORT)(2 * n);
    string->MaximumLength = (USHORT)(2 * n + 2);
    string->Buffer = buffer;
    return true;
}

static bool is_device_name(const WCHAR *name, const char *wanted)
{
    for (; *wanted; name++, wanted++)
        if (*name != (WCHAR)*wanted && *name != (WCHAR)(*wanted | 0x20))
            return false;
    return !*name;
}

/* NT: only the name and the access have an effect. */
HANDLE WINAPI CreateFileW(LPCWSTR lpFileName, DWORD dwDesiredAccess, DWORD dwShareMode,
                          LPSECURITY_ATTRIBUTES lpSecurityAttributes, DWORD dwCreationDisposition,
                          DWORD dwFlagsAndAttributes, HANDLE hTemplateFile)
{
    WCHAR buffer[MAX_PATH];
    UNICODE_STRING name;
    OBJECT_ATTRIBUTES attributes;
    IO_STATUS_BLOCK block;
    HANDLE handle;
    if (lpFileName && is_device_name(lpFileName, "CONOUT$"))
        return STANDARD_OUTPUT;
    if (lpFileName && is_device_name(lpFileName, "CONIN$"))
        return STANDARD_INPUT;
    if (!lpFileName || !device_name(lpFileName, &name, buffer)) {
        fail(dwCreationDisposition == OPEN_EXISTING || dwCreationDisposition == TRUNCATE_EXISTING
                 ? ERROR_FILE_NOT_FOUND
                 : ERROR_ACCESS_DENIED);
        return INVALID_HANDLE_VALUE;
    }
    InitializeObjectAttributes(&attributes, &name, OBJ_CASE_INSENSITIVE, NULL, NULL);
    return succeeded(NtCreateFile(&handle, dwDesiredAccess | SYNCHRONIZE | FILE_READ_ATTRIBUTES,
                                  &attributes, &block, NULL, 0, 0, 1, 0, NULL, 0))
               ? handle
               : INVALID_HANDLE_VALUE;
}

HANDLE WINAPI CreateFileA(LPCSTR lpFileName, DWORD dwDesiredAccess, DWORD dwShareMode,
                          LPSECURITY_ATTRIBUTES lpSecurityAttributes, DWORD dwCreationDisposition,
                          DWORD dwFlagsAndAttributes, HANDLE hTemplateFile)
{
    WCHAR buffer[MAX_PATH];
    UNICODE_STRING name;
    if (!lpFileName || !widen(lpFileName, &name, buffer)) {
        fail(ERROR_FILE_NOT_FOUND);
        return INVALID_HANDLE_VALUE;
    }
    return CreateFileW(name.Buffer, dwDesiredAccess, dwShareMode, lpSecurityAttributes,
                       dwCreationDisposition, dwFlagsAndAttributes, hTemplateFile);
}

/* Waits, whatever lpOverlapped says; its event is signaled. */
BOOL WINAPI DeviceIoControl(HANDLE hDevice, DWORD dwIoControlCode, LPVOID lpInBuffer,
                            DWORD nInBufferSize, LPVOID lpOutBuffer, DWORD nOutBufferSize,
                            LPDWORD lpBytesReturned, LPOVERLAPPED lpOverlapped)
{
    IO_STATUS_BLOCK block = { .Information = 0 };
    HANDLE event = lpOverlapped ? lpOverlapped->hEvent : NULL;
    NTSTATUS status = NtDeviceIoControlFile(hDevice, event, NULL, NULL, &block, dwIoControlCode,
                                            lpInBuffer, nInBufferSize, lpOutBuffer, nOutBufferSize);
    if (lpBytesReturned)
        *lpBytesReturned = (DWORD)block.Information;
    if (lpOverlapped) {
        lpOverlapped->Internal = (ULONG_PTR)status;
        lpOverlapped->InternalHigh = block.Information;
    }
    return succeeded(status);
}
