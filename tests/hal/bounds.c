/* SPDX-License-Identifier: MIT */
/* Every field that firmware or a caller gives has a first and a last value: both are taken, and
 * what is beside them is not. A row each, of all that is right but for one value. */
#include "hal/machine/acpi.h"
#include "hal/machine/io_apic.h"
#include "hal/machine/smbios.h"
#include "hal/pmc.h"
#include "kernel/base/layout.h"
#include "kernel/mm/vm.h"
#include "tests/harness/counter_list.h"
#include "tests/harness/profile.h"

struct bound {
    const char *name;
    bool (*takes)(uint64_t value);
    uint64_t least, most; /* 0: there is none */
};

/* Of rows: name, first and last value, whether it is taken. */
#define TAKES(name, least, most, ...)                                                              \
    static bool name(uint64_t value) { return __VA_ARGS__; }
#define BOUND(name, least, most, ...) { #name, name, least, most },

static void check_bound(const struct bound *b)
{
    bool ok = CHECK(b->takes(b->least) && b->takes(b->most ? b->most : b->least));
    ok &= CHECK(!b->least || !b->takes(b->least - 1));
    if (!(ok & CHECK(!b->most || !b->takes(b->most + 1))))
        test_note("%s", b->name);
}

#define CHECK_BOUNDS(rows)                                                                         \
    do {                                                                                           \
        const struct bound rows_[] = { rows(BOUND) };                                              \
        for_each_in(b_, rows_)                                                                     \
            check_bound(b_);                                                                       \
    } while (0)

/* --- Firmware's tables. --- */

static uint8_t table[4096] __attribute__((aligned(4096)));
static struct acpi_info info;

static uint64_t place(void) { return (uint64_t)table - KERNEL_VMA; }

static bool console(uint64_t kind, uint64_t space, uint64_t port, size_t length)
{
    memset(table, 0, sizeof table);
    table[36] = (uint8_t)kind;
    table[40] = (uint8_t)space;
    memcpy(table + 44, &port, sizeof port);
    info = (struct acpi_info){ 0 };
    acpi_parse_spcr(table, length, &info);
    return info.console && info.console == port;
}

/* Of an FADT, this many bytes with one of them changed. */
static const struct acpi_info *fadt(size_t length, unsigned at, uint64_t value)
{
    const uint32_t timer = 0x608;
    table[8] = 3;
    memcpy(table + 76, &timer, sizeof timer);
    table[91] = 4;
    table[113] |= 1 << 2; /* there is a reset register */
    table[128] = 0x5a;
    if (at)
        memcpy(table + at, &value, at == 76 ? 4 : 1);
    info = (struct acpi_info){ 0 };
    acpi_parse_fadt(table, length, &info);
    return &info;
}

static const struct acpi_info *new_fadt(size_t length, unsigned at, uint64_t value)
{
    memset(table, 0, sizeof table);
    return fadt(length, at, value);
}

static bool reset(uint64_t space, uint64_t bits, uint64_t offset, uint64_t address)
{
    memset(table, 0, sizeof table);
    table[116] = (uint8_t)space;
    table[117] = (uint8_t)bits;
    table[118] = (uint8_t)offset;
    memcpy(table + 120, &address, sizeof address);
    const struct reset_register *r = &fadt(129, 0, 0)->reset;
    return r->known && r->address == address && r->space == space && r->value == 0x5a;
}

/* A MADT of one entry, or of its first bytes. */
static bool entry(unsigned kind, uint64_t length, uint64_t address, size_t bytes)
{
    memset(table, 0, sizeof table);
    table[44] = (uint8_t)kind;
    table[45] = (uint8_t)length;
    memcpy(table + 48, &address, sizeof address);
    table[52] |= kind != 1;
    info = (struct acpi_info){ 0 };
    acpi_parse_madt(table, 44 + bytes, &info);
    return info.apic_count + info.io_apic_count == 1;
}

/* The name of a system whose structure has so many bytes, behind one of another type. */
static bool product(uint64_t before, uint64_t own, size_t whole)
{
    struct smbios s = { 0 };
    memset(table, 0, sizeof table);
    table[0] = 4;
    table[1] = (uint8_t)before;
    table[before + 2] = 1;
    table[before + 3] = (uint8_t)own;
    table[before + 6] = table[before + 7] = 1;
    table[before + 2 + own] = 'X';
    smbios_parse(table, whole, &s);
    return strcmp(s.name[SMBIOS_PRODUCT], "X") == 0;
}

/* A device in memory: its index register tells where it was looked at last. */
static uint64_t lines_masked(uint64_t version)
{
    const uint32_t address = (uint32_t)place();
    memset(table, 0, sizeof table);
    memcpy(table + 0x10, &version, 4);
    io_apic_mask(&address, 1);
    return table[0] + table[1] * 256u;
}

static bool hpet_of(uint64_t period, uint32_t config)
{
    struct clock_sources sources = *clock_sources();
    struct clock_counter counters[CLOCK_COUNTERS];
    const uint32_t want = config & 1 ? config : (config & ~2u) | 1;
    sources.hpet = place();
    memset(table, 0, sizeof table);
    memcpy(table + 4, &period, 4);
    memcpy(table + 16, &config, sizeof config);
    clock_counters(&sources, counters);
    const uint64_t hz = counters[CLOCK_HPET].hz;
    clock_counters(clock_sources(), counters);
    return hz && CHECK_EQ(hz, 1000000000000000 / period) &&
           CHECK(memcmp(table + 16, &want, sizeof want) == 0);
}

/* Whether CPUID 1 is there where this leaf is the last. */
static bool has_leaf_1(uint64_t last)
{
    const uint32_t before = cpu_features.max_leaf;
    cpu_features.max_leaf = (uint32_t)last;
    const bool has = cpuid_leaf(1).eax;
    cpu_features.max_leaf = before;
    return has;
}

/* clang-format off */
#define FIRMWARE(ROW) \
    ROW(last_leaf, 1, 0, has_leaf_1(value)) \
    ROW(spcr_kind, 0, 1, console(value, 1, 0x2f8, 80)) \
    ROW(spcr_space, 1, 1, console(0, value, 0x2f8, 80)) \
    ROW(spcr_port, 1, 0xfff8, console(0, 1, value, 80)) \
    ROW(spcr_length, 52, 0, console(0, 1, 0x2f8, value)) \
    ROW(fadt_length, 116, 0, new_fadt(value, 0, 0)->clocks.pm_timer == 0x608) \
    ROW(timer_length, 4, 4, new_fadt(129, 91, value)->clocks.pm_timer) \
    ROW(timer_port, 1, 0xfffc, new_fadt(129, 76, value)->clocks.pm_timer == value && value) \
    ROW(fadt_keyboard, 2, 3, !new_fadt(129, 109, value)->no_8042) \
    ROW(fadt_revision, 3, 0, new_fadt(129, 8, value)->no_8042) \
    ROW(reset_flag, 4, 7, \
        (table[117] = 8, table[116] = RESET_IN_PORTS, fadt(129, 113, value)->reset.known)) \
    ROW(reset_length, 129, 0, \
        reset(RESET_IN_PORTS, 8, 0, 0xcf9) && fadt(value, 0, 0)->reset.known) \
    ROW(reset_space, 0, 2, reset(value, 8, 0, VM_DEVICES) || reset(value, 8, 0, 0xff)) \
    ROW(reset_bits, 8, 8, reset(RESET_IN_PORTS, value, 0, 0xcf9)) \
    ROW(reset_byte, 1, 1, reset(RESET_IN_PORTS, 8, value - 1, 0xcf9)) \
    ROW(reset_port, 0, 0xffff, reset(RESET_IN_PORTS, 8, 0, value)) \
    ROW(reset_memory, VM_DEVICES, 0, reset(RESET_IN_MEMORY, 8, 0, value)) \
    ROW(reset_device, 0, 31, reset(RESET_IN_PCI, 8, 0, value << 32 | 0x700ff)) \
    ROW(reset_function, 0, 7, reset(RESET_IN_PCI, 8, 0, value << 16 | 0xff)) \
    ROW(reset_bit_15, 1, 1, reset(RESET_IN_PCI, 8, 0, 0x8000 - 0x8000 * value)) \
    ROW(reset_bit_31, 1, 1, reset(RESET_IN_PCI, 8, 0, 0x80000000 - 0x80000000 * value)) \
    ROW(reset_register, 0, 255, reset(RESET_IN_PCI, 8, 0, 0x1f00070000 | value)) \
    ROW(local_apic, 8, 40, entry(0, value, 1, 40)) \
    ROW(x2apic, 16, 40, entry(9, value, 1, 40)) \
    ROW(io_apic, 12, 40, entry(1, value, VM_DEVICES, 40)) \
    ROW(whole_local_apic, 8, 0, entry(0, 8, 1, value)) \
    ROW(whole_x2apic, 16, 0, entry(9, 16, 1, value)) \
    ROW(whole_io_apic, 12, 0, entry(1, 12, VM_DEVICES, value)) \
    ROW(io_apic_address, VM_DEVICES / 16, 0, entry(1, 12, 16 * value, 40)) \
    ROW(first_length, 4, 189, product(value, 8, 200)) \
    ROW(own_length, 6, 57, product(4, value, 64)) \
    ROW(smbios_length, 15, 0, product(4, 8, value)) \
    ROW(io_apic_lines, 1, 120, lines_masked((2 * value - 1) << 16 | 0x20) == 0xe + 4 * value) \
    ROW(io_apic_bit_7, 1, 1, lines_masked(0x80 * value | 1 << 16) == 0x12) \
    ROW(io_apic_version, 1, 0xff, lines_masked(value | 1 << 16) == 0x12) \
    ROW(hpet_period, 100000, 100000000, hpet_of(value, 2) && hpet_of(value, 3))
/* clang-format on */
FIRMWARE(TAKES)

TEST(bounds, firmware, "the first and the last value of each field of firmware's are taken alone")
{
    CHECK_BOUNDS(FIRMWARE);
}

/* --- Callers. --- */

static bool names_source(uint64_t letter, uint64_t letters, uint64_t code)
{
    HAL_PROFILE_SOURCE_ADD add = { .EventSelect = (USHORT)code };
    for (uint64_t i = 0; i < letters; i++)
        add.Description[i] = (WCHAR)letter;
    NTSTATUS status = HalSetSystemInformation(HalProfileSourceAdd, sizeof add, &add);
    if (NT_SUCCESS(status))
        CHECK_OK(hal_source_remove(add.Source));
    return status != STATUS_INVALID_PARAMETER;
}

static bool counts(uint64_t count)
{
    ULONG sources[MAX_HW_COUNTERS + 1] = { 0 }, selectors[MAX_HW_COUNTERS + 1];
    HANDLE handle;
    return hal_count_sources("bounds", sources, (ULONG)count, selectors, &handle) !=
           STATUS_INVALID_PARAMETER;
}

static bool collects(uint64_t cpu, uint64_t count)
{
    KPROFILE_SOURCE sources[MAX_HW_COUNTERS + 1] = { ProfileTime };
    PMC_HANDLE set;
    return HalAllocatePmcCounterSet((ULONG)cpu, sources, (ULONG)count, &set) !=
           STATUS_INVALID_PARAMETER;
}

/* A good descriptor, or group, and a bad one that the count leaves out or not. */
static bool allocates(uint64_t groups, uint64_t descriptors)
{
    GROUP_AFFINITY affinity[2] = { { .Mask = 1 }, { .Mask = 0 } };
    struct list list = { (ULONG)descriptors, { single(nth_counter(0)), of_type(ResourceTypeMax) } };
    HANDLE handle;
    NTSTATUS status =
        HalAllocateHardwareCounters(affinity, (ULONG)groups,
                                    (PPHYSICAL_COUNTER_RESOURCE_LIST)(void *)&list, &handle);
    if (NT_SUCCESS(status))
        free_and_check(handle);
    return NT_SUCCESS(status);
}

static bool queries(HAL_QUERY_INFORMATION_CLASS class, uint64_t cpu, uint64_t size)
{
    static ULONG buffer[4096];
    NTSTATUS status = HalQuerySystemInformation(class, (ULONG)size, memset(buffer, 0, 64), NULL);
    *buffer = (ULONG)cpu;
    return status != STATUS_INFO_LENGTH_MISMATCH &&
           HalQuerySystemInformation(class, (ULONG)size, buffer, NULL) != STATUS_INVALID_PARAMETER;
}

static bool sets(HAL_SET_INFORMATION_CLASS class, uint64_t size)
{
    uint64_t buffer[16] = { 0xff };
    return HalSetSystemInformation(class, (ULONG)size, buffer) != STATUS_INFO_LENGTH_MISMATCH;
}

/* clang-format off */
#define CALLERS(ROW) \
    ROW(time_interval, 1221, 1000000, hal_source_set_interval(ProfileTime, value) == value) \
    ROW(source_size, sizeof(HAL_PROFILE_SOURCE_INFORMATION), 0, \
        queries(HalProfileSourceInformation, 0, value)) \
    ROW(timer_size, 1, 0, queries(HalQueryProfileIsTimerBasedProfiling, 0, value)) \
    ROW(number_size, 4, 0, queries(HalQueryProfileNumberOfCounters, 0, value)) \
    ROW(corruption_size, sizeof(HAL_PROFILE_CORRUPTION_STATUS), 0, \
        queries(HalQueryProfileCorruptionStatus, 0, value)) \
    ROW(corruption_cpu, 1, cpu_count, queries(HalQueryProfileCorruptionStatus, value - 1, 4096)) \
    ROW(ownership_cpu, 1, cpu_count, queries(HalQueryProfileCounterOwnership, value - 1, 4096)) \
    ROW(interval_size, sizeof(HAL_PROFILE_SOURCE_INTERVAL), 0, \
        sets(HalProfileSourceInterval, value)) \
    ROW(add_size, sizeof(HAL_PROFILE_SOURCE_ADD), 0, sets(HalProfileSourceAdd, value)) \
    ROW(remove_size, sizeof(KPROFILE_SOURCE), 0, sets(HalProfileSourceRemove, value)) \
    ROW(cpu_of_set, 1, cpu_count, collects(value - 1, 1)) \
    ROW(count_of_set, 1, MAX_HW_COUNTERS, collects(0, value)) \
    ROW(count_of_sources, 1, MAX_HW_COUNTERS, counts(value))
/* clang-format on */
CALLERS(TAKES)

/* clang-format off */
#define WITH_COUNTERS(ROW) \
    ROW(event_interval, 4096, 2147483647, hal_source_set_interval(SOURCE, value) == value) \
    ROW(source_code, 0, 0xfff, names_source('x', 2, value)) \
    ROW(source_letters, 1, 32, names_source('x', value, 0xc0)) \
    ROW(source_letter, ' ', '~', names_source(value, 2, 0xc0)) \
    ROW(group_count, 1, 1, allocates(value, 1)) \
    ROW(descriptor_count, 1, 1, allocates(1, value))
/* clang-format on */
WITH_COUNTERS(TAKES)

TEST(bounds, callers,
     "the first and the last size, number and count of each field that a caller of the HAL gives "
     "are taken alone; a count covers no entry behind it")
{
    const ULONG time = hal_source_interval(ProfileTime);
    CHECK_BOUNDS(CALLERS);
    hal_source_set_interval(ProfileTime, time);
    SKIP_WITHOUT_SOURCE();
    const ULONG before = hal_source_interval(SOURCE);
    CHECK_BOUNDS(WITH_COUNTERS);
    hal_source_set_interval(SOURCE, before);
}
