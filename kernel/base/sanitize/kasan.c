/* SPDX-License-Identifier: MIT */
/* What gcc's -fsanitize=kernel-address calls. Here and not in mm because locks, strings and print
 * are instrumented, too. This file and boot.c are not: they run before there is shadow, or make it.
 * Shadow is at SHADOW(address) in every address space. The image has it at once, because it holds
 * the boot stack and gcc writes a frame's red zones unchecked; the direct map when memory is known.
 * Memory without shadow (devices, ring 3, windows, drivers) is not checked. Source: gcc's manual
 * (-fsanitize=kernel-address); LLVM's "AddressSanitizer algorithm"; the offset is that of Linux. */
#include "kernel/base/sanitize/kasan.h"
#include "kernel/base/assert.h"
#include "kernel/base/boot_info.h"
#include "kernel/base/cpu.h"
#include "kernel/base/layout.h"
#include "kernel/base/x86.h"

#define OFFSET 0xdffffc0000000000ul /* as in the Makefile */
#define SHADOW(address) ((uint8_t *)(((uint64_t)(address) >> 3) + OFFSET))
#define TABLE 512u
#define LARGE (2ul << 20)
#define ENTRY 3ul /* present, writable */
#define ENTRY_LARGE 0x83ul
#define IMAGE_MAX                                                                                  \
    (TABLE * PAGE_SIZE * 8ul) /* one table of pages is enough for the image's shadow */
#define DIRECT_MAX (1ul << 32)
#define STACK_MAX (2 * KERNEL_STACK_SIZE)

extern char image_start[], image_end[];
extern void (*const kasan_constructors[])(void), (*const kasan_constructors_end[])(void);

volatile struct kasan_caught kasan_caught;
static uint64_t image_pdpt[TABLE] __attribute__((aligned(PAGE_SIZE)));
static uint64_t image_pd[TABLE] __attribute__((aligned(PAGE_SIZE)));
static uint64_t image_pt[TABLE] __attribute__((aligned(PAGE_SIZE)));
static uint64_t direct_pdpt[TABLE] __attribute__((aligned(PAGE_SIZE)));
static uint64_t direct_pd[TABLE] __attribute__((aligned(PAGE_SIZE)));
static uint8_t image_shadow[TABLE][PAGE_SIZE] __attribute__((aligned(PAGE_SIZE)));
static uint64_t direct_size; /* bytes of the direct map that have shadow */
static bool off;             /* somebody panics */

static uint64_t physical_of_shadow(const void *p) { return (uint64_t)p - KERNEL_VMA; }
static unsigned index_of(const void *p, unsigned level)
{
    return (uint64_t)p >> (12 + 9 * level) & 511;
}
static uint64_t *top_table(void)
{
    return (uint64_t *)(DIRECT_MAP + (read_cr3() & ~(PAGE_SIZE - 1ul)));
}

void shadow_early(void)
{
    const uint8_t *shadow = SHADOW(image_start);
    image_pdpt[index_of(shadow, 2)] = physical_of_shadow(image_pd) | ENTRY;
    image_pd[index_of(shadow, 1)] = physical_of_shadow(image_pt) | ENTRY;
    for (unsigned i = 0; i < TABLE; i++)
        image_pt[i] = physical_of_shadow(image_shadow[i]) | ENTRY;
    top_table()[index_of(shadow, 3)] = physical_of_shadow(image_pdpt) | ENTRY;
    for (void (*const *c)(void) = kasan_constructors; c < kasan_constructors_end; c++)
        (*c)();
}

/* Takes memory below 4 GB from the end of the largest region, clear of modules; 0: none is free. */
static uint64_t take_memory(struct boot_info *info, uint64_t bytes)
{
    struct boot_memory *best = NULL;
    for (unsigned i = 0; i < info->memory_count; i++)
        if (info->memory[i].start < DIRECT_MAX && (!best || info->memory[i].size > best->size))
            best = &info->memory[i];
    uint64_t end = best ? best->start + best->size : 0;
    end = (end > DIRECT_MAX ? DIRECT_MAX : end) & ~(LARGE - 1);
    for (unsigned i = 0; i < info->module_count; i++)
        if (best && info->modules[i].start < end && info->modules[i].end > end - bytes)
            end = info->modules[i].start & ~(LARGE - 1);
    if (!best || end < bytes || end - bytes < best->start ||
        end - bytes < physical_of_shadow(image_end))
        return 0;
    best->size = end - bytes - best->start;
    return end - bytes;
}

void shadow_init(struct boot_info *info)
{
    uint64_t top = 0;
    for (unsigned i = 0; i < info->memory_count; i++) {
        uint64_t end = info->memory[i].start + info->memory[i].size;
        if (info->memory[i].start < DIRECT_MAX && end > top)
            top = end > DIRECT_MAX ? DIRECT_MAX : end;
    }
    uint64_t bytes = (top / 8 + LARGE - 1) & ~(LARGE - 1), at = take_memory(info, bytes);
    if (!at || (uint64_t)(image_end - image_start) > IMAGE_MAX)
        panic("KASAN: no memory for %lu bytes of shadow, or an image of more than %lu", bytes,
              IMAGE_MAX);
    for (uint64_t i = 0; i < bytes / 8; i++)
        ((uint64_t *)(DIRECT_MAP + at))[i] = 0;
    const uint8_t *shadow = SHADOW(DIRECT_MAP);
    direct_pdpt[index_of(shadow, 2)] = physical_of_shadow(direct_pd) | ENTRY;
    for (uint64_t i = 0; i < bytes / LARGE; i++)
        direct_pd[i] = (at + i * LARGE) | ENTRY_LARGE;
    top_table()[index_of(shadow, 3)] = physical_of_shadow(direct_pdpt) | ENTRY;
    direct_size = top & ~(PAGE_SIZE - 1ul);
}

void shadow_share(uint64_t *pml4, uint64_t flags)
{
    const unsigned slots[] = { index_of(SHADOW(image_start), 3), index_of(SHADOW(DIRECT_MAP), 3) };
    for (unsigned i = 0; i < 2; i++)
        pml4[slots[i]] = top_table()[slots[i]] | flags;
}

static inline bool has_shadow(uint64_t address)
{
    return address - DIRECT_MAP < direct_size ||
           address - (uint64_t)image_start < (uint64_t)(image_end - image_start);
}

void shadow_poison(const void *start, size_t size, uint8_t why)
{
    for (size_t i = 0; has_shadow((uint64_t)start) && i < (size + 7) / 8; i++)
        SHADOW(start)[i] = why;
}

void shadow_unpoison(const void *start, size_t size)
{
    shadow_poison(start, size & ~7ul, 0);
    if ((size & 7) && has_shadow((uint64_t)start))
        SHADOW(start)[size / 8] = size & 7;
}

static bool poisoned(uint64_t address)
{
    int8_t shadow = (int8_t)*SHADOW(address);
    return shadow && (int8_t)(address & 7) >= shadow;
}

static const char *name_of_shadow(uint8_t shadow)
{
    switch (shadow) {
    case KASAN_PAGE: return "a page that nobody has";
    case KASAN_FREED: return "freed pool";
    case KASAN_BEHIND: return "after an allocation";
    case 0xf1:
    case 0xf2:
    case 0xf3: return "beside a variable on the stack";
    case 0xf8: return "a variable out of scope";
    case 0xf9: return "beside a global variable";
    }
    return "beyond the end";
}

static void found(uint64_t address, size_t size, bool write, uint64_t caller)
{
    uint8_t shadow = *SHADOW(address);
    if (kasan_caught.wanted) {
        kasan_caught.count++;
        kasan_caught.address = address;
        kasan_caught.shadow = shadow;
        return;
    }
    if (__atomic_exchange_n(&off, true, __ATOMIC_SEQ_CST))
        return;
    if (shadow < 8)
        shadow = SHADOW(address)[1];
    panic("KASAN: %s of %lu bytes at %lx: %s (%x), by %lx", write ? "a write" : "a read", size,
          address, name_of_shadow(shadow), shadow, caller);
}

static void check_access(uint64_t address, size_t size, bool write, uint64_t caller)
{
    uint64_t last = address + size - 1;
    for (uint64_t a = address; a <= last && !off; a = (a | 7) + 1) {
        uint64_t end = (a | 7) < last ? (a | 7) : last;
        if (has_shadow(a) && poisoned(end)) {
            while (a < end && !poisoned(a))
                a++; /* to the first byte that is poisoned */
            found(a, size, write, caller);
            return;
        }
    }
}

/* Quick where the bytes have one byte of shadow, as nearly all accesses do. */
static inline bool is_suspect(uint64_t address, size_t size)
{
    uint64_t end = (address & 7) + size;
    int8_t shadow = (int8_t)*SHADOW(address);
    return end > 8 || (shadow && (int8_t)end > shadow);
}

static inline __attribute__((always_inline)) void check(uint64_t address, size_t size, bool write,
                                                        uint64_t caller)
{
    if (size && has_shadow(address) && is_suspect(address, size))
        check_access(address, size, write, caller);
}

void shadow_check(const void *start, size_t size, bool write)
{
    check((uint64_t)start, size, write, (uint64_t)__builtin_return_address(0));
}

/* --- What gcc calls. --- */

#define ACCESS(name, bytes, write)                                                                 \
    void __asan_##name##_noabort(uint64_t address);                                                \
    void __asan_##name##_noabort(uint64_t address)                                                 \
    {                                                                                              \
        check(address, bytes, write, (uint64_t)__builtin_return_address(0));                       \
    }
ACCESS(load1, 1, false)
ACCESS(load2, 2, false)
ACCESS(load4, 4, false)
ACCESS(load8, 8, false)
ACCESS(load16, 16, false)
ACCESS(store1, 1, true)
ACCESS(store2, 2, true)
ACCESS(store4, 4, true)
ACCESS(store8, 8, true)
ACCESS(store16, 16, true)

void __asan_loadN_noabort(uint64_t address, size_t size);
void __asan_loadN_noabort(uint64_t address, size_t size)
{
    check(address, size, false, (uint64_t)__builtin_return_address(0));
}

void __asan_storeN_noabort(uint64_t address, size_t size);
void __asan_storeN_noabort(uint64_t address, size_t size)
{
    check(address, size, true, (uint64_t)__builtin_return_address(0));
}

/* The frames above never return, so nobody clears their red zones: they are cleared here, up to a
 * page without owner, where the stack has ended, or STACK_MAX. */
void __asan_handle_no_return(void);
void __asan_handle_no_return(void)
{
    uint64_t here = (uint64_t)__builtin_frame_address(0) & ~7ul;
    for (uint64_t a = here; a < here + STACK_MAX && has_shadow(a); a += 8) {
        if (*SHADOW(a) == KASAN_PAGE)
            break;
        if (*SHADOW(a) >= 0xf1 && *SHADOW(a) <= 0xf8)
            *SHADOW(a) = 0;
    }
}

struct global {
    const void *start;
    size_t size, size_with_red_zone;
    const void *name, *module;
    uint64_t dynamic;
    const void *location;
    uint64_t odr;
};

void __asan_register_globals(struct global *globals, size_t count);
void __asan_register_globals(struct global *globals, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const struct global *g = &globals[i];
        size_t covered = (g->size + 7) & ~7ul;
        shadow_unpoison(g->start, g->size);
        shadow_poison((const char *)g->start + covered, g->size_with_red_zone - covered, 0xf9);
    }
}

/* Never needed: the machine ends first. */
void __asan_unregister_globals(struct global *globals, size_t count);
void __asan_unregister_globals(struct global *globals, size_t count) { (void)globals, (void)count; }
