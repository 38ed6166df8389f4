/* SPDX-License-Identifier: MIT */
/* Ends while a thread of it waits for a request that bad_driver.c, as keep.sys, never completes. */
#include <windows.h>

static DWORD WINAPI ask(LPVOID file)
{
    DWORD n;
    DeviceIoControl(file, 0, NULL, 0, NULL, 0, &n, NULL);
    return 1;
}

int main(void)
{
    HANDLE file = CreateFileA("\\\\.\\Bad", GENERIC_READ, 0, NULL, OPEN_EXISTING, 0, NULL);
    HANDLE thread = CreateThread(NULL, 0, ask, file, 0, NULL);
    return WaitForSingleObject(thread, 20) == WAIT_TIMEOUT ? 0 : 2;
}
