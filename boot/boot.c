/* SPDX-License-Identifier: MIT */
/* From boot.asm to kernel_main: reads the loader's information once, starts the virtual PMU if the
 * command line asks for one. One CPU, boot page tables, interrupts off, no handler for any exception. */
#include "boot/multiboot.h"
#include "boot/payload.h"
#include "hal/reboot.h"
#include "kernel/base/exit.h"
#include "kernel/base/layout.h"
#include "kernel/base/print.h"
#include "kernel/base/string.h"
#include "kernel/console/screen.h"
#include "kernel/console/serial.h"
#include "kernel/main.h"
#include "pmu/virt/virt.h"

extern const uint8_t ap_start[], ap_end[];

static const void *at(uint64_t physical) { return (const void *)(DIRECT_MAP + physical); }

static void copy_line(char *line, const char *from, unsigned size)
{
    unsigned n = 0;
    while (n < size && n < BOOT_LINE_MAX - 1 && from[n]) {
        /* Only printable characters: what is typed at a loader's prompt may hold anything. */
        line[n] = from[n] >= ' ' && from[n] <= '~' ? from[n] : ' ';
        n++;
    }
    line[n] = 0;
}

static void add_module(struct boot_info *info, uint32_t start, uint32_t end, const char *line,
                       unsigned size)
{
    if (info->module_count == BOOT_MODULES_MAX || end <= start)
        return;
    struct boot_module *module = &info->modules[info->module_count++];
    module->start = start;
    module->end = end;
    copy_line(module->line, line, size);
}

static void add_memory(struct boot_info *info, uint64_t start, uint64_t size, uint32_t type)
{
    if (type == 1 && size && info->memory_count < BOOT_MEMORY_MAX)
        info->memory[info->memory_count++] = (struct boot_memory){ start, size };
}

/* Multiboot 1 says nothing of the screen; its loaders here are BIOS ones, whose data area knows the mode. */
static void read_bios_screen(struct screen *to)
{
    const uint8_t *mode = at(0x449);
    if (*mode == 2 || *mode == 3)
        *to = (struct screen){ 0xb8000, 160, 80, 25, SCREEN_TEXT, 0, 0, 0 };
}

static void read_mb1(struct boot_info *info, const struct mb1_info *mb)
{
    read_bios_screen(&info->screen);
    if (mb->flags & MB1_HAS_LINE)
        copy_line(info->line, at(mb->cmdline), BOOT_LINE_MAX);
    for (uint32_t i = 0; mb->flags & MB1_HAS_MODULES && i < mb->mods_count; i++) {
        const struct mb1_module *m = (const struct mb1_module *)at(mb->mods_addr) + i;
        add_module(info, m->start, m->end, at(m->line), BOOT_LINE_MAX);
    }
    if (mb->flags & MB1_HAS_MAP) {
        for (uint32_t at_byte = 0; at_byte < mb->mmap_length;) {
            const struct mb1_map_entry *e = at(mb->mmap_addr + at_byte);
            add_memory(info, e->start, e->length, e->type);
            at_byte += e->size + sizeof e->size;
        }
    } else if (mb->flags & MB1_HAS_MEMORY) {
        add_memory(info, 0, (uint64_t)mb->mem_lower << 10, 1);
        add_memory(info, 1 << 20, (uint64_t)mb->mem_upper << 10, 1);
    }
}

static void read_mb2_map(struct boot_info *info, const struct mb2_map *map)
{
    const uint8_t *end = (const uint8_t *)map + map->size;
    if (map->entry_size < sizeof(struct mb2_map_entry))
        return;
    for (const uint8_t *p = (const uint8_t *)(map + 1); p + map->entry_size <= end; p += map->entry_size) {
        const struct mb2_map_entry *e = (const void *)p;
        add_memory(info, e->start, e->length, e->type);
    }
}

static void read_screen(struct boot_info *info, const struct mb2_screen *from)
{
    struct screen *to = &info->screen;
    bool text = from->kind == MB2_SCREEN_TEXT;
    if (from->size < sizeof *from - 6 || (!text && (from->kind != MB2_SCREEN_RGB || from->bits != 32))) {
        info->no_screen = "only text and pixels of 32 bits are used";
        return;
    }
    *to = (struct screen){ from->address, from->pitch, from->width, from->height,
                           text ? SCREEN_TEXT : SCREEN_PIXELS, 0, 0, 0 };
    if (!text) {
        to->red_at = from->red_at & 31;
        to->green_at = from->green_at & 31;
        to->blue_at = from->blue_at & 31;
    }
}

static void read_mb2(struct boot_info *info, const uint8_t *mb)
{
    const uint8_t *end = mb + *(const uint32_t *)mb;
    for (const uint8_t *p = mb + 8; p + sizeof(struct mb2_tag) <= end;) {
        const struct mb2_tag *tag = (const void *)p;
        if (tag->type == MB2_TAG_END || tag->size < sizeof *tag)
            break;
        if (tag->type == MB2_TAG_LINE)
            copy_line(info->line, (const char *)tag->data, tag->size - sizeof *tag);
        if (tag->type == MB2_TAG_MODULE && tag->size >= sizeof *tag + 8)
            add_module(info, ((const uint32_t *)tag->data)[0], ((const uint32_t *)tag->data)[1],
                       (const char *)tag->data + 8, tag->size - sizeof *tag - 8);
        if (tag->type == MB2_TAG_MAP)
            read_mb2_map(info, (const void *)tag);
        if (tag->type == MB2_TAG_SCREEN)
            read_screen(info, (const void *)tag);
        if (tag->type == MB2_TAG_EFI64 && tag->size >= sizeof *tag + sizeof info->efi_table) {
            info->efi = true;
            memcpy(&info->efi_table, tag->data, sizeof info->efi_table);
        }
        /* Tag 15 (ACPI 2) is better than 14 (ACPI 1), whichever comes first. */
        if (tag->type == MB2_TAG_RSDP2 || (tag->type == MB2_TAG_RSDP1 && !info->rsdp_given)) {
            for (unsigned i = 0; i < sizeof info->rsdp; i++)
                info->rsdp[i] = i < tag->size - sizeof *tag ? tag->data[i] : 0;
            info->rsdp_given = true;
        }
        p += (tag->size + 7) & ~7u;
    }
}

static bool is_path(const char *word, unsigned length)
{
    for (unsigned i = 0; i < length && word[i] != '='; i++)
        if (word[i] == '/')
            return true;
    return false;
}

/* A word that nobody will ask for is a slip that somebody wants to know of. The first may be the file's name. */
static void name_strange_words(const struct boot_info *info)
{
    static const char known[] = " vpmu= fault= counters= pmi= tests= seed= list long payload program trace= pmc= verbose safe tick= cpus= watchdog= ";
    const char *word;
    char text[40];
    unsigned length, shown = 0;
    for (unsigned n = 0; (word = boot_word_at(info->line, n, &length)) && shown < 8; n++) {
        unsigned key = 0;
        while (key < length && word[key] != '=')
            key++;
        key += key < length;
        bool found = n == 0 && is_path(word, length);
        for (const char *k = known; *k && !found; k++)
            found = *k == ' ' && strlen(k + 1) > key && memcmp(k + 1, word, key) == 0 && k[key + 1] == ' ';
        if (found)
            continue;
        memcpy(text, word, length < sizeof text - 1 ? length : sizeof text - 1);
        text[length < sizeof text - 1 ? length : sizeof text - 1] = 0;
        print("%s%s", shown++ ? " " : "# boot: not understood, ignored: ", text);
    }
    if (shown)
        print("\n");
}

/* The virtual PMU's alarm is an NMI; whoever steps needs none. To say so twice does no harm. */
static void step_always(char *model)
{
    memcpy(model + strlen(model), ",step", sizeof ",step");
}

void boot_main(uint32_t magic, uint32_t info_address);
void boot_main(uint32_t magic, uint32_t info_address)
{
    char model[256];

    serial_init();
    print("\n"); /* the first byte, at once: what comes next may draw a whole screen */
    boot_info.no_screen = "the loader tells of none";
    boot_info.ap_code = ap_start;
    boot_info.ap_size = (size_t)(ap_end - ap_start);
    if (magic == MB1_BOOT_MAGIC)
        read_mb1(&boot_info, at(info_address));
    else if (magic == MB2_BOOT_MAGIC)
        read_mb2(&boot_info, at(info_address));
    screen_init(&boot_info.screen);
    print_begin();
    print("# ntpmu: boot by multiboot %s, command line \"%s\"\n",
          magic == MB1_BOOT_MAGIC ? "1" : magic == MB2_BOOT_MAGIC ? "2" : "(unknown magic)", boot_info.line);
    name_strange_words(&boot_info);
    bool virtual = boot_option("vpmu", model, sizeof model - sizeof ",step");
    if (virtual && boot_word("safe"))
        step_always(model);
    if (boot_word("payload")) {
        struct payload payload;
        if (virtual && payload_load(&boot_info, &payload))
            virt_boot_payload(model, payload.entry, payload.info);
        else if (!virtual)
            print("# payload: needs vpmu=MODEL beside it\n");
        machine_exit(EXIT_NOTHING);
    }
    if (virtual)
        virt_boot(model);
    kernel_main();
}
