/* SPDX-License-Identifier: MIT */
/* What the loader reported, in one form for all loaders. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SCREEN_NONE, SCREEN_TEXT, SCREEN_PIXELS };

struct screen {
    uint64_t address;                  /* physical */
    uint32_t pitch, width, height;     /* bytes of a line; pixels, or characters */
    uint8_t kind;                      /* SCREEN_... */
    uint8_t red_at, green_at, blue_at; /* lowest bit of each 8-bit colour in a pixel of 32 bits */
};

#define BOOT_MEMORY_MAX 64
#define BOOT_LINE_MAX 512
#define BOOT_MODULES_MAX 32

struct boot_memory {
    uint64_t start, size; /* bytes of usable RAM, from the loader's map */
};

/* All that its map says, of memory of each type. */
struct boot_range {
    uint64_t start, size;
    uint32_t type; /* BOOT_RAM, or what ACPI calls it */
};
#define BOOT_RAM 1

struct boot_module {
    uint32_t start, end;      /* physical */
    char line[BOOT_LINE_MAX]; /* its name and what follows it */
};

struct boot_info {
    char line[BOOT_LINE_MAX]; /* kernel command line, NUL-terminated */
    struct boot_memory memory[BOOT_MEMORY_MAX];
    unsigned memory_count;
    struct boot_range map[BOOT_MEMORY_MAX];
    unsigned map_count;
    struct boot_module modules[BOOT_MODULES_MAX];
    unsigned module_count;
    unsigned modules_left_out; /* there is no space for them */
    uint64_t moved;            /* how far the image lies above its load address */
    uint64_t mapped_end;       /* of physical memory, by the boot page tables at DIRECT_MAP */
    bool efi;                  /* started by UEFI */
    uint64_t efi_table;        /* its system table, physical; 0: not reported */
    struct screen screen;
    const char *no_screen;  /* why there is none */
    bool rsdp_given;        /* multiboot 2 tag 14 or 15 */
    uint8_t rsdp[36];       /* its copy of the RSDP */
    const uint8_t *ap_code; /* what another CPU begins with, to be copied to any page */
    size_t ap_size;
    uint32_t ap_tables; /* the boot page tables: physical */
    unsigned
        ap_pages; /* pages for whoever starts it, whose address it finds in AP_PAGES; 0: none */
};

/* Of this boot; written by loader.c. */
extern struct boot_info boot_info;

/* Prepares the page where another CPU starts: on this stack, with these pages or NULL. The code
 * there changes itself: once for each CPU. */
void boot_put_ap(uint8_t *page, uint64_t stack, void *pages);

/* The value of name=value in the command line, copied to `value`; false if it is not there. The
 * last one counts. */
bool boot_option(const char *name, char *value, unsigned size);
/* Whether the option stands in the command line. */
bool boot_flag(const char *name);
/* "safe" stands there: one CPU, and nothing of ours causes an NMI. */
bool boot_safe(void);
/* "wrap" stands there: clocks, numbers and counters begin shortly before their wrap, as on a
 * machine that has run for 49 days. */
bool boot_wraps(void);
/* A second before 2^32 ms: milliseconds, and the low halves of nanoseconds and of Windows' times of
 * 100 ns, wrap at once. */
#define BOOT_WRAPS_NS (((1ul << 32) - 1000) * 1000000)
#define BOOT_WRAPS_COUNTS 5000u /* what a counter counts until its wrap */
/* The options a file asks for, name= those with a value. boot.c names those that no file has. */
#define BOOT_OPTIONS(names)                                                                        \
    static const char *const boot_options __attribute__((section(".boot_options"), used)) = (names)
/* The start of the n-th word of a line, or NULL; *length gets its length. */
const char *boot_word_at(const char *line, unsigned n, unsigned *length);
