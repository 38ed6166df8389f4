/* SPDX-License-Identifier: MIT */
/* From the process's start to main and to its end, as compilers since 2015 have it. */
#include "ucrt.h"
#include <fcntl.h>
#include <signal.h>

#undef __argc
#undef __argv
#undef __wargv
#undef _acmdln
#undef _wcmdln
#undef _fmode
#undef _commode
extern int __argc, _fmode, _commode;
extern char **__argv, *_acmdln;
extern wchar_t **__wargv, *_wcmdln;
void _initterm(no_arguments *from, no_arguments *end);

/* --- Arguments and the environment, which are there since the library's own start. --- */

/* EINVAL: there is no such mode. NT: 2, which wants wildcards expanded, is 1. */
errno_t _configure_narrow_argv(int mode) { return mode >= 0 && mode <= 2 ? 0 : wrong(EINVAL); }
int _initialize_narrow_environment(void) { return _environ ? 0 : -1; }
int _initialize_wide_environment(void) { return _wenviron ? 0 : -1; }
char **_get_initial_narrow_environment(void) { return _environ; }
wchar_t **_get_initial_wide_environment(void) { return _wenviron; }
int *__p___argc(void) { return &__argc; }
char ***__p___argv(void) { return &__argv; }
wchar_t ***__p___wargv(void) { return &__wargv; }
char ***__p__environ(void) { return &_environ; }
wchar_t ***__p__wenviron(void) { return &_wenviron; }
char **__p__acmdln(void) { return &_acmdln; }
wchar_t **__p__wcmdln(void) { return &_wcmdln; }
int *__p__fmode(void) { return &_fmode; }
int *__p__commode(void) { return &_commode; }

errno_t _set_fmode(int mode)
{
    if (mode != _O_TEXT && mode != _O_BINARY && mode != _O_WTEXT)
        return wrong(EINVAL);
    _fmode = mode;
    return 0;
}

errno_t _get_fmode(int *mode)
{
    if (!mode)
        return wrong(EINVAL);
    *mode = _fmode;
    return 0;
}

/* What follows the program's name in the command line. */
#define BEHIND_NAME(type, name, line)                                                              \
    type *name(void)                                                                               \
    {                                                                                              \
        type *at = line;                                                                           \
        for (bool quoted = false; *at && (quoted || (*at != ' ' && *at != '\t')); at++)            \
            if (*at == '"')                                                                        \
                quoted = !quoted;                                                                  \
        while (*at == ' ' || *at == '\t')                                                          \
            at++;                                                                                  \
        return at;                                                                                 \
    }
BEHIND_NAME(char, _get_narrow_winmain_command_line, _acmdln)
BEHIND_NAME(wchar_t, _get_wide_winmain_command_line, _wcmdln)

/* --- Settings: kept, and without effect but for what is said. --- */

#define REPORT_ERROR_MODE 3
#define WRITE_ABORT_MESSAGE 1u
#define CALL_REPORT_FAULT 2u

static int type, new_mode, error_mode;
static unsigned abort_behavior = WRITE_ABORT_MESSAGE | CALL_REPORT_FAULT;

void _set_app_type(int value) { type = value; }
int _set_error_mode(int mode)
{
    int old = error_mode;
    if (mode < 0 || mode > REPORT_ERROR_MODE) {
        wrong(EINVAL);
        return -1;
    }
    if (mode != REPORT_ERROR_MODE)
        error_mode = mode;
    return old;
}

unsigned _set_abort_behavior(unsigned flags, unsigned mask)
{
    unsigned old = abort_behavior;
    abort_behavior = (old & ~mask) | (flags & mask);
    return old;
}

typedef int(__cdecl *new_handler)(size_t);
static new_handler on_no_memory;

int _set_new_mode(int mode)
{
    int old = new_mode;
    if (mode != 0 && mode != 1) {
        wrong(EINVAL);
        return -1;
    }
    new_mode = mode;
    return old;
}

new_handler _set_new_handler(new_handler handler)
{
    new_handler old = on_no_memory;
    on_no_memory = handler;
    return old;
}

/* 0: there is no handler, or it could free nothing. */
int _callnewh(size_t size) { return on_no_memory && on_no_memory(size); }

/* --- The end. --- */

typedef int(__cdecl *on_exit)(void);
struct table {
    on_exit *first, *last, *end;
};

int _initialize_onexit_table(struct table *table)
{
    if (!table)
        return -1;
    if (table->first == table->end)
        *table = (struct table){ 0 };
    return 0;
}

int _register_onexit_function(struct table *table, on_exit function)
{
    if (!table)
        return -1;
    _lock(0);
    if (table->last == table->end) {
        size_t used = (size_t)(table->last - table->first), room = 2 * used + 32;
        on_exit *more = realloc(table->first, room * sizeof *more);
        if (more)
            *table = (struct table){ more, more + used, more + room };
    }
    bool fits = table->last != table->end;
    if (fits)
        *table->last++ = function;
    _unlock(0);
    return fits ? 0 : -1;
}

/* The last function first; one that it adds is called next. */
int _execute_onexit_table(struct table *table)
{
    if (!table)
        return -1;
    for (;;) {
        _lock(0);
        on_exit function = table->last != table->first ? *--table->last : NULL;
        on_exit *list = table->first;
        bool done = table->last == list;
        if (done)
            *table = (struct table){ 0 };
        _unlock(0);
        if (function)
            function();
        if (done)
            free(list);
        if (!function)
            return 0;
    }
}

int _crt_atexit(void (*function)(void)) { return atexit(function); }

static struct table quick;

int _crt_at_quick_exit(void (*function)(void))
{
    return _register_onexit_function(&quick, (on_exit)(void *)function);
}

void quick_exit(int code)
{
    _execute_onexit_table(&quick);
    _exit(code);
}

static PIMAGE_TLS_CALLBACK thread_local_end;

static void end_thread_locals(void) { thread_local_end(NULL, DLL_PROCESS_DETACH, NULL); }

/* Destroys the last thread's objects, before what atexit() was given. */
void _register_thread_local_exe_atexit_callback(PIMAGE_TLS_CALLBACK callback)
{
    thread_local_end = callback;
    before_exit = callback ? end_thread_locals : NULL;
}

/* --- What ends a program that is wrong. --- */

typedef void(__cdecl *invalid_handler)(const wchar_t *, const wchar_t *, const wchar_t *, unsigned,
                                       uintptr_t);
static invalid_handler on_invalid;

invalid_handler _get_invalid_parameter_handler(void) { return on_invalid; }
invalid_handler _set_invalid_parameter_handler(invalid_handler handler)
{
    invalid_handler old = on_invalid;
    on_invalid = handler;
    return old;
}

/* Of one thread; it goes before the process's. */
invalid_handler _get_invalid_parameter_handler_of_thread(void)
{
    return (invalid_handler)thread_data()->on_invalid;
}

invalid_handler _set_invalid_parameter_handler_of_thread(invalid_handler handler)
{
    invalid_handler old = _get_invalid_parameter_handler_of_thread();
    thread_data()->on_invalid = (void *)handler;
    return old;
}

#define FAST_FAIL_STACK_COOKIE 2
#define FAST_FAIL_INVALID_ARGUMENT 5
#define FAST_FAIL_FATAL_EXIT 7

/* __fastfail(): no handler is called. */
static void fail_fast(const char *why, unsigned code)
{
    fputs(why, stderr);
    __asm__ volatile("int $0x29" : : "c"(code));
}

/* abort() ends so unless the program has cleared _CALL_REPORTFAULT. */
static void report_abort(void)
{
    if (abort_behavior & CALL_REPORT_FAULT)
        fail_fast("the program called abort()\n", FAST_FAIL_FATAL_EXIT);
}

void _invoke_watson(const wchar_t *what, const wchar_t *function, const wchar_t *file,
                    unsigned line, uintptr_t reserved)
{
    (void)what, (void)function, (void)file, (void)line, (void)reserved;
    fail_fast("a function of the C library was given a wrong parameter\n",
              FAST_FAIL_INVALID_ARGUMENT);
}

void _invalid_parameter_noinfo(void)
{
    invalid_handler handler = _get_invalid_parameter_handler_of_thread();
    handler = handler ? handler : on_invalid ? on_invalid : _invoke_watson;
    handler(NULL, NULL, NULL, 0, 0);
}

void _invalid_parameter_noinfo_noreturn(void)
{
    _invalid_parameter_noinfo();
    _invoke_watson(NULL, NULL, NULL, 0, 0);
}

void __report_gsfailure(uintptr_t cookie)
{
    (void)cookie;
    fail_fast("a buffer on the stack was overrun\n", FAST_FAIL_STACK_COOKIE);
}

static no_arguments on_terminate;

no_arguments _get_terminate(void) { return on_terminate; }
no_arguments set_terminate(no_arguments handler)
{
    no_arguments old = on_terminate;
    on_terminate = handler;
    return old;
}

void terminate(void)
{
    if (on_terminate)
        on_terminate();
    abort();
}

static no_arguments on_purecall;

no_arguments _set_purecall_handler(no_arguments handler)
{
    no_arguments old = on_purecall;
    on_purecall = handler;
    return old;
}

void _purecall(void);
void pure_call(void)
{
    if (on_purecall)
        on_purecall();
    _purecall();
}

int _seh_filter_exe(unsigned long code, EXCEPTION_POINTERS *pointers);

/* Of a library: only C++'s own exceptions end at its boundary. */
int _seh_filter_dll(unsigned long code, EXCEPTION_POINTERS *pointers)
{
    return code == 0xe06d7363 ? _seh_filter_exe(code, pointers) : EXCEPTION_CONTINUE_SEARCH;
}

/* --- The library's own start. --- */

BOOL WINAPI entry(HINSTANCE instance, DWORD reason, LPVOID reserved);
BOOL WINAPI ucrt_entry(HINSTANCE instance, DWORD reason, LPVOID reserved);
BOOL WINAPI ucrt_entry(HINSTANCE instance, DWORD reason, LPVOID reserved)
{
    wrong_parameter = _invalid_parameter_noinfo;
    abort_end = report_abort;
    return entry(instance, reason, reserved);
}
