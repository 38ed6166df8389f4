/* SPDX-License-Identifier: MIT */
/* Entry point -> table -> names. Every length and checksum is doubted: this is firmware.
 * Source: DMTF DSP0134, SMBIOS 3.6, "Accessing SMBIOS information", "BIOS Information (Type 0)",
 * "System Information (Type 1)", "Baseboard Information (Type 2)"; UEFI 2.10 "EFI System Table". */
#include "hal/machine/smbios.h"
#include "kernel/base/bits.h"
#include "kernel/base/boot_info.h"
#include "kernel/base/string.h"
#include "kernel/mm/phys.h"
#include "kernel/mm/vm.h"

#define TABLE_MAX (1u << 20)
#define CONFIGURATIONS_MAX 256
#define ENTRY_MAX 32 /* bytes of an entry point */
enum { TYPE_FIRMWARE = 0, TYPE_SYSTEM = 1, TYPE_BOARD = 2, TYPE_END = 127 };

struct entry_32 {
    char anchor[4];
    uint8_t checksum, length, major, minor;
    uint16_t structure_max;
    uint8_t revision, formatted[5];
    char dmi_anchor[5];
    uint8_t dmi_checksum;
    uint16_t table_length;
    uint32_t table;
    uint16_t count;
    uint8_t bcd_revision;
} __attribute__((packed));
_Static_assert(sizeof(struct entry_32) == 31, "SMBIOS");

struct entry_64 {
    char anchor[5];
    uint8_t checksum, length, major, minor, docrev, revision, reserved;
    uint32_t table_max;
    uint64_t table;
} __attribute__((packed));
_Static_assert(sizeof(struct entry_64) == 24, "SMBIOS");

struct header {
    uint8_t type, length;
    uint16_t handle;
} __attribute__((packed));

struct efi_system_table {
    uint64_t signature;
    uint32_t revision, size, crc, reserved;
    uint64_t unused[10], count, configurations;
};
_Static_assert(sizeof(struct efi_system_table) == 120, "UEFI");

struct efi_configuration {
    uint32_t guid[4];
    uint64_t table;
};

/* --- The table. --- */

/* The string that holds each name: byte `at` of a structure of that type is the string's number. */
static const struct {
    uint8_t type, at;
    enum smbios_name name;
} fields[] = {
    { TYPE_FIRMWARE, 4, SMBIOS_FIRMWARE_VENDOR },
    { TYPE_FIRMWARE, 5, SMBIOS_FIRMWARE_VERSION },
    { TYPE_SYSTEM, 4, SMBIOS_MAKER },
    { TYPE_SYSTEM, 5, SMBIOS_PRODUCT },
    { TYPE_BOARD, 4, SMBIOS_BOARD_MAKER },
    { TYPE_BOARD, 5, SMBIOS_BOARD },
};

/* Copies the printable characters, without blanks at the ends. */
static void copy_text(char *to, size_t size, const char *from, size_t length)
{
    size_t n = 0;
    for (size_t i = 0; i < length && n < size - 1; i++)
        if ((from[i] > ' ' && from[i] <= '~') || (from[i] == ' ' && n))
            to[n++] = from[i];
    while (n && to[n - 1] == ' ')
        n--;
    to[n] = 0;
}

static size_t length_within(const char *text, const char *end)
{
    size_t n = 0;
    while (text + n < end && text[n])
        n++;
    return n;
}

/* The first structure that has a name gives it. */
static void take_names(const struct header *h, const char *strings, const char *end,
                       struct smbios *to)
{
    for_each_in(f, fields) {
        char *name = to->name[f->name];
        if (f->type != h->type || f->at >= h->length || *name)
            continue;
        unsigned number = ((const uint8_t *)h)[f->at];
        const char *text = strings;
        for (unsigned n = 1; n < number && text < end && *text; n++)
            text += length_within(text, end) + 1;
        if (number && text < end)
            copy_text(name, sizeof to->name[0], text, length_within(text, end));
    }
}

void smbios_parse(const void *table, size_t length, struct smbios *to)
{
    const char *p = table, *end = p + length;
    while (end - p >= (long)sizeof(struct header)) {
        const struct header *h = (const void *)p;
        if (h->length < sizeof *h || h->length > end - p || h->type == TYPE_END)
            return;
        const char *strings = p + h->length;
        take_names(h, strings, end, to);
        for (p = strings; p < end && *p;) /* an empty string ends the strings */
            p += length_within(p, end) + 1;
        p += p == strings ? 2 : 1;
    }
}

/* --- Finding it. --- */

static bool sums_to_zero(const void *data, size_t size)
{
    uint8_t sum = 0;
    for (size_t i = 0; i < size; i++)
        sum += ((const uint8_t *)data)[i];
    return sum == 0;
}

static bool read_table(uint64_t physical, size_t length, struct smbios *to)
{
    if (!physical || !length || length > TABLE_MAX || !vm_map_physical(physical, length, 0))
        return false;
    smbios_parse(phys_to_virt(physical), length, to);
    return true;
}

static bool read_entry(const void *p, struct smbios *to)
{
    const struct entry_64 *e64 = p;
    if (memcmp(e64->anchor, "_SM3_", 5) == 0 && e64->length >= sizeof *e64 &&
        e64->length <= ENTRY_MAX && sums_to_zero(p, e64->length))
        return read_table(e64->table, e64->table_max < TABLE_MAX ? e64->table_max : TABLE_MAX, to);
    const struct entry_32 *e32 = p;
    return memcmp(e32->anchor, "_SM_", 4) == 0 && memcmp(e32->dmi_anchor, "_DMI_", 5) == 0 &&
           sums_to_zero(e32->dmi_anchor, 15) && read_table(e32->table, e32->table_length, to);
}

/* UEFI's list of tables has both kinds of entry points. */
static bool read_efi(uint64_t physical, struct smbios *to)
{
    static const uint32_t guids[2][4] = { { 0xf2fd1544, 0x4a2c9794, 0xbbe52e99,
                                            0x94e320cf }, /* 64 bits */
                                          { 0xeb9d2d31, 0x11d32d88, 0x9000169a, 0x4dc13f27 } };
    const struct efi_system_table *system = phys_to_virt(physical);
    if (physical % 8 || !vm_map_physical(physical, sizeof *system, 0) ||
        memcmp(&system->signature, "IBI SYST", 8) != 0)
        return false;
    uint64_t count = system->count < CONFIGURATIONS_MAX ? system->count : CONFIGURATIONS_MAX;
    const struct efi_configuration *all = phys_to_virt(system->configurations);
    if (system->configurations % 8 ||
        !vm_map_physical(system->configurations, count * sizeof *all, 0))
        return false;
    for (unsigned i = 0; i < 2 * count; i++) {
        const struct efi_configuration *c = &all[i % count];
        if (memcmp(c->guid, guids[i / count], sizeof c->guid) == 0 &&
            vm_map_physical(c->table, ENTRY_MAX, 0) && read_entry(phys_to_virt(c->table), to))
            return true;
    }
    return false;
}

void smbios_read(const struct boot_info *boot, struct smbios *to)
{
    memset(to, 0, sizeof *to);
    if (boot->efi_table && read_efi(boot->efi_table, to))
        return;
    for (uint64_t a = 0xf0000; a < 0x100000; a += 16)
        if (read_entry(phys_to_virt(a), to))
            return;
}
