/* SPDX-License-Identifier: MIT */
/* Windows executable images (PE32+), read without trust: every offset, size, count and string is
 * checked against the file or the image before use. Pure: the kernel, ring 3's loader and a fuzz
 * test on the host share this. Source: Microsoft's "PE Format". */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PE_PAGE 4096u
#define PE_SIZE_MAX (2u << 30) /* of an image in memory; Windows has no larger ones */

enum pe_directory_index {
    PE_EXPORTS = 0,
    PE_IMPORTS = 1,
    PE_EXCEPTIONS = 3,
    PE_RELOCATIONS = 5,
    PE_TLS = 9,
    PE_LOAD_CONFIG = 10,
    PE_DIRECTORIES = 16
};

enum { PE_NATIVE = 1, PE_WINDOW = 2, PE_CONSOLE = 3 };              /* subsystem */
enum { PE_NO_RELOCATIONS = 1, PE_EXECUTABLE = 2, PE_DLL = 0x2000 }; /* flags */

struct pe_directory {
    uint32_t rva, size;
};

struct pe {
    uint64_t base;          /* where it wants to be; a multiple of 64 KB */
    uint32_t size;          /* in memory: whole pages */
    uint32_t headers;       /* bytes at its beginning that are not in a section */
    uint32_t entry;         /* RVA; 0: none */
    uint32_t section_table; /* where it is, in file and image */
    uint16_t sections, subsystem, flags;
    bool packed; /* sections are not on pages of their own: SectionAlignment is below a page */
    uint32_t symbol_table, symbols; /* COFF's, in the file; 0 symbols: none */
    uint32_t time, checksum;        /* by which debuggers know it again */
    uint64_t stack_reserve, stack_commit;
    struct pe_directory directories[PE_DIRECTORIES];
};

struct pe_section {
    uint32_t rva, size;              /* in memory; whole pages, unless the image is packed */
    uint32_t file_offset, file_size; /* what is not in the file is zero */
    bool writable, executable;
};

/* Reads and checks the headers of a file, or of an image that is laid out. NULL, or what is wrong
 * with it: text that can follow its name. */
const char *pe_open(struct pe *pe, const uint8_t *file, size_t size);
const char *pe_open_image(struct pe *pe, const uint8_t *image, size_t size);
struct pe_section pe_section(const struct pe *pe, const uint8_t *file, unsigned i);

/* Copies headers and sections to where they belong in an image of pe->size zeroed bytes. */
void pe_lay_out(const struct pe *pe, const uint8_t *file, uint8_t *image);
/* Adds `delta` to every address that the relocations name. NULL, or what is wrong. */
const char *pe_relocate(const struct pe *pe, uint8_t *image, uint64_t delta);

/* Where the load configuration has the security cookie, if it is still the compiler's: the loader
 * sets it. RVA, or 0: none. `base`: where the image is. */
uint32_t pe_cookie(const struct pe *pe, const uint8_t *image, uint64_t base);

/* What an image exports under a name, or if name is NULL under an ordinal. False: nothing.
 * *forward: NULL, or "library.name" where the search goes on. */
bool pe_export(const struct pe *pe, const uint8_t *image, const char *name, uint32_t ordinal,
               uint32_t *rva, const char **forward);
/* The n-th export that has a name. False: there are fewer, or it is broken. */
bool pe_export_at(const struct pe *pe, const uint8_t *image, uint32_t n, const char **name,
                  uint32_t *rva);

struct pe_import {
    const char *library;
    const char *name; /* NULL: by ordinal */
    uint32_t ordinal;
    uint32_t slot; /* RVA of the address to fill in, 8 bytes inside the image */
};

struct pe_imports {
    uint32_t library, index; /* the next one; start with zeros */
};

enum pe_step { PE_END, PE_FOUND, PE_BROKEN };
/* The next import. PE_FOUND with slot 0: a library of which nothing is imported. */
enum pe_step pe_next_import(const struct pe *pe, const uint8_t *image, struct pe_imports *at,
                            struct pe_import *import);

/* A name of at most `capacity` - 1 characters for an address: by the file's symbol table. False:
 * none. */
bool pe_symbol(const struct pe *pe, const uint8_t *file, size_t size, uint32_t rva, char *name,
               size_t capacity, uint32_t *offset);
