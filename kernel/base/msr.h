/* SPDX-License-Identifier: MIT */
/* Names of the MSRs outside the PMU. The PMU's are known to pmu/ only. */
#pragma once

#define MSR_TSC 0x10
#define MSR_APIC_BASE 0x1b
#define APIC_BASE_X2APIC (1u << 10)
#define APIC_BASE_ENABLE (1u << 11)
#define MSR_TSC_ADJUST 0x3b
#define MSR_MICROCODE 0x8b
#define MSR_PAT 0x277
/* As after a reset, but entry 1 (PWT alone) is write-combining instead of write-through. */
#define PAT_OURS 0x0007040600070106
#define MSR_AMD_INTERRUPT_PENDING 0xc0010055
#define AMD_C1E (3u << 27) /* SmiOnCmpHalt, C1eOnCmpHalt */
#define MSR_SYSENTER_CS 0x174
#define MSR_SYSENTER_ESP 0x175
#define MSR_SYSENTER_EIP 0x176
#define MSR_EFER 0xc0000080
#define EFER_SCE (1u << 0)
#define EFER_LME (1u << 8)
#define EFER_LMA (1u << 10)
#define EFER_NXE (1u << 11)
#define EFER_SVME (1u << 12)
#define MSR_STAR 0xc0000081
#define MSR_LSTAR 0xc0000082
#define MSR_CSTAR 0xc0000083
#define MSR_SFMASK 0xc0000084
#define MSR_FS_BASE 0xc0000100
#define MSR_GS_BASE 0xc0000101
#define MSR_KERNEL_GS_BASE 0xc0000102
#define MSR_TSC_AUX 0xc0000103
#define MSR_X2APIC 0x800
