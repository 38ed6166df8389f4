/* SPDX-License-Identifier: MIT */
/* The entry point; from the process's start to main, and from exit to the process's end. */
#include "msvcrt.h"
#include <float.h>
#include <math.h>
#include <signal.h>

/* The headers access these through pointers. */
#undef _fmode
#undef _commode
char *_acmdln;
wchar_t *_wcmdln;
char **__initenv;
wchar_t **__winitenv;
int _fmode, _commode;

typedef struct {
    int newmode;
} _startupinfo;

errno_t wrong(errno_t error) { return errno = error; }

/* --- Arguments. --- */

/* Splits the line as Windows does. 2n backslashes before a quote are n backslashes, and the quote
 * opens or closes; 2n + 1 are n backslashes and a literal quote. Returns the number of words, and
 * stores them if `words` is not NULL. */
static int split(const wchar_t *line, wchar_t **words, wchar_t *to)
{
    int count = 0;
    while (*line) {
        while (*line == ' ' || *line == '\t')
            line++;
        if (!*line)
            break;
        if (words)
            words[count] = to;
        for (bool quoted = false; *line && (quoted || (*line != ' ' && *line != '\t'));) {
            int slashes = 0;
            for (; *line == '\\'; line++)
                slashes++;
            bool quote = *line == '"';
            for (int i = 0; i < (quote ? slashes / 2 : slashes); i++)
                *to++ = '\\';
            if (quote && slashes % 2 == 0)
                quoted = !quoted;
            else if (*line && (quoted || quote || (*line != ' ' && *line != '\t')))
                *to++ = *line;
            else
                continue;
            line++;
        }
        *to++ = 0;
        count++;
    }
    return count;
}

static char *narrow_argument(const wchar_t *wide)
{
    int n = WideCharToMultiByte(CP_ACP, 0, wide, -1, NULL, 0, NULL, NULL);
    char *text = malloc((size_t)n);
    if (text)
        WideCharToMultiByte(CP_ACP, 0, wide, -1, text, n, NULL, NULL);
    return text;
}

static int argument_count;
static char **arguments;
static wchar_t **wide_arguments;

static void make_arguments(void)
{
    size_t length = wcslen(_wcmdln);
    wchar_t *text = calloc(2 * length + 2, sizeof *text);
    wchar_t **wide = calloc(length + 2, sizeof *wide);
    char **plain = calloc(length + 2, sizeof *plain);
    if (!text || !wide || !plain)
        return;
    argument_count = split(_wcmdln, wide, text);
    for (int i = 0; i < argument_count; i++)
        plain[i] = narrow_argument(wide[i]);
    wide_arguments = wide;
    arguments = plain;
}

static void make_environment(void)
{
    const wchar_t *block = GetEnvironmentStringsW();
    size_t count = 0;
    for (const wchar_t *p = block; *p; p += wcslen(p) + 1)
        count++;
    __winitenv = calloc(count + 1, sizeof *__winitenv);
    __initenv = calloc(count + 1, sizeof *__initenv);
    for (size_t i = 0; __winitenv && __initenv && i < count; i++) {
        __winitenv[i] = (wchar_t *)block;
        __initenv[i] = narrow_argument(block);
        block += wcslen(block) + 1;
    }
}

char *getenv(const char *name)
{
    size_t n = strlen(name);
    for (char **e = __initenv; e && *e; e++)
        if (_strnicmp(*e, name, n) == 0 && (*e)[n] == '=')
            return *e + n + 1;
    return NULL;
}

int __getmainargs(int *count, char ***to, char ***environment, int glob, _startupinfo *info)
{
    *count = argument_count;
    *to = arguments;
    *environment = __initenv;
    return arguments ? 0 : -1;
}

int __wgetmainargs(int *count, wchar_t ***to, wchar_t ***environment, int glob, _startupinfo *info)
{
    *count = argument_count;
    *to = wide_arguments;
    *environment = __winitenv;
    return wide_arguments ? 0 : -1;
}

void __set_app_type(int type) { (void)type; }

/* No function here reports an error of mathematics. */
#undef __setusermatherr
void __setusermatherr(int(__cdecl *handler)(struct _exception *)) { (void)handler; }

void _fpreset(void)
{
    unsigned mxcsr = 0x1f80;
    asm volatile("fninit\n\tldmxcsr %0" : : "m"(mxcsr));
}

typedef void(__cdecl *no_arguments)(void);
void _initterm(no_arguments *from, no_arguments *end)
{
    for (; from < end; from++)
        if (*from)
            (*from)();
}

/* --- The numbered locks that static parts of programs take. --- */

#define LOCKS 64
static CRITICAL_SECTION locks[LOCKS];
void _lock(int number) { EnterCriticalSection(&locks[number & (LOCKS - 1)]); }
void _unlock(int number) { LeaveCriticalSection(&locks[number & (LOCKS - 1)]); }

BOOL WINAPI entry(HINSTANCE instance, DWORD reason, LPVOID reserved);
BOOL WINAPI entry(HINSTANCE instance, DWORD reason, LPVOID reserved)
{
    if (reason == DLL_THREAD_DETACH)
        thread_data_end();
    if (reason != DLL_PROCESS_ATTACH)
        return TRUE;
    for (unsigned i = 0; i < LOCKS; i++)
        InitializeCriticalSection(&locks[i]);
    _wcmdln = GetCommandLineW();
    _acmdln = GetCommandLineA();
    make_environment();
    make_arguments();
    return TRUE;
}

/* --- The end. --- */

static _onexit_t *at_exit;
static size_t exit_count, exit_room;

_onexit_t _onexit(_onexit_t function)
{
    _lock(0);
    if (exit_count == exit_room) {
        _onexit_t *more = realloc(at_exit, (2 * exit_room + 32) * sizeof *more);
        if (!more)
            function = NULL;
        else
            at_exit = more, exit_room = 2 * exit_room + 32;
    }
    if (function)
        at_exit[exit_count++] = function;
    _unlock(0);
    return function;
}

int atexit(void (*function)(void)) { return _onexit((_onexit_t)(void *)function) ? 0 : -1; }

/* The last function first; one that it adds is called next. */
void _cexit(void)
{
    for (;;) {
        _lock(0);
        _onexit_t function = exit_count ? at_exit[--exit_count] : NULL;
        _unlock(0);
        if (!function)
            return;
        function();
    }
}

void exit(int code)
{
    _cexit();
    ExitProcess((UINT)code);
}

void _exit(int code) { ExitProcess((UINT)code); }

void abort(void)
{
    raise(SIGABRT);
    _exit(3);
}

void _amsg_exit(int number)
{
    fprintf(stderr, "runtime error R60%02d\n", number);
    _exit(255);
}

void _assert(const char *message, const char *file, unsigned line)
{
    fprintf(stderr, "Assertion failed: %s, file %s, line %u\n", message, file, line);
    abort();
}
