/* SPDX-License-Identifier: MIT */
/* pe.c and pe_names.c on the host, built with sanitizers: fuzz SEED COUNT FILE... reads
 * COUNT mutated copies of each file as the kernel does, up to all imports, exports, symbols and
 * relocations. What reads or writes outside the file, or the image, ends the program. fuzz SEED
 * COUNT to PREFIX FILE writes the copies, PREFIX and a number, for tests/programs/fuzz-images. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "kernel/image/pe.h"
#include "tests/guests/fuzz/fuzz.h"

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

/* Of each tenth, random bytes for code. */
static void mutate_code(const struct file *f, uint8_t *copy)
{
    struct pe pe;
    pe_open(&pe, f->bytes, f->size);
    for (unsigned i = 0; i < pe.sections; i++) {
        struct pe_section s = pe_section(&pe, f->bytes, i);
        for (uint32_t n = 0; s.executable && n < s.file_size; n++)
            copy[s.file_offset + n] = (uint8_t)fuzz_bits();
    }
}

/* A copy of exactly its size, so that the byte after it is noticed. */
static uint8_t *mutate(const struct file *f, size_t *size)
{
    *size = fuzz_below(10) ? f->size : 1 + fuzz_below(f->size);
    uint8_t *copy = get(*size, false);
    memcpy(copy, f->bytes, *size);
    if (fuzz_case % 10 == 0 && *size == f->size) {
        mutate_code(f, copy);
        return copy;
    }
    for (uint64_t n = 1 + fuzz_below(5); n--;) {
        const struct area *a = &f->areas[fuzz_below(f->count)];
        uint64_t at = a->at + fuzz_below(a->size), value = fuzz_edge();
        uint64_t width = 1ul << fuzz_below(3);
        if (fuzz_below(2))
            at &= ~3ul;
        for (uint64_t i = 0; i < width && at + i < *size; i++)
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
        if (pe_symbol(&pe, copy, size, (uint32_t)fuzz_below(pe.size), name, sizeof name, &offset))
            sink += use(name);
    uint8_t *image = get(pe.size, true);
    pe_lay_out(&pe, copy, image);
    pe_relocate(&pe, image, (1 + fuzz_below(1000)) << 16);
    sink += look_at_names(&pe, image);
    if (!pe_open_image(&again, image, pe.size))
        sink += look_at_names(&again, image);
    free(image);
    return true;
}

static void write_image(const char *prefix, const uint8_t *copy, size_t size)
{
    char name[200];
    snprintf(name, sizeof name, "%s%lu", prefix, fuzz_case + 1);
    FILE *out = fopen(name, "wb");
    if (!out || fwrite(copy, 1, size, out) != size || fclose(out))
        perror(name), exit(2);
}

int main(int argc, char *argv[])
{
    bool writes = argc > 4 && !strcmp(argv[3], "to");
    uint64_t opened = 0, all = 0;
    for (int i = writes ? 5 : 3; i < argc; i++) {
        struct file f;
        size_t size;
        uint64_t count = fuzz_begin(argc, argv, 0);
        if (!open_file(&f, argv[i])) {
            fprintf(stderr, "%s: no image\n", argv[i]);
            return 2;
        }
        for (fuzz_case = 0; fuzz_case < count; fuzz_case++, all++) {
            uint8_t *copy = mutate(&f, &size);
            if (writes)
                write_image(argv[4], copy, size);
            else
                opened += read_image(copy, size);
            free(copy);
        }
        free(f.bytes);
    }
    printf("%lu images, seed %s: %lu opened\n", all, argc > 1 ? argv[1] : "", opened);
    return all ? 0 : 2;
}
