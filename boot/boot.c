/* SPDX-License-Identifier: MIT */
/* From boot.asm to kernel_main: reads the loader's information once, starts the virtual PMU if the
 * command line asks for one. One CPU, boot page tables, interrupts off, no handler for any exception. */
#include "boot/multiboot.h"
#include "boot/payload.h"
#include "kernel/layout.h"
#include "kernel/main.h"
#include "kernel/print.h"
#include "kernel/string.h"
#include "pmu/virt/virt.h"

static struct boot_info boot_info;

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

static void set_module(struct boot_info *info, uint32_t start, uint32_t end, const char *line, unsigned size)
{
    if (info->module_end || end <= start)
        return; /* the first one counts */
    info->module_start = start;
    info->module_end = end;
    copy_line(info->module_line, line, size);
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
    if (mb->flags & MB1_HAS_MODULES && mb->mods_count) {
        const struct mb1_module *m = at(mb->mods_addr);
        set_module(info, m->start, m->end, at(m->line), BOOT_LINE_MAX);
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

static const char *no_screen = "the loader tells of none";

static void read_screen(struct screen *to, const struct mb2_screen *from)
{
    bool text = from->kind == MB2_SCREEN_TEXT;
    if (from->size < sizeof *from - 6 || (!text && (from->kind != MB2_SCREEN_RGB || from->bits != 32))) {
        no_screen = "only text and pixels of 32 bits are used";
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
            set_module(info, ((const uint32_t *)tag->data)[0], ((const uint32_t *)tag->data)[1],
                       (const char *)tag->data + 8, tag->size - sizeof *tag - 8);
        if (tag->type == MB2_TAG_MAP)
            read_mb2_map(info, (const void *)tag);
        if (tag->type == MB2_TAG_SCREEN)
            read_screen(&info->screen, (const void *)tag);
        if (tag->type == MB2_TAG_EFI64)
            info->efi = true;
        /* Tag 15 (ACPI 2) is better than 14 (ACPI 1), whichever comes first. */
        if (tag->type == MB2_TAG_RSDP2 || (tag->type == MB2_TAG_RSDP1 && !info->rsdp_given)) {
            for (unsigned i = 0; i < sizeof info->rsdp; i++)
                info->rsdp[i] = i < tag->size - sizeof *tag ? tag->data[i] : 0;
            info->rsdp_given = true;
        }
        p += (tag->size + 7) & ~7u;
    }
}

/* The start of the n-th word, or NULL; *length gets its length. */
static const char *word_at(const char *line, unsigned n, unsigned *length)
{
    for (;;) {
        while (*line == ' ')
            line++;
        if (!*line)
            return NULL;
        unsigned len = 0;
        while (line[len] && line[len] != ' ')
            len++;
        *length = len;
        if (n-- == 0)
            return line;
        line += len;
    }
}

bool boot_option(const struct boot_info *info, const char *name, char *value, unsigned size)
{
    const char *word;
    unsigned length, found = 0;
    for (unsigned n = 0; (word = word_at(info->line, n, &length)); n++) {
        unsigned i = 0;
        while (i < length && name[i] && word[i] == name[i])
            i++;
        if (name[i] || i == length || word[i] != '=')
            continue;
        unsigned out = 0;
        for (i++; i < length && out < size - 1; i++)
            value[out++] = word[i];
        value[out] = 0;
        found++; /* the last one counts */
    }
    return found > 0;
}

bool boot_word(const struct boot_info *info, const char *wanted)
{
    const char *word;
    unsigned length;
    for (unsigned n = 0; (word = word_at(info->line, n, &length)); n++) {
        unsigned i = 0;
        while (i < length && wanted[i] == word[i])
            i++;
        if (i == length && !wanted[i])
            return true;
    }
    return false;
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
    static const char known[] = " vpmu= fault= counters= pmi= tests= seed= list long payload program trace= pmc= verbose safe ";
    const char *word;
    char text[40];
    unsigned length, shown = 0;
    for (unsigned n = 0; (word = word_at(info->line, n, &length)) && shown < 8; n++) {
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

/* The virtual PMU's alarm is an NMI; whoever steps needs none. */
static void step_always(char *model)
{
    size_t length = strlen(model);
    for (size_t i = 0; i < length; i++)
        if (model[i] == ',')
            return;
    memcpy(model + length, ",step", sizeof ",step");
}

void boot_main(uint32_t magic, uint32_t info_address);
void boot_main(uint32_t magic, uint32_t info_address)
{
    char model[32];

    serial_init();
    serial_put('\n'); /* the first byte, at once: what comes next may draw a whole screen */
    if (magic == MB1_BOOT_MAGIC)
        read_mb1(&boot_info, at(info_address));
    else if (magic == MB2_BOOT_MAGIC)
        read_mb2(&boot_info, at(info_address));
    bool has_screen = screen_init(&boot_info.screen);
    print_begin();
    print("# ntpmu: boot by multiboot %s, command line \"%s\"\n",
          magic == MB1_BOOT_MAGIC ? "1" : magic == MB2_BOOT_MAGIC ? "2" : "(unknown magic)", boot_info.line);
    name_strange_words(&boot_info);
    if (boot_info.screen.kind == SCREEN_NONE)
        print("# screen: none: %s\n", no_screen);
    else if (!has_screen)
        print("# screen: none: %u x %u is too small\n", boot_info.screen.width, boot_info.screen.height);
    else
        print("# screen: %u x %u %s at %lx\n", boot_info.screen.width, boot_info.screen.height,
              boot_info.screen.kind == SCREEN_TEXT ? "characters" : "pixels", boot_info.screen.address);
    bool virtual = boot_option(&boot_info, "vpmu", model, sizeof model - sizeof ",step");
    if (virtual && boot_word(&boot_info, "safe"))
        step_always(model);
    if (boot_word(&boot_info, "payload")) {
        struct payload payload;
        if (virtual && payload_load(&boot_info, &payload))
            virt_boot_payload(model, payload.entry, payload.info);
        else if (!virtual)
            print("# payload: needs vpmu=MODEL beside it\n");
        machine_exit(EXIT_NOTHING);
    }
    if (virtual)
        virt_boot(model);
    kernel_main(&boot_info);
}
