/* SPDX-License-Identifier: MIT */
/* The environment: a block of NAME=value strings. NT: it has a fixed size. */
#include "kernel32.h"

#define ROOM 4096 /* characters, with the NUL after the last string */

static WCHAR variables[ROOM];

static void copy_environment(void)
{
    const WCHAR *from = *(WCHAR **)((uint8_t *)parameters() + 0x80);
    if (variables[0] || !from)
        return;
    for (unsigned i = 0; i < ROOM - 2 && (from[i] || from[i + 1]); i++)
        variables[i] = from[i];
}

static WCHAR upper_case(WCHAR c) { return c >= 'a' && c <= 'z' ? (WCHAR)(c + 'A' - 'a') : c; }

/* The string of a name, or the end of the block. */
static WCHAR *find_variable(const WCHAR *name)
{
    WCHAR *at = variables;
    copy_environment();
    for (; *at; at += lstrlenW(at) + 1) {
        unsigned i = 0;
        while (name[i] && upper_case(name[i]) == upper_case(at[i]))
            i++;
        if (!name[i] && at[i] == '=')
            break;
    }
    return at;
}

LPWCH WINAPI GetEnvironmentStringsW(void)
{
    copy_environment();
    return variables;
}

BOOL WINAPI FreeEnvironmentStringsW(LPWCH penv) { return TRUE; }

/* Also GetEnvironmentStringsA. */
LPCH WINAPI GetEnvironmentStrings(void)
{
    const WCHAR *end = GetEnvironmentStringsW();
    while (*end)
        end += lstrlenW(end) + 1;
    int length = (int)(end - variables) + 1, room = 3 * length;
    LPCH copy = LocalAlloc(0, (SIZE_T)room);
    if (copy)
        WideCharToMultiByte(CP_UTF8, 0, variables, length, copy, room, NULL, NULL);
    return copy;
}

BOOL WINAPI FreeEnvironmentStringsA(LPCH penv)
{
    LocalFree(penv);
    return TRUE;
}

DWORD WINAPI GetEnvironmentVariableW(LPCWSTR lpName, LPWSTR lpBuffer, DWORD nSize)
{
    const WCHAR *value = find_variable(lpName);
    if (!*value)
        return (DWORD)fail(ERROR_ENVVAR_NOT_FOUND);
    value += lstrlenW(lpName) + 1;
    DWORD length = (DWORD)lstrlenW(value);
    if (length >= nSize)
        return length + 1;
    memcpy(lpBuffer, value, (length + 1) * sizeof *value);
    return length;
}

DWORD WINAPI GetEnvironmentVariableA(LPCSTR lpName, LPSTR lpBuffer, DWORD nSize)
{
    WCHAR buffer[MAX_PATH];
    UNICODE_STRING name;
    if (!widen(lpName, &name, buffer))
        return 0;
    const WCHAR *value = find_variable(buffer);
    if (!*value)
        return (DWORD)fail(ERROR_ENVVAR_NOT_FOUND);
    value += lstrlenW(buffer) + 1;
    return give_narrow(value, (DWORD)lstrlenW(value), lpBuffer, nSize);
}

BOOL WINAPI SetEnvironmentVariableW(LPCWSTR lpName, LPCWSTR lpValue)
{
    WCHAR *at = find_variable(lpName), *end = at;
    int name = lstrlenW(lpName), value = lpValue ? lstrlenW(lpValue) : 0;
    if (*at) { /* remove the old string */
        WCHAR *rest = at + lstrlenW(at) + 1;
        while (*rest || rest[-1])
            *end++ = *rest++;
        *end = 0;
    }
    for (end = variables; *end; end += lstrlenW(end) + 1)
        ;
    if (!lpValue)
        return TRUE;
    if (end - variables + name + value + 3 > ROOM)
        return fail(ERROR_NOT_ENOUGH_MEMORY);
    for (int i = 0; i < name; i++)
        *end++ = lpName[i];
    *end++ = '=';
    for (int i = 0; i <= value; i++)
        *end++ = lpValue[i];
    *end = 0;
    return TRUE;
}

BOOL WINAPI SetEnvironmentVariableA(LPCSTR lpName, LPCSTR lpValue)
{
    WCHAR name_buffer[MAX_PATH], value_buffer[MAX_PATH];
    UNICODE_STRING name, value;
    if (!widen(lpName, &name, name_buffer) || (lpValue && !widen(lpValue, &value, value_buffer)))
        return FALSE;
    return SetEnvironmentVariableW(name_buffer, lpValue ? value_buffer : NULL);
}
