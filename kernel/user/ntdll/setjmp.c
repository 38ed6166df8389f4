/* SPDX-License-Identifier: MIT */
/* setjmp and longjmp: msvcrt.dll forwards to them, and Wine's C libraries import them. NT: longjmp
 * only restores registers; Windows also unwinds, which runs __finally blocks. */
#include "ntdll.h"
#include <setjmp.h>

/* _JUMP_BUFFER: Frame, RBX, RSP, RBP, RSI, RDI, R12 to R15, RIP, MXCSR, XMM6 to XMM15. */
#undef _setjmp
__attribute__((naked)) int _setjmp(jmp_buf buffer, void *frame);
int _setjmp(jmp_buf buffer, void *frame)
{
    __asm__(
        "movq %rdx, (%rcx)\n\tmovq %rbx, 8(%rcx)\n\tleaq 8(%rsp), %rax\n\tmovq %rax, 16(%rcx)\n\t"
        "movq %rbp, 24(%rcx)\n\tmovq %rsi, 32(%rcx)\n\tmovq %rdi, 40(%rcx)\n\t"
        "movq %r12, 48(%rcx)\n\tmovq %r13, 56(%rcx)\n\tmovq %r14, 64(%rcx)\n\t"
        "movq %r15, 72(%rcx)\n\tmovq (%rsp), %rax\n\tmovq %rax, 80(%rcx)\n\t"
        "stmxcsr 88(%rcx)\n\tmovaps %xmm6, 96(%rcx)\n\tmovaps %xmm7, 112(%rcx)\n\t"
        "movaps %xmm8, 128(%rcx)\n\tmovaps %xmm9, 144(%rcx)\n\tmovaps %xmm10, 160(%rcx)\n\t"
        "movaps %xmm11, 176(%rcx)\n\tmovaps %xmm12, 192(%rcx)\n\tmovaps %xmm13, 208(%rcx)\n\t"
        "movaps %xmm14, 224(%rcx)\n\tmovaps %xmm15, 240(%rcx)\n\txorl %eax, %eax\n\tret");
}

__attribute__((naked)) void longjmp(jmp_buf buffer, int value);
void longjmp(jmp_buf buffer, int value)
{
    __asm__("movl %edx, %eax\n\ttestl %eax, %eax\n\tjnz 1f\n\tincl %eax\n1:\n\t"
            "movq 8(%rcx), %rbx\n\tmovq 16(%rcx), %rsp\n\tmovq 24(%rcx), %rbp\n\t"
            "movq 32(%rcx), %rsi\n\tmovq 40(%rcx), %rdi\n\tmovq 48(%rcx), %r12\n\t"
            "movq 56(%rcx), %r13\n\tmovq 64(%rcx), %r14\n\tmovq 72(%rcx), %r15\n\t"
            "ldmxcsr 88(%rcx)\n\tmovaps 96(%rcx), %xmm6\n\tmovaps 112(%rcx), %xmm7\n\t"
            "movaps 128(%rcx), %xmm8\n\tmovaps 144(%rcx), %xmm9\n\tmovaps 160(%rcx), %xmm10\n\t"
            "movaps 176(%rcx), %xmm11\n\tmovaps 192(%rcx), %xmm12\n\t"
            "movaps 208(%rcx), %xmm13\n\tmovaps 224(%rcx), %xmm14\n\t"
            "movaps 240(%rcx), %xmm15\n\tjmp *80(%rcx)");
}
