/* SPDX-License-Identifier: MIT */
/* XSAVE from ring 0; what ring 3 has of it: ring3/fpu.c. */
#include "kernel/ke/fpu.h"
#include "kernel/nt/nt_context.h"
#include "tests/harness/kernel.h"
#include "tests/ring3/fpu.h"

static uint8_t area[FPU_AREA_MAX] __attribute__((aligned(64)));

TEST(fpu, features, "ring 3 finds by CPUID and XGETBV what the kernel saves, and nothing else")
{
    CHECK_STATUS(user_run(user_fpu_features, fpu_facts.xcr0), STATUS_SUCCESS);
}

#define AVX 4
#define RUN(function) user_run(function, fpu_facts.xcr0 | (fpu_facts.bases ? USER_BASES : 0))

TEST(fpu, survives,
     "threads that fill XMM (and YMM, ZMM, masks, bases of FS and GS, where there are) never see "
     "each other's, on all CPUs")
{
    CHECK_STATUS(RUN(user_fpu_survives), STATUS_SUCCESS);
}

TEST(fpu, entries, "system calls, faults that are handled and interrupts leave YMM alone")
{
    SKIP_IF(!(fpu_facts.xcr0 & AVX), "ring 3 has no AVX here");
    CHECK_STATUS(RUN(user_fpu_entries), STATUS_SUCCESS);
}

TEST(fpu, new_threads,
     "a thread begins with MXCSR 1F80h, the x87 control word 27Fh, zeros in every register, its "
     "block at GS and 0 at FS, whatever ran before it")
{
    CHECK_STATUS(RUN(user_fpu_new_threads), STATUS_SUCCESS);
}

TEST(fpu, legacy,
     "x87 and SSE can be taken out of a saved state, also while the CPU has stored neither")
{
    XSAVE_FORMAT x, back;
    fpu_reset(area);
    fpu_get_legacy(area, &x);
    CHECK_EQ(x.ControlWord, 0x27f);
    CHECK_EQ(x.MxCsr, 0x1f80);
    CHECK_EQ(x.XmmRegisters[5].Low | (uint64_t)x.XmmRegisters[5].High, 0);
    x.ControlWord = 0x37f;
    for (unsigned i = 0; i < 16; i++)
        x.XmmRegisters[i] = (M128A){ i * 3 + 1, ~(LONGLONG)i };
    memcpy(area, &x, 416); /* where XMM end; what follows is not stored */
    if (fpu_facts.xcr0)
        area[512] |= 3; /* XSTATE_BV: x87, SSE */
    fpu_get_legacy(area, &back);
    CHECK(memcmp(&x, &back, 160) == 0);
    CHECK(memcmp(x.XmmRegisters, back.XmmRegisters, sizeof x.XmmRegisters) == 0);
    if (!fpu_facts.xcr0)
        return;
    memset(area, 0xa5, 512); /* stale, as XSAVEOPT leaves it, but for MXCSR */
    memcpy(area + 24, &x.MxCsr, sizeof x.MxCsr);
    memset(area + 512, 0, 64);
    fpu_get_legacy(area, &back);
    CHECK_EQ(back.ControlWord, 0x37f);
    CHECK_EQ(back.MxCsr, 0x1f80);
    CHECK_EQ(back.FloatRegisters[0].Low | back.XmmRegisters[15].Low, 0);
}
