/* SPDX-License-Identifier: MIT */
/* The structure by which SVM enters and leaves a guest, and what makes it. Source: AMD64 APM volume
 * 2, "VMCB Layout", "SVM Intercept Exit Codes". */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Attributes: bits 40 to 47 and 52 to 55 of a descriptor. Flat, present, accessed. */
#define SEGMENT_CODE64 0xa9bu
#define SEGMENT_CODE32 0xc9bu
#define SEGMENT_DATA 0xc93u
#define SEGMENT_LONG (1u << 9)
#define SEGMENT_BIG (1u << 10)
#define SEGMENT_RING3 0x60u /* DPL 3 */

struct segment {
    uint16_t selector, attributes;
    uint32_t limit;
    uint64_t base;
};

/* Control area first, saved state from 400h. */
struct vmcb {
    uint32_t intercept_cr, intercept_dr, intercept_exceptions, intercept_misc, intercept_svm;
    uint8_t unused0[0x2c];
    uint64_t io_map;
    uint64_t msr_map;
    uint64_t tsc_offset;
    uint32_t asid, tlb_control;
    uint64_t vintr, shadow;
    uint64_t exit_code, exit_info1, exit_info2, exit_int_info;
    uint64_t nested_paging;
    uint8_t unused1[0x10];
    uint64_t inject;
    uint64_t nested_cr3;
    uint8_t unused2[0x400 - 0xb8];
    struct segment es, cs, ss, ds, fs, gs, gdtr, ldtr, idtr, tr;
    uint8_t unused3[0x2b], cpl;
    uint32_t unused4;
    uint64_t efer;
    uint8_t unused5[0x70];
    uint64_t cr4, cr3, cr0, dr7, dr6, rflags, rip;
    uint8_t unused6[0x58];
    uint64_t rsp;
    uint8_t unused7[0x18];
    uint64_t rax;
    uint8_t unused8[0x40];
    uint64_t cr2;
    uint8_t unused9[0x20];
    uint64_t pat;
    uint8_t unused10[0x1000 - 0x670];
};
_Static_assert(offsetof(struct vmcb, io_map) == 0x40, "APM");
_Static_assert(offsetof(struct vmcb, exit_code) == 0x70, "APM");
_Static_assert(offsetof(struct vmcb, inject) == 0xa8, "APM");
_Static_assert(offsetof(struct vmcb, es) == 0x400, "APM");
_Static_assert(offsetof(struct vmcb, cpl) == 0x4cb, "APM");
_Static_assert(offsetof(struct vmcb, efer) == 0x4d0, "APM");
_Static_assert(offsetof(struct vmcb, cr4) == 0x548, "APM");
_Static_assert(offsetof(struct vmcb, rsp) == 0x5d8, "APM");
_Static_assert(offsetof(struct vmcb, rax) == 0x5f8, "APM");
_Static_assert(offsetof(struct vmcb, cr2) == 0x640, "APM");
_Static_assert(offsetof(struct vmcb, pat) == 0x668, "APM");
_Static_assert(sizeof(struct vmcb) == 4096, "APM");

/* clang-format off */
enum {
    EXIT_WRITE_CR4 = 0x14, EXIT_WRITE_DR5 = 0x35, EXIT_WRITE_DR7 = 0x37,
    EXIT_EXCEPTION = 0x40, EXIT_INTR = 0x60, EXIT_NMI = 0x61, EXIT_CR0 = 0x65, EXIT_RDPMC = 0x6f, EXIT_CPUID = 0x72,
    EXIT_IRET = 0x74, EXIT_SOFT_INT = 0x75, EXIT_PAUSE = 0x77, EXIT_HLT = 0x78, EXIT_INVLPGA = 0x7a,
    EXIT_IO = 0x7b, EXIT_MSR = 0x7c, EXIT_SHUTDOWN = 0x7f, EXIT_VMRUN = 0x80, EXIT_VMMCALL = 0x81, EXIT_SKINIT = 0x86,
    EXIT_ICEBP = 0x88,
    EXIT_MONITOR = 0x8a, EXIT_MWAIT = 0x8b, EXIT_NPF = 0x400,
};
/* clang-format on */

#define EXIT_INVALID 0xffffffffu /* VMRUN refused the guest's state; the upper half may be 0 */

/* intercept_misc */
#define CATCH_INTR (1u << 0)
#define CATCH_NMI (1u << 1)
#define CATCH_CR0 (1u << 5) /* a write that changes more than TS and MP */
#define CATCH_RDPMC (1u << 15)
#define CATCH_CPUID (1u << 18)
#define CATCH_IRET (1u << 20)
#define CATCH_SOFT_INT (1u << 21)
#define CATCH_PAUSE (1u << 23)
#define CATCH_HLT (1u << 24)
#define CATCH_INVLPGA (1u << 26)
#define CATCH_IO (1u << 27)
#define CATCH_MSR (1u << 28)
#define CATCH_SHUTDOWN (1u << 31)
#define CATCH_CR4 (1u << 20)            /* intercept_cr: writes of CR4 */
#define CATCH_DR7 (1u << 21 | 1u << 23) /* intercept_dr: writes of DR5 and DR7 */
#define CATCH_SVM 0xd7fu                /* intercept_svm: VMRUN to SKINIT, ICEBP, MONITOR, MWAIT */
#define CATCH_EXCEPTIONS 0xfffffffbu    /* all but vector 2 */

/* inject, exit_int_info */
#define INJECT_INTERRUPT (0ul << 8)
#define INJECT_NMI (2ul << 8)
#define INJECT_EXCEPTION (3ul << 8)
#define INJECT_SOFT_INT (4ul << 8)
#define INJECT_TYPE (7ul << 8)
#define INJECT_HAS_CODE (1ul << 11)
#define INJECT_VALID (1ul << 31)

enum {
    VECTOR_DB = 1,
    VECTOR_BP = 3,
    VECTOR_OF = 4,
    VECTOR_UD = 6,
    VECTOR_DF = 8,
    VECTOR_GP = 13,
    VECTOR_PF = 14
};
#define DR6_SINGLE_STEP (1u << 14)
#define DR7_ANY 0xffu /* some breakpoint is enabled */
#define RFLAGS_DF (1u << 10)
#define RFLAGS_VM (1u << 17)
#define CR4_LA57 (1u << 12)

struct vcpu;

bool vmcb_has_svm(void);
/* Make the tables that all CPUs share, before the two below: whose MSRs exit. */
void vmcb_init(void);
void vmcb_catch_msr(uint32_t msr);
void vmcb_enable_svm(struct vcpu *v);
/* The guest starts with the state that this CPU has now. */
void vmcb_make(struct vcpu *v);
