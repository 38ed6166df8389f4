/* SPDX-License-Identifier: MIT */
/* What a person at the screen sees: progress in the bottom line, and at the end one page that
 * stays. */
#include "tests/harness/kernel.h"
#include "tests/harness/summary.h"
#include "kernel/console/screen.h"
#include "tests/harness/qr.h"

#define KEPT_MAX 12

extern char text_start[], text_end[]; /* linker.ld */

/* L: print's lock, these */
static char kept[KEPT_MAX][SCREEN_LINE_MAX];
/* Of tests that failed, each with a blank before it; as many as fit. */
static char names[256];
static unsigned failures;
static bool last_page; /* it repeats failures: they are not new ones */

static bool has_part(const char *text, const char *part)
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
        { "ok ", SCREEN_GREEN },       { "not ok ", SCREEN_RED },       { "# tests/", SCREEN_RED },
        { "# watchdog", SCREEN_RED },  { "# left behind", SCREEN_RED }, { "# lost", SCREEN_RED },
        { "# PASS", SCREEN_ON_GREEN }, { "# FAIL", SCREEN_ON_RED },     { "# NONE", SCREEN_YELLOW },
        { "# PANIC", SCREEN_ON_RED },
    };
    for (unsigned i = 0; i < ARRAY_SIZE(table); i++)
        if (strlen(text) >= strlen(table[i].start) &&
            memcmp(text, table[i].start, strlen(table[i].start)) == 0)
            return table[i].color == SCREEN_GREEN && has_part(text, " # SKIP ") ? SCREEN_YELLOW
                                                                                : table[i].color;
    return SCREEN_GREY;
}

static void take_name(const char *text)
{
    size_t at = strlen(names);
    const char *name = text;
    while (*name && *name != '-')
        name++;
    if (*name && at + strlen(name + 1) < sizeof names)
        memcpy(names + at, name + 1, strlen(name + 1) + 1);
}

static uint8_t take_line(const char *text)
{
    uint8_t color = color_of(text);
    if (color == SCREEN_RED && !last_page) {
        if (failures++ < KEPT_MAX)
            memcpy(kept[failures - 1], text, strlen(text) + 1);
        if (*text == 'n')
            take_name(text);
    }
    return color;
}

void summary_init(void) { screen_color_by(take_line); }

static unsigned seconds(void) { return (unsigned)(clock_ns() / 1000000000); }

void summary_progress(const struct test *test, const struct summary *s)
{
    unsigned done = s->passed + s->failed + s->skipped;
    print_status(" %u of %u   %u%%   %u s   %u failed, %u skipped   %s.%s", done + 1, s->planned,
                 done * 100 / s->planned, seconds(), s->failed, s->skipped, test->group,
                 test->name);
}

/* The maker of the hypervisor, by CPUID; at most 12 letters. */
static void host_name(char name[13])
{
    struct cpuid r = cpuid(0x40000000, 0);
    memcpy(name, &r.ebx, 4);
    memcpy(name + 4, &r.ecx, 4);
    memcpy(name + 8, &r.edx, 4);
    name[12] = 0;
    for (char *c = name; *c; c++)
        if (*c < ' ' || *c > '~')
            *c = '?';
}

static void machine(void)
{
    char host[13] = "";
    if (cpu_features.hypervisor)
        host_name(host);
    print_screen("Machine  %s, %u MB, %s%s\n", boot_info.efi ? "UEFI" : "BIOS",
                 (unsigned)(phys_total_pages() * PAGE_SIZE >> 20),
                 cpu_features.hypervisor ? "a guest of " : "no hypervisor", host);
    print_screen("CPU      %s %s, %u running\n", cpu_features.vendor, cpu_features.name, cpu_count);
    if (hal_counter_count())
        print_screen("PMU      %u counters: %s\n\n", hal_counter_count(), verdict_of_kinds());
    else
        print_screen("PMU      %s\n\n", verdict_of_kinds());
}

/* --- What a photograph carries: tests/tools/report --qr reads it. --- */

/* Of all code, eight bytes at a time; which build this is. */
static uint32_t build_id(void)
{
    uint64_t id = 0;
    for (const uint64_t *word = (const uint64_t *)text_start; word < (const uint64_t *)text_end;
         word++)
        id = (id ^ *word) * 0x9e3779b97f4a7c15;
    return (uint32_t)(id >> 32);
}

/* Appends to the text, of which `size` is the capacity. */
__attribute__((format(printf, 3, 4))) static void add_text(char *text, size_t size,
                                                           const char *format, ...)
{
    size_t at = strlen(text);
    va_list args;
    va_start(args, format);
    print_to_va(text + at, size - at, format, args);
    va_end(args);
}

/* Bytes of the first so many names that fit, each with a blank before it; *count: how many.
 */
static size_t names_in(size_t most, unsigned *count)
{
    size_t end = 0;
    *count = 0;
    for (size_t at = 1; *names && at <= strlen(names) && at <= most; at++)
        if (names[at] == ' ' || !names[at]) {
            end = at;
            ++*count;
        }
    return end;
}

static void add_failed(char *text, size_t size, unsigned failed)
{
    static const char more[] = " +1000";
    unsigned count;
    size_t left = size - 1 - strlen(text), end = names_in(left, &count);
    if (count < failed)
        end = left < sizeof more ? 0 : names_in(left - sizeof more + 1, &count);
    names[end] = 0;
    add_text(text, size, "%s", names);
    if (count < failed)
        add_text(text, size, " +%u", failed - count);
}

static void code_text(const struct summary *s, const char *verdict, uint64_t bytes, uint32_t crc,
                      char *text, size_t size)
{
    const struct pmu_kind *pmu = pmu_of(0);
    char host[13] = "-";
    if (cpu_features.hypervisor)
        host_name(host);
    *text = 0;
    const char word[5] = { verdict[2], verdict[3], verdict[4], verdict[5], 0 };
    add_text(text, size, "ntpmu1 %s %u/%u/%u %lu %lu:%08x\n", word, s->passed, s->failed,
             s->skipped, s->checks, bytes, crc);
    add_text(text, size, "%08x %s %uM %u %s\n", build_id(), boot_info.efi ? "UEFI" : "BIOS",
             (unsigned)(phys_total_pages() * PAGE_SIZE >> 20), cpu_count, host);
    add_text(text, size, "%x.%x.%x %s%u %ux%u+%ux%u", cpu_features.family, cpu_features.model,
             cpu_features.stepping, pmu->driver ? pmu->driver : "none", pmu->version,
             pmu->gp_reported, pmu->gp_width, bit_count(pmu->reported & ~PMU_ANY_GP),
             pmu->fixed_width);
    add_failed(text, size, s->failed);
    add_text(text, size, "\n%s", cpu_features.name);
}

/* The largest code that the screen has space for; 0: none. */
static unsigned code_version(void)
{
    unsigned version = QR_VERSION_MAX;
    while (version && !screen_picture_fits(QR_SIZE(version)))
        version--;
    return version;
}

static void show_code(const struct summary *s, const char *verdict, uint64_t bytes, uint32_t crc)
{
    char text[256];
    uint64_t code[QR_SIZE_MAX];
    size_t capacity = qr_capacity(code_version());
    if (capacity < 100 || capacity >= sizeof text)
        return;
    code_text(s, verdict, bytes, crc, text, capacity + 1);
    unsigned version = qr_encode(text, code);
    if (version)
        screen_picture(code, QR_SIZE(version));
}

/* Lines that do not fit are only counted: above them the page stays. */
static void show_failures(void)
{
    unsigned shown = 0;
    while (shown < failures && shown < KEPT_MAX && screen_has_room(strlen(kept[shown])))
        print_screen("%s\n", kept[shown++]);
    if (failures > shown)
        print_screen("and %u lines more, by serial\n", failures - shown);
}

void summary_show(const struct summary *s, const char *verdict, uint64_t bytes, uint32_t crc)
{
    last_page = true;
    screen_clear();
    show_code(s, verdict, bytes, crc);
    print_screen("ntpmu: the tests have ended after %u s\n\n", seconds());
    machine();
    print_screen("%u passed, %u failed, %u skipped, %lu checks\n", s->passed, s->failed, s->skipped,
                 s->checks);
    print_screen("%s\n\n", verdict);
    show_failures();
}
