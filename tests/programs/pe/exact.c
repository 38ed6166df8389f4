/* SPDX-License-Identifier: MIT */
/* pe.c and pe_names.c on the host: an image made by hand, whose tables end where the image
 * does, so that each edge is exact; tests/programs/programs.t builds it with sanitizers. Prints
 * what is wrong. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "kernel/image/pe.h"

#define SIZE 0x11000u
#define EXPORTS 0x100u
#define ADDRESSES 0x140u
#define NAMES 0x160u
#define ORDINALS 0x180u
#define TEXT 0x200u
#define IMPORTS 0x400u
#define LISTS 0x10480u
#define BASE 5u

static unsigned checks, wrong;

static void check(int line, const char *what, uint64_t found, uint64_t wanted)
{
    checks++;
    if (found != wanted)
        printf("line %d: %s: 0x%llx, want 0x%llx\n", line, what, (unsigned long long)found,
               (unsigned long long)wanted),
            wrong++;
}
#define IS(expression, wanted)                                                                     \
    check(__LINE__, #expression, (uint64_t)(expression), (uint64_t)(wanted))

static uint8_t *image;

static void put(uint32_t at, uint32_t value) { memcpy(image + at, &value, 4); }
static void put_16(uint32_t at, uint16_t value) { memcpy(image + at, &value, 2); }
static void put_text(uint32_t at, const char *text) { memcpy(image + at, text, strlen(text) + 1); }

static void begin(struct pe *pe)
{
    free(image);
    image = calloc(SIZE, 1);
    *pe = (struct pe){ .size = SIZE };
}

/* --- Exports: alpha, beta, which is the forwarder other.name, gamma, the image's last byte. --- */

static void make_exports(struct pe *pe)
{
    begin(pe);
    pe->directories[PE_EXPORTS] = (struct pe_directory){ EXPORTS, TEXT + 0x40 - EXPORTS };
    const uint32_t header[] = { BASE, 4, 3, ADDRESSES, NAMES, ORDINALS };
    memcpy(image + EXPORTS + 16, header, sizeof header);
    put(ADDRESSES, SIZE - 1);
    put(ADDRESSES + 4, 0x900);
    put(ADDRESSES + 8, TEXT + 0x30);
    put(ADDRESSES + 12, SIZE);
    put(ADDRESSES + 16, 0x900); /* of nobody */
    put(NAMES, TEXT);
    put(NAMES + 4, TEXT + 8);
    put(NAMES + 8, TEXT + 16);
    put_16(ORDINALS, 1);
    put_16(ORDINALS + 2, 2);
    put_16(ORDINALS + 4, 0);
    put_text(TEXT, "alpha");
    put_text(TEXT + 8, "beta");
    put_text(TEXT + 16, "gamma");
    put_text(TEXT + 0x30, "other.name");
}

static uint32_t rva;
static const char *forward, *name;

static bool exported(const struct pe *pe, const char *by, uint32_t ordinal)
{
    return pe_export(pe, image, by, ordinal, &rva, &forward);
}

static void exports(void)
{
    struct pe pe;
    make_exports(&pe);
    IS(exported(&pe, "alpha", 0) && rva == 0x900 && !forward, true);
    IS(exported(&pe, "gamma", 0) && rva == SIZE - 1 && !forward, true);
    IS(exported(&pe, "beta", 0) && !strcmp(forward, "other.name"), true);
    IS(exported(&pe, "alph", 0), false);
    IS(exported(&pe, "alphaa", 0), false);
    IS(exported(&pe, "delta", 0), false);
    IS(exported(&pe, "", 0), false);
    IS(exported(&pe, "zeta", 0), false);
    IS(exported(&pe, NULL, BASE) && rva == SIZE - 1, true);
    IS(exported(&pe, NULL, BASE + 1) && rva == 0x900, true);
    IS(exported(&pe, NULL, BASE + 3), false); /* beyond the image */
    IS(exported(&pe, NULL, BASE + 4), false);
    IS(exported(&pe, NULL, BASE - 1), false);
    put(ADDRESSES, 0);
    IS(exported(&pe, "gamma", 0), false);
    /* A forwarder lies in the directory, from its first byte to its last. */
    put(ADDRESSES, EXPORTS - 1);
    IS(exported(&pe, "gamma", 0) && !forward, true);
    put(ADDRESSES, EXPORTS);
    IS(exported(&pe, "gamma", 0) && forward, true);
    put(ADDRESSES, TEXT + 0x3f);
    IS(exported(&pe, "gamma", 0) && forward, true);
    put(ADDRESSES, TEXT + 0x40);
    IS(exported(&pe, "gamma", 0) && !forward, true);
    put(ADDRESSES + 8, SIZE - 1); /* without an end */
    pe.directories[PE_EXPORTS].size = SIZE - EXPORTS;
    image[SIZE - 1] = 'x';
    IS(exported(&pe, "beta", 0), false);
}

static void exports_in_turn(void)
{
    struct pe pe;
    make_exports(&pe);
    IS(pe_export_at(&pe, image, 0, &name, &rva) && !strcmp(name, "alpha") && rva == 0x900, true);
    IS(pe_export_at(&pe, image, 1, &name, &rva) && rva == TEXT + 0x30, true);
    IS(pe_export_at(&pe, image, 2, &name, &rva) && !strcmp(name, "gamma") && rva == SIZE - 1, true);
    IS(pe_export_at(&pe, image, 3, &name, &rva), false);
    put_16(ORDINALS, 3);
    IS(pe_export_at(&pe, image, 0, &name, &rva), false); /* beyond the image */
    put_16(ORDINALS, 4);
    IS(pe_export_at(&pe, image, 0, &name, &rva), false);
    put_16(ORDINALS, 1);
    put(NAMES, SIZE);
    IS(pe_export_at(&pe, image, 0, &name, &rva), false);
    put(NAMES, SIZE - 1);
    IS(pe_export_at(&pe, image, 0, &name, &rva) && !*name, true);
}

/* Tables may end where the image does, not one element later; the header too. */
static void edges(void)
{
    static const uint32_t of[] = { 28, 32, 36 }, sizes[] = { 4 * 4, 3 * 4, 3 * 2 },
                          from[] = { ADDRESSES, NAMES, ORDINALS };
    struct pe pe;
    for (unsigned i = 0; i < 3; i++) {
        make_exports(&pe);
        put(EXPORTS + of[i], SIZE - sizes[i]);
        memmove(image + SIZE - sizes[i], image + from[i], sizes[i]);
        put(EXPORTS + of[i], SIZE - sizes[i]);
        IS(exported(&pe, "alpha", 0) && rva == 0x900, true);
        put(EXPORTS + of[i], SIZE - sizes[i] + 1);
        IS(exported(&pe, NULL, BASE + 1), false);
    }
    make_exports(&pe);
    put(EXPORTS + 24, 0); /* no names: their table is nowhere, or at the very end */
    put(EXPORTS + 32, SIZE);
    IS(exported(&pe, NULL, BASE + 1), true);
    put(EXPORTS + 32, SIZE + 1);
    IS(exported(&pe, NULL, BASE + 1), false);
    make_exports(&pe);
    memmove(image + SIZE - 40, image + EXPORTS, 40);
    pe.directories[PE_EXPORTS] = (struct pe_directory){ SIZE - 40, 40 };
    IS(exported(&pe, NULL, BASE + 1), true);
    pe.directories[PE_EXPORTS].size = 39;
    IS(exported(&pe, NULL, BASE + 1), false);
    pe.directories[PE_EXPORTS] = (struct pe_directory){ SIZE - 39, 40 };
    IS(exported(&pe, NULL, BASE + 1), false);
}

/* A name that begins in the image's last bytes and has no end is smaller than any. */
static void names_at_the_end(void)
{
    struct pe pe;
    make_exports(&pe);
    put(NAMES + 8, SIZE - 5);
    memcpy(image + SIZE - 5, "gamma", 5);
    IS(exported(&pe, "gamma", 0), false);
    put(NAMES + 8, SIZE - 6);
    memcpy(image + SIZE - 6, "gamma", 6);
    IS(exported(&pe, "gamma", 0), true);
    put(NAMES + 8, SIZE);
    IS(exported(&pe, "gamma", 0), false);
    make_exports(&pe);
    memset(image + TEXT + 0x50, 'n', 4096 - 0x400);
    put(NAMES, TEXT + 0x50);
    IS(pe_export_at(&pe, image, 0, &name, &rva) && strlen(name) == 4096 - 0x400, true);
}

/* --- Imports: of "one" a name and ordinal 7, of "two" nothing. --- */

static void make_imports(struct pe *pe, uint32_t at)
{
    begin(pe);
    pe->directories[PE_IMPORTS] = (struct pe_directory){ at, 60 };
    put(at, LISTS);
    put(at + 12, TEXT);
    put(at + 16, LISTS + 0x40);
    put(at + 32, TEXT + 8);
    put(at + 36, LISTS + 0x80);
    put_text(TEXT, "one");
    put_text(TEXT + 8, "two");
    put(LISTS, TEXT + 16);
    put(LISTS + 8, 0x30007);
    put(LISTS + 12, 0x80000000);
    put_text(TEXT + 18, "first");
}

static struct pe_import found;
static enum pe_step steps(const struct pe *pe, unsigned n)
{
    struct pe_imports at = { 0 };
    enum pe_step step = PE_FOUND;
    while (n-- && step == PE_FOUND)
        step = pe_next_import(pe, image, &at, &found);
    return step;
}

static void imports(void)
{
    struct pe pe;
    make_imports(&pe, IMPORTS);
    IS(steps(&pe, 1), PE_FOUND);
    IS(!strcmp(found.library, "one") && !strcmp(found.name, "first") && !found.ordinal, true);
    IS(found.slot, LISTS + 0x40);
    IS(steps(&pe, 2), PE_FOUND);
    IS(!strcmp(found.library, "one") && !found.name, true);
    IS(found.ordinal, 7);
    IS(found.slot, LISTS + 0x48);
    IS(steps(&pe, 3), PE_FOUND);
    IS(!strcmp(found.library, "two") && !found.name && !found.slot, true);
    IS(steps(&pe, 4), PE_END);
    put(IMPORTS, 0); /* without a list of names the slots have them */
    put(LISTS + 0x40, TEXT + 16);
    IS(steps(&pe, 1) == PE_FOUND && !strcmp(found.name, "first"), true);
    IS(steps(&pe, 2) == PE_FOUND && !strcmp(found.library, "two"), true);
    put(IMPORTS + 16, 0);
    IS(steps(&pe, 1), PE_END);
    make_imports(&pe, IMPORTS);
    pe.directories[PE_IMPORTS].size = 0;
    IS(steps(&pe, 1), PE_END);
    make_imports(&pe, SIZE - 60); /* up to the image's last byte, and one further */
    IS(steps(&pe, 4), PE_END);
    pe.directories[PE_IMPORTS].rva = SIZE - 20;
    IS(steps(&pe, 1), PE_END);
    pe.directories[PE_IMPORTS].rva = SIZE - 19;
    IS(steps(&pe, 1), PE_BROKEN);
}

static void broken_imports(void)
{
    static const struct {
        uint32_t at, value;
    } cases[] = { { IMPORTS + 12, SIZE },
                  { LISTS, SIZE - 2 },
                  { IMPORTS, SIZE - 7 },
                  { IMPORTS + 16, SIZE - 7 } };
    struct pe pe;
    for (unsigned i = 0; i < 4; i++) {
        make_imports(&pe, IMPORTS);
        put(cases[i].at, cases[i].value);
        IS(steps(&pe, 1), PE_BROKEN);
    }
    make_imports(&pe, IMPORTS);
    put(IMPORTS + 16, SIZE - 8); /* one slot is there, a second is not */
    IS(steps(&pe, 1) == PE_FOUND && found.slot == SIZE - 8, true);
    IS(steps(&pe, 2), PE_BROKEN);
    make_imports(&pe, IMPORTS);
    put(IMPORTS, SIZE - 8);
    put(SIZE - 8, TEXT + 16);
    IS(steps(&pe, 1), PE_FOUND);
    IS(steps(&pe, 2), PE_BROKEN);
}

/* --- Symbols: 18 bytes each; section, type and class decide. --- */

#define SYMBOLS 0x600u
#define STRINGS (SYMBOLS + 18 * 6)

static void symbol(unsigned i, const char *text, uint32_t value, uint16_t section, uint16_t type,
                   uint8_t class)
{
    uint32_t at = SYMBOLS + 18 * i;
    strncpy((char *)image + at, text, 8);
    put(at + 8, value);
    put_16(at + 12, section);
    put_16(at + 14, type);
    image[at + 16] = class;
}

static void make_symbols(struct pe *pe)
{
    begin(pe);
    pe->section_table = 0x80;
    pe->sections = 2;
    put(0x80 + 12, 0x1000);
    put(0x80 + 8, 0x1000);
    put(0x80 + 40 + 12, 0x3000);
    put(0x80 + 40 + 8, 0x1000);
    pe->symbol_table = SYMBOLS;
    pe->symbols = 6;
    symbol(0, "eight_~8", 0x41, 1, 0x20, 3);
    symbol(1, "data", 0x48, 1, 0, 3);
    symbol(2, "outer", 0x50, 1, 0, 2);
    image[SYMBOLS + 18 * 2 + 17] = 1; /* the next one belongs to it */
    symbol(3, "aux", 0x58, 1, 0x20, 2);
    symbol(4, "", 0x60, 2, 0x20, 2);
    put(SYMBOLS + 18 * 4 + 4, 4);
    symbol(5, "third", 0x68, 3, 0x20, 2);
    put_text(STRINGS + 4, "long_name_of_it");
}

static char text[32];
static uint32_t offset;
static const char *named(const struct pe *pe, uint32_t at, size_t size)
{
    offset = 99;
    memset(text, '#', sizeof text);
    return pe_symbol(pe, image, size, at, text, sizeof text, &offset) ? text : "none";
}

static void symbols(void)
{
    struct pe pe;
    make_symbols(&pe);
    IS(strcmp(named(&pe, 0x1040, SIZE), "none"), 0);
    IS(strcmp(named(&pe, 0x1041, SIZE), "eight_~8") || offset, 0);
    IS(strcmp(named(&pe, 0x104f, SIZE), "eight_~8") || offset != 14, 0);
    IS(strcmp(named(&pe, 0x1050, SIZE), "outer") || offset, 0);
    IS(strcmp(named(&pe, 0x305f, SIZE), "outer") || offset != 0x200f, 0);
    IS(strcmp(named(&pe, 0x3060, SIZE), "long_name_of_it") || offset, 0);
    IS(strcmp(named(&pe, 0x9000, SIZE), "long_name_of_it"), 0);
    IS(pe_symbol(&pe, image, SIZE, 0x3060, text, 5, &offset) && !strcmp(text, "long"), true);
    image[STRINGS + 8] = ' '; /* a name ends where no letter follows */
    IS(strcmp(named(&pe, 0x3060, SIZE), "long"), 0);
    image[STRINGS + 8] = 0x7f;
    IS(strcmp(named(&pe, 0x3060, SIZE), "long"), 0);
    IS(strcmp(named(&pe, 0x3060, STRINGS + 7), "lon"), 0); /* where the file ends */
    IS(strcmp(named(&pe, 0x3060, STRINGS + 4), "none"), 0);
    IS(strcmp(named(&pe, 0x1050, STRINGS), "outer"), 0);
    IS(strcmp(named(&pe, 0x1050, STRINGS - 1), "none"), 0);
    IS(strcmp(named(&pe, 0x1050, SYMBOLS - 1), "none"), 0);
    symbol(0, "two", 0x50, 1, 0x20, 3); /* of two at one place the first */
    IS(strcmp(named(&pe, 0x1050, SIZE), "two"), 0);
    symbol(2, "undef", 0x50, 0, 0, 2);
    IS(strcmp(named(&pe, 0x1058, SIZE), "two"), 0);
    symbol(6, "beyond", 0x54, 1, 0, 2);
    IS(strcmp(named(&pe, 0x1058, SIZE), "two"), 0);
}

/* --- Headers: one section; 32-bit sums that wrap are no small ones. --- */

#define OPTIONAL 0x98u
#define DIRECTORY (OPTIONAL + 112)
#define SECTION (DIRECTORY + 8 * PE_DIRECTORIES)

static void make_headers(struct pe *pe)
{
    begin(pe);
    put_16(0, 0x5a4d);
    put(0x3c, 0x80);
    put(0x80, 0x4550);
    put_16(0x84, 0x8664);
    put_16(0x86, 1);
    put_16(0x94, SECTION - OPTIONAL);
    put_16(0x96, PE_EXECUTABLE);
    put_16(OPTIONAL, 0x20b);
    put(OPTIONAL + 32, 0x1000);
    put(OPTIONAL + 36, 0x200);
    put(OPTIONAL + 56, SIZE);
    put(OPTIONAL + 60, 0x400);
    put_16(OPTIONAL + 68, PE_CONSOLE);
    put(OPTIONAL + 108, PE_DIRECTORIES);
    put(SECTION + 12, 0x1000);
    put(SECTION + 8, 0x1000);
}

/* What is wrong where a directory or the section has this address and size; "": nothing. */
static const char *opened(uint32_t at, uint32_t begins, uint32_t size)
{
    struct pe pe;
    make_headers(&pe);
    put(at + (at == SECTION ? 12 : 0), begins);
    put(at + (at == SECTION ? 8 : 4), size);
    const char *fault = pe_open(&pe, image, SIZE);
    return fault ? fault : "";
}

static void headers(void)
{
    const char *const outside = "has a directory outside its image";
    static const unsigned used[] = { PE_EXPORTS, PE_IMPORTS, PE_EXCEPTIONS, PE_RELOCATIONS,
                                     PE_TLS };
    for (unsigned i = 0; i < 5; i++) {
        uint32_t at = DIRECTORY + 8 * used[i];
        IS(strcmp(opened(at, SIZE - 8, 8), ""), 0);
        IS(strcmp(opened(at, SIZE - 7, 8), outside), 0);
        IS(strcmp(opened(at, SIZE + 8, 0), ""), 0); /* there is none */
        IS(strcmp(opened(at, 0x1000, ~0x1000u + 0x801), outside), 0);
        IS(strcmp(opened(at, ~0u - 0xfff, 0x2000), outside), 0);
    }
    IS(strcmp(opened(SECTION, SIZE - 0x1000, 0x1000), ""), 0);
    IS(strcmp(opened(SECTION, SIZE - 0x1000, 0x1001), "has a section outside its image"), 0);
    IS(strcmp(opened(SECTION, ~0u - 0xfff, 0x2000), "has a section outside its image"), 0);
}

int main(void)
{
    headers();
    exports();
    exports_in_turn();
    edges();
    names_at_the_end();
    imports();
    broken_imports();
    symbols();
    free(image);
    printf("%u checks, %u wrong\n", checks, wrong);
    return wrong != 0;
}
