/* SPDX-License-Identifier: MIT */
/* Firmware's tables as they should be, and as they should not: invented ones, in memory of ours. */
#include "hal/machine/acpi.h"
#include "kernel/base/layout.h"
#include "tests/harness/kernel.h"

#define HEADER 44 /* of a MADT */

static struct acpi_info info;

struct builder {
    unsigned length;
    uint8_t bytes[];
};

static void put_bytes(struct builder *b, const void *bytes, unsigned count)
{
    memcpy(b->bytes + b->length, bytes, count);
    b->length += count;
}

static void put_apic(struct builder *b, uint8_t id, uint32_t flags)
{
    const uint8_t entry[8] = { 0, 8, 0, id, (uint8_t)flags };
    put_bytes(b, entry, sizeof entry);
}

static void put_x2apic(struct builder *b, uint32_t id, uint32_t flags)
{
    const uint32_t entry[4] = { 9 | 16 << 8, id, flags, 0 };
    put_bytes(b, entry, sizeof entry);
}

static void put_io_apic(struct builder *b, uint32_t address)
{
    const uint32_t entry[3] = { 1 | 12 << 8, address, 0 };
    put_bytes(b, entry, sizeof entry);
}

static void parse_tables(const struct builder *b)
{
    memset(&info, 0, sizeof info);
    acpi_parse_madt(b->bytes, b->length, &info);
}

TEST(acpi, madt,
     "each enabled CPU is found once, by either kind of entry, and interrupt controllers at "
     "plausible addresses")
{
    struct builder *b = phys_alloc(2);
    REQUIRE(b != NULL);
    b->length = HEADER;
    put_apic(b, 0, 1);
    put_apic(b, 1, 0); /* disabled */
    put_apic(b, 2, 2); /* only pluggable */
    put_apic(b, 3, 3);
    put_apic(b, 0xff, 1); /* to all: no CPU's */
    put_x2apic(b, 0, 1);  /* the same again */
    put_x2apic(b, 300, 1);
    put_x2apic(b, 301, 0);
    put_x2apic(b, ~0u, 1);
    put_io_apic(b, 0xfec00000);
    put_io_apic(b, 0);
    put_io_apic(b, 0xfec00003);
    put_io_apic(b, 0xfec10000);
    parse_tables(b);
    CHECK_EQ(info.apic_count, 3);
    CHECK(info.apic_ids[0] == 0 && info.apic_ids[1] == 3 && info.apic_ids[2] == 300);
    CHECK_EQ(info.io_apic_count, 2);
    CHECK(info.io_apics[0] == 0xfec00000 && info.io_apics[1] == 0xfec10000);
    phys_free(b, 2);
}

TEST(acpi, many,
     "CPUs beyond the supported number are counted, and further interrupt controllers are ignored")
{
    struct builder *b = phys_alloc(8);
    REQUIRE(b != NULL);
    b->length = HEADER;
    for (unsigned i = 0; i < ACPI_CPUS_MAX + 5; i++)
        put_x2apic(b, i, 1);
    for (unsigned i = 0; i < ACPI_IO_APICS_MAX + 5; i++)
        put_io_apic(b, 0xfec00000 + 0x1000 * i);
    parse_tables(b);
    CHECK_EQ(info.apic_count, ACPI_CPUS_MAX);
    CHECK_EQ(info.apics_dropped, 5);
    CHECK_EQ(info.io_apic_count, ACPI_IO_APICS_MAX);
    phys_free(b, 8);
}

/* --- The way to the tables. --- */

#define OLD 9 /* the CPU that the RSDT names; the XSDT: */
#define NEW 7
#define HEAD 36 /* bytes of a table before its own */

static struct {
    uint8_t rsdt[64], xsdt[64], old[52], new[52], fadt[116], hpet[52];
} tables __attribute__((aligned(8)));
static struct boot_info boot;

static uint64_t physical_here(const void *p) { return (uint64_t)p - KERNEL_VMA; }

static void make_sum(uint8_t *bytes, unsigned count, unsigned at)
{
    uint8_t sum = 0;
    bytes[at] = 0;
    for (unsigned i = 0; i < count; i++)
        sum += bytes[i];
    bytes[at] = (uint8_t)-sum;
}

static void make_table(uint8_t *table, const char *signature, uint32_t length)
{
    memcpy(table, signature, 4);
    memcpy(table + 4, &length, sizeof length);
    make_sum(table, length, 9);
}

static void make_madt(uint8_t *table, uint8_t id)
{
    const uint8_t entry[8] = { 0, 8, 0, id, 1 };
    memcpy(table + HEADER, entry, sizeof entry);
    make_table(table, "APIC", HEADER + sizeof entry);
}

static void make_rsdp(uint8_t revision)
{
    uint32_t rsdt = (uint32_t)physical_here(tables.rsdt), length = 36;
    uint64_t xsdt = physical_here(tables.xsdt);
    boot.rsdp_given = true;
    memcpy(boot.rsdp, "RSD PTR ", 8);
    boot.rsdp[15] = revision;
    memcpy(boot.rsdp + 16, &rsdt, 4);
    memcpy(boot.rsdp + 20, &length, 4);
    memcpy(boot.rsdp + 24, &xsdt, 8);
    make_sum(boot.rsdp, 20, 8);
    make_sum(boot.rsdp, 36, 32);
}

/* The two root tables, each with a MADT of its own, then the same FADT and HPET. */
static void make_all(void)
{
    memset(&tables, 0, sizeof tables);
    const uint16_t port = 0x608;
    const uint64_t hpet = 0xfed00000;
    memcpy(tables.fadt + 76, &port, 2);
    tables.fadt[91] = 4;
    memcpy(tables.hpet + 44, &hpet, 8);
    make_madt(tables.old, OLD);
    make_madt(tables.new, NEW);
    make_table(tables.fadt, "FACP", sizeof tables.fadt);
    make_table(tables.hpet, "HPET", sizeof tables.hpet);
    const uint64_t at[3] = { physical_here(tables.new), physical_here(tables.fadt),
                             physical_here(tables.hpet) };
    memcpy(tables.xsdt + HEAD, at, sizeof at);
    for (unsigned i = 0; i < 3; i++)
        memcpy(tables.rsdt + HEAD + 4 * i, &at[i], 4);
    const uint32_t old = (uint32_t)physical_here(tables.old);
    memcpy(tables.rsdt + HEAD, &old, 4);
    make_table(tables.xsdt, "XSDT", HEAD + 24);
    make_table(tables.rsdt, "RSDT", HEAD + 12);
    make_rsdp(2);
}

/* Reads what has been made, and makes it anew. Returns the one CPU found, 0: none. */
static unsigned cpu_found(void)
{
    acpi_read(&boot, &info);
    make_all();
    return info.apic_count == 1 ? info.apic_ids[0] : 0;
}

TEST(acpi, roots,
     "the XSDT is used if RSDP and table are whole, else the RSDT; a wrong RSDP is none")
{
    make_all();
    CHECK_EQ(cpu_found(), NEW);
    make_rsdp(0);
    CHECK_EQ(cpu_found(), OLD);
    boot.rsdp[32]++;
    CHECK_EQ(cpu_found(), OLD);
    tables.xsdt[9]++;
    CHECK_EQ(cpu_found(), OLD);
    make_table(tables.xsdt, "RSDT", HEAD + 24);
    CHECK_EQ(cpu_found(), OLD);
    make_table(tables.rsdt, "XSDT", HEAD + 12);
    make_rsdp(0);
    CHECK_EQ(cpu_found(), 0);
    boot.rsdp[8]++;
    CHECK_EQ(cpu_found(), 0);
}

TEST(acpi, tables,
     "each table that a root names is read, those with a wrong sum are counted, and an entry that "
     "is cut is not read; an HPET beyond every address is none")
{
    const uint64_t beyond = 1ul << 62;
    make_all();
    CHECK_EQ(cpu_found(), NEW);
    CHECK(info.clocks.pm_timer == 0x608 && info.clocks.hpet == 0xfed00000);
    make_rsdp(0);
    CHECK_EQ(cpu_found(), OLD);
    CHECK(info.clocks.pm_timer == 0x608 && info.clocks.hpet == 0xfed00000);
    CHECK_EQ(info.wrong_sums, 0);
    tables.new[9]++;
    CHECK_EQ(cpu_found(), NEW);
    CHECK_EQ(info.wrong_sums, 1);
    make_table(tables.xsdt, "XSDT", HEAD + 20);
    CHECK_EQ(cpu_found(), NEW);
    CHECK(info.clocks.pm_timer == 0x608 && !info.clocks.hpet);
    memcpy(tables.hpet + 44, &beyond, 8);
    make_table(tables.hpet, "HPET", sizeof tables.hpet);
    CHECK_EQ(cpu_found(), NEW);
    CHECK_EQ(info.clocks.hpet, 0);
}
