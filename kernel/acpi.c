/* SPDX-License-Identifier: MIT */
/* RSDP -> XSDT or RSDT -> MADT. Every length and checksum is doubted: this is firmware.
 * Source: ACPI 6.4 "Root System Description Pointer", "Multiple APIC Description Table". */
#include "kernel/acpi.h"
#include "boot/multiboot.h"
#include "kernel/phys.h"
#include "kernel/print.h"
#include "kernel/string.h"

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

struct table {
    char signature[4];
    uint32_t length;
    uint8_t revision, checksum;
    char oem[6], oem_table[8];
    uint32_t oem_revision, creator, creator_revision;
} __attribute__((packed));

#define TABLE_MAX (1u << 20)
enum { MADT_LOCAL_APIC = 0, MADT_X2APIC = 9 };
enum { MADT_ENTRIES = 44, MADT_ENABLED = 1 };

static bool sums_to_zero(const void *data, size_t size)
{
    uint8_t sum = 0;
    for (size_t i = 0; i < size; i++)
        sum += ((const uint8_t *)data)[i];
    return sum == 0;
}

static bool is_rsdp(const void *data)
{
    return memcmp(data, "RSD PTR ", 8) == 0 && sums_to_zero(data, 20);
}

static const struct rsdp *scan(uint64_t start, uint64_t size)
{
    for (uint64_t a = start; a + 36 <= start + size; a += 16)
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
    if (!physical || physical >= (1ul << 32) - TABLE_MAX)
        return NULL;
    const struct table *t = phys_to_virt(physical);
    return t->length >= sizeof *t && t->length <= TABLE_MAX && sums_to_zero(t, t->length) ? t : NULL;
}

static const struct table *find_madt(const struct rsdp *rsdp)
{
    bool wide = rsdp->revision >= 2 && rsdp->xsdt;
    const struct table *root = table_at(wide ? rsdp->xsdt : rsdp->rsdt);
    unsigned step = wide ? 8 : 4;
    if (!root)
        return NULL;
    for (uint32_t at = sizeof *root; at + step <= root->length; at += step) {
        uint64_t address = 0;
        memcpy(&address, (const uint8_t *)root + at, step);
        const struct table *t = table_at(address);
        if (t && memcmp(t->signature, "APIC", 4) == 0)
            return t;
    }
    return NULL;
}

static void add_apic(struct acpi_info *info, uint32_t id, uint32_t flags)
{
    if (!(flags & MADT_ENABLED))
        return;
    for (unsigned i = 0; i < info->apic_count; i++)
        if (info->apic_ids[i] == id)
            return;
    if (info->apic_count < MAX_CPUS)
        info->apic_ids[info->apic_count++] = id;
}

void acpi_read(const struct boot_info *boot, struct acpi_info *info)
{
    const struct rsdp *rsdp = find_rsdp(boot);
    const struct table *madt = rsdp ? find_madt(rsdp) : NULL;

    info->apic_count = 0;
    if (!madt) {
        print("# acpi: no %s: one CPU only\n", rsdp ? "valid MADT" : "RSDP");
        return;
    }
    const uint8_t *p = (const uint8_t *)madt;
    for (uint32_t at = MADT_ENTRIES; at + 2 <= madt->length && p[at + 1] >= 2; at += p[at + 1]) {
        uint32_t id = 0, flags = 0;
        if (at + p[at + 1] > madt->length)
            break;
        if (p[at] == MADT_LOCAL_APIC && p[at + 1] >= 8) {
            memcpy(&flags, p + at + 4, 4);
            add_apic(info, p[at + 3], flags);
        } else if (p[at] == MADT_X2APIC && p[at + 1] >= 16) {
            memcpy(&id, p + at + 4, 4);
            memcpy(&flags, p + at + 8, 4);
            add_apic(info, id, flags);
        }
    }
}
