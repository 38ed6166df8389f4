/* SPDX-License-Identifier: MIT */
/* A small printf to every console. Knows %s %c %d %u %x %p %%, '-', '0', a width, and l or ll for 64 bits. */
#pragma once
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

__attribute__((format(printf, 1, 2))) void print(const char *format, ...);
void print_va(const char *format, va_list args);
/* Writes at most size - 1 characters and a NUL; returns how many it wrote. */
__attribute__((format(printf, 3, 4))) size_t print_to(char *buffer, size_t size, const char *format, ...);
size_t print_to_va(char *buffer, size_t size, const char *format, va_list args);
/* The same, character by character. */
void format_to(void (*put)(void *context, char c), void *context, const char *format, va_list args);
/* A newline, unless that was the last character. */
void print_fresh_line(void);
/* From now on print takes no lock: the machine is dying. */
void print_break_lock(void);

/* A line for the screen only; the bottom line of the screen. */
__attribute__((format(printf, 1, 2))) void print_screen(const char *format, ...);
__attribute__((format(printf, 1, 2))) void print_status(const char *format, ...);
/* Prints the line where the stream begins; from here on its bytes are counted and summed up (CRC-32). */
void print_begin(void);
uint32_t print_checksum(uint64_t *bytes);

/* serial.c: COM1 at 115200 8N1; does nothing, and never blocks, where there is no UART. */
void serial_init(void);
void serial_put(char c);
bool serial_received(void); /* whether a byte came; it is dropped */
/* Until the last byte is on the line: before the machine goes. */
void serial_drain(void);
