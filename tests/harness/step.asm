; SPDX-License-Identifier: MIT
; The gate of debug exceptions while step.c steps through a window.
%include "kernel/base/registers.inc"
extern step_trap, trap_stubs

section .text
; void step_on_debug(void): bool step_trap(struct trap_frame *frame) says whether the way back leads
; through the NMI's gate, as if one had come at the interrupted instruction.
global step_on_debug
step_on_debug:
    push 0
    push 1
    push_all rax, rcx, rdx, rbx, rbp, rsi, rdi, r8, r9, r10, r11, r12, r13, r14, r15
    cld
    mov rdi, rsp
    call step_trap
    test al, al
    pop_all rax, rcx, rdx, rbx, rbp, rsi, rdi, r8, r9, r10, r11, r12, r13, r14, r15
    lea rsp, [rsp + 16]                 ; keeps the flags
    jnz .nmi
    iretq
.nmi:
    jmp trap_stubs + 2 * 16
