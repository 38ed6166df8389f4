/* SPDX-License-Identifier: MIT */
/* Headers, layout, relocations. Offsets are 32 bits in the format and 64 in every sum here. */
#include "kernel/image/pe.h"

#define DOS_MAGIC 0x5a4du
#define DOS_PE_OFFSET 0x3c
#define PE_MAGIC 0x4550u
#define MACHINE_AMD64 0x8664
#define PE32 0x10b
#define PE32_PLUS 0x20b
#define FILE_HEADER 24      /* signature and COFF header */
#define OPTIONAL_HEADER 112 /* up to the directories */
#define SECTION_HEADER 40
#define SECTIONS_MAX 96
#define BASE_ALIGNMENT 0x10000u
#define CLR_DIRECTORY 14
#define SECTION_WRITE 0x80000000u
#define SECTION_EXECUTE 0x20000000u
#define RELOCATION_NONE 0
#define RELOCATION_64 10

#define FOR_X64 ": build it for x86-64"
#define NET "is a .NET program: only native ones run here, built for x86-64"
#define NOT_PE "is not a Windows program: give an .exe, a .dll or a .sys, or a source"
#define TRUNCATED "is truncated: copy it again; "

static uint16_t u16(const uint8_t *p) { return (uint16_t)(p[0] | p[1] << 8); }
static uint32_t u32(const uint8_t *p) { return u16(p) | (uint32_t)u16(p + 2) << 16; }
static uint64_t u64(const uint8_t *p) { return u32(p) | (uint64_t)u32(p + 4) << 32; }

static uint64_t pages_up(uint64_t size) { return (size + PE_PAGE - 1) & ~(uint64_t)(PE_PAGE - 1); }
static bool power_of_two(uint32_t n) { return n && !(n & (n - 1)); }

/* A .NET program for any processor has the headers of one for 32-bit x86, and .NET's directory. */
static bool is_net_32(const uint8_t *optional, uint64_t size)
{
    const unsigned directory = 96 + 8 * CLR_DIRECTORY;
    return size >= directory + 8 && u16(optional) == PE32 && u32(optional + directory + 4);
}

static const char *machine_fault(uint16_t machine, const uint8_t *optional, uint64_t size)
{
    switch (machine) {
    case MACHINE_AMD64: return NULL;
    case 0x14c: return is_net_32(optional, size) ? NET : "is for 32-bit x86" FOR_X64;
    case 0xaa64: return "is for ARM64" FOR_X64;
    default: return "is for another processor" FOR_X64;
    }
}

static const char *read_directories(struct pe *pe, const uint8_t *optional, uint16_t size)
{
    uint32_t count = u32(optional + 108);
    if (count > PE_DIRECTORIES)
        count = PE_DIRECTORIES;
    if (OPTIONAL_HEADER + 8 * count > size)
        return "has more directories than its header holds";
    for (uint32_t i = 0; i < count; i++)
        pe->directories[i] = (struct pe_directory){ u32(optional + OPTIONAL_HEADER + 8 * i),
                                                    u32(optional + OPTIONAL_HEADER + 8 * i + 4) };
    static const uint8_t used[] = { PE_EXPORTS, PE_IMPORTS, PE_EXCEPTIONS, PE_RELOCATIONS, PE_TLS };
    for (unsigned i = 0; i < sizeof used; i++) {
        const struct pe_directory *d = &pe->directories[used[i]];
        if (d->size && (uint64_t)d->rva + d->size > pe->size)
            return "has a directory outside its image";
    }
    return pe->directories[CLR_DIRECTORY].size ? NET : NULL;
}

static const char *read_optional(struct pe *pe, const uint8_t *optional, uint16_t size)
{
    if (size < OPTIONAL_HEADER || u16(optional) != PE32_PLUS)
        return "is not of format PE32+";
    uint32_t alignment = u32(optional + 32), file_alignment = u32(optional + 36);
    pe->entry = u32(optional + 16);
    pe->base = u64(optional + 24);
    pe->size = u32(optional + 56);
    pe->headers = u32(optional + 60);
    pe->checksum = u32(optional + 64);
    pe->subsystem = u16(optional + 68);
    pe->stack_reserve = u64(optional + 72);
    pe->stack_commit = u64(optional + 80);
    pe->packed = alignment < PE_PAGE;
    if (!power_of_two(alignment) || (pe->packed && pe->subsystem != PE_NATIVE))
        return "has sections that are not on pages of their own";
    if (!power_of_two(file_alignment) || file_alignment > alignment)
        return "has a FileAlignment that is no power of two, or above SectionAlignment";
    if (pe->base % BASE_ALIGNMENT)
        return "has a base address that is no multiple of 64 KB";
    if (!pe->size)
        return "is damaged: its SizeOfImage is 0";
    if (pe->size > PE_SIZE_MAX)
        return "needs more than 2 GB for its image, which is the most on Windows";
    pe->size = (uint32_t)pages_up(pe->size);
    if (pe->entry >= pe->size)
        return "begins outside its image";
    return read_directories(pe, optional, size);
}

struct pe_section pe_section(const struct pe *pe, const uint8_t *file, unsigned i)
{
    const uint8_t *p = file + pe->section_table + (size_t)i * SECTION_HEADER;
    uint32_t memory = u32(p + 8), in_file = u32(p + 16), flags = u32(p + 36);
    struct pe_section section = { .rva = u32(p + 12), .file_offset = u32(p + 20) };
    uint64_t size = memory ? memory : in_file;
    size = pe->packed ? size : pages_up(size);
    section.size = size <= PE_SIZE_MAX ? (uint32_t)size : UINT32_MAX;
    section.file_size = in_file < section.size ? in_file : section.size;
    section.writable = flags & SECTION_WRITE;
    section.executable = flags & SECTION_EXECUTE;
    return section;
}

/* Sections lie after the headers and after each other, in the image and, if it is a file, in the
 * file. */
static const char *check_sections(const struct pe *pe, const uint8_t *file, uint64_t file_size)
{
    uint64_t end = pe->packed ? pe->headers : pages_up(pe->headers);
    for (unsigned i = 0; i < pe->sections; i++) {
        struct pe_section s = pe_section(pe, file, i);
        if ((s.rva % PE_PAGE && !pe->packed) || s.rva < end)
            return "has sections that overlap or are not on pages";
        end = (uint64_t)s.rva + s.size;
        if (end > pe->size)
            return "has a section outside its image";
        if (s.file_size && (uint64_t)s.file_offset + s.file_size > file_size)
            return TRUNCATED "a section leaves the file";
    }
    return NULL;
}

static const char *read_headers(struct pe *pe, const uint8_t *file, uint64_t size)
{
    *pe = (struct pe){ 0 };
    if (size < DOS_PE_OFFSET + 4 || u16(file) != DOS_MAGIC)
        return NOT_PE;
    uint64_t at = u32(file + DOS_PE_OFFSET);
    if (at + FILE_HEADER + OPTIONAL_HEADER > size || at % 4 || u32(file + at) != PE_MAGIC)
        return NOT_PE;
    const uint8_t *coff = file + at + 4;
    const char *wrong = machine_fault(u16(coff), coff + 20, size - at - FILE_HEADER);
    if (wrong)
        return wrong;
    uint16_t optional_size = u16(coff + 16);
    pe->sections = u16(coff + 2);
    pe->time = u32(coff + 4);
    pe->symbol_table = u32(coff + 8);
    pe->symbols = u32(coff + 12);
    pe->flags = u16(coff + 18);
    uint64_t table = at + FILE_HEADER + optional_size;
    if (table + (uint64_t)pe->sections * SECTION_HEADER > size)
        return TRUNCATED "its headers leave the file";
    pe->section_table = (uint32_t)table;
    wrong = read_optional(pe, file + at + FILE_HEADER, optional_size);
    if (wrong)
        return wrong;
    if (!(pe->flags & PE_EXECUTABLE))
        return "is marked as not executable";
    if (!pe->sections || pe->sections > SECTIONS_MAX)
        return "has no sections, or more than 96";
    if (table + (uint64_t)pe->sections * SECTION_HEADER > pe->headers || pe->headers > size ||
        pe->headers > pe->size)
        return "is damaged: its SizeOfHeaders is wrong";
    return NULL;
}

const char *pe_open(struct pe *pe, const uint8_t *file, size_t size)
{
    const char *wrong = read_headers(pe, file, size);
    return wrong ? wrong : check_sections(pe, file, size);
}

const char *pe_open_image(struct pe *pe, const uint8_t *image, size_t size)
{
    const char *wrong = read_headers(pe, image, size);
    if (!wrong && pe->size > size)
        wrong = "is larger in its headers than in memory";
    return wrong ? wrong : check_sections(pe, image, UINT64_MAX);
}

void pe_lay_out(const struct pe *pe, const uint8_t *file, uint8_t *image)
{
    __builtin_memcpy(image, file, pe->headers);
    for (unsigned i = 0; i < pe->sections; i++) {
        struct pe_section s = pe_section(pe, file, i);
        __builtin_memcpy(image + s.rva, file + s.file_offset, s.file_size);
    }
}

static const char *relocate_block(const struct pe *pe, uint8_t *image, uint32_t block,
                                  uint32_t size, uint64_t delta)
{
    uint64_t page = u32(image + block);
    for (uint32_t i = 8; i + 2 <= size; i += 2) {
        uint16_t entry = u16(image + block + i);
        uint64_t at = page + (entry & 0xfff);
        if (entry >> 12 == RELOCATION_NONE)
            continue;
        if (entry >> 12 != RELOCATION_64)
            return "has relocations of a kind that 64-bit images do not have";
        if (at + 8 > pe->size)
            return "has relocations outside its image";
        uint64_t value = u64(image + at) + delta;
        __builtin_memcpy(image + at, &value, sizeof value);
    }
    return NULL;
}

const char *pe_relocate(const struct pe *pe, uint8_t *image, uint64_t delta)
{
    const struct pe_directory *d = &pe->directories[PE_RELOCATIONS];
    const char *wrong = NULL;
    if (delta && (pe->flags & PE_NO_RELOCATIONS))
        return "cannot be moved: it has no relocations, and its place is taken";
    for (uint32_t at = 0; !wrong && delta && at + 8 <= d->size;) {
        uint32_t size = u32(image + d->rva + at + 4);
        if (size < 8 || size > d->size - at)
            return "is damaged: a block of its relocations has a wrong size";
        wrong = relocate_block(pe, image, d->rva + at, size, delta);
        at += size;
    }
    return wrong;
}

/* Offsets in IMAGE_LOAD_CONFIG_DIRECTORY64, and what compilers put there. */
#define COOKIE_AT 0x58
#define DEFAULT_COOKIE 0x2b992ddfa232ul

uint32_t pe_cookie(const struct pe *pe, const uint8_t *image, uint64_t base)
{
    const uint32_t at = pe->directories[PE_LOAD_CONFIG].rva;
    if (!at || at > pe->size || pe->size - at < COOKIE_AT + 8 || u32(image + at) < COOKIE_AT + 8)
        return 0;
    const uint64_t cookie = u64(image + at + COOKIE_AT) - base;
    return cookie <= pe->size - 8 && u64(image + cookie) == DEFAULT_COOKIE ? (uint32_t)cookie : 0;
}
