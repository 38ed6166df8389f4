/* SPDX-License-Identifier: MIT */
/* Memory, numbers and the end of a program; also what the C++ compiler calls on its own. */
#include "kernel/user/stdlib.h"
#include <stdbool.h>
#include <stdint.h>
#include "kernel/user/stdio.h"
#include "kernel/user/string.h"
#include "windows.h"

#define ARENA (1u << 20)
#define LARGE (64u << 10) /* from this size on a block is its own region */
#define AT_EXIT_MAX 64

/* The header of each block; sizes include it. The arena's blocks follow each other. */
struct block {
    size_t size;
    bool used, large;
} __attribute__((aligned(16)));

static struct block *arena;
static uint32_t heap_lock; /* atomic */

static void lock(void)
{
    while (__atomic_exchange_n(&heap_lock, 1, __ATOMIC_ACQUIRE))
        ZwYieldExecution();
}

static void unlock(void) { __atomic_store_n(&heap_lock, 0, __ATOMIC_RELEASE); }

static struct block *region(size_t size)
{
    PVOID base = NULL;
    bool ok = NT_SUCCESS(ZwAllocateVirtualMemory(NtCurrentProcess(), &base, 0, &size,
                                                 MEM_COMMIT | MEM_RESERVE, PAGE_READWRITE));
    return ok ? base : NULL;
}

static struct block *behind(struct block *b) { return (struct block *)((char *)b + b->size); }

/* First fit; joins free neighbours on the way. */
static struct block *take(size_t size)
{
    if (!arena) {
        arena = region(ARENA);
        if (!arena)
            return NULL;
        arena->size = ARENA;
    }
    struct block *end = (struct block *)((char *)arena + ARENA);
    for (struct block *b = arena; b < end; b = behind(b)) {
        while (!b->used && behind(b) < end && !behind(b)->used)
            b->size += behind(b)->size;
        if (b->used || b->size < size)
            continue;
        if (b->size >= size + 2 * sizeof *b) {
            struct block *rest = (struct block *)((char *)b + size);
            *rest = (struct block){ .size = b->size - size };
            b->size = size;
        }
        b->used = true;
        return b;
    }
    return NULL;
}

void *malloc(size_t size)
{
    if (size > SIZE_MAX / 2)
        return NULL;
    size = (size + sizeof(struct block) + 15) & ~(size_t)15;
    struct block *b;
    if (size >= LARGE) {
        b = region(size);
        if (b)
            *b = (struct block){ size, true, true };
    } else {
        lock();
        b = take(size);
        unlock();
    }
    return b ? b + 1 : NULL;
}

void free(void *memory)
{
    if (!memory)
        return;
    struct block *b = (struct block *)memory - 1;
    if (b->large) {
        PVOID base = b;
        SIZE_T whole = 0;
        ZwFreeVirtualMemory(NtCurrentProcess(), &base, &whole, MEM_RELEASE);
        return;
    }
    lock();
    b->used = false;
    unlock();
}

void *calloc(size_t count, size_t size)
{
    if (size && count > SIZE_MAX / size)
        return NULL;
    void *memory = malloc(count * size);
    return memory ? memset(memory, 0, count * size) : NULL;
}

void *realloc(void *memory, size_t size)
{
    size_t old = memory ? ((struct block *)memory - 1)->size - sizeof(struct block) : 0;
    void *fresh = malloc(size);
    if (fresh && memory) {
        memcpy(fresh, memory, old < size ? old : size);
        free(memory);
    }
    return fresh;
}

/* --- The end. --- */

struct at_exit {
    void (*function)(void *);
    void *argument;
};

static struct at_exit at_exit[AT_EXIT_MAX];
static uint32_t at_exit_count; /* atomic */

int __cxa_atexit(void (*function)(void *), void *argument, void *unused);
int __cxa_atexit(void (*function)(void *), void *argument, void *unused)
{
    (void)unused;
    uint32_t i = __atomic_fetch_add(&at_exit_count, 1, __ATOMIC_RELAXED);
    if (i >= AT_EXIT_MAX)
        return -1;
    at_exit[i] = (struct at_exit){ function, argument };
    return 0;
}

static void call(void *function) { ((void (*)(void))function)(); }

int atexit(void (*function)(void)) { return __cxa_atexit(call, (void *)function, NULL); }

void exit(int status)
{
    uint32_t n = __atomic_exchange_n(&at_exit_count, 0, __ATOMIC_ACQ_REL);
    for (n = n < AT_EXIT_MAX ? n : AT_EXIT_MAX; n; n--)
        at_exit[n - 1].function(at_exit[n - 1].argument);
    fflush(NULL);
    ZwTerminateProcess(NtCurrentProcess(), status);
    __builtin_unreachable();
}

void ExitProcess(UINT ExitCode) { exit((int)ExitCode); }

void abort(void)
{
    fflush(NULL);
    ZwTerminateProcess(NtCurrentProcess(), 3); /* as in Windows */
    __builtin_unreachable();
}

/* --- C++: operators new and delete, and what stands in for a pure virtual function. --- */

void *__dso_handle;
void *operator_new(size_t size) __asm__("_Znwm");
void *operator_new_array(size_t size) __asm__("_Znam");
void operator_delete(void *memory) __asm__("_ZdlPv");
void operator_delete_array(void *memory) __asm__("_ZdaPv");
void operator_delete_sized(void *memory, size_t size) __asm__("_ZdlPvm");
void operator_delete_array_sized(void *memory, size_t size) __asm__("_ZdaPvm");
void __cxa_pure_virtual(void);

/* Without exceptions this is the only way to report that there is no memory. */
void *operator_new(size_t size)
{
    void *memory = malloc(size);
    if (!memory)
        ZwTerminateProcess(NtCurrentProcess(), STATUS_NO_MEMORY);
    return memory;
}

void *operator_new_array(size_t size) { return operator_new(size); }
void operator_delete(void *memory) { free(memory); }
void operator_delete_array(void *memory) { free(memory); }
void operator_delete_sized(void *memory, size_t size) { (void)size, free(memory); }
void operator_delete_array_sized(void *memory, size_t size) { (void)size, free(memory); }
void __cxa_pure_virtual(void) { abort(); }

/* --- Numbers. --- */

int abs(int n) { return n < 0 ? -n : n; }

static unsigned digit(char c)
{
    return c >= '0' && c <= '9'                     ? (unsigned)(c - '0')
           : (c | 0x20) >= 'a' && (c | 0x20) <= 'z' ? (unsigned)((c | 0x20) - 'a' + 10)
                                                    : 99;
}

unsigned long long strtoull(const char *text, char **end, int base)
{
    const char *p = text;
    unsigned long long v = 0;
    while (*p == ' ' || (*p >= '\t' && *p <= '\r'))
        p++;
    bool minus = *p == '-';
    p += *p == '-' || *p == '+';
    if ((base == 0 || base == 16) && p[0] == '0' && (p[1] | 0x20) == 'x' && digit(p[2]) < 16) {
        base = 16;
        p += 2;
    }
    if (base == 0)
        base = *p == '0' ? 8 : 10;
    const char *first = p;
    for (; digit(*p) < (unsigned)base; p++)
        v = v * (unsigned)base + digit(*p);
    if (end)
        *end = (char *)(size_t)(p == first ? text : p);
    return minus ? -v : v;
}

unsigned long strtoul(const char *text, char **end, int base) { return strtoull(text, end, base); }
long strtol(const char *text, char **end, int base) { return (long)strtoull(text, end, base); }
int atoi(const char *text) { return (int)strtol(text, NULL, 10); }

static uint32_t random_state = 1;
void srand(unsigned seed) { random_state = seed; }

int rand(void)
{
    random_state = random_state * 214013 + 2531011; /* Windows' own sequence */
    return (int)(random_state >> 16 & 0x7fff);
}

static void swap(char *a, char *b, size_t size)
{
    for (; size; size--, a++, b++) {
        char c = *a;
        *a = *b;
        *b = c;
    }
}

/* Heap sort: no recursion, no slow cases. */
void qsort(void *base, size_t count, size_t size, int (*compare)(const void *, const void *))
{
    char *a = base;
    for (size_t end = count, begin = count / 2; end > 1;) {
        if (begin)
            begin--;
        else
            swap(a, a + --end * size, size);
        for (size_t i = begin, child; (child = 2 * i + 1) < end; i = child) {
            if (child + 1 < end && compare(a + child * size, a + (child + 1) * size) < 0)
                child++;
            if (compare(a + i * size, a + child * size) >= 0)
                break;
            swap(a + i * size, a + child * size, size);
        }
    }
}
