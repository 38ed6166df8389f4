/* SPDX-License-Identifier: MIT */
/* What the loader leaves, both multiboot versions; loader.c reads it once into struct boot_info.
 * Sources: Multiboot Specification 0.6.96 "Boot information format"; Multiboot2 2.0, same title. */
#pragma once
#include <stdint.h>
#include "kernel/base/boot_info.h"

#define MB1_BOOT_MAGIC 0x2badb002
#define MB2_BOOT_MAGIC 0x36d76289
#define MB1_HAS_MEMORY (1u << 0)
#define MB1_HAS_DEVICE (1u << 1)
#define MB1_HAS_LINE (1u << 2)
#define MB1_HAS_MODULES (1u << 3)
#define MB1_HAS_MAP (1u << 6)
#define MB1_HAS_NAME (1u << 9)

struct mb1_info {
    uint32_t flags, mem_lower, mem_upper, boot_device, cmdline, mods_count, mods_addr, syms[4];
    uint32_t mmap_length, mmap_addr;
};

struct mb1_module {
    uint32_t start, end, line, reserved;
};

struct mb1_map_entry {
    uint32_t size; /* of what follows */
    uint64_t start, length;
    uint32_t type;
} __attribute__((packed));

enum {
    MB2_TAG_END = 0,
    MB2_TAG_LINE = 1,
    MB2_TAG_MODULE = 3,
    MB2_TAG_MAP = 6,
    MB2_TAG_SCREEN = 8,
    MB2_TAG_EFI64 = 12,
    MB2_TAG_RSDP1 = 14,
    MB2_TAG_RSDP2 = 15
};

struct mb2_tag {
    uint32_t type, size;
    uint8_t data[];
};

struct mb2_screen {
    uint32_t type, size;
    uint64_t address;
    uint32_t pitch, width, height;
    uint8_t bits, kind; /* MB2_SCREEN_... */
    uint16_t reserved;
    uint8_t red_at, red_bits, green_at, green_bits, blue_at, blue_bits; /* of MB2_SCREEN_RGB */
} __attribute__((packed));
enum { MB2_SCREEN_RGB = 1, MB2_SCREEN_TEXT = 2 };

struct mb2_map {
    uint32_t type, size, entry_size, version;
};

struct mb2_map_entry {
    uint64_t start, length;
    uint32_t type, reserved;
};
