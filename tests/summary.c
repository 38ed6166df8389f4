/* SPDX-License-Identifier: MIT */
/* What a person at the screen sees: progress in the bottom line, and at the end one page that stays. */
#include "tests/summary.h"
#include "boot/multiboot.h"
#include "hal/hal.h"
#include "kernel/cpu.h"
#include "kernel/main.h"
#include "kernel/phys.h"
#include "kernel/print.h"
#include "kernel/sched.h"
#include "kernel/screen.h"
#include "kernel/string.h"
#include "kernel/x86.h"
#include "pmu/pmu.h"

static unsigned seconds(void) { return (unsigned)(sched_time_ns() / 1000000000); }

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
    print_screen("Machine  %s, %u MB, %s%s\n", kernel_boot_info->efi ? "UEFI" : "BIOS",
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
    screen_last_page();
    print_screen("ntpmu: the tests have ended after %u s\n\n", seconds());
    machine();
    print_screen("%u passed, %u failed, %u skipped, %lu checks\n", s->passed, s->failed, s->skipped, s->checks);
    print_screen("%s\n\n", verdict);
    unsigned failures = screen_failures(), shown = 0;
    for (const char *line; (line = screen_failure(shown)); shown++)
        print_screen("%s\n", line);
    if (failures > shown)
        print_screen("and %u lines more, by serial port\n", failures - shown);
}
