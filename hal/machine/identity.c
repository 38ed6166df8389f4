/* SPDX-License-Identifier: MIT */
/* What tables and CPUID say of this machine, in three lines. Hypervisors are named by leaf
 * 4000_0000h, their versions by their other leaves. Sources: Linux
 * Documentation/virt/kvm/x86/cpuid.rst; Hypervisor Top Level Functional Specification (Hyper-V)
 * 2.4; Xen's public/arch-x86/cpuid.h. */
#include "hal/machine/identity.h"
#include "hal/machine/smbios.h"
#include "kernel/base/bits.h"
#include "kernel/base/boot_info.h"
#include "kernel/base/cpu.h"
#include "kernel/base/msr.h"
#include "kernel/base/print.h"
#include "kernel/base/string.h"
#include "kernel/base/x86.h"

#define LEAF 0x40000000u
#define LEAF_STEP 0x100u /* to the leaves of a further interface */
#define LEAF_LAST 0x40010000u

static const struct {
    char signature[13];
    const char *name;
} known[] = {
    { "KVMKVMKVM", "KVM" },          { "Microsoft Hv", "Hyper-V" },
    { "VMwareVMware", "VMware" },    { "XenVMMXenVMM", "Xen" },
    { "TCGTCGTCGTCG", "QEMU TCG" },  { "VBoxVBoxVBox", "VirtualBox" },
    { "bhyve bhyve ", "bhyve" },     { " lrpepyh  vr", "Parallels" },
    { "prl hyperv  ", "Parallels" }, { "ACRNACRNACRN", "ACRN" },
    { "OpenBSDVMM58", "OpenBSD" },   { "ntpmu-vpmu", "our virtual PMU" },
};

/* A feature, and the first Linux whose KVM has it. */
static const struct {
    uint8_t bit;
    char since[5];
} kvm_features[] = { { 14, "5.8" }, { 13, "5.3" }, { 11, "4.19" }, { 9, "4.16" } };

struct writer {
    char *text;
    size_t size, used;
};

__attribute__((format(printf, 2, 3))) static void add_text(struct writer *w, const char *format,
                                                           ...)
{
    va_list args;
    va_start(args, format);
    w->used += print_to_va(w->text + w->used, w->size - w->used, format, args);
    va_end(args);
}

static void signature_of(hypervisor_cpuid *ask, uint32_t leaf, char text[13])
{
    struct cpuid r = ask(leaf);
    memcpy(text, &r.ebx, 4);
    memcpy(text + 4, &r.ecx, 4);
    memcpy(text + 8, &r.edx, 4);
    text[12] = 0;
    for (unsigned i = 0; i < 12; i++)
        if (text[i] && (text[i] < ' ' || text[i] > '~'))
            text[i] = '?';
}

static const char *name_of_hypervisor(const char *signature)
{
    for_each_in(k, known)
        if (strcmp(k->signature, signature) == 0)
            return k->name;
    return NULL;
}

static void describe_kvm(hypervisor_cpuid *ask, uint32_t leaf, struct writer *w)
{
    uint32_t features = ask(leaf + 1).eax;
    add_text(w, ", features %x", features);
    for_each_in(f, kvm_features)
        if (features >> f->bit & 1) {
            add_text(w, " (Linux %s or later)", f->since);
            return;
        }
}

static void describe_version(hypervisor_cpuid *ask, uint32_t leaf, const char *name,
                             struct writer *w)
{
    if (strcmp(name, "KVM") == 0)
        describe_kvm(ask, leaf, w);
    if (strcmp(name, "Hyper-V") == 0 && ask(leaf).eax >= leaf + 2)
        add_text(w, " %u.%u.%u", ask(leaf + 2).ebx >> 16, ask(leaf + 2).ebx & 0xffff,
                 ask(leaf + 2).eax);
    if (strcmp(name, "Xen") == 0)
        add_text(w, " %u.%u", ask(leaf + 1).eax >> 16, ask(leaf + 1).eax & 0xffff);
}

void hypervisor_describe(hypervisor_cpuid *ask, char *text, size_t size)
{
    struct writer w = { text, size, 0 };
    char signature[13];
    *text = 0;
    for (uint32_t leaf = LEAF, names = 0; leaf < LEAF_LAST && names < 2; leaf += LEAF_STEP) {
        signature_of(ask, leaf, signature);
        const char *name = name_of_hypervisor(signature);
        if (!name && leaf > LEAF)
            continue;
        add_text(&w, "%s", names++ ? ", also " : "");
        if (name)
            add_text(&w, "%s", name);
        else
            add_text(&w, *signature ? "unknown, \"%s\"" : "one without a name%s", signature);
        if (name)
            describe_version(ask, leaf, name, &w);
    }
}

static struct cpuid ask_cpu(uint32_t leaf) { return cpuid(leaf, 0); }

void hypervisor_name(char *text, size_t size)
{
    if (cpu_features.hypervisor)
        hypervisor_describe(ask_cpu, text, size);
    else
        print_to(text, size, "none");
}

/* --- The lines. --- */

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
