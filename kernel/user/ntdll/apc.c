/* SPDX-License-Identifier: MIT */
/* Where the kernel goes on with a call that was queued to the thread: a CONTEXT at RSP, whose first
 * four members are the arguments and the routine, and behind it, at 4D0h, what an interrupt would
 * have pushed. */
#include "ntdll.h"

asm(".text\n"
    ".globl KiUserApcDispatcher\n"
    ".seh_proc KiUserApcDispatcher\n"
    "KiUserApcDispatcher:\n"
    "    .seh_pushframe\n"
    "    .seh_stackalloc 0x4d0\n"
    "    .seh_savereg %rbx, 0x90\n"
    "    .seh_savereg %rbp, 0xa0\n"
    "    .seh_savereg %rsi, 0xa8\n"
    "    .seh_savereg %rdi, 0xb0\n"
    "    .seh_savereg %r12, 0xd8\n"
    "    .seh_savereg %r13, 0xe0\n"
    "    .seh_savereg %r14, 0xe8\n"
    "    .seh_savereg %r15, 0xf0\n"
    "    .seh_savexmm %xmm6, 0x200\n"
    "    .seh_savexmm %xmm7, 0x210\n"
    "    .seh_savexmm %xmm8, 0x220\n"
    "    .seh_savexmm %xmm9, 0x230\n"
    "    .seh_savexmm %xmm10, 0x240\n"
    "    .seh_savexmm %xmm11, 0x250\n"
    "    .seh_savexmm %xmm12, 0x260\n"
    "    .seh_savexmm %xmm13, 0x270\n"
    "    .seh_savexmm %xmm14, 0x280\n"
    "    .seh_savexmm %xmm15, 0x290\n"
    "    .seh_endprologue\n"
    "    mov (%rsp), %rcx\n"
    "    mov 8(%rsp), %rdx\n"
    "    mov 0x10(%rsp), %r8\n"
    "    call *0x18(%rsp)\n"
    "    mov %rsp, %rcx\n"
    "    mov $1, %edx\n" /* the next one, if there is any */
    "    call NtContinue\n"
    "    mov %eax, %ecx\n"
    "    call RtlRaiseStatus\n"
    "    int3\n"
    "    .seh_endproc\n");
C_ASSERT(sizeof(CONTEXT) == 0x4d0 && offsetof(CONTEXT, P4Home) == 0x18);
