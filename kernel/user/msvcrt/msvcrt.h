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

/* crt_thread.c: C's data of each thread. */
struct thread_data {
    int error;
    unsigned random;
};
struct thread_data *thread_data(void);
void thread_data_end(void);

/* startup.c: a parameter is wrong. Sets errno and returns its value. */
errno_t wrong(errno_t error);
void _lock(int number);
void _unlock(int number);
