/* SPDX-License-Identifier: MIT */
/* Virtual memory and heaps. HeapAlloc, HeapFree, HeapReAlloc and HeapSize are ntdll's own. */
#include "kernel32.h"

LPVOID WINAPI VirtualAllocEx(HANDLE hProcess, LPVOID lpAddress, SIZE_T dwSize,
                             DWORD flAllocationType, DWORD flProtect)
{
    return succeeded(NtAllocateVirtualMemory(hProcess, &lpAddress, 0, &dwSize, flAllocationType,
                                             flProtect))
               ? lpAddress
               : NULL;
}

LPVOID WINAPI VirtualAlloc(LPVOID lpAddress, SIZE_T dwSize, DWORD flAllocationType, DWORD flProtect)
{
    return VirtualAllocEx(CURRENT_PROCESS, lpAddress, dwSize, flAllocationType, flProtect);
}

BOOL WINAPI VirtualFreeEx(HANDLE hProcess, LPVOID lpAddress, SIZE_T dwSize, DWORD dwFreeType)
{
    return succeeded(NtFreeVirtualMemory(hProcess, &lpAddress, &dwSize, dwFreeType));
}

BOOL WINAPI VirtualFree(LPVOID lpAddress, SIZE_T dwSize, DWORD dwFreeType)
{
    return VirtualFreeEx(CURRENT_PROCESS, lpAddress, dwSize, dwFreeType);
}

BOOL WINAPI VirtualProtectEx(HANDLE hProcess, LPVOID lpAddress, SIZE_T dwSize, DWORD flNewProtect,
                             PDWORD lpflOldProtect)
{
    return succeeded(
        NtProtectVirtualMemory(hProcess, &lpAddress, &dwSize, flNewProtect, lpflOldProtect));
}

BOOL WINAPI VirtualProtect(LPVOID lpAddress, SIZE_T dwSize, DWORD flNewProtect,
                           PDWORD lpflOldProtect)
{
    return VirtualProtectEx(CURRENT_PROCESS, lpAddress, dwSize, flNewProtect, lpflOldProtect);
}

SIZE_T WINAPI VirtualQueryEx(HANDLE hProcess, LPCVOID lpAddress, PMEMORY_BASIC_INFORMATION lpBuffer,
                             SIZE_T dwLength)
{
    SIZE_T length;
    return succeeded(
               NtQueryVirtualMemory(hProcess, (PVOID)lpAddress, 0, lpBuffer, dwLength, &length))
               ? length
               : 0;
}

SIZE_T WINAPI VirtualQuery(LPCVOID lpAddress, PMEMORY_BASIC_INFORMATION lpBuffer, SIZE_T dwLength)
{
    return VirtualQueryEx(CURRENT_PROCESS, lpAddress, lpBuffer, dwLength);
}

/* NT: no effect: all pages stay in memory. */
BOOL WINAPI VirtualLock(LPVOID lpAddress, SIZE_T dwSize) { return TRUE; }
BOOL WINAPI VirtualUnlock(LPVOID lpAddress, SIZE_T dwSize) { return TRUE; }

BOOL WINAPI FlushInstructionCache(HANDLE hProcess, LPCVOID lpBaseAddress, SIZE_T dwSize)
{
    return TRUE;
}

/* Whether a page up to the string's end, or `most` characters, cannot be read. */
static BOOL is_bad_string(const uint8_t *text, UINT_PTR most, UINT_PTR width)
{
    MEMORY_BASIC_INFORMATION region;
    for (const uint8_t *end = text; most; text += width, most--) {
        while (text + width > end) {
            if (!VirtualQuery(end, &region, sizeof region) || region.State != MEM_COMMIT ||
                region.Protect & (PAGE_NOACCESS | PAGE_GUARD))
                return TRUE;
            end = (const uint8_t *)region.BaseAddress + region.RegionSize;
        }
        if (!(width == 1 ? *text : *(const WCHAR *)text))
            break;
    }
    return FALSE;
}
BOOL WINAPI IsBadStringPtrA(LPCSTR lpsz, UINT_PTR ucchMax)
{
    return is_bad_string((const void *)lpsz, ucchMax, 1);
}
BOOL WINAPI IsBadStringPtrW(LPCWSTR lpsz, UINT_PTR ucchMax)
{
    return is_bad_string((const void *)lpsz, ucchMax, sizeof *lpsz);
}

HANDLE WINAPI GetProcessHeap(void) { return teb()->peb->heap; }

HANDLE WINAPI HeapCreate(DWORD flOptions, SIZE_T dwInitialSize, SIZE_T dwMaximumSize)
{
    HANDLE heap = RtlCreateHeap(flOptions, NULL, dwMaximumSize, dwInitialSize, NULL, NULL);
    if (!heap)
        fail(ERROR_NOT_ENOUGH_MEMORY);
    return heap;
}

BOOL WINAPI HeapDestroy(HANDLE hHeap)
{
    return RtlDestroyHeap(hHeap) ? fail(ERROR_INVALID_HANDLE) : TRUE;
}

/* Handles of movable memory are pointers: nothing is moved. */
HLOCAL WINAPI LocalAlloc(UINT uFlags, SIZE_T uBytes)
{
    return RtlAllocateHeap(NULL, uFlags & LMEM_ZEROINIT ? HEAP_ZERO_MEMORY : 0, uBytes);
}

HLOCAL WINAPI LocalFree(HLOCAL hMem)
{
    RtlFreeHeap(NULL, 0, hMem);
    return NULL;
}

HGLOBAL WINAPI GlobalAlloc(UINT uFlags, SIZE_T dwBytes) { return LocalAlloc(uFlags, dwBytes); }
HGLOBAL WINAPI GlobalFree(HGLOBAL hMem) { return LocalFree(hMem); }
