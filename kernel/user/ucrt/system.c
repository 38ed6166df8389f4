/* SPDX-License-Identifier: MIT */
/* Memory, the environment, time, locales and files: what ucrtbase has beside msvcrt's. */
#include "ucrt.h"
#include <locale.h>
#include <malloc.h>
#include <sys/stat.h>
#include <sys/timeb.h>
#include <time.h>

/* --- Memory. --- */

void *_recalloc(void *block, size_t count, size_t size)
{
    size_t bytes, old = block ? _msize(block) : 0;
    if (__builtin_mul_overflow(count, size, &bytes)) {
        errno = ENOMEM;
        return NULL;
    }
    char *more = realloc(block, bytes);
    if (more && bytes > old)
        memset(more + old, 0, bytes - old);
    return more;
}

/* What is usable behind the block's own address, which stands before the aligned part. */
static size_t aligned_size(void *block)
{
    char *own = ((char **)block)[-1];
    return _msize(own) - (size_t)((char *)block - own);
}

void *_aligned_realloc(void *block, size_t size, size_t alignment)
{
    if (!block)
        return _aligned_malloc(size, alignment);
    void *other = size ? _aligned_malloc(size, alignment) : NULL;
    if (other)
        memcpy(other, block, aligned_size(block) < size ? aligned_size(block) : size);
    if (other || !size)
        _aligned_free(block);
    return other;
}

size_t _aligned_msize(void *block, size_t alignment, size_t offset)
{
    (void)alignment, (void)offset;
    return aligned_size(block);
}

int _heapchk(void) { return HeapValidate(GetProcessHeap(), 0, NULL) ? _HEAPOK : _HEAPBADNODE; }
intptr_t _get_heap_handle(void) { return (intptr_t)GetProcessHeap(); }

/* --- The environment. --- */

/* An empty value removes the variable. */
errno_t _wputenv_s(const wchar_t *name, const wchar_t *value)
{
    if (!name || !value || !*name || wcschr(name, '='))
        return wrong(EINVAL);
    if (!SetEnvironmentVariableW(name, *value ? value : NULL) && *value)
        return errno = ENOMEM;
    make_environment(); /* what getenv returned before stays */
    return 0;
}

static wchar_t *widen(const char *text)
{
    int n = MultiByteToWideChar(CP_ACP, 0, text, -1, NULL, 0);
    wchar_t *wide = malloc((size_t)n * sizeof *wide);
    if (wide)
        MultiByteToWideChar(CP_ACP, 0, text, -1, wide, n);
    return wide;
}

errno_t _putenv_s(const char *name, const char *value)
{
    wchar_t *wide_name = name ? widen(name) : NULL, *wide_value = value ? widen(value) : NULL;
    bool memory = (wide_name || !name) && (wide_value || !value);
    errno_t error = memory ? _wputenv_s(wide_name, wide_value) : ENOMEM;
    free(wide_name);
    free(wide_value);
    return error;
}

/* -1: EINVAL, `line` is not NAME=VALUE; only NULL is a wrong parameter. ENOMEM. */
int _wputenv(const wchar_t *line)
{
    if (!line) {
        wrong(EINVAL);
        return -1;
    }
    const wchar_t *value = wcschr(line, '=');
    if (!value || value == line) {
        errno = EINVAL;
        return -1;
    }
    wchar_t *copy = _wcsdup(line);
    if (!copy)
        return -1;
    copy[value - line] = 0;
    errno_t error = _wputenv_s(copy, value + 1);
    free(copy);
    return error ? -1 : 0;
}

int _putenv(const char *line)
{
    wchar_t *wide = line ? widen(line) : NULL;
    int result = wide || !line ? _wputenv(wide) : -1;
    free(wide);
    return result;
}

/* ERANGE: *needed is the room that it needs. 0, and 0 needed: there is no such variable. */
errno_t getenv_s(size_t *needed, char *to, size_t room, const char *name)
{
    if (needed)
        *needed = 0;
    if (to && room)
        *to = 0;
    if (!needed || !name || (room && !to))
        return wrong(EINVAL);
    const char *value = getenv(name);
    if (!value)
        return 0;
    *needed = strlen(value) + 1;
    if (!room)
        return 0;
    if (*needed > room)
        return errno = ERANGE;
    memcpy(to, value, *needed);
    return 0;
}

/* The caller frees the copy. */
#define DUPENV(type, name, get, duplicate, length)                                                 \
    errno_t name(type **to, size_t *count, const type *variable)                                   \
    {                                                                                              \
        if (to)                                                                                    \
            *to = NULL;                                                                            \
        if (count)                                                                                 \
            *count = 0;                                                                            \
        if (!to || !variable)                                                                      \
            return wrong(EINVAL);                                                                  \
        const type *value = get(variable);                                                         \
        *to = value ? duplicate(value) : NULL;                                                     \
        if (count && *to)                                                                          \
            *count = length(value) + 1;                                                            \
        return value && !*to ? errno = ENOMEM : 0;                                                 \
    }
DUPENV(char, _dupenv_s, getenv, _strdup, strlen)
DUPENV(wchar_t, _wdupenv_s, _wgetenv, _wcsdup, wcslen)

/* --- Time: UTC. --- */

#define TIME_ROOM 26 /* of "Thu Jan 01 00:00:00 1970\n" */

static long no_seconds;
static int no_daylight;
static char utc[] = "UTC", *zone_names[2] = { utc, utc };

long *__timezone(void) { return &no_seconds; }
long *__dstbias(void) { return &no_seconds; }
int *__daylight(void) { return &no_daylight; }
char **__tzname(void) { return zone_names; }
void _tzset(void) {}

/* Each stores one value. EINVAL: `to` is NULL. */
#define GET(name, type, value)                                                                     \
    errno_t name(type *to)                                                                         \
    {                                                                                              \
        if (!to)                                                                                   \
            return wrong(EINVAL);                                                                  \
        *to = value;                                                                               \
        return 0;                                                                                  \
    }
GET(_get_timezone, long, 0)
GET(_get_daylight, int, 0)
GET(_get_errno, int, errno)
GET(_get_doserrno, unsigned long, _doserrno)

struct seconds_and_ns {
    __time64_t seconds;
    long ns;
};

/* Base 1 is TIME_UTC, the only one; 0: another was asked for. */
int _timespec64_get(struct seconds_and_ns *to, int base)
{
    FILETIME time;
    GetSystemTimePreciseAsFileTime(&time);
    long long now = (long long)((unsigned long long)time.dwHighDateTime << 32 | time.dwLowDateTime);
    now -= 116444736000000000ll; /* 1970 */
    *to = (struct seconds_and_ns){ now / 10000000, (long)(now % 10000000) * 100 };
    return base == 1 ? base : 0;
}

errno_t _ftime64_s(struct __timeb64 *to)
{
    if (!to)
        return wrong(EINVAL);
    _ftime64(to);
    return 0;
}

/* EINVAL: without room for 26 characters too, or of what asctime() and _ctime64() refuse. */
errno_t asctime_s(char *text, size_t room, const struct tm *tm)
{
    if (text && room)
        *text = 0;
    if (!text || room < TIME_ROOM)
        return wrong(EINVAL);
    const char *from = asctime(tm);
    return from ? strcpy_s(text, room, from) : EINVAL;
}

errno_t _ctime64_s(char *text, size_t room, const __time64_t *time)
{
    if (text && room)
        *text = 0;
    if (!text || room < TIME_ROOM)
        return wrong(EINVAL);
    const char *from = _ctime64(time);
    return from ? strcpy_s(text, room, from) : EINVAL;
}

/* --- Locales: only "C". --- */

#define NOT_PER_THREAD 2

int _configthreadlocale(int mode)
{
    if (mode >= -1 && mode <= 2)
        return NOT_PER_THREAD;
    wrong(EINVAL);
    return -1;
}

static struct localeinfo_struct c_locale;

_locale_t _get_current_locale(void) { return &c_locale; }
_locale_t _create_locale(int category, const char *name)
{
    return setlocale(category, name) ? &c_locale : NULL;
}
_locale_t _wcreate_locale(int category, const wchar_t *name)
{
    (void)category;
    return wcscmp(name, L"C") == 0 || !*name ? &c_locale : NULL;
}
void _free_locale(_locale_t locale) { (void)locale; }

wchar_t *_wsetlocale(int category, const wchar_t *name)
{
    static wchar_t c[] = L"C";
    return setlocale(category, NULL) && (!name || _wcreate_locale(category, name)) ? c : NULL;
}

/* Names by category; NULL is "C". */
wchar_t **___lc_locale_name_func(void)
{
    static wchar_t *names[6];
    return names;
}

/* --- Files and errors. --- */

errno_t _set_errno(int value)
{
    errno = value;
    return 0;
}

errno_t _set_doserrno(unsigned long value)
{
    _doserrno = value;
    return 0;
}

int _fstat64i32(int file, struct _stat64i32 *stat)
{
    struct _stat64 whole;
    if (!stat) {
        wrong(EINVAL);
        return -1;
    }
    if (_fstat64(file, &whole))
        return -1;
    *stat = (struct _stat64i32){ .st_mode = whole.st_mode, .st_nlink = whole.st_nlink };
    return 0;
}

/* For what takes a name first: there is no file. */
errno_t no_such_file_s(const void *name) { return name ? (errno = ENOENT) : wrong(EINVAL); }

int no_such_file(const void *name)
{
    no_such_file_s(name);
    return -1;
}

errno_t _sopen_s(int *file, const char *name, int flags, int share, int mode)
{
    (void)flags, (void)share, (void)mode;
    if (file)
        *file = -1;
    return no_such_file_s(file ? name : NULL);
}

FILE *no_stream(const void *name)
{
    no_such_file(name);
    return NULL;
}

/* C:\, the folder that programs are in. */
char *_getcwd(char *text, int room)
{
    if (room < 0 || (text && !room)) {
        wrong(EINVAL);
        return NULL;
    }
    if (room && room < 4) {
        errno = ERANGE;
        return NULL;
    }
    text = text ? text : malloc(room > 4 ? (size_t)room : 4);
    return text ? memcpy(text, "C:\\", 4) : NULL;
}
