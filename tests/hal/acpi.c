/* SPDX-License-Identifier: MIT */
/* Firmware's tables as they should be, and as they should not: invented ones, in memory of ours. */
#include "hal/acpi.h"
#include "kernel/base/string.h"
#include "kernel/mm/phys.h"
#include "tests/harness/test.h"

#define HEADER 44 /* of a MADT */
#define SIZE 4096
#define STRANGER 0x5eed /* the id in entries that nobody may read */

static struct acpi_info info;

struct builder {
    unsigned length;
    uint8_t bytes[];
};

static void put(struct builder *b, const void *bytes, unsigned count)
{
    memcpy(b->bytes + b->length, bytes, count);
    b->length += count;
}

static void put_apic(struct builder *b, uint8_t id, uint32_t flags)
{
    const uint8_t entry[8] = { 0, 8, 0, id, (uint8_t)flags };
    put(b, entry, sizeof entry);
}

static void put_x2apic(struct builder *b, uint32_t id, uint32_t flags)
{
    const uint32_t entry[4] = { 9 | 16 << 8, id, flags, 0 };
    put(b, entry, sizeof entry);
}

static void put_io_apic(struct builder *b, uint32_t address)
{
    const uint32_t entry[3] = { 1 | 12 << 8, address, 0 };
    put(b, entry, sizeof entry);
}

static struct builder *begin(void)
{
    struct builder *b = phys_alloc(2);
    if (CHECK(b != NULL))
        b->length = HEADER;
    return b;
}

static void parse(const struct builder *b)
{
    memset(&info, 0, sizeof info);
    acpi_parse_madt(b->bytes, b->length, &info);
}

TEST(acpi, madt,
     "each enabled CPU is found once, by either kind of entry, and interrupt controllers at "
     "plausible addresses")
{
    struct builder *b = begin();
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
    parse(b);
    CHECK_EQ(info.apic_count, 3);
    CHECK(info.apic_ids[0] == 0 && info.apic_ids[1] == 3 && info.apic_ids[2] == 300);
    CHECK_EQ(info.io_apic_count, 2);
    CHECK(info.io_apics[0] == 0xfec00000 && info.io_apics[1] == 0xfec10000);
    phys_free(b, 2);
}

TEST(acpi, short_entry, "an entry that is shorter than its own head ends the table")
{
    /* One byte further on lies what would be an interrupt controller. */
    static const uint8_t entries[] = { 5, 1, 12, 0, 0, 0, 0, 0xc0, 0xfe, 0, 0, 0, 0 };
    struct builder *b = begin();
    put(b, entries, sizeof entries);
    parse(b);
    CHECK_EQ(info.io_apic_count, 0);
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
    parse(b);
    CHECK_EQ(info.apic_count, ACPI_CPUS_MAX);
    CHECK_EQ(info.apics_dropped, 5);
    CHECK_EQ(info.io_apic_count, ACPI_IO_APICS_MAX);
    phys_free(b, 8);
}

/* All that is well-formed in one table, with strangers behind its end. */
static struct builder *whole(void)
{
    struct builder *b = begin();
    for (unsigned i = 0; b && i < 8; i++) {
        put_apic(b, (uint8_t)(2 * i), 1);
        put_x2apic(b, 2 * i + 1, 1);
        put_io_apic(b, 0xfec00000 + 0x1000 * i);
    }
    unsigned length = b ? b->length : 0;
    while (b && b->length + 16 <= SIZE - 16)
        put_x2apic(b, STRANGER, 1);
    if (b)
        b->length = length;
    return b;
}

static bool stranger_seen(void)
{
    for (unsigned i = 0; i < info.apic_count; i++)
        if (info.apic_ids[i] == STRANGER)
            return true;
    return false;
}

TEST(acpi, any_length,
     "of a table of any length only the entries that lie in it completely are read")
{
    struct builder *b = whole();
    REQUIRE(b != NULL);
    unsigned full = b->length;
    for (b->length = 0; b->length <= full; b->length++) {
        unsigned entries = b->length > HEADER ? b->length - HEADER : 0, rest = entries % 36;
        parse(b);
        /* Eight times entries of 8, 16 and 12 bytes. */
        if (!CHECK(!stranger_seen()) ||
            !CHECK_EQ(info.apic_count, entries / 36 * 2 + (rest >= 8) + (rest >= 24)) ||
            !CHECK_EQ(info.io_apic_count, entries / 36))
            break;
    }
    CHECK_EQ(info.apic_count, 16);
    phys_free(b, 2);
}

static uint32_t random(uint32_t *state) { return *state = *state * 1664525 + 1013904223; }

TEST(acpi, garbage, "tables with random bytes are read to their end and not beyond")
{
    uint32_t state = 12;
    struct builder *b = whole();
    REQUIRE(b != NULL);
    for (unsigned round = 0; round < 5000; round++) {
        uint8_t saved[SIZE / 8];
        memcpy(saved, b->bytes, b->length);
        for (unsigned n = random(&state) >> 24 & 7; n < 8; n++)
            b->bytes[HEADER + (random(&state) >> 8) % (b->length - HEADER)] =
                (uint8_t)(random(&state) >> 24);
        parse(b);
        memcpy(b->bytes, saved, b->length);
        /* 36, 24: so many of 8 and of 12 bytes have room. */
        if (!CHECK(!stranger_seen() && info.apic_count <= 36 && info.io_apic_count <= 24))
            break;
    }
    phys_free(b, 2);
}

TEST(acpi, pm_timer,
     "the power management timer is found in an FADT that has one at a plausible port")
{
    static uint8_t fadt[276];
    uint32_t port = 0x608, flags = 1 << 8;
    memcpy(fadt + 76, &port, 4);
    memcpy(fadt + 112, &flags, 4);
    fadt[91] = 4;
    info = (struct acpi_info){ 0 };
    acpi_parse_fadt(fadt, 115, &info);
    CHECK_EQ(info.clocks.pm_timer, 0);
    acpi_parse_fadt(fadt, 116, &info);
    CHECK(info.clocks.pm_timer == 0x608 && info.clocks.pm_timer_32);
    info = (struct acpi_info){ 0 };
    fadt[91] = 3;
    acpi_parse_fadt(fadt, sizeof fadt, &info);
    CHECK_EQ(info.clocks.pm_timer, 0);
    fadt[91] = 4;
    port = 0x10608;
    memcpy(fadt + 76, &port, 4);
    acpi_parse_fadt(fadt, sizeof fadt, &info);
    CHECK_EQ(info.clocks.pm_timer, 0);
}

TEST(acpi, hpet,
     "an HPET is used if its table is complete and its registers are in memory and aligned")
{
    static uint8_t table[56];
    uint64_t address = 0xfed00000;
    memcpy(table + 44, &address, 8);
    info = (struct acpi_info){ 0 };
    acpi_parse_hpet(table, 51, &info);
    CHECK_EQ(info.clocks.hpet, 0);
    table[40] = 1; /* ports */
    acpi_parse_hpet(table, sizeof table, &info);
    CHECK_EQ(info.clocks.hpet, 0);
    table[40] = 0;
    table[44] = 2;
    acpi_parse_hpet(table, sizeof table, &info);
    CHECK_EQ(info.clocks.hpet, 0);
    table[44] = 0;
    acpi_parse_hpet(table, sizeof table, &info);
    CHECK_EQ(info.clocks.hpet, 0xfed00000);
}
