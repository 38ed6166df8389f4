/* SPDX-License-Identifier: MIT */
/* printf to every console, one call at a time: print_lock, interrupts off, callable at any IRQL but from NMI. */
#include "kernel/print.h"
#include "kernel/crc32.h"
#include "kernel/screen.h"
#include "kernel/x86.h"

static uint32_t print_lock; /* 1 while a CPU prints; not a struct lock, which prints when it fails */
static bool lock_broken;
static char last = '\n'; /* L: print_lock */

static uint32_t crc;        /* L: print_lock; CRC-32 of all bytes since print_begin */
static uint64_t crc_bytes;  /* L: print_lock */

static void sum_up(uint8_t c)
{
    crc = crc32(crc, &c, 1);
    crc_bytes++;
}

static void put_console(void *unused, char c)
{
    (void)unused;
    if (c == '\n')
        serial_put('\r');
    serial_put(c);
    sum_up((uint8_t)c); /* the carriage return does not count */
    screen_put(c);
    last = c;
}

static void put_screen(void *unused, char c)
{
    (void)unused;
    screen_put(c);
}

static uint64_t lock(void)
{
    uint64_t flags = read_flags();
    cli();
    while (!lock_broken && __atomic_exchange_n(&print_lock, 1, __ATOMIC_ACQUIRE))
        pause();
    return flags;
}

static void unlock(uint64_t flags)
{
    __atomic_store_n(&print_lock, 0, __ATOMIC_RELEASE);
    if (flags & RFLAGS_IF)
        sti();
}

void print_va(const char *format, va_list args)
{
    uint64_t flags = lock();
    format_to(put_console, NULL, format, args);
    unlock(flags);
}

void print(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    print_va(format, args);
    va_end(args);
}

void print_screen(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    uint64_t flags = lock();
    format_to(put_screen, NULL, format, args);
    unlock(flags);
    va_end(args);
}

void print_status(const char *format, ...)
{
    char text[160];
    va_list args;
    va_start(args, format);
    print_to_va(text, sizeof text, format, args);
    va_end(args);
    uint64_t flags = lock();
    screen_status(text);
    unlock(flags);
}

void print_begin(void)
{
    print("# ntpmu: begin\n");
    crc = 0;
    crc_bytes = 0;
}

uint32_t print_checksum(uint64_t *bytes)
{
    uint64_t flags = lock();
    uint32_t sum = crc;
    *bytes = crc_bytes;
    unlock(flags);
    return sum;
}

void print_fresh_line(void)
{
    if (__atomic_load_n(&last, __ATOMIC_RELAXED) != '\n')
        print("\n");
}

void print_break_lock(void) { __atomic_store_n(&lock_broken, true, __ATOMIC_RELAXED); }
