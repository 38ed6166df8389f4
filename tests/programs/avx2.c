/* SPDX-License-Identifier: MIT */
/* AVX2: integer instructions of 32 bytes, and threads on fewer processors that each keep all
 * sixteen registers full. */
#include <immintrin.h>
#include <stdio.h>
#include <string.h>
#include <windows.h>

#define THREADS 6
#define ITERATIONS 60
#define WORDS 1024

/* a[b[i]] * 3 + i, gathered and added up eight at a time. */
__attribute__((target("avx2"), noinline)) static unsigned vectors(const int *a, const int *b)
{
    __m256i sum = _mm256_setzero_si256(), index = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    int parts[8];
    for (int i = 0; i < WORDS; i += 8) {
        __m256i at = _mm256_loadu_si256((const __m256i *)(b + i));
        __m256i got = _mm256_i32gather_epi32(a, at, 4);
        sum = _mm256_add_epi32(sum, _mm256_add_epi32(_mm256_mullo_epi32(got, _mm256_set1_epi32(3)),
                                                     index));
        index = _mm256_add_epi32(index, _mm256_set1_epi32(8));
    }
    _mm256_storeu_si256((__m256i *)parts, sum);
    return (unsigned)(parts[0] + parts[1] + parts[2] + parts[3] + parts[4] + parts[5] + parts[6] +
                      parts[7]);
}

static unsigned scalars(const int *a, const int *b)
{
    unsigned sum = 0;
    for (int i = 0; i < WORDS; i++)
        sum += (unsigned)(a[b[i]] * 3 + i);
    return sum;
}

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
    static int a[WORDS], b[WORDS];
    HANDLE threads[THREADS];
    DWORD wrong, all = 0;
    if (!__builtin_cpu_supports("avx2")) {
        printf("no AVX2 here\n");
        return 2;
    }
    for (int i = 0; i < WORDS; i++) {
        a[i] = i * 7919;
        b[i] = (i * 389) % WORDS;
    }
    printf("sum %08x, %s\n", vectors(a, b),
           vectors(a, b) == scalars(a, b) ? "as without" : "wrong");
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
