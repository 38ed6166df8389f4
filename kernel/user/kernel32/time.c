/* SPDX-License-Identifier: MIT */
/* Time. */
#include "kernel32.h"

BOOL WINAPI QueryPerformanceCounter(LARGE_INTEGER *lpPerformanceCount)
{
    return succeeded(NtQueryPerformanceCounter(lpPerformanceCount, NULL));
}

BOOL WINAPI QueryPerformanceFrequency(LARGE_INTEGER *lpFrequency)
{
    LARGE_INTEGER now;
    return succeeded(NtQueryPerformanceCounter(&now, lpFrequency));
}

ULONGLONG WINAPI GetTickCount64(void)
{
    LARGE_INTEGER now, frequency;
    NtQueryPerformanceCounter(&now, &frequency);
    return (ULONGLONG)(now.QuadPart / (frequency.QuadPart / 1000));
}

DWORD WINAPI GetTickCount(void) { return (DWORD)GetTickCount64(); }

/* NT: there is no time zone. */

VOID WINAPI GetSystemTimeAsFileTime(LPFILETIME lpSystemTimeAsFileTime)
{
    NtQuerySystemTime((PLARGE_INTEGER)lpSystemTimeAsFileTime);
}

VOID WINAPI GetSystemTimePreciseAsFileTime(LPFILETIME lpSystemTimeAsFileTime)
{
    GetSystemTimeAsFileTime(lpSystemTimeAsFileTime);
}

/* --- Dates: days since 1601-01-01, by 400-year eras that begin on March 1st. --- */

#define DAY 864000000000ull /* 100 ns */
#define ERA 146097u         /* days of 400 years */
#define TO_MARCH 306u       /* from 1600-03-01 to 1601-01-01 */

WINBOOL WINAPI FileTimeToSystemTime(const FILETIME *lpFileTime, LPSYSTEMTIME lpSystemTime)
{
    ULONGLONG time = (ULONGLONG)lpFileTime->dwHighDateTime << 32 | lpFileTime->dwLowDateTime;
    if (time >> 63)
        return fail(ERROR_INVALID_PARAMETER);
    unsigned days = (unsigned)(time / DAY), from_march = days + TO_MARCH;
    unsigned era = from_march / ERA, day = from_march % ERA;
    unsigned year = (day - day / 1460 + day / 36524 - day / 146096) / 365;
    unsigned of_year = day - (365 * year + year / 4 - year / 100);
    unsigned month = (5 * of_year + 2) / 153; /* 0: March */
    unsigned ms = (unsigned)(time % DAY / 10000);
    *lpSystemTime = (SYSTEMTIME){ .wYear = (WORD)(1600 + era * 400 + year + (month >= 10)),
                                  .wMonth = (WORD)(month < 10 ? month + 3 : month - 9),
                                  .wDay = (WORD)(of_year - (153 * month + 2) / 5 + 1),
                                  .wDayOfWeek = (WORD)((days + 1) % 7),
                                  .wHour = (WORD)(ms / 3600000),
                                  .wMinute = (WORD)(ms / 60000 % 60),
                                  .wSecond = (WORD)(ms / 1000 % 60),
                                  .wMilliseconds = (WORD)(ms % 1000) };
    return TRUE;
}

WINBOOL WINAPI SystemTimeToFileTime(const SYSTEMTIME *lpSystemTime, LPFILETIME lpFileTime)
{
    const SYSTEMTIME *t = lpSystemTime;
    if (t->wYear < 1601 || t->wYear > 30827 || t->wMonth - 1u > 11 || t->wDay - 1u > 30 ||
        t->wHour > 23 || t->wMinute > 59 || t->wSecond > 59 || t->wMilliseconds > 999)
        return fail(ERROR_INVALID_PARAMETER);
    unsigned year = t->wYear - 1600u - (t->wMonth < 3), month = (t->wMonth + 9u) % 12;
    unsigned of_year = (153 * month + 2) / 5 + t->wDay - 1u;
    unsigned days = year * 365 + year / 4 - year / 100 + year / 400 + of_year - TO_MARCH;
    ULONGLONG ms = ((t->wHour * 60ull + t->wMinute) * 60 + t->wSecond) * 1000 + t->wMilliseconds;
    ULONGLONG time = days * DAY + ms * 10000;
    *lpFileTime = (FILETIME){ (DWORD)time, (DWORD)(time >> 32) };
    return TRUE;
}

VOID WINAPI GetSystemTime(LPSYSTEMTIME lpSystemTime)
{
    FILETIME now;
    GetSystemTimeAsFileTime(&now);
    FileTimeToSystemTime(&now, lpSystemTime);
}

VOID WINAPI GetLocalTime(LPSYSTEMTIME lpSystemTime) { GetSystemTime(lpSystemTime); }

WINBOOL WINAPI SetSystemTime(const SYSTEMTIME *lpSystemTime)
{
    return fail(ERROR_PRIVILEGE_NOT_HELD);
}

/* A tick is a millisecond; there is no adjustment. */
WINBOOL WINAPI GetSystemTimeAdjustment(PDWORD lpTimeAdjustment, PDWORD lpTimeIncrement,
                                       PBOOL lpTimeAdjustmentDisabled)
{
    *lpTimeAdjustment = *lpTimeIncrement = 10000;
    *lpTimeAdjustmentDisabled = TRUE;
    return TRUE;
}

/* In units of 100 ns since boot. The machine does not sleep, so that nothing is left out. */
WINBOOL WINAPI QueryUnbiasedInterruptTime(PULONGLONG UnbiasedTime)
{
    return UnbiasedTime ? QueryPerformanceCounter((LARGE_INTEGER *)UnbiasedTime)
                        : fail(ERROR_INVALID_PARAMETER);
}
