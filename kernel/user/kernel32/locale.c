/* SPDX-License-Identifier: MIT */
/* What a C library asks of locales. NT: there are two, the invariant one and en-US, which is the
 * user's; only ASCII has letters, and strings are ordered by their code units. */
#include "kernel32.h"

#define INVARIANT 0x7fu
#define ENGLISH 0x409u

static WCHAR lower_ascii(WCHAR c) { return c >= 'A' && c <= 'Z' ? (WCHAR)(c + 'a' - 'A') : c; }
static WCHAR upper_ascii(WCHAR c) { return c >= 'a' && c <= 'z' ? (WCHAR)(c + 'A' - 'a') : c; }

static WORD character_type(WCHAR c)
{
    if (c >= '0' && c <= '9')
        return C1_DEFINED | C1_DIGIT | C1_XDIGIT;
    if (lower_ascii(c) >= 'a' && lower_ascii(c) <= 'z')
        return C1_DEFINED | C1_ALPHA | (c == lower_ascii(c) ? C1_LOWER : C1_UPPER) |
               (lower_ascii(c) <= 'f' ? C1_XDIGIT : 0);
    if (c == ' ')
        return C1_DEFINED | C1_SPACE | C1_BLANK;
    if (c >= '\t' && c <= '\r')
        return C1_DEFINED | C1_SPACE | C1_CNTRL | (c == '\t' ? C1_BLANK : 0);
    if (c < ' ' || c == 0x7f)
        return C1_DEFINED | C1_CNTRL;
    return c < 0x7f ? C1_DEFINED | C1_PUNCT : C1_DEFINED;
}

/* FALSE: ERROR_INVALID_PARAMETER, no text. ERROR_INVALID_FLAGS: another type than CT_CTYPE1. */
WINBOOL WINAPI GetStringTypeW(DWORD dwInfoType, LPCWCH lpSrcStr, int cchSrc, LPWORD lpCharType)
{
    if (!lpSrcStr || !cchSrc || !lpCharType)
        return fail(ERROR_INVALID_PARAMETER);
    if (dwInfoType != CT_CTYPE1)
        return fail(ERROR_INVALID_FLAGS);
    int n = cchSrc < 0 ? lstrlenW(lpSrcStr) + 1 : cchSrc;
    for (int i = 0; i < n; i++)
        lpCharType[i] = character_type(lpSrcStr[i]);
    return TRUE;
}

/* The length that is written or, with cchDest 0, needed. 0: ERROR_INVALID_PARAMETER, no text.
 * ERROR_INSUFFICIENT_BUFFER. ERROR_INVALID_FLAGS: neither or both of the two cases. */
int WINAPI LCMapStringW(LCID Locale, DWORD dwMapFlags, LPCWSTR lpSrcStr, int cchSrc,
                        LPWSTR lpDestStr, int cchDest)
{
    bool to_lower = dwMapFlags & LCMAP_LOWERCASE, to_upper = dwMapFlags & LCMAP_UPPERCASE;
    if (!lpSrcStr || !cchSrc || cchDest < 0 || (cchDest && !lpDestStr))
        return fail(ERROR_INVALID_PARAMETER);
    if (to_lower == to_upper || dwMapFlags & LCMAP_SORTKEY)
        return fail(ERROR_INVALID_FLAGS);
    int n = cchSrc < 0 ? lstrlenW(lpSrcStr) + 1 : cchSrc;
    if (cchDest && n > cchDest)
        return fail(ERROR_INSUFFICIENT_BUFFER);
    for (int i = 0; cchDest && i < n; i++)
        lpDestStr[i] = to_lower ? lower_ascii(lpSrcStr[i]) : upper_ascii(lpSrcStr[i]);
    return n;
}

int WINAPI LCMapStringEx(LPCWSTR lpLocaleName, DWORD dwMapFlags, LPCWSTR lpSrcStr, int cchSrc,
                         LPWSTR lpDestStr, int cchDest, LPNLSVERSIONINFO lpVersionInformation,
                         LPVOID lpReserved, LPARAM sortHandle)
{
    return LCMapStringW(INVARIANT, dwMapFlags, lpSrcStr, cchSrc, lpDestStr, cchDest);
}

/* --- Comparing: 1 less, 2 equal, 3 greater, 0 with ERROR_INVALID_PARAMETER. --- */

int WINAPI CompareStringOrdinal(LPCWCH lpString1, int cchCount1, LPCWCH lpString2, int cchCount2,
                                WINBOOL bIgnoreCase)
{
    if (!lpString1 || !lpString2 || cchCount1 < -1 || cchCount2 < -1)
        return fail(ERROR_INVALID_PARAMETER);
    int n1 = cchCount1 < 0 ? lstrlenW(lpString1) : cchCount1;
    int n2 = cchCount2 < 0 ? lstrlenW(lpString2) : cchCount2;
    for (int i = 0; i < n1 && i < n2; i++) {
        WCHAR a = bIgnoreCase ? upper_ascii(lpString1[i]) : lpString1[i];
        WCHAR b = bIgnoreCase ? upper_ascii(lpString2[i]) : lpString2[i];
        if (a != b)
            return a < b ? CSTR_LESS_THAN : CSTR_GREATER_THAN;
    }
    return n1 < n2 ? CSTR_LESS_THAN : n1 > n2 ? CSTR_GREATER_THAN : CSTR_EQUAL;
}

int WINAPI CompareStringW(LCID Locale, DWORD dwCmpFlags, PCNZWCH lpString1, int cchCount1,
                          PCNZWCH lpString2, int cchCount2)
{
    return CompareStringOrdinal(lpString1, cchCount1 < 0 ? -1 : cchCount1, lpString2,
                                cchCount2 < 0 ? -1 : cchCount2,
                                !!(dwCmpFlags & (NORM_IGNORECASE | LINGUISTIC_IGNORECASE)));
}

int WINAPI CompareStringEx(LPCWSTR lpLocaleName, DWORD dwCmpFlags, LPCWCH lpString1, int cchCount1,
                           LPCWCH lpString2, int cchCount2, LPNLSVERSIONINFO lpVersionInformation,
                           LPVOID lpReserved, LPARAM lParam)
{
    return CompareStringW(INVARIANT, dwCmpFlags, lpString1, cchCount1, lpString2, cchCount2);
}

/* --- Names and properties. --- */

LCID WINAPI GetUserDefaultLCID(void) { return ENGLISH; }
WINBOOL WINAPI IsValidLocale(LCID Locale, DWORD dwFlags)
{
    return Locale == INVARIANT || Locale == ENGLISH;
}

static int give_text(const WCHAR *text, LPWSTR to, int room)
{
    int n = lstrlenW(text) + 1;
    if (room < 0 || (room && !to))
        return fail(ERROR_INVALID_PARAMETER);
    if (room && n > room)
        return fail(ERROR_INSUFFICIENT_BUFFER);
    for (int i = 0; room && i < n; i++)
        to[i] = text[i];
    return n;
}

int WINAPI GetUserDefaultLocaleName(LPWSTR lpLocaleName, int cchLocaleName)
{
    return give_text(L"en-US", lpLocaleName, cchLocaleName);
}

int WINAPI LCIDToLocaleName(LCID Locale, LPWSTR lpName, int cchName, DWORD dwFlags)
{
    if (Locale == LOCALE_USER_DEFAULT || Locale == LOCALE_SYSTEM_DEFAULT)
        Locale = ENGLISH;
    if (!IsValidLocale(Locale, dwFlags))
        return fail(ERROR_INVALID_PARAMETER);
    return give_text(Locale == ENGLISH ? L"en-US" : L"", lpName, cchName);
}

/* NULL is the user's. 0: ERROR_INVALID_PARAMETER, there is no such locale. */
LCID WINAPI LocaleNameToLCID(LPCWSTR lpName, DWORD dwFlags)
{
    if (!lpName || CompareStringOrdinal(lpName, -1, L"en-US", -1, TRUE) == CSTR_EQUAL)
        return ENGLISH;
    return *lpName ? (LCID)fail(ERROR_INVALID_PARAMETER) : INVARIANT;
}

WINBOOL WINAPI EnumSystemLocalesW(LOCALE_ENUMPROCW lpLocaleEnumProc, DWORD dwFlags)
{
    WCHAR name[] = L"00000409";
    if (!lpLocaleEnumProc)
        return fail(ERROR_INVALID_PARAMETER);
    lpLocaleEnumProc(name);
    return TRUE;
}

WINBOOL WINAPI EnumSystemLocalesEx(LOCALE_ENUMPROCEX lpLocaleEnumProcEx, DWORD dwFlags,
                                   LPARAM lParam, LPVOID lpReserved)
{
    WCHAR name[] = L"en-US";
    if (!lpLocaleEnumProcEx || lpReserved)
        return fail(ERROR_INVALID_PARAMETER);
    lpLocaleEnumProcEx(name, LOCALE_WINDOWS | LOCALE_SPECIFICDATA, lParam);
    return TRUE;
}

static const struct {
    LCTYPE type;
    const WCHAR *text;
    DWORD number;
} properties[] = {
    { LOCALE_SDECIMAL, L".", 0 },
    { LOCALE_STHOUSAND, L",", 0 },
    { LOCALE_SGROUPING, L"3;0", 0 },
    { LOCALE_SNEGATIVESIGN, L"-", 0 },
    { LOCALE_SPOSITIVESIGN, L"", 0 },
    { LOCALE_SNAME, L"en-US", 0 },
    { LOCALE_SISO639LANGNAME, L"en", 0 },
    { LOCALE_SISO3166CTRYNAME, L"US", 0 },
    { LOCALE_IDEFAULTCODEPAGE, L"65001", CP_UTF8 },
    { LOCALE_IDEFAULTANSICODEPAGE, L"65001", CP_UTF8 },
};

/* 0: ERROR_INVALID_FLAGS, a property that is not in the table; as give_text(). */
int WINAPI GetLocaleInfoW(LCID Locale, LCTYPE LCType, LPWSTR lpLCData, int cchData)
{
    LCTYPE type = LCType & ~(LCTYPE)(LOCALE_NOUSEROVERRIDE | LOCALE_RETURN_NUMBER);
    for (unsigned i = 0; i < ARRAYSIZE(properties); i++) {
        if (properties[i].type != type)
            continue;
        if (!(LCType & LOCALE_RETURN_NUMBER))
            return give_text(properties[i].text, lpLCData, cchData);
        if (!properties[i].number)
            break;
        if (cchData < 0 || (cchData && !lpLCData))
            return fail(ERROR_INVALID_PARAMETER);
        if (cchData == 1)
            return fail(ERROR_INSUFFICIENT_BUFFER);
        if (cchData)
            memcpy(lpLCData, &properties[i].number, sizeof(DWORD));
        return 2;
    }
    return fail(ERROR_INVALID_FLAGS);
}

/* All texts are ASCII, and a number has the size of two wide characters. */
int WINAPI GetLocaleInfoA(LCID Locale, LCTYPE LCType, LPSTR lpLCData, int cchData)
{
    WCHAR text[32];
    const bool number = LCType & LOCALE_RETURN_NUMBER;
    const int n = GetLocaleInfoW(Locale, LCType, text, ARRAYSIZE(text)) * (number ? 2 : 1);
    if (cchData < 0 || (cchData && !lpLCData))
        return fail(ERROR_INVALID_PARAMETER);
    if (n && cchData && n > cchData)
        return fail(ERROR_INSUFFICIENT_BUFFER);
    if (cchData && number)
        memcpy(lpLCData, text, (size_t)n);
    for (int i = 0; cchData && !number && i < n; i++)
        lpLCData[i] = (char)text[i];
    return n;
}

int WINAPI GetLocaleInfoEx(LPCWSTR lpLocaleName, LCTYPE LCType, LPWSTR lpLCData, int cchData)
{
    return GetLocaleInfoW(LocaleNameToLCID(lpLocaleName, 0), LCType, lpLCData, cchData);
}
