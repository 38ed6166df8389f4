/* SPDX-License-Identifier: MIT */
/* A small printf to every console. Knows %s %c %d %u %x %p %%, '-', '0', a width, and l or ll for
 * 64 bits. */
#pragma once
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

__attribute__((format(printf, 1, 2))) void print(const char *format, ...);
void print_va(const char *format, va_list args);
/* Writes at most size - 1 characters and a NUL; returns how many it wrote. */
__attribute__((format(printf, 3, 4))) size_t print_to(char *buffer, size_t size, const char *format,
                                                      ...);
size_t print_to_va(char *buffer, size_t size, const char *format, va_list args);
/* Formats, and passes each character to put(context, c). */
void format_to(void (*put)(void *context, char c), void *context, const char *format, va_list args);
/* A newline, unless that was the last character. */
void print_fresh_line(void);
/* Ticks of the time stamp counter that went into printing. */
uint64_t print_ticks(void);
/* Whether some CPU prints at this moment. */
bool print_busy(void);
/* From now on print takes no lock, and what it prints reports a panic. */
void print_break_lock(void);

/* A line for the screen only; the bottom line of the screen. */
__attribute__((format(printf, 1, 2))) void print_screen(const char *format, ...);
__attribute__((format(printf, 1, 2))) void print_status(const char *format, ...);
/* Prints the line where the stream begins; from here on its bytes are counted and summed up
 * (CRC-32). */
void print_begin(void);
uint32_t print_checksum(uint64_t *bytes);
/* From here on only the verdict follows: what could be printed at any time asks print_ended. */
void print_end(void);
bool print_ended(void);

/* Where text appears. All are called under print's lock; NULL: the console does not do that. print
 * calls flush until nothing is left, before it returns; between two calls interrupts may come. */
struct console {
    void (*put)(char c);
    void (*show)(char c);             /* the same for what print_screen prints */
    void (*status)(const char *text); /* shows the text in a line of its own */
    void (*alarm)(void);              /* what comes next reports a panic */
    bool (*flush)(void);              /* shows some of what was put; true: there is more */
    void (*drain)(void);              /* waits until all that was put is on its way */
};

/* At boot, one CPU. A console is never removed. */
#define CONSOLES_MAX 2
void print_add_console(const struct console *console);
/* Before the machine ends: waits until all that was printed is on its way. */
void print_drain(void);
