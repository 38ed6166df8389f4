/* SPDX-License-Identifier: MIT */
/* The MADT: which CPUs there are. */
#pragma once
#include <stdint.h>
#include "kernel/layout.h"

struct acpi_info {
    uint32_t apic_ids[MAX_CPUS]; /* enabled CPUs, the boot CPU among them */
    unsigned apic_count;         /* 0: no MADT */
};

struct boot_info;

/* Looks for the RSDP in the loader's tags, then in BIOS memory; says in one line why there is no MADT. */
void acpi_read(const struct boot_info *boot, struct acpi_info *info);
