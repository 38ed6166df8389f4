; SPDX-License-Identifier: MIT
; The switch of kernel stacks. Caller-saved registers are the caller's business; RFLAGS carries IF.
%include "layout.inc"
section .text

; void switch_stacks(struct thread *from, struct thread *to)
global switch_stacks
switch_stacks:
    pushfq
    push rbx
    push rbp
    push r12
    push r13
    push r14
    push r15
    mov [rdi + THREAD_RSP], rsp
    mov rsp, [rsi + THREAD_RSP]
    pop r15
    pop r14
    pop r13
    pop r12
    pop rbp
    pop rbx
    popfq
    ret

; Where a new thread's first switch_stacks returns to: its C start is in RBX, alone on its stack.
global thread_trampoline
thread_trampoline:
    xor ebp, ebp
    call rbx
    ud2
