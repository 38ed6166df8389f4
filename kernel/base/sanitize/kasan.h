/* SPDX-License-Identifier: MIT */
/* The kernel's side of gcc's -fsanitize=kernel-address: a build with KASAN=1. In other builds
 * nothing of this is left. One byte of shadow describes 8 bytes of memory: 0: all may be touched; 1
 * to 7: only so many; else none, and the value says why. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct boot_info;

enum { KASAN_PAGE = 0xff, KASAN_FREED = 0xfb, KASAN_BEHIND = 0xfc };

/* First of all, on the boot stack: makes the image's shadow, in the tables that CR3 has. Before it
 * no instrumented code may run. */
void shadow_early(void);
/* Makes the direct map's shadow, in memory taken out of the loader's map; before phys_init, on the
 * boot CPU. */
void shadow_init(struct boot_info *info);
/* Copies the entries that map shadow from CR3's top-level table to another, and adds the flags. */
void shadow_share(uint64_t *pml4, uint64_t flags);
/* Nobody may touch [start, start + size), `why` is KASAN_...; start is a multiple of 8, the end is
 * rounded up. */
void shadow_poison(const void *start, size_t size, uint8_t why);
/* Everybody may; start is a multiple of 8, the end is exact. */
void shadow_unpoison(const void *start, size_t size);
/* Panics unless all bytes may be touched. For code without instrumentation. */
void shadow_check(const void *start, size_t size, bool write);

/* kasan_*: the same functions, which do nothing in other builds. */
#define KASAN_CALL(name, parameters, arguments)                                                    \
    static inline void kasan_##name parameters                                                     \
    {                                                                                              \
        if (KASAN_ON)                                                                              \
            shadow_##name arguments;                                                               \
    }
KASAN_CALL(early, (void), ())
KASAN_CALL(init, (struct boot_info * info), (info))
KASAN_CALL(share, (uint64_t * pml4, uint64_t flags), (pml4, flags))
KASAN_CALL(poison, (const void *start, size_t size, uint8_t why), (start, size, why))
KASAN_CALL(unpoison, (const void *start, size_t size), (start, size))
KASAN_CALL(check, (const void *start, size_t size, bool write), (start, size, write))

/* For the test of KASAN, on one CPU: while `wanted`, finds are counted here and the access takes
 * place. Volatile: gcc does not know that an access may change it. */
extern volatile struct kasan_caught {
    bool wanted;
    unsigned count;
    uint64_t address;
    uint8_t shadow;
} kasan_caught;
