/* SPDX-License-Identifier: MIT */
/* check.h, and how a thread of a program ended. */
#pragma once
#include <windows.h>
#include "check.h"

/* Waits for the end of a thread, closes its handle and returns its exit status. */
static DWORD end_of(HANDLE thread)
{
    DWORD code = 99;
    IS(WaitForSingleObject(thread, 60000), WAIT_OBJECT_0);
    GetExitCodeThread(thread, &code);
    CloseHandle(thread);
    return code;
}
