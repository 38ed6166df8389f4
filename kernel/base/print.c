/* SPDX-License-Identifier: MIT */
/* printf to every console, one call at a time, with print_lock held and interrupts off; what a
 * screen shows of it is drawn piece by piece. Any IRQL, but not from NMI. */
#include "kernel/base/print.h"
#include "kernel/base/crc32.h"
#include "kernel/base/x86.h"

/* 1 while a CPU prints; not a struct lock, which prints when it fails. */
static uint32_t print_lock;
static bool lock_broken;
static char last = '\n'; /* L: print_lock; atomic to read */

static uint32_t crc;          /* L: print_lock; CRC-32 of all bytes since print_begin */
static uint64_t crc_bytes;    /* L: print_lock */
static bool ended;            /* atomic: print_end was called */
static uint64_t since, ticks; /* L: print_lock; ticks atomic */

static const struct console *consoles[CONSOLES_MAX]; /* written at boot */
static unsigned console_count;

void print_add_console(const struct console *console)
{
    if (console_count < CONSOLES_MAX)
        consoles[console_count++] = console;
}

static void put_console(void *, char c)
{
    uint8_t byte = (uint8_t)c;
    for (unsigned i = 0; i < console_count; i++)
        consoles[i]->put(c);
    crc = crc32(crc, &byte, 1); /* a carriage return that a console adds does not count */
    crc_bytes++;
    __atomic_store_n(&last, c, __ATOMIC_RELAXED);
}

static void put_screen(void *, char c)
{
    for (unsigned i = 0; i < console_count; i++)
        if (consoles[i]->show)
            consoles[i]->show(c);
}

static uint64_t lock(void)
{
    uint64_t flags = read_flags();
    cli();
    while (!lock_broken && __atomic_exchange_n(&print_lock, 1, __ATOMIC_ACQUIRE)) {
        if (flags & RFLAGS_IF)
            sti();
        pause(); /* the holder may be long: samples and ticks are not late by it */
        cli();
    }
    since = rdtsc();
    return flags;
}

static void unlock(uint64_t flags)
{
    __atomic_store_n(&ticks, ticks + rdtsc() - since, __ATOMIC_RELAXED);
    __atomic_store_n(&print_lock, 0, __ATOMIC_RELEASE);
    if (flags & RFLAGS_IF)
        sti();
}

/* A slow console gets the lock again and again: meanwhile others may print, and show this text. */
static void show_and_unlock(uint64_t flags)
{
    bool more;
    do {
        more = false;
        for (unsigned i = 0; i < console_count; i++)
            more |= consoles[i]->flush && consoles[i]->flush();
        unlock(flags);
        if (more)
            lock();
    } while (more);
}

void print_va(const char *format, va_list args)
{
    uint64_t flags = lock();
    format_to(put_console, NULL, format, args);
    show_and_unlock(flags);
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
    show_and_unlock(flags);
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
    for (unsigned i = 0; i < console_count; i++)
        if (consoles[i]->status)
            consoles[i]->status(text);
    show_and_unlock(flags);
}

uint64_t print_ticks(void) { return __atomic_load_n(&ticks, __ATOMIC_RELAXED); }

bool print_busy(void) { return __atomic_load_n(&print_lock, __ATOMIC_RELAXED); }

void print_begin(void)
{
    print("# ntpmu: begin\n");
    crc = 0;
    crc_bytes = 0;
}

void print_end(void) { __atomic_store_n(&ended, true, __ATOMIC_RELAXED); }
bool print_ended(void) { return __atomic_load_n(&ended, __ATOMIC_RELAXED); }

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

void print_break_lock(void)
{
    __atomic_store_n(&lock_broken, true, __ATOMIC_RELAXED);
    for (unsigned i = 0; i < console_count; i++)
        if (consoles[i]->alarm)
            consoles[i]->alarm();
}

void print_drain(void)
{
    for (unsigned i = 0; i < console_count; i++)
        if (consoles[i]->drain)
            consoles[i]->drain();
}
