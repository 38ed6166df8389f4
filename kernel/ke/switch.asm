; SPDX-License-Identifier: MIT
; The switch of kernel stacks. Caller-saved registers are the caller's business; RFLAGS carries IF.
%include "layout.inc"
%include "kernel/base/registers.inc"
section .text

; void switch_stacks(struct thread *from, struct thread *to, KWAIT_REASON reason)
global switch_stacks, switch_profiling_end
extern thread_profiling_switch
; Up to switch_profiling_end: what a switch between threads that are not profiled pays.
switch_stacks:
    mov rax, [rdi + THREAD_PROFILING]
    or rax, [rsi + THREAD_PROFILING]
    jnz profiled
switch_profiling_end:
    pushfq
    push_all CALLEE_SAVED
    mov [rdi + THREAD_RSP], rsp
    mov rsp, [rsi + THREAD_RSP]
    pop_all CALLEE_SAVED
    popfq
    ret
profiled:
    push rdi
    push rsi
    sub rsp, 8
    mov ecx, edx
    mov edx, [rsi + THREAD_CPU]
    mov rdi, [rdi + THREAD_PROFILING]
    mov rsi, [rsi + THREAD_PROFILING]
    call thread_profiling_switch
    add rsp, 8
    pop rsi
    pop rdi
    jmp switch_profiling_end

; Where a new thread's first switch_stacks returns to: its C start is in RBX, alone on its stack.
global thread_trampoline
thread_trampoline:
    xor ebp, ebp
    call rbx
    ud2
