/* SPDX-License-Identifier: MIT */
/* What images export, import and name. */
#include "kernel/image/pe.h"
#include "kernel/base/string.h"

#define EXPORT_HEADER 40
#define IMPORT_HEADER 20
#define NAME_MAX 4096u /* C++ names are long */
#define BY_ORDINAL (1ull << 63)
#define SYMBOL_SIZE 18
#define CLASS_EXTERNAL 2
#define CLASS_STATIC 3
#define TYPE_FUNCTION 0x20

static uint16_t u16(const uint8_t *p) { return (uint16_t)(p[0] | p[1] << 8); }
static uint32_t u32(const uint8_t *p) { return u16(p) | (uint32_t)u16(p + 2) << 16; }
static uint64_t u64(const uint8_t *p) { return u32(p) | (uint64_t)u32(p + 4) << 32; }

/* `count` elements inside the image; NULL if they are not. */
static const uint8_t *array(const struct pe *pe, const uint8_t *image, uint64_t rva, uint64_t count,
                            unsigned size)
{
    return rva <= pe->size && count <= (pe->size - rva) / size ? image + rva : NULL;
}

static const char *string(const struct pe *pe, const uint8_t *image, uint64_t rva)
{
    uint64_t left = rva < pe->size ? pe->size - rva : 0;
    for (uint64_t i = 0; i < left && i < NAME_MAX; i++)
        if (!image[rva + i])
            return (const char *)image + rva;
    return NULL;
}

/* --- Exports. --- */

struct exports {
    uint32_t base, addresses, names;
    const uint8_t *address, *name, *ordinal;
};

static bool open_exports(const struct pe *pe, const uint8_t *image, struct exports *e)
{
    const struct pe_directory *d = &pe->directories[PE_EXPORTS];
    const uint8_t *p = d->size >= EXPORT_HEADER ? array(pe, image, d->rva, 1, EXPORT_HEADER) : NULL;
    if (!p)
        return false;
    *e = (struct exports){ .base = u32(p + 16), .addresses = u32(p + 20), .names = u32(p + 24) };
    e->address = array(pe, image, u32(p + 28), e->addresses, 4);
    e->name = array(pe, image, u32(p + 32), e->names, 4);
    e->ordinal = array(pe, image, u32(p + 36), e->names, 2);
    return e->address && e->name && e->ordinal;
}

/* As strcmp, with the text at `rva`; a text that does not end inside the image comes first. */
static int compare(const struct pe *pe, const uint8_t *image, const char *name, uint32_t rva)
{
    const uint8_t *other = image + rva, *end = image + pe->size;
    for (; rva < pe->size && other < end; name++, other++)
        if ((uint8_t)*name != *other || !*name)
            return (uint8_t)*name - *other;
    return 1;
}

/* Names are sorted. The index into the addresses, or `addresses` if there is none. */
static uint32_t find_name(const struct pe *pe, const uint8_t *image, const struct exports *e,
                          const char *name)
{
    uint32_t low = 0, high = e->names;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        int order = compare(pe, image, name, u32(e->name + 4 * (size_t)middle));
        if (order == 0)
            return u16(e->ordinal + 2 * (size_t)middle);
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return e->addresses;
}

bool pe_export(const struct pe *pe, const uint8_t *image, const char *name, uint32_t ordinal,
               uint32_t *rva, const char **forward)
{
    struct exports e;
    const struct pe_directory *d = &pe->directories[PE_EXPORTS];
    *forward = NULL;
    if (!open_exports(pe, image, &e))
        return false;
    uint32_t index = name ? find_name(pe, image, &e, name) : ordinal - e.base;
    if (index >= e.addresses)
        return false;
    *rva = u32(e.address + 4 * (size_t)index);
    if (!*rva || *rva >= pe->size)
        return false;
    if (*rva >= d->rva && *rva - d->rva < d->size) {
        *forward = string(pe, image, *rva);
        return *forward;
    }
    return true;
}

bool pe_export_at(const struct pe *pe, const uint8_t *image, uint32_t n, const char **name,
                  uint32_t *rva)
{
    struct exports e;
    if (!open_exports(pe, image, &e) || n >= e.names)
        return false;
    uint32_t index = u16(e.ordinal + 2 * (size_t)n);
    *name = string(pe, image, u32(e.name + 4 * (size_t)n));
    if (!*name || index >= e.addresses)
        return false;
    *rva = u32(e.address + 4 * (size_t)index);
    return *rva < pe->size;
}

/* --- Imports. --- */

/* One entry of a library's list. */
static enum pe_step read_import(const struct pe *pe, const uint8_t *image, uint64_t names,
                                uint64_t slots, uint32_t index, struct pe_import *import)
{
    const uint8_t *entry = array(pe, image, names + 8 * (uint64_t)index, 1, 8);
    const uint8_t *slot = array(pe, image, slots + 8 * (uint64_t)index, 1, 8);
    uint64_t value = entry ? u64(entry) : 0;
    if (!entry || !slot)
        return PE_BROKEN;
    if (!value)
        return PE_END;
    import->slot = (uint32_t)(slot - image);
    import->ordinal = value & BY_ORDINAL ? value & 0xffff : 0;
    import->name = value & BY_ORDINAL ? NULL : string(pe, image, (value & 0x7fffffff) + 2);
    return import->name || (value & BY_ORDINAL) ? PE_FOUND : PE_BROKEN;
}

enum pe_step pe_next_import(const struct pe *pe, const uint8_t *image, struct pe_imports *at,
                            struct pe_import *import)
{
    const struct pe_directory *d = &pe->directories[PE_IMPORTS];
    for (; d->size; at->library++, at->index = 0) {
        uint64_t header = d->rva + (uint64_t)IMPORT_HEADER * at->library;
        const uint8_t *p = array(pe, image, header, 1, IMPORT_HEADER);
        if (!p)
            return PE_BROKEN;
        if (!u32(p + 12) || !u32(p + 16)) /* no name or no slots: the end */
            return PE_END;
        *import = (struct pe_import){ .library = string(pe, image, u32(p + 12)) };
        if (!import->library)
            return PE_BROKEN;
        uint32_t names = u32(p) ? u32(p) : u32(p + 16);
        enum pe_step step = read_import(pe, image, names, u32(p + 16), at->index, import);
        if (step == PE_BROKEN)
            return step;
        if (step == PE_END && at->index == 0) {
            at->library++;
            return PE_FOUND;
        }
        at->index++;
        if (step == PE_FOUND)
            return step;
    }
    return PE_END;
}

/* --- Symbols. --- */

/* Names of up to 8 characters stand in the entry, longer ones in the table of strings after it. */
static void copy_name(const uint8_t *entry, const uint8_t *strings, size_t room_there, char *name,
                      size_t capacity)
{
    uint64_t at = u32(entry + 4);
    const uint8_t *from = u32(entry) ? entry : strings + (at < room_there ? at : 0);
    size_t left = u32(entry) ? 8 : at < room_there ? room_there - at : 0, i = 0;
    for (; i + 1 < capacity && i < left && from[i] > ' ' && from[i] <= '~'; i++)
        name[i] = (char)from[i];
    name[i] = 0;
}

/* Functions in assembly have no type, so that other external names count too. */
static bool is_function(const uint8_t *entry)
{
    return entry[16] == CLASS_EXTERNAL ||
           (entry[16] == CLASS_STATIC && u16(entry + 14) == TYPE_FUNCTION);
}

bool pe_symbol(const struct pe *pe, const uint8_t *file, size_t size, uint32_t rva, char *name,
               size_t capacity, uint32_t *offset)
{
    const uint8_t *best = NULL;
    if (pe->symbol_table > size || pe->symbols > (size - pe->symbol_table) / SYMBOL_SIZE)
        return false;
    const uint8_t *table = file + pe->symbol_table;
    for (uint64_t i = 0; i < pe->symbols; i++) {
        const uint8_t *entry = table + i * SYMBOL_SIZE;
        uint16_t section = u16(entry + 12);
        i += entry[17]; /* what belongs to this one */
        if (!section || section > pe->sections || !is_function(entry))
            continue;
        uint32_t at = pe_section(pe, file, section - 1u).rva + u32(entry + 8);
        if (at <= rva && (!best || rva - at < *offset)) {
            best = entry;
            *offset = rva - at;
        }
    }
    if (best) {
        const uint8_t *strings = table + (uint64_t)pe->symbols * SYMBOL_SIZE;
        copy_name(best, strings, size - (size_t)(strings - file), name, capacity);
    }
    return best && *name;
}
