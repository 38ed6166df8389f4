/* SPDX-License-Identifier: MIT */
/* printf to every console, one call at a time: print_lock, interrupts off, callable at any IRQL but from NMI. */
#include "kernel/print.h"
#include "kernel/x86.h"

static uint32_t print_lock; /* 1 while a CPU prints; not a struct lock, which prints when it fails */
static bool lock_broken;

static void put_console(void *unused, char c)
{
    (void)unused;
    if (c == '\n')
        serial_put('\r');
    serial_put(c);
}

void print_va(const char *format, va_list args)
{
    uint64_t flags = read_flags();
    cli();
    while (!lock_broken && __atomic_exchange_n(&print_lock, 1, __ATOMIC_ACQUIRE))
        pause();
    format_to(put_console, NULL, format, args);
    __atomic_store_n(&print_lock, 0, __ATOMIC_RELEASE);
    if (flags & RFLAGS_IF)
        sti();
}

void print(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    print_va(format, args);
    va_end(args);
}

void print_break_lock(void) { __atomic_store_n(&lock_broken, true, __ATOMIC_RELAXED); }
