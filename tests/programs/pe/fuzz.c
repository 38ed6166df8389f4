/* SPDX-License-Identifier: MIT */
/* pe.c and pe_names.c on the host, built with sanitizers: fuzz SEED COUNT FILE... reads
 * COUNT mutated copies of each file as the kernel does, up to all imports, exports, symbols and
 * relocations. What reads or writes outside the file, or the image, ends the program.
 * tests/programs/fuzz-images does it with whole machines, far fewer. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "kernel/image/pe.h"

#define AREAS 40
#define STEPS_MAX 100000u /* imports and exports: an image of 2 GB may say it has millions */

struct area {
    size_t at, size;
};

struct file {
    const char *name;
    uint8_t *bytes;
    size_t size;
    struct area areas[AREAS];
    unsigned count;
};

static uint64_t state;

static uint32_t chance(uint32_t below)
{
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    return below ? (uint32_t)((state >> 16) % below) : 0;
}

static void *get(size_t size, bool zeroed)
{
    void *p = zeroed ? calloc(size, 1) : malloc(size);
    if (!p && size)
        fprintf(stderr, "no memory for %zu bytes\n", size), exit(2);
    return p;
}

/* --- Files, and where mutations hurt. --- */

static void add_area(struct file *f, uint64_t at, uint64_t size)
{
    if (f->count < AREAS && size && at + size <= f->size)
        f->areas[f->count++] = (struct area){ at, size };
}

static bool open_file(struct file *f, const char *name)
{
    struct pe pe;
    FILE *in = fopen(name, "rb");
    if (!in || fseek(in, 0, SEEK_END))
        return false;
    *f = (struct file){ .name = name, .size = (size_t)ftell(in) };
    rewind(in);
    f->bytes = get(f->size, false);
    bool read = fread(f->bytes, 1, f->size, in) == f->size;
    fclose(in);
    if (!read || pe_open(&pe, f->bytes, f->size))
        return false;
    add_area(f, 0, pe.headers);
    add_area(f, 0, 0x40);
    add_area(f, pe.section_table, 40u * pe.sections);
    for (unsigned i = 0; i < pe.sections; i++) {
        struct pe_section s = pe_section(&pe, f->bytes, i);
        for (unsigned d = 0; d < PE_DIRECTORIES; d++)
            if (pe.directories[d].rva >= s.rva && pe.directories[d].rva - s.rva < s.file_size)
                add_area(f, s.file_offset + (pe.directories[d].rva - s.rva),
                         pe.directories[d].size);
    }
    add_area(f, pe.symbol_table, 18ull * pe.symbols);
    return f->count > 3;
}

/* A copy of exactly its size, so that the byte after it is noticed. */
static uint8_t *mutate(const struct file *f, size_t *size)
{
    static const uint32_t edges[] = { 0,          1,          0xff,       0xffff,
                                      0x7fffffff, 0x80000000, 0xfffffff0, 0xffffffff };
    *size = chance(10) ? f->size : 1 + chance((uint32_t)f->size);
    uint8_t *copy = get(*size, false);
    memcpy(copy, f->bytes, *size);
    for (unsigned n = 1 + chance(5); n--;) {
        const struct area *a = &f->areas[chance(f->count)];
        uint64_t at = a->at + chance((uint32_t)a->size);
        uint32_t value = chance(2)   ? edges[chance(8)]
                         : chance(2) ? chance(0x200000)
                                     : chance(UINT32_MAX);
        unsigned width = 1u << chance(3);
        if (chance(2))
            at &= ~3ull;
        for (unsigned i = 0; i < width && at + i < *size; i++)
            copy[at + i] = (uint8_t)(value >> 8 * i);
    }
    return copy;
}

/* --- What the kernel does with one. --- */

static unsigned use(const char *text) { return text ? (unsigned)strlen(text) : 0; }

static unsigned look_at_names(const struct pe *pe, const uint8_t *image)
{
    struct pe_imports at = { 0 };
    struct pe_import import;
    const char *name, *forward;
    uint32_t rva;
    unsigned sum = 0;
    for (unsigned n = 0; n < STEPS_MAX && pe_next_import(pe, image, &at, &import) == PE_FOUND; n++)
        sum += use(import.library) + use(import.name) +
               (import.slot ? image[import.slot] + image[import.slot + 7] : 0);
    for (uint32_t n = 0; n < STEPS_MAX && pe_export_at(pe, image, n, &name, &rva); n++) {
        sum += use(name) + image[rva];
        if (n < 50 && pe_export(pe, image, name, 0, &rva, &forward))
            sum += forward ? use(forward) : image[rva];
    }
    for (uint32_t ordinal = 0; ordinal < 50; ordinal++)
        if (pe_export(pe, image, NULL, ordinal, &rva, &forward))
            sum += forward ? use(forward) : image[rva];
    return sum;
}

static bool read_image(const uint8_t *copy, size_t size)
{
    static volatile unsigned sink;
    struct pe pe, again;
    char name[80];
    uint32_t offset;
    if (pe_open(&pe, copy, size))
        return false;
    for (unsigned i = 0; i < pe.sections; i++)
        sink += pe_section(&pe, copy, i).size;
    for (unsigned n = 0; n < 4; n++)
        if (pe_symbol(&pe, copy, size, chance(pe.size), name, sizeof name, &offset))
            sink += use(name);
    uint8_t *image = get(pe.size, true);
    pe_lay_out(&pe, copy, image);
    pe_relocate(&pe, image, (uint64_t)(1 + chance(1000)) << 16);
    sink += look_at_names(&pe, image);
    if (!pe_open_image(&again, image, pe.size))
        sink += look_at_names(&again, image);
    free(image);
    return true;
}

int main(int argc, char *argv[])
{
    uint64_t seed = argc > 3 ? strtoull(argv[1], NULL, 0) : 0,
             count = argc > 3 ? strtoull(argv[2], NULL, 0) : 0;
    uint64_t opened = 0, all = 0;
    for (int i = 3; i < argc; i++) {
        struct file f;
        if (!open_file(&f, argv[i])) {
            fprintf(stderr, "%s: no image\n", argv[i]);
            return 2;
        }
        state = (seed + 1) * 0x9e3779b97f4a7c15ull;
        for (uint64_t n = 0; n < count; n++, all++) {
            size_t size;
            uint8_t *copy = mutate(&f, &size);
            opened += read_image(copy, size);
            free(copy);
        }
        free(f.bytes);
    }
    printf("%llu images, seed %llu: %llu opened\n", (unsigned long long)all,
           (unsigned long long)seed, (unsigned long long)opened);
    return all ? 0 : 2;
}
