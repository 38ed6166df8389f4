/* SPDX-License-Identifier: MIT */
/* Brings what the loader reports, by either version of multiboot, into the kernel's form. A tag of
 * multiboot 2 that reaches beyond the end of the tags is taken as their end. */
#include "boot/loader.h"
#include "boot/multiboot.h"
#include "kernel/base/layout.h"
#include "kernel/base/string.h"

#define MAPPED_END (1ul << 32) /* of the direct map, at this time */
#define MB1_MODULES_MOST 256   /* that are looked at */

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

/* GRUB quotes a line that has blanks, and puts a backslash before quotes and backslashes. */
static void unquote_line(char *line)
{
    const char *end = line + strlen(line) - 1;
    char *to = line;
    if (end <= line || *line != '"' || *end != '"')
        return;
    for (const char *p = line + 1; p < end; p++) {
        if (*p == '\\' && p + 1 < end)
            p++;
        *to++ = *p;
    }
    *to = 0;
}

static void add_module(struct boot_info *info, uint32_t start, uint32_t end, const char *line,
                       unsigned size)
{
    if (end <= start)
        return;
    if (info->module_count == BOOT_MODULES_MAX) {
        info->modules_left_out++;
        return;
    }
    struct boot_module *module = &info->modules[info->module_count++];
    module->start = start;
    module->end = end;
    copy_line(module->line, line, size);
    unquote_line(module->line);
}

/* A range that reaches beyond the last address ends there. */
static void add_memory(struct boot_info *info, uint64_t start, uint64_t size, uint32_t type)
{
    size = size > -start && start ? -start : size;
    if (size && info->map_count < BOOT_MEMORY_MAX)
        info->map[info->map_count++] = (struct boot_range){ start, size, type };
    if (type == BOOT_RAM && size && info->memory_count < BOOT_MEMORY_MAX)
        info->memory[info->memory_count++] = (struct boot_memory){ start, size };
}

static unsigned line_size(uint32_t physical)
{
    uint64_t left = MAPPED_END - physical;
    return left < BOOT_LINE_MAX ? (unsigned)left : BOOT_LINE_MAX;
}

static void read_mb1_modules(struct boot_info *info, const struct mb1_info *mb)
{
    uint64_t from = mb->mods_addr;
    for (uint32_t i = 0; i < mb->mods_count && i < MB1_MODULES_MOST; i++) {
        struct mb1_module m;
        if (from + sizeof m > MAPPED_END)
            return;
        memcpy(&m, at(from), sizeof m);
        from += sizeof m;
        add_module(info, m.start, m.end, at(m.line), line_size(m.line));
    }
}

/* An entry of another size than it has, or outside what is mapped, is the last. */
static void read_mb1_map(struct boot_info *info, const struct mb1_info *mb)
{
    uint64_t p = mb->mmap_addr, end = p + mb->mmap_length;
    end = end < MAPPED_END ? end : MAPPED_END;
    while (p + sizeof(struct mb1_map_entry) <= end) {
        const struct mb1_map_entry *e = at(p);
        if (e->size < sizeof *e - sizeof e->size)
            return;
        add_memory(info, e->start, e->length, e->type);
        p += sizeof e->size + e->size;
    }
}

static void read_mb1(struct boot_info *info, const struct mb1_info *mb)
{
    /* Multiboot 1 does not describe the screen. Its loaders run on BIOS, whose data area has the
     * mode. */
    const uint8_t *mode = at(0x449);
    if (*mode == 2 || *mode == 3)
        info->screen = (struct screen){ 0xb8000, 160, 80, 25, SCREEN_TEXT, 0, 0, 0 };
    if (mb->flags & MB1_HAS_LINE)
        copy_line(info->line, at(mb->cmdline), line_size(mb->cmdline));
    if (mb->flags & MB1_HAS_MODULES)
        read_mb1_modules(info, mb);
    if (mb->flags & MB1_HAS_MAP) {
        read_mb1_map(info, mb);
    } else if (mb->flags & MB1_HAS_MEMORY) {
        add_memory(info, 0, (uint64_t)mb->mem_lower << 10, BOOT_RAM);
        add_memory(info, 1 << 20, (uint64_t)mb->mem_upper << 10, BOOT_RAM);
    }
}

static void read_mb2_map(struct boot_info *info, const struct mb2_map *map)
{
    const uint8_t *end = (const uint8_t *)map + map->size;
    if (map->size < sizeof *map || map->entry_size < sizeof(struct mb2_map_entry))
        return;
    for (const uint8_t *p = (const uint8_t *)(map + 1); p + map->entry_size <= end;
         p += map->entry_size) {
        struct mb2_map_entry e; /* which the loader's size of an entry may misalign */
        memcpy(&e, p, sizeof e);
        add_memory(info, e.start, e.length, e.type);
    }
}

static void read_screen(struct boot_info *info, const struct mb2_screen *from)
{
    struct screen *to = &info->screen;
    bool text = from->kind == MB2_SCREEN_TEXT;
    if (from->size < sizeof *from - 6 ||
        (!text && (from->kind != MB2_SCREEN_RGB || from->bits != 32))) {
        info->no_screen = "only text and pixels of 32 bits are used";
        return;
    }
    *to = (struct screen){ from->address,
                           from->pitch,
                           from->width,
                           from->height,
                           text ? SCREEN_TEXT : SCREEN_PIXELS,
                           0,
                           0,
                           0 };
    if (!text) {
        to->red_at = from->red_at & 31;
        to->green_at = from->green_at & 31;
        to->blue_at = from->blue_at & 31;
    }
}

static void read_mb2(struct boot_info *info, uint32_t physical)
{
    const uint8_t *mb = at(physical), *end = mb + *(const uint32_t *)mb;
    if (end > (const uint8_t *)at(MAPPED_END))
        end = at(MAPPED_END);
    for (const uint8_t *p = mb + 8; p + sizeof(struct mb2_tag) <= end;) {
        const struct mb2_tag *tag = (const void *)p;
        if (tag->type == MB2_TAG_END || tag->size < sizeof *tag || tag->size > (size_t)(end - p))
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

void loader_read(struct boot_info *info, uint32_t magic, uint32_t physical)
{
    info->no_screen = "the loader reports none";
    if (magic == MB1_BOOT_MAGIC)
        read_mb1(info, at(physical));
    else if (magic == MB2_BOOT_MAGIC)
        read_mb2(info, physical);
}
