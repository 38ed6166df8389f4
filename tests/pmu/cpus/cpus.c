/* SPDX-License-Identifier: MIT */
/* A program for the host: what the probes of pmu/ make of each processor, for tests/pmu/cpus.t. A
 * line of the standard input has, apart by tabs,
 *     COUNTERS LIST CAPABILITIES LIMIT LEAF.SUBLEAF=EAX:EBX:ECX:EDX ...
 * where COUNTERS are those that have registers, LIST is how many registers of branches there are
 * and where they begin (FIRST+COUNT, or -), CAPABILITIES are MSR 345h (or -), LIMIT is 1 if
 * MISC_ENABLE limits CPUID. All numbers are hexadecimal. A line of the output is
 *     DRIVER VERSION COUNTERS WIDTH WRITE-WIDTH FORM:DEPTH:FORMAT KNOWN TABLE, or none */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "pmu/branches.h"
#include "tests/pmu/cpus/row.h"

enum { LEAVES = 32, MISC_ENABLE = 0x1a0 };
static struct {
    uint64_t counters, capabilities, misc;
    uint64_t control; /* DEBUGCTL or its like */
    uint32_t list, depth;
    bool has_capabilities;
    unsigned count;
    struct {
        uint32_t leaf, subleaf;
        struct cpuid r;
    } leaves[LEAVES];
} row;
struct cpu_features cpu_features;

void panic(const char *format, ...)
{
    fprintf(stderr, "panic: %s\n", format);
    exit(1);
}

struct cpuid row_cpuid(uint32_t leaf, uint32_t subleaf)
{
    struct cpuid none = { 0 };
    for (unsigned i = 0; i < row.count; i++)
        if (row.leaves[i].leaf == leaf && row.leaves[i].subleaf == subleaf) {
            struct cpuid r = row.leaves[i].r;
            if (row.misc)
                r.eax = !leaf && r.eax > 3 ? 3 : leaf > 3 && leaf < 0x80000000 ? 0 : r.eax;
            return r;
        }
    return none;
}

static bool is_intel(void)
{
    return cpu_features.vendor[0] != 'A' && cpu_features.vendor[0] != 'H';
}

/* Selects and counters of both vendors, fixed ones, registers of the list. */
static bool has_register(uint32_t msr)
{
    bool v6 = is_intel() && (row_cpuid(0xa, 0).eax & 0xff) >= 6;
    if (msr == 0x1900)
        return v6;
    if (msr >= 0x186 && msr < 0x196)
        return is_intel() && row.counters >> (msr - 0x186) & 1;
    if (msr >= 0x309 && msr < 0x319)
        return is_intel() && row.counters >> (PMU_FIXED + msr - 0x309) & 1;
    if (msr == 0x1c8 || msr == 0x1c9 || msr == 0xc000010e)
        return row.depth && (msr < 0x1000) == is_intel();
    static const uint32_t others[] = { 0x40, 0x60, 0x680, 0x6c0, 0x1500, 0x1600 };
    for (unsigned i = 0; i < sizeof others / sizeof others[0]; i++)
        if ((others[i] == row.list || (i && others[i - 1] == row.list)) && msr >= others[i] &&
            msr < others[i] + row.depth)
            return true;
    if (row.list == 0xc0010300)
        return msr >= row.list && msr < row.list + 2 * row.depth;
    unsigned format = row.capabilities & 0x3f;
    uint32_t info = row.list == 0x1500 ? 0x1200 : format == 5 || format == 7 ? 0xdc0 : 0;
    return info && msr >= info && msr < info + row.depth;
}

static bool is_control(uint32_t msr)
{
    return msr == (!is_intel() ? 0xc000010f : row.list == 0x1500 ? 0x14ce : 0x1d9);
}

/* The last register that was written. */
static uint32_t kept_msr;
static uint64_t kept_value;

unsigned row_rdmsr(uint32_t msr, uint64_t *value)
{
    *value = is_control(msr) ? row.control : msr == MISC_ENABLE ? row.misc : row.capabilities;
    if (msr == MISC_ENABLE ? is_intel() : msr == 0x345 ? row.has_capabilities : is_control(msr))
        return 0;
    *value = msr == kept_msr ? kept_value : 0;
    return has_register(msr) ? 0 : 13;
}

unsigned row_rdpmc(uint32_t index) { return row.counters >> pmu_rdpmc_counter(index) & 1 ? 0 : 13; }

unsigned row_wrmsr(uint32_t msr, uint64_t value)
{
    if (msr == MISC_ENABLE)
        row.misc = value;
    if (is_control(msr) && row.depth)
        row.control = value;
    kept_msr = msr;
    kept_value = value;
    return is_control(msr) || msr == MISC_ENABLE || has_register(msr) ? 0 : 13;
}

static bool read_row(char *line)
{
    memset(&row, 0, sizeof row);
    char *field = strtok(line, "\t\n");
    for (unsigned n = 0; field; field = strtok(NULL, "\t\n"), n++) {
        if (n == 0)
            row.counters = strtoull(field, NULL, 16);
        else if (n == 1)
            sscanf(field, "%x+%x", &row.list, &row.depth);
        else if (n == 2)
            row.has_capabilities = sscanf(field, "%lx", &row.capabilities) == 1;
        else if (n == 3)
            row.misc = *field == '1' ? 1ul << 22 : 0;
        else if (row.count == LEAVES ||
                 sscanf(field, "%x.%x=%x:%x:%x:%x", &row.leaves[row.count].leaf,
                        &row.leaves[row.count].subleaf, &row.leaves[row.count].r.eax,
                        &row.leaves[row.count].r.ebx, &row.leaves[row.count].r.ecx,
                        &row.leaves[row.count].r.edx) != 6)
            return false;
        else
            row.count++;
    }
    return row.count;
}

static void probe(struct pmu_kind *kind, struct pmu_branches *list)
{
    struct cpuid name = row_cpuid(0, 0);
    memcpy(cpu_features.vendor, &name.ebx, 4);
    memcpy(cpu_features.vendor + 4, &name.edx, 4);
    memcpy(cpu_features.vendor + 8, &name.ecx, 4);
    pmu_set_signature(kind, row_cpuid(1, 0).eax);
    if (!intel_probe(kind))
        amd_probe(kind);
    pmu_branches_probe(list);
}

int main(void)
{
    char line[4096];
    while (fgets(line, sizeof line, stdin)) {
        struct pmu_kind kind = { 0 };
        struct pmu_branches list = { 0 };
        if (!read_row(line))
            return 1;
        probe(&kind, &list);
        if (!kind.driver)
            puts("none");
        else
            printf("%s %u %lx %u %u %u:%u:%x %d %s\n", kind.driver, kind.version, kind.reported,
                   kind.gp_width, kind.gp_write_width, (unsigned)list.form, list.depth, list.format,
                   kind.known, kind.table->name);
    }
    return 0;
}
