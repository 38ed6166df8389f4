/* SPDX-License-Identifier: MIT */
/* What gcc's -fsanitize=thread calls: a function before each access. Now and then, by a counter of
 * its CPU, a plain access is watched: its address stands in a table while the CPU stalls with
 * interrupts off. Another CPU's access that conflicts and comes meanwhile finds it there: a race.
 * So is a value that changed by itself. This finds only what happens, so it needs CPUs that run at
 * once; but what it finds is a race. Nothing is printed here, where any lock may be held, but by
 * race_tell. Source: gcc's manual (-fsanitize=thread); the idea is that of Linux's KCSAN, which
 * its documentation describes ("Kernel Concurrency Sanitizer"). */
#include "kernel/base/sanitize/kcsan.h"
#include "kernel/base/bits.h"
#include "kernel/base/cpu.h"
#include "kernel/base/panic.h"
#include "kernel/base/print.h"
#include "kernel/base/x86.h"

#define SLOTS 8u    /* CPUs that watch; all look */
#define SKIP 100u   /* plain accesses of a CPU between two that are watched, about */
#define STALL 2000u /* iterations of a loop */
#define PAUSES 2u   /* among them */
#define RACES 256u  /* pairs of places */
#define DIRECT_MAX (1ul << 46)
#define SIZE_MAX_WATCHED 31u
#define TAKEN 1ul /* in `what`: another CPU found it and says who it is */

/* One CPU's watchpoint. */
static struct slot {
    uint64_t what;       /* atomic: packed(); 0: nothing */
    bool known;          /* atomic: `by` is complete */
    struct race_side by; /* who found it */
} __attribute__((aligned(64))) slots[SLOTS];

static struct dice {
    int skip;
    uint32_t random;
    bool busy; /* an NMI or exception comes while this CPU watches */
} __attribute__((aligned(64))) dice[MAX_CPUS];

static bool on;
static uint64_t armed; /* atomic: bit per slot */
static uint32_t table_lock;
static struct race races[RACES]; /* L: table_lock */
static unsigned race_count;      /* atomic */

static uint64_t packed(uint64_t address, uint32_t size, bool write)
{
    return address << 8 | 1u << 7 | (uint64_t)write << 6 |
           (size < SIZE_MAX_WATCHED ? size : SIZE_MAX_WATCHED) << 1;
}

static bool conflicts(uint64_t what, uint64_t address, const struct race_side *mine)
{
    uint64_t its = what >> 8, its_size = what >> 1 & SIZE_MAX_WATCHED, my = address << 8 >> 8;
    return what > TAKEN && (mine->write || what >> 6 & 1) && my < its + its_size &&
           its < my + mine->size;
}

/* Of the same two places a race is kept once. */
static bool same_race(const struct race *a, const struct race *b)
{
    return (a->by[0].pc == b->by[0].pc && a->by[1].pc == b->by[1].pc) ||
           (a->by[0].pc == b->by[1].pc && a->by[1].pc == b->by[0].pc);
}

/* Interrupts are off. */
static void keep(const struct race *race)
{
    while (__atomic_exchange_n(&table_lock, 1, __ATOMIC_ACQUIRE))
        pause();
    unsigned i = 0;
    while (i < race_count && !same_race(&races[i], race))
        i++;
    if (i == race_count && i < RACES) {
        races[i] = *race;
        __atomic_store_n(&race_count, i + 1, __ATOMIC_RELEASE);
    }
    __atomic_store_n(&table_lock, 0, __ATOMIC_RELEASE);
}

/* Not memory that ring 3 writes as it likes, nor a window on it, nor a device. */
static bool is_kernels(uint64_t address)
{
    return address >= KERNEL_VMA || address - DIRECT_MAP < DIRECT_MAX;
}

/* Whether others watch this. */
static void check_watched(uint64_t address, const struct race_side *mine)
{
    uint64_t flags = read_flags();
    cli();
    uint32_t me = cpu_number();
    for_each_bit(i, __atomic_load_n(&armed, __ATOMIC_ACQUIRE)) {
        if (i == me)
            continue;
        struct slot *s = &slots[i];
        uint64_t what = __atomic_load_n(&s->what, __ATOMIC_ACQUIRE);
        if (!conflicts(what, address, mine) ||
            !__atomic_compare_exchange_n(&s->what, &what, TAKEN, false, __ATOMIC_ACQ_REL,
                                         __ATOMIC_RELAXED))
            continue;
        s->by = *mine;
        s->by.cpu = me;
        __atomic_store_n(&s->known, true, __ATOMIC_RELEASE);
    }
    write_flags(flags);
}

static uint64_t value_at(uint64_t address, uint32_t size)
{
    switch (size) {
    case 1: return *(volatile uint8_t *)address;
    case 2: return *(volatile uint16_t *)address;
    case 4: return *(volatile uint32_t *)address;
    }
    return size < 8 ? 0 : *(volatile uint64_t *)address;
}

/* Few PAUSEs: an emulator takes a lock of its own at each. */
static void stall(const struct slot *s)
{
    for (unsigned i = 0; i < STALL && __atomic_load_n(&s->what, __ATOMIC_RELAXED) != TAKEN; i++)
        if (i % (STALL / PAUSES) == 0)
            pause();
}

/* Interrupts are off; this CPU has a slot. */
static void watch_here(uint32_t me, uint64_t address, const struct race_side *mine)
{
    struct slot *s = &slots[me];
    struct race race = { .address = address, .by = { *mine } };
    race.by[0].cpu = me;
    __atomic_store_n(&s->what, packed(address, mine->size, mine->write), __ATOMIC_RELEASE);
    __atomic_fetch_or(&armed, 1ul << me, __ATOMIC_SEQ_CST);
    uint64_t before = value_at(address, mine->size);
    stall(s);
    uint64_t after = value_at(address, mine->size);
    __atomic_fetch_and(&armed, ~(1ul << me), __ATOMIC_SEQ_CST);
    if (__atomic_exchange_n(&s->what, 0, __ATOMIC_ACQ_REL) == TAKEN) {
        while (!__atomic_load_n(&s->known, __ATOMIC_ACQUIRE))
            pause();
        race.by[1] = s->by;
        __atomic_store_n(&s->known, false, __ATOMIC_RELAXED);
    } else if (before == after) {
        return;
    }
    keep(&race);
}

static void watch(uint64_t address, const struct race_side *mine)
{
    uint64_t flags = read_flags();
    cli();
    uint32_t me = cpu_number();
    struct dice *d = &dice[me];
    d->random = d->random * 1664525 + 1013904223;
    d->skip = (int)(SKIP / 2 + (d->random >> 16) % SKIP);
    if (!d->busy && me < SLOTS && is_kernels(address)) {
        d->busy = true;
        watch_here(me, address, mine);
        d->busy = false;
    }
    write_flags(flags);
}

/* Frames have pointers: where the function was called from that has made the access. */
static inline __attribute__((always_inline)) void access(const volatile void *p, size_t size,
                                                         bool write, bool marked)
{
    if (!on)
        return;
    struct race_side mine = { .pc = (uint64_t)__builtin_return_address(0),
                              .size = (uint32_t)size,
                              .write = write,
                              .marked = marked };
    if (__atomic_load_n(&armed, __ATOMIC_RELAXED) || (!marked && --dice[cpu_number()].skip <= 0)) {
        const uint64_t *frame = __builtin_frame_address(0);
        mine.caller = ((const uint64_t *)frame[0])[1];
        check_watched((uint64_t)p, &mine);
        if (!marked && dice[cpu_number()].skip <= 0)
            watch((uint64_t)p, &mine);
    }
}

void race_init(void)
{
    for (unsigned i = 0; i < MAX_CPUS; i++)
        dice[i].random = i + 1;
    on = true;
}

void race_check(const void *start, size_t size, bool write)
{
    if (size)
        access(start, size, write, false);
}

/* --- What was found. --- */

static void tell_side(const struct race_side *s, const char *end)
{
    uint32_t offset, from;
    const char *name = symbol_of(s->pc, &offset), *caller = symbol_of(s->caller, &from);
    if (s->pc)
        print("%s%s of %u by %s+0x%x (%s+0x%x), CPU %u%s", s->marked ? "marked " : "",
              s->write ? "write" : "read", s->size, name, offset, caller, from, s->cpu, end);
    else
        print("a value that changed\n");
}

unsigned race_tell(void)
{
    unsigned n = 0;
    for (unsigned i = 0; i < __atomic_load_n(&race_count, __ATOMIC_ACQUIRE); i++) {
        struct race *r = &races[i];
        if (r->reported)
            continue;
        uint32_t offset;
        const char *name = symbol_of(r->address, &offset);
        print("# KCSAN: race at %lx %s+0x%x\n#   ", r->address, *name == '?' ? "" : name, offset);
        tell_side(&r->by[0], "\n#   ");
        tell_side(&r->by[1], "\n");
        r->reported = true;
        n++;
    }
    return n;
}

bool race_take(const void *start, size_t size, struct race *found)
{
    for (unsigned i = 0; i < __atomic_load_n(&race_count, __ATOMIC_ACQUIRE); i++) {
        if (races[i].reported || races[i].address - (uint64_t)start >= size)
            continue;
        races[i].reported = true;
        *found = races[i];
        return true;
    }
    return false;
}

/* --- What gcc calls. --- */

#define ACCESS(name, size, write, marked)                                                          \
    void __tsan_##name(void *p);                                                                   \
    void __tsan_##name(void *p) { access(p, size, write, marked); }
#define ACCESSES(size)                                                                             \
    ACCESS(read##size, size, false, false)                                                         \
    ACCESS(write##size, size, true, false)                                                         \
    ACCESS(unaligned_read##size, size, false, false)                                               \
    ACCESS(unaligned_write##size, size, true, false)                                               \
    ACCESS(volatile_read##size, size, false, true)                                                 \
    ACCESS(volatile_write##size, size, true, true)                                                 \
    ACCESS(unaligned_volatile_read##size, size, false, true)                                       \
    ACCESS(unaligned_volatile_write##size, size, true, true)
ACCESSES(1)
ACCESSES(2)
ACCESSES(4)
ACCESSES(8)
ACCESSES(16)

#define RANGE(name, write)                                                                         \
    void __tsan_##name##_range(void *p, size_t size);                                              \
    void __tsan_##name##_range(void *p, size_t size)                                               \
    {                                                                                              \
        if (size)                                                                                  \
            access(p, size, write, false);                                                         \
    }
RANGE(read, false)
RANGE(write, true)

/* Atomic operations, each in the strongest order. One that fails to exchange only reads. */
#define ATOMIC_WITH_VALUE(bits, type, name, operation)                                             \
    type __tsan_atomic##bits##_##name(volatile type *p, type value, int order);                    \
    type __tsan_atomic##bits##_##name(volatile type *p, type value, int order)                     \
    {                                                                                              \
        (void)order;                                                                               \
        access(p, sizeof *p, true, true);                                                          \
        return operation(p, value, __ATOMIC_SEQ_CST);                                              \
    }
#define ATOMIC_EXCHANGE(bits, type, name)                                                          \
    bool __tsan_atomic##bits##_##name(volatile type *p, type *old, type value, int order,          \
                                      int failed);                                                 \
    bool __tsan_atomic##bits##_##name(volatile type *p, type *old, type value, int order,          \
                                      int failed)                                                  \
    {                                                                                              \
        (void)order, (void)failed;                                                                 \
        bool done =                                                                                \
            __atomic_compare_exchange_n(p, old, value, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST); \
        access(p, sizeof *p, done, true);                                                          \
        return done;                                                                               \
    }
#define ATOMIC(bits, type)                                                                         \
    type __tsan_atomic##bits##_load(const volatile type *p, int order);                            \
    type __tsan_atomic##bits##_load(const volatile type *p, int order)                             \
    {                                                                                              \
        (void)order;                                                                               \
        access(p, sizeof *p, false, true);                                                         \
        return __atomic_load_n(p, __ATOMIC_SEQ_CST);                                               \
    }                                                                                              \
    void __tsan_atomic##bits##_store(volatile type *p, type value, int order);                     \
    void __tsan_atomic##bits##_store(volatile type *p, type value, int order)                      \
    {                                                                                              \
        (void)order;                                                                               \
        access(p, sizeof *p, true, true);                                                          \
        __atomic_store_n(p, value, __ATOMIC_SEQ_CST);                                              \
    }                                                                                              \
    ATOMIC_WITH_VALUE(bits, type, exchange, __atomic_exchange_n)                                   \
    ATOMIC_WITH_VALUE(bits, type, fetch_add, __atomic_fetch_add)                                   \
    ATOMIC_WITH_VALUE(bits, type, fetch_sub, __atomic_fetch_sub)                                   \
    ATOMIC_WITH_VALUE(bits, type, fetch_and, __atomic_fetch_and)                                   \
    ATOMIC_WITH_VALUE(bits, type, fetch_or, __atomic_fetch_or)                                     \
    ATOMIC_WITH_VALUE(bits, type, fetch_xor, __atomic_fetch_xor)                                   \
    ATOMIC_EXCHANGE(bits, type, compare_exchange_strong)                                           \
    ATOMIC_EXCHANGE(bits, type, compare_exchange_weak)
ATOMIC(8, uint8_t)
ATOMIC(16, uint16_t)
ATOMIC(32, uint32_t)
ATOMIC(64, uint64_t)

void __tsan_atomic_thread_fence(int order);
void __tsan_atomic_thread_fence(int) { __atomic_thread_fence(__ATOMIC_SEQ_CST); }

void __tsan_init(void);
void __tsan_init(void) {}
