/* SPDX-License-Identifier: MIT */
/* How the console's framebuffer is mapped, and that who draws can be interrupted. */
#include "kernel/console/screen.h"
#include "hal/machine/clock.h"
#include "kernel/base/cpu.h"
#include "kernel/base/print.h"
#include "kernel/base/x86.h"
#include "kernel/ke/sched.h"
#include "kernel/mm/phys.h"
#include "kernel/mm/vm.h"
#include "tests/harness/test.h"

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

TEST(screen, combines, "a framebuffer is write-combining, and nothing beside it is")
{
    const struct screen *s = &boot_info.screen;
    bool pixels = s->kind == SCREEN_PIXELS;
    uint64_t start = pixels ? s->address & ~(uint64_t)(PAGE_SIZE - 1) : 0,
             end = pixels ? (s->address + (uint64_t)s->pitch * s->height + PAGE_SIZE - 1) &
                                ~(uint64_t)(PAGE_SIZE - 1)
                          : 0,
             kind = cpu_features.pat ? PTE_COMBINED : PTE_UNCACHED;
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
