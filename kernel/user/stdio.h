/* SPDX-License-Identifier: MIT */
/* Output for programs: stdout goes out by the line, stderr at once, both to the console. There are
 * no files and no input. NT: `long` has 64 bits here (the compiler's choice), but the l of a format
 * means 32 bits as in Windows; ll, I64, j, z and t mean 64. */
#pragma once
#include <stdarg.h>
#include <stddef.h>
#ifdef __cplusplus
extern "C" {
#endif

typedef struct user_file FILE;
extern FILE *const stdout, *const stderr;
#define EOF (-1)

int printf(const char *format, ...);
int vprintf(const char *format, va_list args);
int fprintf(FILE *file, const char *format, ...);
int vfprintf(FILE *file, const char *format, va_list args);
/* Returns the length of the whole text, as in C99. */
int snprintf(char *text, size_t size, const char *format, ...);
int vsnprintf(char *text, size_t size, const char *format, va_list args);
int sprintf(char *text, const char *format, ...);
int vsprintf(char *text, const char *format, va_list args);
int puts(const char *text);
int putchar(int c);
int putc(int c, FILE *file);
int fputc(int c, FILE *file);
int fputs(const char *text, FILE *file);
size_t fwrite(const void *data, size_t size, size_t count, FILE *file);
int fflush(FILE *file);

/* printf.c: formats only. Returns the number of characters. */
int format_text(void (*put)(void *context, char c), void *context, const char *format,
                va_list args);

#ifdef __cplusplus
}
#endif
