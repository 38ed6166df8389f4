/* SPDX-License-Identifier: MIT */
/* Included before the files of pmu/ that cpus.c is linked with: their CPUID and MSRs are those of a
 * row of cpus.tsv. */
#pragma once
#include "kernel/base/x86.h"

struct cpuid row_cpuid(uint32_t leaf, uint32_t subleaf);
unsigned row_rdmsr(uint32_t msr, uint64_t *value);
unsigned row_rdpmc(uint32_t index);
unsigned row_wrmsr(uint32_t msr, uint64_t value);
#define cpuid(leaf, subleaf) row_cpuid(leaf, subleaf)
#define rdmsr_fault(msr, value) row_rdmsr(msr, value)
#define rdpmc_fault(index, value) row_rdpmc(index)
#define wrmsr_fault(msr, value) row_wrmsr(msr, value)
