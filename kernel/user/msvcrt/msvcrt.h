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
    wchar_t high;     /* fputwc: the first half of a pair */
    char message[80]; /* strerror */
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
/* What ungetc or ungetwc pushed back, else EOF: there is no input. */
int stream_read(FILE *stream);
size_t stream_write(FILE *stream, const char *text, size_t size);

/* startup.c: a parameter is wrong. Sets errno and returns its value. */
errno_t wrong(errno_t error);

/* The headers reach these through pointers in the importer. */
#undef _environ
#undef _wenviron
extern char **_environ;
extern wchar_t **_wenviron;
typedef void(__cdecl *no_arguments)(void);
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
