/* SPDX-License-Identifier: MIT */
/* The registers of x87, SSE, AVX and AVX-512 as ring 3 has them, and its FS and GS bases. */
#include "tests/ring3/fpu.h"
#include "tests/ring3/helpers.h"

#define AVX 4
#define THREADS 4
#define ROUNDS 60
#define XMM_WORDS 32
#define YMM_WORDS 64
#define ZMM_WORDS 136

extern void avx_load(const uint64_t *values), avx_store(uint64_t *values), avx_clear(void);
extern void avx512_load(const uint64_t *values), avx512_store(uint64_t *values);

static uint64_t xgetbv(void)
{
    uint32_t low, high;
    asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return (uint64_t)high << 32 | low;
}

/* By CPUID alone, as a program does. */
static bool has_osxsave(void)
{
    int r[4];
    __cpuidex(r, 1, 0);
    return r[2] >> 27 & 1;
}

static bool has_avx(void)
{
    int r[4];
    __cpuidex(r, 1, 0);
    return has_osxsave() && r[2] >> 28 & 1 && (xgetbv() & 6) == 6;
}

void user_fpu_features(uint64_t xcr0)
{
    CHECK_EQ(has_osxsave(), xcr0 != 0);
    if (xcr0)
        CHECK_EQ(xgetbv(), xcr0);
    CHECK_EQ(has_avx(), (xcr0 >> 2 & 1));
}

static void fill_values(uint64_t *values, unsigned count, uint64_t seed)
{
    for (unsigned i = 0; i < count; i++)
        values[i] = (seed + i) * UINT64_C(0x9e3779b97f4a7c15);
}

static bool ymm, wide, bases; /* AVX is there, AVX-512, FSGSBASE */

/* All of XMM where there are no YMM. */
static void load_xmm(const uint64_t *values)
{
    uint8_t x[512] __attribute__((aligned(16)));
    asm volatile("fxsave64 %0" : "=m"(x));
    memcpy(x + 160, values, XMM_WORDS * 8);
    asm volatile("fxrstor64 %0" : : "m"(x));
}

static void store_xmm(uint64_t *values)
{
    uint8_t x[512] __attribute__((aligned(16)));
    asm volatile("fxsave64 %0" : "=m"(x));
    memcpy(values, x + 160, XMM_WORDS * 8);
}

/* Whether what was loaded is there after some time in which others ran. */
static DWORD keep(PVOID seed)
{
    uint64_t values[ZMM_WORDS], found[ZMM_WORDS], teb = bases ? RING3_READ_BASE(gs) : 0;
    for (unsigned i = 0; i < ROUNDS; i++) {
        fill_values(values, ZMM_WORDS, (uint64_t)seed * 1000003 + i);
        uint64_t fs = values[0] >> 17, gs = ~fs; /* which looks like the kernel's */
        if (bases) {
            RING3_WRITE_BASE(fs, fs);
            RING3_WRITE_BASE(gs, gs);
        }
        if (wide)
            avx512_load(values);
        (ymm ? avx_load : load_xmm)(values);
        if (i % 3 == 0)
            ZwYieldExecution();
        else if (i % 16 == 1)
            Sleep(1);
        else
            ring3_work(20000);
        bool kept = !bases || (RING3_READ_BASE(fs) == fs && RING3_READ_BASE(gs) == gs);
        if (bases)
            RING3_WRITE_BASE(gs, teb);
        if (!kept)
            return 3;
        (ymm ? avx_store : store_xmm)(found);
        if (memcmp(values, found, (ymm ? YMM_WORDS : XMM_WORDS) * 8) != 0)
            return 1;
        if (wide) {
            avx512_store(found);
            if (memcmp(values, found, ZMM_WORDS * 8) != 0)
                return 2;
        }
    }
    return 0;
}

void user_fpu_survives(uint64_t xcr0)
{
    HANDLE threads[THREADS];
    ymm = xcr0 & AVX;
    bases = xcr0 & USER_BASES;
    wide = (xcr0 & 0xe6) == 0xe6;
    for (uint64_t i = 0; i < THREADS; i++)
        threads[i] = ring3_start(keep, (PVOID)(i + 1));
    for (unsigned i = 0; i < THREADS; i++)
        CHECK_EQ(ring3_end(threads[i]), 0);
}

/* --- A new thread. --- */

static uint64_t first[YMM_WORDS];
static uint32_t first_mxcsr;
static uint16_t first_control, first_status;

static DWORD look_at_fpu(PVOID xcr0)
{
    uint8_t x[512] __attribute__((aligned(16)));
    if ((uint64_t)xcr0 & AVX)
        avx_store(first);
    asm volatile("fxsave64 %0" : "=m"(x));
    memcpy(&first_control, x, 2);
    memcpy(&first_status, x + 2, 2);
    memcpy(&first_mxcsr, x + 24, 4);
    uint64_t teb;
    asm volatile("mov %%gs:0x30,%0" : "=r"(teb));
    bool fresh = !bases || (!RING3_READ_BASE(fs) && RING3_READ_BASE(gs) == teb);
    return fresh && ring3_all(x + 160, 256, 0) && x[4] == 0;
}

void user_fpu_new_threads(uint64_t xcr0)
{
    static const uint32_t odd_mxcsr = 0x1b80;
    static const uint16_t odd_control = 0x300;
    uint64_t values[YMM_WORDS];
    fill_values(values, YMM_WORDS, 77);
    bases = xcr0 & USER_BASES;
    if (bases)
        RING3_WRITE_BASE(fs, 77);
    for (unsigned i = 0; i < 8; i++) {
        asm volatile("fninit\nfldpi\nfldcw %0\nldmxcsr %1" : : "m"(odd_control), "m"(odd_mxcsr));
        if (xcr0 & AVX)
            avx_load(values);
        CHECK_EQ((uint32_t)ring3_run(look_at_fpu, (PVOID)xcr0), 1);
        CHECK_EQ(first_control, 0x27f);
        CHECK_EQ(first_status, 0);
        CHECK_EQ(first_mxcsr, 0x1f80);
        CHECK(ring3_all(first, sizeof first, 0));
        asm volatile("fninit\nldmxcsr %0" : : "m"((uint32_t){ 0x1f80 }));
    }
}

/* --- The kernel in between. --- */

static LONG skip_ud2(PEXCEPTION_POINTERS e)
{
    e->ContextRecord->Rip += 2;
    return EXCEPTION_CONTINUE_EXECUTION;
}

void user_fpu_entries(uint64_t unused)
{
    uint64_t values[YMM_WORDS], found[YMM_WORDS];
    PVOID h = AddVectoredExceptionHandler(1, skip_ud2);
    for (unsigned i = 0; i < 30; i++) {
        fill_values(values, YMM_WORDS, i);
        avx_load(values);
        if (i % 3 == 0)
            NtClose(NULL);
        else if (i % 3 == 1)
            asm volatile("ud2");
        else
            ring3_work(200000);
        avx_store(found);
        CHECK(memcmp(values, found, sizeof found) == 0);
    }
    avx_clear();
    RemoveVectoredExceptionHandler(h);
}
