/* SPDX-License-Identifier: MIT */
/* RSDP -> XSDT or RSDT -> MADT, FADT, HPET, SPCR. Every length and checksum is doubted: this is
 * firmware. An invalid table is treated as absent. Source: ACPI 6.4 "Root System Description
 * Pointer", "Multiple APIC Description Table", "Fixed ACPI Description Table"; IA-PC HPET 1.0a "The
 * ACPI 2.0 HPET Description Table"; Microsoft, "Serial Port Console Redirection Table". */
#include "hal/machine/acpi.h"
#include "kernel/base/bits.h"
#include "kernel/base/boot_info.h"
#include "kernel/base/print.h"
#include "kernel/base/string.h"
#include "kernel/mm/phys.h"
#include "kernel/mm/vm.h"

struct rsdp {
    char signature[8];
    uint8_t checksum;
    char oem[6];
    uint8_t revision;
    uint32_t rsdt;
    uint32_t length;
    uint64_t xsdt;
    uint8_t extended_checksum, reserved[3];
} __attribute__((packed));
_Static_assert(sizeof(struct rsdp) == 36, "ACPI");

struct table {
    char signature[4];
    uint32_t length;
    uint8_t revision, checksum;
    char oem[6], oem_table[8];
    uint32_t oem_revision, creator, creator_revision;
} __attribute__((packed));
_Static_assert(sizeof(struct table) == 36, "ACPI");

#define RSDP_SHORT 20 /* bytes of the first version */
#define TABLE_MAX (1u << 20)
#define ROOT_MAX                                                                                   \
    1024 /* entries of a root table that are looked at: each may cost a page of page tables */
enum { MADT_LOCAL_APIC = 0, MADT_IO_APIC = 1, MADT_X2APIC = 9 };
enum { MADT_ENTRIES = 44, MADT_ENABLED = 1 };
enum { FADT_PM_TIMER = 76, FADT_PM_TIMER_LENGTH = 91, FADT_BOOT_ARCH = 109, FADT_FLAGS = 112 };
enum { FADT_PM_TIMER_32 = 1 << 8, FADT_HAS_RESET = 1 << 10, FADT_HAS_8042 = 1 << 1 };
enum { FADT_RESET = 116, FADT_RESET_ADDRESS = 120, FADT_RESET_VALUE = 128 };
enum { REVISION = 8, FADT_REVISION_2_0 = 3 }; /* of ACPI 2.0, from which the last two exist */
enum { HPET_SPACE = 40, HPET_ADDRESS = 44 };
enum { SPCR_KIND = 36, SPCR_SPACE = 40, SPCR_ADDRESS = 44, IN_PORTS = 1 };

static bool sums_to_zero(const void *data, size_t size)
{
    uint8_t sum = 0;
    for (size_t i = 0; i < size; i++)
        sum += ((const uint8_t *)data)[i];
    return sum == 0;
}

/* --- The tables that we read. --- */

static void add_apic(struct acpi_info *info, uint32_t id, uint32_t flags, uint32_t broadcast)
{
    if (!(flags & MADT_ENABLED) || id == broadcast)
        return;
    for (unsigned i = 0; i < info->apic_count; i++)
        if (info->apic_ids[i] == id)
            return;
    if (info->apic_count < ACPI_CPUS_MAX)
        info->apic_ids[info->apic_count++] = id;
    else
        info->apics_dropped++;
}

/* An address below VM_DEVICES may be memory, where firmware must not make us write. */
static void add_io_apic(struct acpi_info *info, uint32_t address)
{
    if (address >= VM_DEVICES && address % 16 == 0 && info->io_apic_count < ACPI_IO_APICS_MAX)
        info->io_apics[info->io_apic_count++] = address;
}

static uint32_t word_at(const uint8_t *p)
{
    uint32_t word;
    memcpy(&word, p, sizeof word);
    return word;
}

void acpi_parse_madt(const void *table, size_t length, struct acpi_info *info)
{
    const uint8_t *p = (const uint8_t *)table + MADT_ENTRIES,
                  *end = (const uint8_t *)table + length;
    for (; length >= MADT_ENTRIES && end - p >= 2 && p[1] >= 2 && p[1] <= end - p; p += p[1]) {
        if (p[0] == MADT_LOCAL_APIC && p[1] >= 8)
            add_apic(info, p[3], word_at(p + 4), 0xff);
        else if (p[0] == MADT_X2APIC && p[1] >= 16)
            add_apic(info, word_at(p + 4), word_at(p + 8), 0xffffffff);
        else if (p[0] == MADT_IO_APIC && p[1] >= 12)
            add_io_apic(info, word_at(p + 4));
    }
}

/* A register of one byte, where a write does not change memory. */
static bool is_resettable(const uint8_t *generic, uint64_t address)
{
    if (generic[1] != 8 || generic[2] != 0)
        return false;
    return generic[0] == RESET_IN_PORTS ? address <= 0xffff
           : generic[0] == RESET_IN_MEMORY
               ? address >= VM_DEVICES
               : generic[0] == RESET_IN_PCI && !(address >> 37) && (address >> 16 & 0xffff) < 8 &&
                     (address & 0xffff) < 256;
}

static void parse_reset(const uint8_t *p, struct reset_register *reset)
{
    uint64_t address;
    memcpy(&address, p + FADT_RESET_ADDRESS, sizeof address);
    if (word_at(p + FADT_FLAGS) & FADT_HAS_RESET && is_resettable(p + FADT_RESET, address))
        *reset = (struct reset_register){ address, p[FADT_RESET], p[FADT_RESET_VALUE], true };
}

void acpi_parse_fadt(const void *table, size_t length, struct acpi_info *info)
{
    const uint8_t *p = table;
    if (length < FADT_FLAGS + 4)
        return;
    if (p[FADT_PM_TIMER_LENGTH] == 4 && word_at(p + FADT_PM_TIMER) <= 0xfffc) {
        info->clocks.pm_timer = (uint16_t)word_at(p + FADT_PM_TIMER);
        info->clocks.pm_timer_32 = word_at(p + FADT_FLAGS) & FADT_PM_TIMER_32;
    }
    if (p[REVISION] >= FADT_REVISION_2_0)
        info->no_8042 = !(p[FADT_BOOT_ARCH] & FADT_HAS_8042);
    if (length > FADT_RESET_VALUE)
        parse_reset(p, &info->reset);
}

static void parse_hpet(const void *table, size_t length, struct acpi_info *info)
{
    const uint8_t *p = table;
    uint64_t address;
    if (length < HPET_ADDRESS + sizeof address || p[HPET_SPACE] != 0) /* 0: in memory */
        return;
    memcpy(&address, p + HPET_ADDRESS, sizeof address);
    if (address % 8 == 0)
        info->clocks.hpet = address;
}

/* A UART like the 16550 or the 16450, in ports. */
void acpi_parse_spcr(const void *table, size_t length, struct acpi_info *info)
{
    const uint8_t *p = table;
    if (length >= SPCR_ADDRESS + 8 && p[SPCR_KIND] <= 1 && p[SPCR_SPACE] == IN_PORTS &&
        !word_at(p + SPCR_ADDRESS + 4) && word_at(p + SPCR_ADDRESS) <= 0xfff8)
        info->console = (uint16_t)word_at(p + SPCR_ADDRESS);
}

/* --- Finding them. --- */

static bool is_rsdp(const void *data)
{
    return memcmp(data, "RSD PTR ", 8) == 0 && sums_to_zero(data, RSDP_SHORT);
}

static const struct rsdp *scan(uint64_t start, uint64_t size)
{
    for (uint64_t a = start; a + sizeof(struct rsdp) <= start + size; a += 16)
        if (is_rsdp(phys_to_virt(a)))
            return phys_to_virt(a);
    return NULL;
}

static const struct rsdp *find_rsdp(const struct boot_info *boot)
{
    if (boot->rsdp_given)
        return is_rsdp(boot->rsdp) ? (const void *)boot->rsdp : NULL;
    uint64_t ebda = (uint64_t) * (const uint16_t *)phys_to_virt(0x40e) << 4;
    const struct rsdp *found = ebda >= 0x400 && ebda < 0xa0000 ? scan(ebda, 1024) : NULL;
    return found ? found : scan(0xe0000, 0x20000);
}

static const struct table *table_at(uint64_t physical)
{
    const struct table *t = phys_to_virt(physical);
    if (!physical || !vm_map_physical(physical, sizeof *t, 0) || t->length < sizeof *t ||
        t->length > TABLE_MAX)
        return NULL;
    return vm_map_physical(physical, t->length, 0) ? t : NULL;
}

static const struct table *root_at(uint64_t physical, const char *signature)
{
    const struct table *t = table_at(physical);
    return t && memcmp(t->signature, signature, 4) == 0 && sums_to_zero(t, t->length) ? t : NULL;
}

/* The root table; *step: how many bytes each of its entries has. */
static const struct table *find_root(const struct rsdp *rsdp, unsigned *step)
{
    bool second =
        rsdp->revision >= 2 && rsdp->length >= sizeof *rsdp && sums_to_zero(rsdp, sizeof *rsdp);
    const struct table *root = second ? root_at(rsdp->xsdt, "XSDT") : NULL;
    *step = root ? 8 : 4;
    return root ? root : root_at(rsdp->rsdt, "RSDT");
}

static const struct {
    char signature[5];
    void (*parse)(const void *table, size_t length, struct acpi_info *info);
} parsers[] = { { "APIC", acpi_parse_madt },
                { "FACP", acpi_parse_fadt },
                { "HPET", parse_hpet },
                { "SPCR", acpi_parse_spcr } };

/* Returns what is missing, or NULL. Firmware has tables with wrong checksums, which Linux and
 * Windows use: "ACPI BIOS Warning (bug): Incorrect checksum in table [APIC]". */
static const char *read_tables(const struct boot_info *boot, struct acpi_info *info)
{
    unsigned step = 0;
    const struct rsdp *rsdp = find_rsdp(boot);
    const struct table *root = rsdp ? find_root(rsdp, &step) : NULL;

    *info = (struct acpi_info){ 0 };
    for (uint32_t i = 0; root && i < ROOT_MAX && sizeof *root + (i + 1) * step <= root->length;
         i++) {
        uint64_t address = 0;
        memcpy(&address, (const uint8_t *)(root + 1) + i * step, step);
        const struct table *t = table_at(address);
        for (unsigned p = 0; t && p < ARRAY_SIZE(parsers); p++)
            if (memcmp(t->signature, parsers[p].signature, 4) == 0) {
                parsers[p].parse(t, t->length, info);
                info->wrong_sums += !sums_to_zero(t, t->length);
            }
    }
    return !rsdp ? "RSDP" : !root ? "valid RSDT or XSDT" : !info->apic_count ? "valid MADT" : NULL;
}

uint16_t acpi_console(const struct boot_info *boot)
{
    static struct acpi_info info;
    read_tables(boot, &info);
    return info.console;
}

void acpi_read(const struct boot_info *boot, struct acpi_info *info)
{
    const char *missing = read_tables(boot, info);
    if (info->clocks.hpet &&
        !vm_map_physical(info->clocks.hpet, PAGE_SIZE, PTE_WRITE | PTE_UNCACHED))
        info->clocks.hpet = 0;
    if (info->reset.space == RESET_IN_MEMORY &&
        !vm_map_physical(info->reset.address, 1, PTE_WRITE | PTE_UNCACHED))
        info->reset.known = false;
    if (info->wrong_sums)
        print("# acpi: %u tables are used though their checksums are wrong\n", info->wrong_sums);
    if (missing)
        print("# acpi: no %s: one CPU only\n", missing);
}
