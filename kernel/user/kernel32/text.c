/* SPDX-License-Identifier: MIT */
/* Code pages. NT: only UTF-8, the system's own, and US-ASCII. */
#include "kernel32.h"

#define REPLACEMENT 0xfffd

static bool is_known(UINT page)
{
    return page <= CP_THREAD_ACP || page == CP_UTF8 || page == 20127;
}

/* Reads one character of UTF-8. -1: not a character; one byte is skipped. */
static int decode_utf8(const unsigned char **at, const unsigned char *end)
{
    static const unsigned least[] = { 0, 0x80, 0x800, 0x10000 };
    const unsigned char *p = *at;
    unsigned first = *p++, more = first < 0x80   ? 0
                                  : first < 0xc0 ? 4
                                  : first < 0xe0 ? 1
                                  : first < 0xf0 ? 2
                                  : first < 0xf8 ? 3
                                                 : 4;
    *at = p;
    if (more == 4 || (size_t)(end - p) < more)
        return -1;
    unsigned value = more ? first & (0x3fu >> more) : first;
    for (unsigned i = 0; i < more; i++) {
        if ((p[i] & 0xc0) != 0x80)
            return -1;
        value = value << 6 | (p[i] & 0x3fu);
    }
    if (value < least[more] || value > 0x10ffff || (value >= 0xd800 && value < 0xe000))
        return -1;
    *at = p + more;
    return (int)value;
}

int WINAPI MultiByteToWideChar(UINT CodePage, DWORD dwFlags, LPCCH lpMultiByteStr, int cbMultiByte,
                               LPWSTR lpWideCharStr, int cchWideChar)
{
    const unsigned char *at = (const unsigned char *)lpMultiByteStr;
    int n = 0;
    if (!at || !cbMultiByte || !is_known(CodePage))
        return fail(ERROR_INVALID_PARAMETER);
    const unsigned char *end =
        at + (cbMultiByte < 0 ? strlen(lpMultiByteStr) + 1 : (size_t)cbMultiByte);
    while (at < end) {
        int c = decode_utf8(&at, end);
        if (c < 0 && (dwFlags & MB_ERR_INVALID_CHARS))
            return fail(ERROR_NO_UNICODE_TRANSLATION);
        c = c < 0 ? REPLACEMENT : c;
        int units = c < 0x10000 ? 1 : 2;
        if (cchWideChar && n + units > cchWideChar)
            return fail(ERROR_INSUFFICIENT_BUFFER);
        if (cchWideChar && units == 1)
            lpWideCharStr[n] = (WCHAR)c;
        if (cchWideChar && units == 2) {
            lpWideCharStr[n] = (WCHAR)(0xd7c0 + (c >> 10));
            lpWideCharStr[n + 1] = (WCHAR)(0xdc00 | (c & 0x3ff));
        }
        n += units;
    }
    return n;
}

/* 1 to 4 bytes of UTF-8. */
static int encode(unsigned c, char *to)
{
    if (c < 0x80) {
        to[0] = (char)c;
        return 1;
    }
    int n = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    for (int i = n - 1; i > 0; i--, c >>= 6)
        to[i] = (char)(0x80 | (c & 0x3f));
    to[0] = (char)(0xf00 >> n | c);
    return n;
}

static unsigned next_wide(const WCHAR **at, const WCHAR *end)
{
    unsigned c = *(*at)++;
    if (c >= 0xd800 && c < 0xdc00 && *at < end && **at >= 0xdc00 && **at < 0xe000)
        return (c - 0xd7c0) << 10 | (*(*at)++ & 0x3ff);
    return c >= 0xd800 && c < 0xe000 ? REPLACEMENT : c;
}

int WINAPI WideCharToMultiByte(UINT CodePage, DWORD dwFlags, LPCWCH lpWideCharStr, int cchWideChar,
                               LPSTR lpMultiByteStr, int cbMultiByte, LPCCH lpDefaultChar,
                               LPBOOL lpUsedDefaultChar)
{
    char bytes[4];
    int n = 0;
    if (!lpWideCharStr || !cchWideChar || !is_known(CodePage))
        return fail(ERROR_INVALID_PARAMETER);
    if (lpUsedDefaultChar)
        *lpUsedDefaultChar = FALSE;
    const WCHAR *at = lpWideCharStr, *end = at + (cchWideChar < 0 ? lstrlenW(at) + 1 : cchWideChar);
    while (at < end) {
        int length = encode(next_wide(&at, end), bytes);
        if (cbMultiByte && n + length > cbMultiByte)
            return fail(ERROR_INSUFFICIENT_BUFFER);
        for (int i = 0; cbMultiByte && i < length; i++)
            lpMultiByteStr[n + i] = bytes[i];
        n += length;
    }
    return n;
}

UINT WINAPI GetACP(void) { return CP_UTF8; }
UINT WINAPI GetOEMCP(void) { return CP_UTF8; }
BOOL WINAPI IsValidCodePage(UINT CodePage) { return CodePage == CP_UTF8 || CodePage == 20127; }
BOOL WINAPI IsDBCSLeadByteEx(UINT CodePage, BYTE TestChar) { return FALSE; }

BOOL WINAPI GetCPInfo(UINT CodePage, LPCPINFO lpCPInfo)
{
    if (!is_known(CodePage))
        return fail(ERROR_INVALID_PARAMETER);
    *lpCPInfo = (CPINFO){ .MaxCharSize = CodePage == 20127 ? 1 : 4, .DefaultChar = { '?' } };
    return TRUE;
}

int WINAPI lstrlenA(LPCSTR lpString) { return lpString ? (int)strlen(lpString) : 0; }

int WINAPI lstrlenW(LPCWSTR lpString)
{
    int n = 0;
    while (lpString && lpString[n])
        n++;
    return n;
}

bool widen(const char *text, UNICODE_STRING *string, WCHAR *buffer)
{
    int n = text ? MultiByteToWideChar(CP_UTF8, 0, text, -1, buffer, MAX_PATH) : 0;
    if (!n)
        return fail(ERROR_INVALID_PARAMETER);
    RtlInitUnicodeString(string, buffer);
    return true;
}

DWORD give_narrow(const WCHAR *text, DWORD length, char *buffer, DWORD room)
{
    int n = length ? WideCharToMultiByte(CP_UTF8, 0, text, (int)length, NULL, 0, NULL, NULL) : 0;
    if ((DWORD)n >= room)
        return (DWORD)n + 1;
    if (n)
        WideCharToMultiByte(CP_UTF8, 0, text, (int)length, buffer, n, NULL, NULL);
    buffer[n] = 0;
    return (DWORD)n;
}
