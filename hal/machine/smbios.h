/* SPDX-License-Identifier: MIT */
/* The SMBIOS table: who made the machine. */
#pragma once
#include <stddef.h>
#include <stdint.h>

enum smbios_name {
    SMBIOS_FIRMWARE_VENDOR,
    SMBIOS_FIRMWARE_VERSION,
    SMBIOS_MAKER,
    SMBIOS_PRODUCT,
    SMBIOS_BOARD_MAKER,
    SMBIOS_BOARD,
    SMBIOS_NAMES
};

/* Printable characters, without blanks at either end; empty: the table does not say. */
struct smbios {
    char name[SMBIOS_NAMES][49];
};

struct boot_info;

/* Finds the table by the loader's tags or in BIOS memory, and reads it. Without one the names stay
 * empty. Once, on the boot CPU, before there are processes. */
void smbios_read(const struct boot_info *boot, struct smbios *to);

/* What a table of this length says. Any bytes are legal: nothing after `length` is read. */
void smbios_parse(const void *table, size_t length, struct smbios *to);
