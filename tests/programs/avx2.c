/* SPDX-License-Identifier: MIT */
/* Threads on fewer processors that each keep all sixteen registers of 32 bytes full. */
#include <stdio.h>
#include <string.h>
#include <windows.h>

#define THREADS 6
#define ITERATIONS 60

/* Loads 16 registers of 32 bytes, spins, stores them: all in one piece, so that no compiler's
 * choice is between. */
__attribute__((noinline)) static void keep(const unsigned char *in, unsigned char *out,
                                           unsigned long long iterations)
{
#define EACH(X)                                                                                    \
    X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12) X(13) X(14) X(15)
#define LOAD(n) "vmovdqu " #n "*32(%[in]), %%ymm" #n "\n\t"
#define STORE(n) "vmovdqu %%ymm" #n ", " #n "*32(%[out])\n\t"
    asm volatile(EACH(LOAD) "1: dec %[iterations]\n\tjnz 1b\n\t" EACH(STORE) "vzeroupper"
                 : [iterations] "+r"(iterations)
                 : [in] "r"(in), [out] "r"(out)
                 : "memory", "cc", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7",
                   "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15");
}

static DWORD WINAPI fill_and_keep(LPVOID which)
{
    unsigned char in[512], out[512];
    DWORD wrong = 0;
    for (int round = 0; round < ITERATIONS; round++) {
        for (int i = 0; i < 512; i++)
            in[i] = (unsigned char)((int)(INT_PTR)which * 37 + round * 5 + i);
        keep(in, out, 20000);
        wrong += memcmp(in, out, sizeof in) != 0;
        if (round % 10 == 0)
            SwitchToThread();
    }
    return wrong;
}

int main(void)
{
    HANDLE threads[THREADS];
    DWORD wrong, all = 0;
    if (!__builtin_cpu_supports("avx2")) {
        printf("no AVX2 here\n");
        return 2;
    }
    for (INT_PTR i = 0; i < THREADS; i++)
        threads[i] = CreateThread(NULL, 0, fill_and_keep, (PVOID)i, 0, NULL);
    WaitForMultipleObjects(THREADS, threads, TRUE, INFINITE);
    for (int i = 0; i < THREADS; i++) {
        GetExitCodeThread(threads[i], &wrong);
        all += wrong;
    }
    printf("%lu of %d times registers were others'\n", all, THREADS * ITERATIONS);
    return all != 0;
}
