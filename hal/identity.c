/* SPDX-License-Identifier: MIT */
/* What tables and CPUID say, in three lines. */
#include "hal/identity.h"
#include "hal/hypervisor.h"
#include "hal/smbios.h"
#include "kernel/base/boot_info.h"
#include "kernel/base/cpu.h"
#include "kernel/base/msr.h"
#include "kernel/base/print.h"
#include "kernel/base/string.h"
#include "kernel/base/x86.h"

/* Prints both names, or the one that is not empty, or nothing. */
static void print_pair(const char *before, const char *first, const char *second)
{
    if (strcmp(first, second) == 0)
        second = "";
    if (*first || *second)
        print("%s%s%s%s", before, first, *first && *second ? " " : "", second);
}

static void print_machine(const struct boot_info *boot)
{
    static struct smbios s;
    smbios_read(boot, &s);
    print("# board: ");
    if (!*s.name[SMBIOS_MAKER] && !*s.name[SMBIOS_PRODUCT] && !*s.name[SMBIOS_BOARD])
        print("no table names it");
    print_pair("", s.name[SMBIOS_MAKER], s.name[SMBIOS_PRODUCT]);
    if (strcmp(s.name[SMBIOS_BOARD], s.name[SMBIOS_PRODUCT]) != 0)
        print_pair(", board ", s.name[SMBIOS_BOARD_MAKER], s.name[SMBIOS_BOARD]);
    print_pair(boot->efi ? "; UEFI " : "; BIOS ", s.name[SMBIOS_FIRMWARE_VENDOR],
               s.name[SMBIOS_FIRMWARE_VERSION]);
    print("\n");
}

/* The revision of the microcode, 0 if unknown. On Intel CPUID loads it into the MSR. */
static uint32_t microcode(void)
{
    uint64_t value = 0;
    bool intel = strcmp(cpu_features.vendor, "GenuineIntel") == 0;
    if (intel && wrmsr_fault(MSR_MICROCODE, 0))
        return 0;
    cpuid(1, 0);
    if (rdmsr_fault(MSR_MICROCODE, &value))
        return 0;
    return (uint32_t)(intel ? value >> 32 : value);
}

static void print_cpu(void)
{
    print("# cpu: %s (%s family %xh model %xh stepping %xh",
          *cpu_features.name ? cpu_features.name : "no brand string", cpu_features.vendor,
          cpu_features.family, cpu_features.model, cpu_features.stepping);
    uint32_t revision = microcode();
    if (revision)
        print(", microcode %xh", revision);
    print(")\n");
}

void identity_print(const struct boot_info *boot)
{
    char hypervisor[120];
    print_machine(boot);
    print_cpu();
    hypervisor_name(hypervisor, sizeof hypervisor);
    print("# hypervisor: %s\n", hypervisor);
}
