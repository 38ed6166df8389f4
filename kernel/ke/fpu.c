/* SPDX-License-Identifier: MIT */
/* XSAVE in the standard form. Not lazily: with XSAVEOPT a switch stores only what was changed, and
 * what is in its initial state costs nothing. Not XSAVEC: who has it has XSAVEOPT, and the standard
 * form keeps x87 and SSE where a CONTEXT has them.
 *
 * CPUID is not believed. A KVM that emulates ring 0 was seen that promises XSAVE, does not know it
 * and stops the virtual machine at it, where no handler of ours helps: it is known by its slowness.
 * QEMU's TCG promises XSAVE to a processor without XSAVEOPT (Opteron_G5), and breaks at
 * CR4.OSXSAVE. Source: Intel SDM vol. 1 "Managing state using the XSAVE feature set"; for the
 * initial values Microsoft's "x64 calling convention". */
#include "kernel/ke/fpu.h"
#include "kernel/base/cpu.h"
#include "kernel/base/print.h"
#include "kernel/base/string.h"
#include "kernel/base/x86.h"

#define LEAF_XSAVE 0x0d
#define X87 1u
#define SSE 2u
#define AVX 4u
#define AVX512 0xe0u /* opmask, upper halves of ZMM0-15, ZMM16-31: all or none */
#define LEGACY_SIZE 512u
#define HEADER_SIZE 64u
#define FCW_DEFAULT 0x27f /* precision of doubles, all exceptions masked */
#define MXCSR_DEFAULT 0x1f80
#define MXCSR_AT 24 /* in the legacy area; the mask comes after it */
#define MXCSR_BITS_OF_ALL 0xffbfu
#define PATTERN 0xa5
#define TRIES 5
#define TURNS 100
#define CYCLES_TOO_MANY 200

struct fpu_facts fpu_facts = { ~0ul, 0, true, true };

static uint64_t *header(void *area) { return (uint64_t *)((char *)area + LEGACY_SIZE); }

/* An emulator takes thousands of cycles for each of two instructions an iteration, a processor
 * about one. The best of some tries: a hypervisor may let others run meanwhile. */
static bool ring0_is_emulated(void)
{
    uint64_t best = ~0ul;
    for (unsigned try = 0; cpu_features.hypervisor && try < TRIES; try++) {
        uint64_t start = rdtsc();
        for (unsigned i = 0; i < TURNS; i++)
            asm volatile("");
        uint64_t took = rdtsc() - start;
        best = took < best ? took : best;
    }
    return cpu_features.hypervisor && best > TURNS * CYCLES_TOO_MANY;
}

static bool has_xsave(void)
{
    return cpuid(1, 0).ecx >> 26 & 1 && cpu_features.max_leaf >= LEAF_XSAVE &&
           (!cpu_features.hypervisor || cpuid(LEAF_XSAVE, 1).eax) && !ring0_is_emulated();
}

/* The components that CPUID offers, that this kernel knows, and that fit into a thread's area. */
static uint64_t offered(uint32_t *size)
{
    uint64_t mask = cpuid(LEAF_XSAVE, 0).eax & (X87 | SSE | AVX | AVX512);
    if ((mask & AVX512) != AVX512 || !(mask & AVX))
        mask &= ~(uint64_t)AVX512;
    *size = LEGACY_SIZE + HEADER_SIZE;
    for (unsigned i = 2; i < 8; i++) {
        struct cpuid part = cpuid(LEAF_XSAVE, i);
        if (!(mask >> i & 1))
            continue;
        if (part.ebx < LEGACY_SIZE + HEADER_SIZE || part.ebx + part.eax > FPU_AREA_MAX)
            mask &= i == 2 ? X87 | SSE : X87 | SSE | AVX;
        else if (part.ebx + part.eax > *size)
            *size = part.ebx + part.eax;
    }
    return mask;
}

/* Tests that XSAVE stores as many bytes as CPUID says. OSXSAVE and XCR0 are set. */
static bool keeps_its_size(uint64_t mask, uint32_t size, bool optimized)
{
    static uint8_t area[FPU_AREA_MAX + 64] __attribute__((aligned(64)));
    memset(area, PATTERN, sizeof area);
    memset(header(area), 0, HEADER_SIZE);
    if (xsave_fault(area, mask) || (optimized && xsaveopt_fault(area, mask)) ||
        xrstor_fault(area, mask))
        return false;
    for (unsigned i = size; i < sizeof area; i++)
        if (area[i] != PATTERN)
            return false;
    return true;
}

static bool works(uint64_t mask, uint32_t size, bool optimized)
{
    uint64_t cr4 = read_cr4();
    if (write_cr4_fault(cr4 | CR4_OSXSAVE))
        return false;
    bool ok = xsetbv_fault(0, mask) == 0 && keeps_its_size(mask, size, optimized);
    xsetbv_fault(0, X87);
    write_cr4(cr4);
    return ok;
}

void fpu_probe_cpu(void)
{
    uint32_t size = LEGACY_SIZE + HEADER_SIZE;
    uint64_t mask = has_xsave() ? offered(&size) & fpu_facts.xcr0 : 0;
    bool optimized = mask && cpuid(LEAF_XSAVE, 1).eax & 1;
    if ((mask & (X87 | SSE)) != (X87 | SSE) || !works(mask, size, optimized)) {
        if (mask)
            print("# cpu %u: CPUID promises XSAVE for %lx, and it does not work: FXSAVE is used\n",
                  cpu_number(), mask);
        mask = 0;
    }
    fpu_facts.xcr0 = mask;
    fpu_facts.size = mask ? size : LEGACY_SIZE;
    fpu_facts.optimized &= optimized;
    fpu_facts.bases &= cpuid_leaf(7).ebx & 1 && !ring0_is_emulated();
}

void fpu_init_cpu(void *)
{
    write_cr4(read_cr4() | (fpu_facts.xcr0 ? CR4_OSXSAVE : 0) |
              (fpu_facts.bases ? CR4_FSGSBASE : 0));
    if (fpu_facts.xcr0)
        xsetbv(0, fpu_facts.xcr0);
}

void fpu_report(void)
{
    print("# fpu: x87 SSE%s%s, %u bytes by %s\n", fpu_facts.xcr0 & AVX ? " AVX" : "",
          fpu_facts.xcr0 & AVX512 ? " AVX-512" : "", fpu_facts.size,
          fpu_facts.optimized ? "XSAVEOPT"
          : fpu_facts.xcr0    ? "XSAVE"
                              : "FXSAVE");
}

uint32_t fpu_mxcsr_mask(void)
{
    uint8_t area[LEGACY_SIZE] __attribute__((aligned(16)));
    uint32_t mask;
    memset(area, 0, sizeof area);
    fxsave(area);
    memcpy(&mask, area + MXCSR_AT + 4, sizeof mask);
    return mask ? mask : MXCSR_BITS_OF_ALL;
}

void fpu_reset(void *area)
{
    const uint16_t fcw = FCW_DEFAULT;
    const uint32_t mxcsr = MXCSR_DEFAULT;
    memset(area, 0, fpu_facts.size);
    memcpy(area, &fcw, sizeof fcw);
    memcpy((char *)area + MXCSR_AT, &mxcsr, sizeof mxcsr);
    if (fpu_facts.xcr0)
        *header(area) = X87; /* all else is in its initial state */
}

void fpu_save(void *area)
{
    if (fpu_facts.optimized)
        xsaveopt(area, fpu_facts.xcr0);
    else if (fpu_facts.xcr0)
        xsave(area, fpu_facts.xcr0);
    else
        fxsave(area);
}

void fpu_restore(const void *area)
{
    if (fpu_facts.xcr0)
        xrstor((void *)area, fpu_facts.xcr0);
    else
        fxrstor(area);
}

/* What is in its initial state need not have been stored. */
void fpu_get_legacy(const void *area, void *legacy)
{
    uint64_t stored = fpu_facts.xcr0 ? *header((void *)area) : X87 | SSE;
    const uint16_t fcw = 0x37f; /* FNINIT's */
    memset(legacy, 0, LEGACY_SIZE);
    if (stored & X87)
        memcpy(legacy, area, 160);
    else
        memcpy(legacy, &fcw, sizeof fcw);
    memcpy((char *)legacy + MXCSR_AT, (const char *)area + MXCSR_AT, 8);
    if (stored & SSE)
        memcpy((char *)legacy + 160, (const char *)area + 160, 256);
}
