/* SPDX-License-Identifier: MIT */
/* What firmware's tables say of CPUs, interrupt controllers and clocks. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "hal/machine/clock.h"
#include "hal/machine/reboot.h"

#define ACPI_CPUS_MAX 1024
#define ACPI_IO_APICS_MAX 32

struct acpi_info {
    uint32_t apic_ids[ACPI_CPUS_MAX]; /* enabled CPUs in the order of the MADT, the boot CPU among
                                         them */
    unsigned apic_count;              /* 0: no MADT */
    unsigned apics_dropped;           /* enabled CPUs beyond the capacity above */
    uint32_t io_apics[ACPI_IO_APICS_MAX]; /* physical addresses of their registers */
    unsigned io_apic_count;
    unsigned wrong_sums; /* tables whose checksum is wrong, which are used */
    struct clock_sources clocks;
    struct reset_register reset;
    bool no_8042;     /* the FADT denies a keyboard controller */
    uint16_t console; /* the port of a UART that the SPCR names; 0: none */
};

struct boot_info;

/* Takes the RSDP from the loader's tags, or if they have none from BIOS memory. Without a MADT it
 * prints a line that says why. Once, on the boot CPU, before there are processes: tables above 4 GB
 * are added to the direct map. */
void acpi_read(const struct boot_info *boot, struct acpi_info *info);

/* The SPCR's port of a serial console, 0: none. From power-on, without a word. */
uint16_t acpi_console(const struct boot_info *boot);

/* Adds to `info` what a table of this length says, as far as `info` holds it. Any bytes are legal:
 * nothing after `length` is read. For acpi_read, and for tests. */
void acpi_parse_madt(const void *table, size_t length, struct acpi_info *info);
void acpi_parse_fadt(const void *table, size_t length, struct acpi_info *info);
void acpi_parse_spcr(const void *table, size_t length, struct acpi_info *info);
