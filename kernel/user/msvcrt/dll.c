/* SPDX-License-Identifier: MIT */
/* The entry point of the library. */
#include "msvcrt.h"

BOOL WINAPI entry(HINSTANCE instance, DWORD reason, LPVOID reserved);
BOOL WINAPI entry(HINSTANCE instance, DWORD reason, LPVOID reserved)
{
    (void)instance, (void)reserved;
    if (reason == DLL_PROCESS_ATTACH) {
        locks_begin();
        streams_begin();
        startup_begin();
    }
    if (reason == DLL_THREAD_DETACH)
        thread_data_end();
    if (reason == DLL_PROCESS_DETACH)
        startup_end();
    return TRUE;
}
