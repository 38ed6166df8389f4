/* SPDX-License-Identifier: MIT */
/* What the console's framebuffer costs, and how it is mapped. Characters are drawn into memory. */
#include "kernel/console/screen.h"
#include "hal/machine/clock.h"
#include "hal/machine/smp.h"
#include "kernel/base/cpu.h"
#include "kernel/base/msr.h"
#include "kernel/base/print.h"
#include "kernel/base/string.h"
#include "kernel/base/x86.h"
#include "kernel/ke/sched.h"
#include "kernel/mm/phys.h"
#include "kernel/mm/vm.h"
#include "tests/harness/test.h"

#define UNTOUCHED 0x12345678u
#define PAGES 64u

/* As if lines were shorter than they are wide: only the first characters are drawn. */
static const struct {
    unsigned width, height, pitch, sx, sy;
} sizes[] = {
    { 480, 300, 1920, 1, 1 },   { 800, 600, 3204, 1, 2 },   { 1024, 768, 2048, 2, 2 },
    { 1920, 1080, 2048, 4, 4 }, { 3840, 2160, 2044, 8, 8 },
};

/* Of each pixel whether it is the letter's, by the font; the number of pixels that are not right.*/
static unsigned wrong_pixels(const struct framebuffer *f, uint16_t cell, unsigned column)
{
    const uint8_t *base = (const uint8_t *)(DIRECT_MAP + f->to.address);
    unsigned wrong = 0, left = column * 6 * f->sx;
    for (unsigned y = 0; y < 10 * f->sy; y++)
        for (unsigned x = 0; x < left + 8 * f->sx; x++) {
            unsigned line = y / f->sy, dot = (x - left) / f->sx;
            uint32_t pixel, want = UNTOUCHED;
            memcpy(&pixel, base + y * f->to.pitch + 4 * x, 4);
            if (x >= left && dot < 6)
                want = line >= 1 && line <= 8 && dot < 5 &&
                               screen_font[(cell & 0xff) - ' '][line - 1] >> (4 - dot) & 1
                           ? f->palette[cell >> 8 & 15]
                           : f->palette[cell >> 12];
            wrong += pixel != want;
        }
    return wrong;
}

TEST(screen, cells,
     "a character is drawn as the font has it, none of its neighbours, by half as many stores as "
     "it has pixels")
{
    uint32_t *memory = phys_alloc(PAGES);
    REQUIRE(memory != NULL);
    for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        struct framebuffer f;
        unsigned columns, rows;
        const struct screen to = { virt_to_phys(memory),
                                   sizes[i].pitch,
                                   sizes[i].width,
                                   sizes[i].height,
                                   SCREEN_PIXELS,
                                   16,
                                   8,
                                   0 };
        framebuffer_init(&f, &to, &columns, &rows);
        CHECK(f.sx == sizes[i].sx && f.sy == sizes[i].sy && columns >= 80);
        CHECK_EQ(framebuffer_stores(&f), 6 * f.sx * 10 * f.sy / 2);
        for (unsigned c = '!'; c <= '~'; c += 31) {
            for (unsigned p = 0; p < PAGES * PAGE_SIZE / 4; p++)
                memory[p] = UNTOUCHED;
            framebuffer_draw(&f, 3, 0, (uint16_t)(SCREEN_ON_RED << 8 | c));
            CHECK_EQ(wrong_pixels(&f, (uint16_t)(SCREEN_ON_RED << 8 | c), 3), 0);
        }
    }
    phys_free(memory, PAGES);
}

/* The entry that maps this physical address in the direct map, by the tables in use. */
static uint64_t entry_of(uint64_t physical)
{
    uint64_t at = DIRECT_MAP + physical, entry = read_cr3();
    for (unsigned shift = 39; shift >= 12; shift -= 9) {
        const uint64_t *table = phys_to_virt(entry & PTE_ADDRESS);
        entry = table[at >> shift & 511];
        if (!(entry & PTE_PRESENT) || entry & PTE_LARGE)
            break;
    }
    return entry;
}

static uint32_t other_pats; /* atomic: CPUs with another one */

static void compare_pat(void *unused)
{
    (void)unused;
    if (rdmsr(MSR_PAT) != PAT_OURS)
        __atomic_fetch_add(&other_pats, 1, __ATOMIC_RELAXED);
}

TEST(screen, combines,
     "a framebuffer is write-combining, by the same PAT on all CPUs, and nothing beside it is")
{
    const struct screen *s = &boot_info.screen;
    bool pixels = s->kind == SCREEN_PIXELS;
    uint64_t start = pixels ? s->address & ~(uint64_t)(PAGE_SIZE - 1) : 0,
             end = pixels ? (s->address + (uint64_t)s->pitch * s->height + PAGE_SIZE - 1) &
                                ~(uint64_t)(PAGE_SIZE - 1)
                          : 0,
             kind = cpu_features.pat ? PTE_COMBINED : PTE_UNCACHED;
    if (cpu_features.pat) {
        other_pats = 0;
        smp_call(SMP_ALL, compare_pat, NULL);
        CHECK_EQ(other_pats, 0);
    }
    for (uint64_t p = start; p < end; p += PAGE_SIZE)
        if (!CHECK_EQ(entry_of(p) & PTE_UNCACHED, kind))
            break;
    for (uint64_t p = 0; p < 1ul << 32;) {
        uint64_t entry = entry_of(p);
        if ((p < start || p >= end) && !CHECK((entry & PTE_UNCACHED) != PTE_COMBINED))
            break;
        p += entry & PTE_LARGE ? 2ul << 20 : PAGE_SIZE;
    }
}

/* On a host that stops the machine for long the clock goes on without ticks: only pixels take long
 * enough to tell. */
TEST(screen, interruptible, "while a screen of pixels scrolls, the timer's interrupts come")
{
    uint64_t longest = 0;
    test_run_on(0);
    for (unsigned i = 0; i < 60; i++) {
        uint64_t ticks = cpus[0]->ticks, begun = clock_ns();
        print_screen("a line for the screen, number %u\n", i);
        uint64_t took = (clock_ns() - begun) / sched_tick_ns();
        ticks = cpus[0]->ticks - ticks;
        longest = took > longest ? took : longest;
        CHECK(ticks + 2 >= took || boot_info.screen.kind != SCREEN_PIXELS);
    }
    if (boot_info.screen.kind == SCREEN_PIXELS)
        print("# %u x %u pixels: a line takes at most %lu ticks\n", boot_info.screen.width,
              boot_info.screen.height, longest);
}
