/* SPDX-License-Identifier: MIT */
/* What a person at the screen sees: progress in the bottom line, and at the end one page that stays. */
#include "tests/summary.h"
#include "hal/clock.h"
#include "hal/hal.h"
#include "kernel/base/boot_info.h"
#include "kernel/base/cpu.h"
#include "kernel/base/print.h"
#include "kernel/base/string.h"
#include "kernel/base/x86.h"
#include "kernel/console/screen.h"
#include "kernel/ke/sched.h"
#include "kernel/mm/phys.h"
#include "pmu/pmu.h"

#define KEPT_MAX 12

/* L: print's lock, these */
static char kept[KEPT_MAX][SCREEN_LINE_MAX];
static unsigned failures;
static bool last_page; /* it repeats failures: they are not new ones */

static bool has(const char *text, const char *part)
{
    size_t length = strlen(part);
    for (; *text; text++)
        if (strlen(text) >= length && memcmp(text, part, length) == 0)
            return true;
    return false;
}

static uint8_t color_of(const char *text)
{
    static const struct {
        const char *start;
        uint8_t color;
    } table[] = {
        { "ok ", SCREEN_GREEN }, { "not ok ", SCREEN_RED }, { "# tests/", SCREEN_RED }, { "# watchdog", SCREEN_RED },
        { "# left behind", SCREEN_RED }, { "# lost", SCREEN_RED }, { "# PASS", SCREEN_ON_GREEN },
        { "# FAIL", SCREEN_ON_RED }, { "# NONE", SCREEN_YELLOW }, { "# PANIC", SCREEN_ON_RED },
    };
    for (unsigned i = 0; i < sizeof table / sizeof table[0]; i++)
        if (strlen(text) >= strlen(table[i].start) && memcmp(text, table[i].start, strlen(table[i].start)) == 0)
            return table[i].color == SCREEN_GREEN && has(text, " # SKIP ") ? SCREEN_YELLOW : table[i].color;
    return SCREEN_GREY;
}

static uint8_t take_line(const char *text)
{
    uint8_t color = color_of(text);
    if (color == SCREEN_RED && !last_page && failures++ < KEPT_MAX)
        memcpy(kept[failures - 1], text, strlen(text) + 1);
    return color;
}

void summary_init(void) { screen_color_by(take_line); }

static unsigned seconds(void) { return (unsigned)(clock_ns() / 1000000000); }

void summary_progress(const struct test *test, const struct summary *s)
{
    unsigned done = s->passed + s->failed + s->skipped;
    print_status(" %u of %u   %u%%   %u s   %u failed, %u skipped   %s.%s", done + 1, s->planned,
                 done * 100 / s->planned, seconds(), s->failed, s->skipped, test->group, test->name);
}

static void machine(void)
{
    char host[13] = "";
    struct cpuid r = cpuid(0x40000000, 0);
    memcpy(host, &r.ebx, 4);
    memcpy(host + 4, &r.ecx, 4);
    memcpy(host + 8, &r.edx, 4);
    print_screen("Machine  %s, %u MB, %s%s\n", boot_info.efi ? "UEFI" : "BIOS",
                 (unsigned)(phys_total_pages() * PAGE_SIZE >> 20),
                 cpu_features.hypervisor ? "a guest of " : "no hypervisor", cpu_features.hypervisor ? host : "");
    print_screen("CPU      %s %s, %u running\n", cpu_features.vendor, cpu_features.name, cpu_count);
    if (hal_counter_count())
        print_screen("PMU      %u counters: %s\n\n", hal_counter_count(), pmu_verdict_text(pmu_verdict()));
    else
        print_screen("PMU      %s\n\n", pmu_verdict_text(pmu_verdict()));
}

void summary_show(const struct summary *s, const char *verdict)
{
    last_page = true;
    screen_clear();
    print_screen("ntpmu: the tests have ended after %u s\n\n", seconds());
    machine();
    print_screen("%u passed, %u failed, %u skipped, %lu checks\n", s->passed, s->failed, s->skipped, s->checks);
    print_screen("%s\n\n", verdict);
    unsigned n = failures < KEPT_MAX ? failures : KEPT_MAX;
    for (unsigned i = 0; i < n; i++)
        print_screen("%s\n", kept[i]);
    if (failures > n)
        print_screen("and %u lines more, by serial port\n", failures - n);
}
