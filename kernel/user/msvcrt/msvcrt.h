/* SPDX-License-Identifier: MIT */
/* What the files of msvcrt share. Prototypes of its exports come from mingw-w64's headers. */
#pragma once
#define __USE_MINGW_ANSI_STDIO 0
#include <windows.h>
#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* thread.c: C's data of each thread. */
struct thread_data {
    int error;
    unsigned long dos_error;
    unsigned random;
    char *token; /* strtok */
    wchar_t *wide_token;
    void *on_invalid;   /* ucrtbase's handler of wrong parameters */
    void *exception[2]; /* __current_exception, __current_exception_context */
    wchar_t high;       /* fputwc: the first half of a pair */
    char message[80];   /* strerror */
    char time_text[32];
    struct tm *time;
};
struct thread_data *thread_data(void);
void thread_data_end(void);

/* stdio.c */
void streams_begin(void);
void streams_end(void);
void stream_lock(FILE *stream);
void stream_unlock(FILE *stream);
/* Between these two an unbuffered stream is buffered, so that a message is written at once. */
void stream_hold(FILE *stream);
void stream_let_go(FILE *stream);
size_t stream_write(FILE *stream, const char *text, size_t size);

/* format.c and wide_format.c. Each returns the length of the whole text, or -1. A narrow text ends
 * with a NUL if there is room for it, a wide one only if it fits. */
#define FORMAT_LONG_IS_DOUBLE 1u /* %Lf is a double, as Microsoft's compiler has it */
#define FORMAT_C99_STRINGS 2u    /* %s in a wide format is narrow */
int format_to_stream(FILE *stream, unsigned rules, const char *format, va_list args);
int format_to_text(char *text, size_t size, unsigned rules, const char *format, va_list args);
int format_to_wide_stream(FILE *stream, unsigned rules, const wchar_t *format, va_list args);
int format_to_wide_text(wchar_t *text, size_t size, unsigned rules, const wchar_t *format,
                        va_list args);

/* startup.c: a parameter is wrong. Sets errno and returns its value; calls ucrtbase's handler of
 * wrong parameters, which may end the program. NT: msvcrt.dll has no handler. */
errno_t wrong(errno_t error);
extern void (*wrong_parameter)(void); /* NULL in msvcrt.dll */
extern void (*abort_end)(void);       /* how abort() ends, or NULL: with 3 */

/* The headers reach these through pointers in the importer. */
#undef _environ
#undef _wenviron
extern char **_environ;
extern wchar_t **_wenviron;
typedef void(__cdecl *no_arguments)(void);
extern no_arguments before_exit; /* what _cexit calls first, or NULL */
void make_environment(void);     /* _environ and _wenviron, from the process's block */
void startup_begin(void);
void startup_end(void);

/* locks.c */
void locks_begin(void);
void _lock(int number);
void _unlock(int number);

/* Functions with `...`, over those with a va_list. */
#define OVER(type, name, parameters, last, call)                                                   \
    type name parameters                                                                           \
    {                                                                                              \
        va_list args;                                                                              \
        va_start(args, last);                                                                      \
        type result = call;                                                                        \
        va_end(args);                                                                              \
        return result;                                                                             \
    }
