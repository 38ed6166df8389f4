/* SPDX-License-Identifier: MIT */
/* The registers of x87, SSE, AVX and AVX-512, which only ring 3 uses. They are saved when a ring-3
 * thread loses its processor and loaded when it gets one, each time. And whether ring 3 may write
 * the bases of FS and GS. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#define FPU_AREA_MAX 3072 /* of a thread's page; AVX-512 needs 2696 */

/* What all processors have: written while they start, then const. */
struct fpu_facts {
    uint64_t xcr0;  /* what XSAVE saves; 0: there is no XSAVE, FXSAVE is used */
    uint32_t size;  /* of an area, in bytes */
    bool optimized; /* XSAVEOPT */
    bool bases;     /* RDFSBASE and the like, in ring 3 too */
};
extern struct fpu_facts fpu_facts;

/* Reads what CPUID says of this processor and tests whether it is true. What one processor lacks
 * is not used on any. Needs exception handlers. */
void fpu_probe_cpu(void);
/* Once all processors were asked, on each: CR4.OSXSAVE, CR4.FSGSBASE and XCR0. */
void fpu_init_cpu(void *unused);
/* Prints one line: what is saved, and how. */
void fpu_report(void);

/* `area` is 64-aligned. The state of a new thread: as the x64 calling convention wants it. */
void fpu_reset(void *area);
void fpu_save(void *area);
void fpu_restore(const void *area);
/* x87 and SSE of a saved state, in the form of FXSAVE. */
void fpu_get_legacy(const void *area, void *legacy);
/* Bits of MXCSR that this processor has. */
uint32_t fpu_mxcsr_mask(void);
