/* SPDX-License-Identifier: MIT */
/* Loads a Linux kernel by its 64-bit boot protocol: boot parameters, command line, page tables and
 * GDT in a block of low memory, the kernel at its preferred address, or higher; the initrd stays
 * where its module is. Source: Linux documentation, "The Linux/x86 Boot Protocol", "64-bit Boot
 * Protocol", and "Zero Page". */
#include "boot/payload.h"
#include "boot/space.h"
#include "kernel/base/boot_info.h"
#include "kernel/base/layout.h"
#include "kernel/base/print.h"
#include "kernel/base/string.h"

/* Offsets in the file and in the boot parameters: the header is copied to the same offset. */
enum {
    RSDP = 0x70,
    E820_COUNT = 0x1e8,
    SETUP_SECTORS = 0x1f1,
    HEADER_END = 0x201,
    MAGIC = 0x202,
    VERSION = 0x206,
    LOADER = 0x210,
    INITRD = 0x218,
    INITRD_SIZE = 0x21c,
    LINE = 0x228,
    INITRD_MAX = 0x22c,
    ALIGNMENT = 0x230,
    RELOCATABLE = 0x234,
    FEATURES = 0x236,
    LINE_SIZE = 0x238,
    PREFERRED = 0x258,
    MEMORY_SIZE = 0x260,
    HEADER_SIZE = 0x268,
    E820 = 0x2d0
};
#define MAPPED (1ul << 32)       /* by the tables that it starts on */
#define HEADER_MAGIC 0x53726448u /* HdrS */
#define VERSION_64 0x20c
#define FEATURE_64 1u /* the 64-bit entry, 512 bytes after the start */
#define ENTRY_64 0x200
#define LOADER_UNKNOWN 0xff
#define LARGE_PAGE (2ul << 20)

/* The descriptors that the protocol wants at selectors 10h and 18h. */
#define LINUX_CODE 0x00af9b000000ffff
#define LINUX_DATA 0x00cf93000000ffff

/* What the kernel is given in low memory, at BLOCK. */
struct block {
    uint8_t parameters[PAGE_SIZE];
    char line[PAGE_SIZE];
    uint64_t pml4[512], pdpt[512], dirs[4][512];
    uint64_t gdt[4];
    uint8_t rsdp[64];
} __attribute__((packed, aligned(PAGE_SIZE)));
#define BLOCK 0x10000ul
#define AT(member) (BLOCK + offsetof(struct block, member))

static uint32_t word(const uint8_t *at)
{
    uint32_t v;
    memcpy(&v, at, sizeof v);
    return v;
}

static void put_dword(uint8_t *at, uint32_t v) { memcpy(at, &v, sizeof v); }

bool linux_is(const struct boot_info *boot)
{
    const struct boot_module *m = &boot->modules[0];
    return m->end - m->start > HEADER_SIZE && word(space_at(m->start) + MAGIC) == HEADER_MAGIC;
}

/* What follows the first word, which is the file's name. */
static const char *behind_name(const char *line)
{
    while (*line && *line != ' ')
        line++;
    return *line ? line + 1 : line;
}

static void make_tables(struct block *b)
{
    for (unsigned i = 0; i < 4 * 512; i++)
        b->dirs[i / 512][i % 512] = i * LARGE_PAGE | 0x83;
    for (unsigned i = 0; i < 4; i++)
        b->pdpt[i] = (AT(dirs) + i * PAGE_SIZE) | 3;
    b->pml4[0] = AT(pdpt) | 3;
    b->gdt[2] = LINUX_CODE;
    b->gdt[3] = LINUX_DATA;
}

static void make_map(uint8_t *parameters)
{
    struct space_range r;
    unsigned n;
    for (n = 0; n < 128 && space_range(n, &r); n++) {
        uint64_t size = r.end - r.start;
        memcpy(parameters + E820 + 20 * n, &r.start, 8);
        memcpy(parameters + E820 + 20 * n + 8, &size, 8);
        put_dword(parameters + E820 + 20 * n + 16, r.type);
    }
    parameters[E820_COUNT] = (uint8_t)n;
}

static void make_parameters(const struct boot_info *boot, const uint8_t *image, struct block *b)
{
    uint8_t *p = b->parameters;
    unsigned rest = image[HEADER_END] < E820 - MAGIC ? image[HEADER_END] : E820 - MAGIC;
    memcpy(p + SETUP_SECTORS, image + SETUP_SECTORS, MAGIC - SETUP_SECTORS + rest);
    p[LOADER] = LOADER_UNKNOWN;
    put_dword(p + LINE, (uint32_t)AT(line));
    put_dword(p + INITRD, boot->module_count > 1 ? boot->modules[1].start : 0);
    put_dword(p + INITRD_SIZE,
              boot->module_count > 1 ? boot->modules[1].end - boot->modules[1].start : 0);
    memcpy(b->line, behind_name(boot->modules[0].line), strlen(behind_name(boot->modules[0].line)));
    if (boot->rsdp_given) {
        memcpy(b->rsdp, boot->rsdp, sizeof boot->rsdp);
        put_dword(p + RSDP, (uint32_t)AT(rsdp));
    }
    make_map(p);
}

/* Where the kernel goes; 0, after a message: there is no memory for it. */
static uint64_t find_place(const struct boot_info *boot, const uint8_t *image)
{
    uint64_t wanted, align = word(image + ALIGNMENT), size = word(image + MEMORY_SIZE);
    struct space_range r;
    memcpy(&wanted, image + PREFERRED, sizeof wanted);
    for (unsigned n = 0; space_range(n, &r) && align && !(align & (align - 1)); n++) {
        uint64_t end = r.end, from = r.start > wanted ? r.start : wanted;
        for (unsigned i = 0; i < boot->module_count; i++)
            end = boot->modules[i].start >= r.start && boot->modules[i].start < end
                      ? boot->modules[i].start
                      : end;
        from = image[RELOCATABLE] ? (from + align - 1) & ~(align - 1) : wanted;
        if (r.type == BOOT_RAM && end <= MAPPED && from >= r.start && from < end &&
            end - from >= size)
            return from;
    }
    print("# payload: Linux wants %lu MiB from %lx on, where so much memory is not free\n",
          size >> 20, wanted);
    return 0;
}

bool linux_load(const struct boot_info *boot, struct virt_payload *payload)
{
    const struct boot_module *m = &boot->modules[0];
    const uint8_t *image = space_at(m->start);
    struct block *b = (struct block *)space_at(BLOCK);
    uint32_t size = m->end - m->start,
             before = ((image[SETUP_SECTORS] ? image[SETUP_SECTORS] : 4u) + 1) * 512;
    if ((word(image + VERSION) & 0xffff) < VERSION_64 || !(word(image + FEATURES) & FEATURE_64)) {
        print("# payload: this Linux has no 64-bit entry\n");
        return false;
    }
    if (before + ENTRY_64 >= size || word(image + MEMORY_SIZE) < size - before) {
        print("# payload: this Linux is shorter than its header says\n");
        return false;
    }
    if (strlen(behind_name(m->line)) > word(image + LINE_SIZE)) {
        print("# payload: this Linux takes a command line of %u bytes\n", word(image + LINE_SIZE));
        return false;
    }
    uint64_t to = find_place(boot, image);
    if (!to || !space_place(boot, b, 0, BLOCK, sizeof *b, 0) ||
        !space_place(boot, image + before, size - before, to, word(image + MEMORY_SIZE), 0))
        return false;
    make_tables(b);
    make_parameters(boot, image, b);
    payload->entry = to + ENTRY_64;
    payload->info = BLOCK;
    payload->tables = AT(pml4);
    payload->gdt = AT(gdt);
    payload->gdt_limit = sizeof b->gdt - 1;
    return true;
}
