/* SPDX-License-Identifier: MIT */
/* What loader and firmware leave, on the host, with sanitizers: boot SEED COUNT. Information of
 * both versions of multiboot, command lines, ACPI's and SMBIOS' tables, right, mutated and at
 * random, from the last bytes that there are. Of memory above 1 MB only what the tables' parsers
 * have mapped can be read; below it, as in the kernel, all. */
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include "boot/loader.h"
#include "boot/multiboot.h"
#include "hal/machine/acpi.h"
#include "hal/machine/smbios.h"
#include "kernel/base/bits.h"
#include "kernel/mm/vm.h"
#include "tests/guests/fuzz/fuzz.h"

enum { PAGE = 4096, LOW = 1 << 20, MAPS = 4096, TABLES = 6, INFO_AT = 0x10000 };

static struct {
    uint64_t start, size;
} maps[MAPS];
static unsigned map_count;
static struct acpi_info acpi;
static struct smbios smbios;
static uint64_t apics, names, ranges;

/* Pages instead of 2 MB, and no memory above 4 GB: more is noticed. */
bool vm_map_physical(uint64_t physical, uint64_t size, uint64_t flags)
{
    uint64_t end, start = physical & ~(PAGE - 1ul);
    (void)flags;
    if (__builtin_add_overflow(physical, size, &end) || end > FUZZ_MEMORY || map_count == MAPS)
        return false;
    maps[map_count].start = start;
    maps[map_count++].size = end - start;
    return end == start || !mprotect(fuzz_memory + start, end - start, PROT_READ | PROT_WRITE);
}

static void forget_maps(void)
{
    while (map_count--)
        if (maps[map_count].start >= LOW && maps[map_count].size)
            mprotect(fuzz_memory + maps[map_count].start, maps[map_count].size, PROT_NONE);
    map_count = 0;
}

/* --- Bytes. --- */

static void put_bytes(uint64_t at, const void *bytes, uint64_t size)
{
    vm_map_physical(at, size, 0);
    memcpy(fuzz_memory + at, bytes, size);
}

static void put32(uint64_t at, uint32_t value) { put_bytes(at, &value, sizeof value); }

static void mutate_bytes(uint64_t at, uint64_t size)
{
    vm_map_physical(at, size, 0);
    for (uint64_t n = fuzz_below(6); n && size; n--) {
        uint64_t value = fuzz_edge(), where = fuzz_below(size);
        uint64_t width = 1ul << fuzz_below(4);
        memcpy(fuzz_memory + at + where, &value, width < size - where ? width : size - where);
    }
}

static void make_checksum(uint64_t at, uint64_t size, uint64_t checksum)
{
    uint8_t sum = 0;
    for (uint64_t i = 0; i < size; i++)
        sum += fuzz_memory[at + i];
    fuzz_memory[at + checksum] -= sum;
}

/* Where `size` bytes end with a page. */
static uint64_t place_for(uint64_t size)
{
    return (64 + fuzz_below(4000)) * PAGE * 16 - (fuzz_below(3) ? (size + 15) & ~15ul : size);
}

/* --- ACPI. --- */

static const char *const signatures[] = { "APIC", "FACP", "HPET", "XSDT", "RSDT", "APIC" };

static uint64_t make_table(const char *signature, const void *body, uint64_t size)
{
    uint64_t all = 36 + size, at = place_for(all);
    uint32_t length = (uint32_t)all;
    vm_map_physical(at, all, 0);
    memset(fuzz_memory + at, 0, 36);
    put_bytes(at, signature, 4);
    put_bytes(at + 4, &length, sizeof length);
    put_bytes(at + 36, body, size);
    if (!fuzz_below(3))
        mutate_bytes(at, all);
    if (fuzz_below(8))
        make_checksum(at, all, 9);
    return at;
}

static uint64_t make_any_madt(void)
{
    uint8_t body[4096];
    uint64_t size = 8;
    memset(body, 0, sizeof body);
    for (uint64_t n = fuzz_below(40); n; n--) {
        static const uint8_t kinds[] = { 0, 1, 9, 2, 4 }, lengths[] = { 8, 12, 16, 10, 6 };
        uint64_t kind = fuzz_below(5);
        for (unsigned i = 0; i < 16; i++)
            body[size + i] = (uint8_t)(fuzz_below(2) ? 1 : fuzz_bits());
        body[size] = kinds[kind];
        body[size + 1] = fuzz_below(16) ? lengths[kind] : (uint8_t)fuzz_below(20);
        size += lengths[kind];
    }
    return make_table("APIC", body, size - (fuzz_below(4) ? 0 : fuzz_below(9)));
}

static uint64_t make_any_table(void)
{
    uint8_t body[256];
    for (unsigned i = 0; i < sizeof body; i++)
        body[i] = (uint8_t)fuzz_edge();
    return fuzz_below(3) ? make_any_madt()
                         : make_table(signatures[fuzz_below(TABLES)], body, fuzz_below(256));
}

static void make_acpi(struct boot_info *info)
{
    uint64_t tables[8], count = fuzz_below(8);
    uint32_t narrow[8];
    bool wide = fuzz_below(2);
    for (uint64_t i = 0; i < count; i++) {
        tables[i] = fuzz_below(8) ? make_any_table() : fuzz_edge();
        narrow[i] = (uint32_t)tables[i];
    }
    uint64_t root =
        wide ? make_table("XSDT", tables, 8 * count) : make_table("RSDT", narrow, 4 * count);
    uint8_t rsdp[36] = "RSD PTR ";
    uint32_t root32 = (uint32_t)root, length = sizeof rsdp;
    rsdp[15] = wide ? 2 : 0;
    memcpy(rsdp + 16, &root32, 4);
    memcpy(rsdp + 20, &length, 4);
    memcpy(rsdp + 24, &root, 8);
    uint64_t at = fuzz_below(2) ? 0x9fc00 : 0xe0000 + 16 * fuzz_below(0x1fff);
    put_bytes(at, rsdp, sizeof rsdp);
    if (!fuzz_below(4))
        mutate_bytes(at, sizeof rsdp);
    make_checksum(at, 20, 8);
    make_checksum(at, sizeof rsdp, 32);
    put32(0x40e, fuzz_below(8) ? 0x9fc0 : (uint32_t)fuzz_edge());
    info->rsdp_given = fuzz_below(2);
    memcpy(info->rsdp, fuzz_memory + at, sizeof info->rsdp);
}

static void try_acpi(void)
{
    static struct boot_info info;
    memset(&info, 0, sizeof info);
    memset(fuzz_memory + 0x9fc00, 0, LOW - 0x9fc00);
    make_acpi(&info);
    acpi_read(&info, &acpi);
    FUZZ_CHECK(acpi.apic_count <= ACPI_CPUS_MAX && acpi.io_apic_count <= ACPI_IO_APICS_MAX);
    for (unsigned i = 0; i < acpi.apic_count; i++)
        for (unsigned k = 0; k < i; k++)
            FUZZ_CHECK(acpi.apic_ids[i] != acpi.apic_ids[k]);
    for (unsigned i = 0; i < acpi.io_apic_count; i++)
        FUZZ_CHECK(acpi.io_apics[i] >= VM_DEVICES);
    FUZZ_CHECK(acpi.clocks.hpet % 8 == 0);
    apics += acpi.apic_count;
}

/* --- SMBIOS. --- */

static uint64_t make_names(uint64_t *size)
{
    uint8_t bytes[1024];
    uint64_t n = 0;
    for (uint64_t type = 0; type < 3 + fuzz_below(3); type++) {
        uint64_t length = 6 + fuzz_below(30);
        for (uint64_t i = 0; i < length; i++)
            bytes[n + i] = (uint8_t)fuzz_below(4);
        bytes[n] = (uint8_t)(fuzz_below(8) ? type % 3 : fuzz_below(256));
        bytes[n + 1] = (uint8_t)(fuzz_below(16) ? length : fuzz_below(256));
        n += length;
        n += (uint64_t)snprintf((char *)bytes + n, 100, "Maker%lu%c Board%lu", n, 0, n) + 1;
        bytes[n++] = 0;
    }
    *size = n - (fuzz_below(4) ? 0 : fuzz_below(20));
    uint64_t at = place_for(*size);
    put_bytes(at, bytes, *size);
    return at;
}

static void try_smbios(void)
{
    static struct boot_info info;
    uint64_t size, at = make_names(&size), entry = 0xf0000 + 16 * fuzz_below(0xffd);
    memset(fuzz_memory + 0xf0000, 0, 0x10000);
    uint8_t e64[24] = "_SM3_";
    uint32_t most = (uint32_t)(fuzz_below(4) ? size : fuzz_edge());
    e64[6] = (uint8_t)(fuzz_below(4) ? sizeof e64 : 24 + fuzz_below(12));
    memcpy(e64 + 12, &most, 4);
    memcpy(e64 + 16, &at, 8);
    bool efi = fuzz_below(2);
    if (efi)
        entry = place_for(sizeof e64 + fuzz_below(16));
    put_bytes(entry, e64, sizeof e64);
    if (!fuzz_below(4))
        mutate_bytes(entry, sizeof e64);
    make_checksum(entry, sizeof e64, 5);
    memset(&info, 0, sizeof info);
    if (efi) { /* a system table with one configuration, the entry */
        uint64_t system[15] = { 0x5453595320494249 },
                 configuration[3] = { 0x4a2c9794f2fd1544, 0x94e320cfbbe52e99 };
        configuration[2] = entry;
        system[13] = fuzz_below(4) ? 1 : fuzz_edge();
        system[14] = fuzz_below(8) ? place_for(sizeof configuration) : fuzz_edge();
        info.efi_table = place_for(sizeof system);
        put_bytes(info.efi_table, system, sizeof system);
        if (system[14] < FUZZ_MEMORY - sizeof configuration)
            put_bytes(system[14], configuration, sizeof configuration);
    }
    smbios_read(&info, &smbios);
    for (unsigned i = 0; i < SMBIOS_NAMES; i++) {
        FUZZ_CHECK(strlen(smbios.name[i]) < sizeof smbios.name[i]);
        names += *smbios.name[i] != 0;
    }
}

/* --- Multiboot. --- */

static void check_info(const struct boot_info *info)
{
    uint64_t end;
    FUZZ_CHECK(info->memory_count <= BOOT_MEMORY_MAX && info->map_count <= BOOT_MEMORY_MAX &&
               info->module_count <= BOOT_MODULES_MAX);
    for (unsigned i = 0; i < info->memory_count; i++)
        FUZZ_CHECK(info->memory[i].size &&
                   !__builtin_add_overflow(info->memory[i].start, info->memory[i].size - 1, &end));
    for (unsigned i = 0; i < info->module_count; i++)
        FUZZ_CHECK(info->modules[i].start < info->modules[i].end &&
                   strlen(info->modules[i].line) < BOOT_LINE_MAX);
    for (const char *c = info->line; *c; c++)
        FUZZ_CHECK(*c >= ' ' && *c <= '~');
    ranges += info->memory_count;
}

static uint32_t some_line(uint64_t at)
{
    static const char *const words[] = { "tests=", "vpmu=",    "verbose", " ",
                                         "=",      "fuzz=1",   "exact*",  "intel-v5,irq3=1",
                                         "safe",   "cpus=1-3", "\t",      "\xff" };
    char line[600];
    unsigned n = 0;
    for (uint64_t i = fuzz_below(120); i && n < 580; i--)
        n += (unsigned)snprintf(line + n, sizeof line - n, "%s%s", words[fuzz_below(12)],
                                fuzz_below(2) ? " " : "");
    line[n] = 0;
    put_bytes(at, line, n + 1);
    return n + 1;
}

static void make_mb1(void)
{
    struct mb1_info mb = { .flags = (uint32_t)fuzz_bits() & 0x4d,
                           .mem_lower = 640,
                           .cmdline = 0x2000 };
    mb.mem_upper = (uint32_t)fuzz_edge();
    mb.mods_addr = 0x3000;
    mb.mods_count = (uint32_t)(fuzz_below(4) ? fuzz_below(12) : fuzz_edge());
    mb.mmap_addr = 0x4000;
    some_line(mb.cmdline);
    memset(fuzz_memory + FUZZ_MEMORY - 64, 'x', 64); /* a line without an end */
    if (!fuzz_below(8))
        mb.cmdline = (uint32_t)fuzz_edge();
    for (uint32_t i = 0; i < 12; i++) {
        struct mb1_module m = { (uint32_t)fuzz_edge(), (uint32_t)fuzz_edge(), mb.cmdline, 0 };
        put_bytes(mb.mods_addr + i * sizeof m, &m, sizeof m);
    }
    uint64_t at = mb.mmap_addr;
    for (uint64_t n = fuzz_below(80); n; n--) {
        struct mb1_map_entry e = { 20, fuzz_edge(), fuzz_edge(), 1 + (uint32_t)fuzz_below(2) };
        if (!fuzz_below(30))
            e.size = fuzz_below(2) ? -(uint32_t)fuzz_below(30) : (uint32_t)fuzz_edge();
        put_bytes(at, &e, sizeof e);
        at += 24;
    }
    mb.mmap_length = fuzz_below(4) ? (uint32_t)(at - mb.mmap_addr) : (uint32_t)fuzz_edge();
    put_bytes(INFO_AT, &mb, sizeof mb);
    if (!fuzz_below(8))
        mutate_bytes(INFO_AT, sizeof mb);
}

static uint64_t put_any_tag(uint64_t at, uint32_t type, const void *bytes, uint32_t size)
{
    put32(at, type);
    put32(at + 4, 8 + size);
    put_bytes(at + 8, bytes, size);
    return at + ((8 + size + 7) & ~7u);
}

/* In the last pages of memory, so that what follows them is noticed. */
static uint64_t make_mb2(void)
{
    uint64_t start = FUZZ_MEMORY - PAGE * (1 + fuzz_below(3)), at = start + 8, text = 0x5000;
    static const uint8_t types[] = { MB2_TAG_LINE,  MB2_TAG_MODULE, MB2_TAG_MAP,   MB2_TAG_SCREEN,
                                     MB2_TAG_EFI64, MB2_TAG_RSDP1,  MB2_TAG_RSDP2, MB2_TAG_END };
    vm_map_physical(start, FUZZ_MEMORY - start, 0);
    memset(fuzz_memory + start, 0, FUZZ_MEMORY - start);
    for (uint64_t n = fuzz_below(12); n && at < FUZZ_MEMORY - 700; n--) {
        uint8_t type = types[fuzz_below(fuzz_below(4) ? 7 : 8)];
        uint32_t bytes[64];
        for (unsigned i = 0; i < 64; i++)
            bytes[i] = (uint32_t)(fuzz_below(2) ? fuzz_below(0x3000) : fuzz_edge());
        if (type == MB2_TAG_MAP)
            bytes[0] = 24;
        if (type == MB2_TAG_LINE)
            at = put_any_tag(at, type, fuzz_memory + text, some_line(text));
        else
            at = put_any_tag(at, type, bytes, (uint32_t)fuzz_below(sizeof bytes));
    }
    uint32_t size = (uint32_t)(fuzz_below(4) ? at - start : fuzz_below(2) ? 0x2000 : fuzz_edge());
    put32(start, size);
    if (!fuzz_below(3))
        mutate_bytes(start, at - start);
    return start;
}

/* Of what the loader left, all below 4 GB can be read. */
static void try_multiboot(void)
{
    static struct boot_info info;
    memset(&info, 0, sizeof info);
    if (fuzz_below(2)) {
        make_mb1();
        loader_read(&info, MB1_BOOT_MAGIC, INFO_AT);
    } else {
        loader_read(&info, MB2_BOOT_MAGIC, (uint32_t)make_mb2());
    }
    check_info(&info);
    boot_info = info;
    char value[24];
    memset(value, '#', sizeof value);
    if (boot_option("tests", value, 16))
        FUZZ_CHECK(strlen(value) < 16 && value[16] == '#');
    boot_flag("safe");
}

int main(int argc, char *argv[])
{
    uint64_t count = fuzz_begin(argc, argv, 100000);
    fuzz_map();
    for (fuzz_case = 0; fuzz_case < count / 2; fuzz_case++, map_count = 0)
        try_multiboot();
    mprotect(fuzz_memory + LOW, FUZZ_MEMORY - LOW, PROT_NONE);
    for (; fuzz_case < count; fuzz_case++, forget_maps())
        fuzz_below(2) ? try_acpi() : try_smbios();
    printf("%lu boots: %lu CPUs, %lu names, %lu ranges\n", count, apics, names, ranges);
    return 0;
}
