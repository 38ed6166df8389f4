/* SPDX-License-Identifier: MIT */
/* Modules: thin over ntdll's Ldr routines. */
#include "kernel32.h"

static UNICODE_STRING string_of(LPCWSTR text)
{
    UNICODE_STRING string;
    RtlInitUnicodeString(&string, text);
    return string;
}

HMODULE WINAPI LoadLibraryExW(LPCWSTR lpLibFileName, HANDLE hFile, DWORD dwFlags)
{
    UNICODE_STRING name = string_of(lpLibFileName);
    PVOID base;
    return succeeded(LdrLoadDll(NULL, NULL, &name, &base)) ? base : NULL;
}

HMODULE WINAPI LoadLibraryW(LPCWSTR lpLibFileName)
{
    return LoadLibraryExW(lpLibFileName, NULL, 0);
}

HMODULE WINAPI LoadLibraryExA(LPCSTR lpLibFileName, HANDLE hFile, DWORD dwFlags)
{
    WCHAR buffer[MAX_PATH];
    UNICODE_STRING name;
    return widen(lpLibFileName, &name, buffer) ? LoadLibraryExW(buffer, hFile, dwFlags) : NULL;
}

HMODULE WINAPI LoadLibraryA(LPCSTR lpLibFileName) { return LoadLibraryExA(lpLibFileName, NULL, 0); }

BOOL WINAPI FreeLibrary(HMODULE hLibModule) { return succeeded(LdrUnloadDll(hLibModule)); }

HMODULE WINAPI GetModuleHandleW(LPCWSTR lpModuleName)
{
    PVOID base = teb()->peb->image_base;
    if (!lpModuleName)
        return base;
    UNICODE_STRING name = string_of(lpModuleName);
    return succeeded(LdrGetDllHandle(NULL, NULL, &name, &base)) ? base : NULL;
}

HMODULE WINAPI GetModuleHandleA(LPCSTR lpModuleName)
{
    WCHAR buffer[MAX_PATH];
    UNICODE_STRING name;
    if (!lpModuleName)
        return GetModuleHandleW(NULL);
    return widen(lpModuleName, &name, buffer) ? GetModuleHandleW(buffer) : NULL;
}

BOOL WINAPI GetModuleHandleExW(DWORD dwFlags, LPCWSTR lpModuleName, HMODULE *phModule)
{
    PVOID base;
    if (dwFlags & GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS)
        *phModule = RtlPcToFileHeader((PVOID)lpModuleName, &base);
    else
        *phModule = GetModuleHandleW(lpModuleName);
    return *phModule ? TRUE : fail(ERROR_MOD_NOT_FOUND);
}

BOOL WINAPI GetModuleHandleExA(DWORD dwFlags, LPCSTR lpModuleName, HMODULE *phModule)
{
    if (dwFlags & GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS)
        return GetModuleHandleExW(dwFlags, (LPCWSTR)lpModuleName, phModule);
    *phModule = GetModuleHandleA(lpModuleName);
    return *phModule ? TRUE : fail(ERROR_MOD_NOT_FOUND);
}

/* Below 64 KB a name is an ordinal. */
FARPROC WINAPI GetProcAddress(HMODULE hModule, LPCSTR lpProcName)
{
    bool by_name = (ULONG_PTR)lpProcName >> 16;
    ANSI_STRING name = { 0, 0, (PCHAR)lpProcName };
    PVOID address;
    NTSTATUS status =
        LdrGetProcedureAddress(hModule ? hModule : teb()->peb->image_base, by_name ? &name : NULL,
                               (ULONG)(ULONG_PTR)lpProcName, &address);
    return succeeded(status) ? (FARPROC)address : NULL;
}

DWORD WINAPI GetModuleFileNameW(HMODULE hModule, LPWSTR lpFilename, DWORD nSize)
{
    UNICODE_STRING name;
    if (!succeeded(LdrGetDllFullName(hModule, &name)))
        return 0;
    DWORD length = name.Length / 2u, given = length < nSize ? length : nSize ? nSize - 1 : 0;
    for (DWORD i = 0; i < given; i++)
        lpFilename[i] = name.Buffer[i];
    if (nSize)
        lpFilename[given] = 0;
    if (given == length)
        return length;
    fail(ERROR_INSUFFICIENT_BUFFER);
    return nSize;
}

DWORD WINAPI GetModuleFileNameA(HMODULE hModule, LPSTR lpFilename, DWORD nSize)
{
    UNICODE_STRING name;
    if (!succeeded(LdrGetDllFullName(hModule, &name)))
        return 0;
    DWORD length = name.Length / 2u;
    if (length < nSize)
        return give_narrow(name.Buffer, length, lpFilename, nSize);
    for (DWORD i = 0; i < nSize; i++)
        lpFilename[i] = i + 1 < nSize ? (char)name.Buffer[i] : 0;
    fail(ERROR_INSUFFICIENT_BUFFER);
    return nSize;
}

BOOL WINAPI DisableThreadLibraryCalls(HMODULE hLibModule)
{
    return succeeded(LdrDisableThreadCalloutsForDll(hLibModule));
}

/* What a library that is loaded at its first use calls for each function that is used. NT: Windows
 * tells lpDllHook more of a failure; here pfnSystemHook alone is called. */
PVOID WINAPI ResolveDelayLoadedAPI(BYTE *base, const IMAGE_DELAYLOAD_DESCRIPTOR *of, PVOID hook,
                                   FARPROC(WINAPI *failed)(LPCSTR, LPCSTR), IMAGE_THUNK_DATA *slot,
                                   ULONG flags)
{
    const IMAGE_THUNK_DATA *names = (const void *)(base + of->ImportNameTableRVA);
    const IMAGE_THUNK_DATA *name =
        &names[slot - (IMAGE_THUNK_DATA *)(void *)(base + of->ImportAddressTableRVA)];
    const char *library = (const char *)base + of->DllNameRVA,
               *function = IMAGE_SNAP_BY_ORDINAL(name->u1.Ordinal)
                               ? (const char *)IMAGE_ORDINAL(name->u1.Ordinal)
                               : (const char *)base + name->u1.AddressOfData + 2;
    HMODULE module = LoadLibraryA(library);
    FARPROC found = module ? GetProcAddress(module, function) : NULL;
    if (!found)
        return failed ? (PVOID)failed(library, function) : NULL;
    slot->u1.Function = (ULONG_PTR)found;
    return (PVOID)found;
}
