/* SPDX-License-Identifier: MIT */
/* Loads a module as a multiboot 1 loader would: by the header's addresses, or by its ELF program headers.
 * Source: Multiboot Specification 0.6.96 "The layout of Multiboot header", "Machine state". */
#include "boot/payload.h"
#include "boot/multiboot.h"
#include "kernel/base/layout.h"
#include "kernel/base/print.h"
#include "kernel/base/string.h"

#define HEADER_MAGIC 0x1badb002u
#define HEADER_SEARCH 8192
#define HEADER_ADDRESSES (1u << 16)
#define HEADER_UNKNOWN 0xfff8u /* required features that we lack: all but alignment, memory, video (ignored) */
#define ELF_MAGIC 0x464c457fu
#define PT_LOAD 1
#define HIGHEST (1ul << 32) /* the virtual PMU reads its guest's memory up to here */
#define PAYLOAD_MAP_MAX (BOOT_MEMORY_MAX + 2)

struct header {
    uint32_t magic, flags, checksum, header_addr, load_addr, load_end_addr, bss_end_addr, entry_addr;
};

struct elf32 {
    uint32_t magic;
    uint8_t class, rest[11];
    uint16_t type, machine;
    uint32_t version, entry, phoff, shoff, flags;
    uint16_t ehsize, phentsize, phnum;
};

struct segment {
    uint32_t type, offset, vaddr, paddr, filesz, memsz, flags, align;
};

struct mb1_full_info {
    struct mb1_info start;
    uint32_t drives[2], config, loader_name;
};

extern char image_start[], image_end[];

static struct mb1_full_info info;
static struct mb1_map_entry map[PAYLOAD_MAP_MAX];
static char line[BOOT_LINE_MAX];
static const char loader_name[] = "ntpmu";

static uint32_t physical(const void *p) { return (uint32_t)((uint64_t)p - KERNEL_VMA); }
static uint8_t *at(uint64_t address) { return (uint8_t *)(DIRECT_MAP + address); }

static const struct header *find_header(const uint8_t *image, uint32_t size)
{
    for (uint32_t i = 0; i + 12 <= size && i < HEADER_SEARCH; i += 4) {
        const struct header *h = (const void *)(image + i);
        if (h->magic == HEADER_MAGIC && h->magic + h->flags + h->checksum == 0)
            return h;
    }
    return NULL;
}

static bool overlaps(uint64_t a, uint64_t a_end, uint64_t b, uint64_t b_end) { return a < b_end && b < a_end; }

/* Says why not, and names both ranges. */
static bool may_load(const struct boot_info *boot, uint64_t start, uint64_t end)
{
    uint64_t ours = (uint64_t)image_start - KERNEL_VMA, ours_end = (uint64_t)image_end - KERNEL_VMA;
    if (overlaps(start, end, ours, ours_end)) {
        print("# payload: wants %lx-%lx, which overlaps ntpmu at %lx-%lx\n", start, end, ours, ours_end);
        return false;
    }
    const struct boot_module *file = &boot->modules[0];
    if (overlaps(start, end, file->start, file->end)) {
        print("# payload: wants %lx-%lx, which overlaps its own file at %x-%x\n", start, end,
              file->start, file->end);
        return false;
    }
    for (unsigned i = 0; i < boot->memory_count; i++)
        if (start >= boot->memory[i].start && end <= boot->memory[i].start + boot->memory[i].size)
            return true;
    print("# payload: wants %lx-%lx, which is not memory\n", start, end);
    return false;
}

static bool place(const struct boot_info *boot, const uint8_t *from, uint64_t size, uint64_t to, uint64_t whole)
{
    if (!may_load(boot, to, to + whole))
        return false;
    memcpy(at(to), from, size);
    memset(at(to) + size, 0, whole - size);
    return true;
}

static bool load_flat(const struct boot_info *boot, const uint8_t *image, uint32_t size, const struct header *h,
                      uint32_t *entry)
{
    uint64_t before = h->header_addr - h->load_addr, offset = (uint64_t)((const uint8_t *)h - image);
    if (h->header_addr < h->load_addr || before > offset || (h->load_end_addr && h->load_end_addr < h->load_addr)) {
        print("# payload: its multiboot header's addresses make no sense\n");
        return false;
    }
    uint64_t bytes = h->load_end_addr ? h->load_end_addr - h->load_addr : size - (offset - before);
    if (bytes > size - (offset - before)) {
        print("# payload: the file is shorter than its header says\n");
        return false;
    }
    uint64_t whole = h->bss_end_addr > h->load_addr + bytes ? h->bss_end_addr - h->load_addr : bytes;
    *entry = h->entry_addr;
    return place(boot, image + (offset - before), bytes, h->load_addr, whole);
}

static bool load_elf(const struct boot_info *boot, const uint8_t *image, uint32_t size, uint32_t *entry)
{
    const struct elf32 *elf = (const void *)image;
    if (size < sizeof *elf || elf->magic != ELF_MAGIC || elf->class != 1) {
        print("# payload: neither a 32-bit ELF file nor a multiboot header with addresses\n");
        return false;
    }
    for (unsigned i = 0; i < elf->phnum; i++) {
        uint64_t offset = elf->phoff + (uint64_t)i * elf->phentsize;
        const struct segment *s = (const void *)(image + offset);
        if (offset + sizeof *s > size || (uint64_t)s->offset + s->filesz > size || s->memsz < s->filesz) {
            print("# payload: its ELF program headers lead out of the file\n");
            return false;
        }
        if (s->type == PT_LOAD && s->memsz && !place(boot, image + s->offset, s->filesz, s->paddr, s->memsz))
            return false;
    }
    *entry = elf->entry;
    return true;
}

static void add_map(uint64_t start, uint64_t end, uint32_t type)
{
    unsigned n = info.start.mmap_length / sizeof map[0];
    if (start >= end || n == PAYLOAD_MAP_MAX)
        return;
    map[n] = (struct mb1_map_entry){ sizeof map[0] - sizeof map[0].size, start, end - start, type };
    info.start.mmap_length += sizeof map[0];
}

/* The loader's map, with ours as reserved: the host side goes on living there. Memory above 4 GB is not passed on. */
static void make_info(const struct boot_info *boot)
{
    uint64_t ours = (uint64_t)image_start - KERNEL_VMA, ours_end = (uint64_t)image_end - KERNEL_VMA;
    memcpy(line, boot->modules[0].line, sizeof line);
    info.start = (struct mb1_info){ .flags = MB1_HAS_MEMORY | MB1_HAS_LINE | MB1_HAS_MAP | 1u << 9,
                                    .cmdline = physical(line), .mmap_addr = physical(map) };
    info.loader_name = physical(loader_name);
    for (unsigned i = 0; i < boot->memory_count; i++) {
        uint64_t start = boot->memory[i].start, end = start + boot->memory[i].size;
        if (start >= HIGHEST)
            continue;
        end = end < HIGHEST ? end : HIGHEST;
        if (start == 0)
            info.start.mem_lower = (uint32_t)(end >> 10);
        if (start == 1 << 20)
            info.start.mem_upper = (uint32_t)(((end > ours && start < ours ? ours : end) - start) >> 10);
        if (overlaps(start, end, ours, ours_end)) {
            add_map(start, ours, 1);
            add_map(ours, ours_end, 2);
            start = ours_end;
        }
        add_map(start, end, 1);
    }
}

bool payload_load(const struct boot_info *boot, struct payload *payload)
{
    const uint8_t *image = at(boot->modules[0].start);
    uint32_t size = boot->module_count ? boot->modules[0].end - boot->modules[0].start : 0;
    const struct header *h = size ? find_header(image, size) : NULL;

    if (!size)
        print("# payload: the loader brought no module\n");
    else if (!h)
        print("# payload: the module has no multiboot 1 header\n");
    else if (h->flags & HEADER_UNKNOWN)
        print("# payload: it requires multiboot features %x\n", h->flags & HEADER_UNKNOWN);
    if (!h || (h->flags & HEADER_UNKNOWN))
        return false;
    make_info(boot);
    payload->info = physical(&info);
    return h->flags & HEADER_ADDRESSES ? load_flat(boot, image, size, h, &payload->entry)
                                       : load_elf(boot, image, size, &payload->entry);
}
