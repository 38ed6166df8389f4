/* SPDX-License-Identifier: MIT */
/* <time.h>. NT: local time is UTC. */
#include "msvcrt.h"
#include <time.h>
#include <sys/timeb.h>

#define SECONDS_TO_1970 11644473600ll
#define DAY 86400
#define LAST 32535215999ll /* the end of the year 3000 */

static const char days[] = "SunMonTueWedThuFriSat",
                  months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";

static long long now_100ns(void)
{
    FILETIME time;
    GetSystemTimeAsFileTime(&time);
    return (long long)((unsigned long long)time.dwHighDateTime << 32 | time.dwLowDateTime);
}

__time64_t _time64(__time64_t *to)
{
    __time64_t now = now_100ns() / 10000000 - SECONDS_TO_1970;
    if (to)
        *to = now;
    return now;
}

__time32_t _time32(__time32_t *to)
{
    __time32_t now = (__time32_t)_time64(NULL);
    if (to)
        *to = now;
    return now;
}

double _difftime64(__time64_t end, __time64_t start) { return (double)(end - start); }

void _ftime64(struct __timeb64 *to)
{
    long long now = now_100ns();
    *to = (struct __timeb64){ .time = now / 10000000 - SECONDS_TO_1970,
                              .millitm = (unsigned short)(now / 10000 % 1000) };
}

clock_t clock(void)
{
    static LARGE_INTEGER frequency;
    LARGE_INTEGER now;
    if (!frequency.QuadPart)
        QueryPerformanceFrequency(&frequency);
    QueryPerformanceCounter(&now);
    return (clock_t)(now.QuadPart * CLOCKS_PER_SEC / frequency.QuadPart);
}

/* --- Calendar: days since 1970-03-01 in years that begin in March. --- */

static long long days_of(long long year, int month, int day)
{
    year -= month < 2;
    long long era = (year >= 0 ? year : year - 399) / 400, of_era = year - era * 400;
    int of_year = (153 * (month < 2 ? month + 10 : month - 2) + 2) / 5 + day - 1;
    return era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468;
}

static void fill_tm(struct tm *tm, long long seconds)
{
    long long day = (seconds >= 0 ? seconds : seconds - DAY + 1) / DAY;
    int left = (int)(seconds - day * DAY);
    long long era = (day + 719468 >= 0 ? day + 719468 : day + 719468 - 146096) / 146097;
    int of_era = (int)(day + 719468 - era * 146097);
    int year = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
    int of_year = of_era - (365 * year + year / 4 - year / 100), month = (5 * of_year + 2) / 153;
    *tm = (struct tm){ .tm_sec = left % 60, .tm_min = left / 60 % 60, .tm_hour = left / 3600 };
    tm->tm_mday = of_year - (153 * month + 2) / 5 + 1;
    tm->tm_mon = month < 10 ? month + 2 : month - 10;
    tm->tm_year = (int)(year + era * 400 - 1900 + (tm->tm_mon < 2));
    tm->tm_wday = (int)((day % 7 + 11) % 7);
    tm->tm_yday = (int)(day - days_of(tm->tm_year + 1900, 0, 1));
}

/* NULL: `time` is wrong, or before 1970 or after 3000. */
struct tm *_gmtime64(const __time64_t *time)
{
    if (!time) {
        wrong(EINVAL);
        return NULL;
    }
    struct thread_data *data = thread_data();
    if (!data->time)
        data->time = malloc(sizeof *data->time);
    if (!data->time || *time < 0 || *time > LAST) {
        errno = data->time ? EINVAL : ENOMEM;
        return NULL;
    }
    fill_tm(data->time, *time);
    return data->time;
}

struct tm *_gmtime32(const __time32_t *time)
{
    __time64_t wide = time ? *time : 0;
    return _gmtime64(time ? &wide : NULL);
}

struct tm *_localtime64(const __time64_t *time) { return _gmtime64(time); }
struct tm *_localtime32(const __time32_t *time) { return _gmtime32(time); }

errno_t _gmtime64_s(struct tm *tm, const __time64_t *time)
{
    if (tm)
        *tm = (struct tm){ -1, -1, -1, -1, -1, -1, -1, -1, -1 };
    if (!tm || !time)
        return wrong(EINVAL);
    if (*time < 0 || *time > LAST)
        return errno = EINVAL;
    fill_tm(tm, *time);
    return 0;
}

errno_t _localtime64_s(struct tm *tm, const __time64_t *time) { return _gmtime64_s(tm, time); }

/* -1: a date before 1970 or after 3000. */
__time64_t _mktime64(struct tm *tm)
{
    if (!tm) {
        wrong(EINVAL);
        return -1;
    }
    long long year = tm->tm_year + 1900ll + tm->tm_mon / 12;
    int month = tm->tm_mon % 12;
    if (month < 0) {
        month += 12;
        year--;
    }
    long long day = days_of(year, month, 1) + tm->tm_mday - 1;
    long long seconds = day * DAY + tm->tm_hour * 3600ll + tm->tm_min * 60ll + tm->tm_sec;
    if (seconds < 0 || seconds > LAST) {
        errno = EINVAL;
        return -1;
    }
    fill_tm(tm, seconds);
    return seconds;
}

__time64_t _mkgmtime64(struct tm *tm) { return _mktime64(tm); }

#undef asctime
char *asctime(const struct tm *tm)
{
    char *text = thread_data()->time_text;
    if (!tm || tm->tm_wday < 0 || tm->tm_wday > 6 || tm->tm_mon < 0 || tm->tm_mon > 11 ||
        tm->tm_mday < 1 || tm->tm_mday > 31 || tm->tm_hour < 0 || tm->tm_hour > 23 ||
        tm->tm_min < 0 || tm->tm_min > 59 || tm->tm_sec < 0 || tm->tm_sec > 60 || tm->tm_year < 0 ||
        tm->tm_year > 8099) {
        wrong(EINVAL);
        return NULL;
    }
    _snprintf(text, 32, "%.3s %.3s %02d %02d:%02d:%02d %d\n", days + 3 * tm->tm_wday,
              months + 3 * tm->tm_mon, tm->tm_mday, tm->tm_hour, tm->tm_min, tm->tm_sec,
              tm->tm_year + 1900);
    return text;
}

char *_ctime64(const __time64_t *time)
{
    const struct tm *tm = _gmtime64(time);
    return tm ? asctime(tm) : NULL;
}

/* --- strftime --- */

static const char *const day_names[] = { "Sunday",   "Monday", "Tuesday", "Wednesday",
                                         "Thursday", "Friday", "Saturday" };
static const char *const month_names[] = { "January",   "February", "March",    "April",
                                           "May",       "June",     "July",     "August",
                                           "September", "October",  "November", "December" };

static const char *name(const char *const *names, int count, int i)
{
    if (i >= 0 && i < count)
        return names[i];
    wrong(EINVAL);
    return "";
}

/* One conversion, at most 40 characters. */
static void field(char *to, char c, const struct tm *t)
{
    int hour = t->tm_hour % 12 ? t->tm_hour % 12 : 12, room = 40;
    int monday = (t->tm_wday + 6) % 7;
    switch (c) {
    case 'a': _snprintf(to, room, "%.3s", name(day_names, 7, t->tm_wday)); break;
    case 'A': _snprintf(to, room, "%s", name(day_names, 7, t->tm_wday)); break;
    case 'b': _snprintf(to, room, "%.3s", name(month_names, 12, t->tm_mon)); break;
    case 'B': _snprintf(to, room, "%s", name(month_names, 12, t->tm_mon)); break;
    case 'd': _snprintf(to, room, "%02d", t->tm_mday); break;
    case 'H': _snprintf(to, room, "%02d", t->tm_hour); break;
    case 'I': _snprintf(to, room, "%02d", hour); break;
    case 'j': _snprintf(to, room, "%03d", t->tm_yday + 1); break;
    case 'm': _snprintf(to, room, "%02d", t->tm_mon + 1); break;
    case 'M': _snprintf(to, room, "%02d", t->tm_min); break;
    case 'p': _snprintf(to, room, "%s", t->tm_hour < 12 ? "AM" : "PM"); break;
    case 'S': _snprintf(to, room, "%02d", t->tm_sec); break;
    case 'U': _snprintf(to, room, "%02d", (t->tm_yday + 7 - t->tm_wday) / 7); break;
    case 'w': _snprintf(to, room, "%d", t->tm_wday); break;
    case 'W': _snprintf(to, room, "%02d", (t->tm_yday + 7 - monday) / 7); break;
    case 'y': _snprintf(to, room, "%02d", t->tm_year % 100); break;
    case 'Y': _snprintf(to, room, "%d", t->tm_year + 1900); break;
    case 'z': _snprintf(to, room, "+0000"); break;
    case 'Z': _snprintf(to, room, "UTC"); break;
    case 'F':
        _snprintf(to, room, "%d-%02d-%02d", t->tm_year + 1900, t->tm_mon + 1, t->tm_mday);
        break;
    case 'T':
    case 'X': _snprintf(to, room, "%02d:%02d:%02d", t->tm_hour, t->tm_min, t->tm_sec); break;
    case 'D':
    case 'x':
        _snprintf(to, room, "%02d/%02d/%02d", t->tm_mon + 1, t->tm_mday, t->tm_year % 100);
        break;
    case 'c':
        _snprintf(to, room, "%02d/%02d/%02d %02d:%02d:%02d", t->tm_mon + 1, t->tm_mday,
                  t->tm_year % 100, t->tm_hour, t->tm_min, t->tm_sec);
        break;
    default: _snprintf(to, room, "%c", c); break;
    }
}

size_t strftime(char *text, size_t room, const char *format, const struct tm *tm)
{
    size_t n = 0;
    if (!text || !room || !format || !tm) {
        wrong(EINVAL);
        return 0;
    }
    for (; *format; format++) {
        char part[40] = { *format, 0 };
        if (*format == '%' && format[1]) {
            format += format[1] == '#' && format[2] ? 2 : 1;
            field(part, *format, tm);
        }
        size_t length = strlen(part);
        if (n + length >= room) {
            *text = 0;
            errno = ERANGE;
            return 0;
        }
        memcpy(text + n, part, length + 1);
        n += length;
    }
    text[n] = 0;
    return n;
}

size_t wcsftime(wchar_t *text, size_t room, const wchar_t *format, const struct tm *tm)
{
    char narrow_format[200], narrow[400];
    if (!text || !room || !format) {
        wrong(EINVAL);
        return 0;
    }
    if (wcstombs(narrow_format, format, sizeof narrow_format) >= sizeof narrow_format)
        return 0;
    size_t n = strftime(narrow, sizeof narrow, narrow_format, tm);
    if (n >= room)
        return 0;
    return mbstowcs(text, narrow, room);
}
