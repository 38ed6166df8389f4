; SPDX-License-Identifier: MIT
; The way to a measured snippet, and the ways back: exceptions, and the timer or a counter when the
; time is over. One CPU at a time. Every handler has a stack of its own by IST: the snippet's may be
; anywhere.
%include "layout.inc"
%include "kernel/base/registers.inc"
%define HANG 256
section .text

; void bench_enter(const uint64_t *registers): RAX RBX RCX RDX RSI RDI RBP R8 to R15, then what
; IRETQ takes. Returns when an exception has come; bench_ended says which.
global bench_enter
bench_enter:
    push_all CALLEE_SAVED
    pushfq
    mov [rel back], rsp
    mov rsp, rdi
    test byte [rsp + 16 * 8], 3
    jz .stay
    swapgs
.stay:
    pop_all r15, r14, r13, r12, r11, r10, r9, r8, rbp, rdi, rsi, rdx, rcx, rbx, rax
    iretq

; extern const uint8_t bench_stubs[32][16]
global bench_stubs
align 16
bench_stubs:
%assign vector 0
%rep 32
    vector_stub vector, leave_snippet
%assign vector vector + 1
%endrep

leave_snippet:
    test byte [rsp + 3 * 8], 3
    jz .kernel
    swapgs
.kernel:
    pop qword [rel bench_ended]
    pop qword [rel bench_ended + 8]
    pop qword [rel bench_ended + 16]
    pop qword [rel bench_ended + 24]
    pop qword [rel bench_ended + 32]
    pop qword [rel bench_ended + 40]
    mov rsp, [rel back]
    mov eax, SEL_KERNEL_SS
    mov ss, eax
    cld
    mov rax, rsp                        ; IRETQ, because no NMI comes before one
    push SEL_KERNEL_SS
    push rax
    push 2
    push SEL_KERNEL_CS
    lea rax, [rel .kernel_again]
    push rax
    iretq
.kernel_again:
    popfq
    pop_all CALLEE_SAVED
    ret

; Any interrupt. bool bench_tick(void) says whether the time is over; it must not use GS.
extern bench_tick
global bench_on_interrupt
bench_on_interrupt:
    push_all CALLER_SAVED
    cld
    call bench_tick
    test al, al
    pop_all CALLER_SAVED
    jnz over
    iretq
; The counters' NMI: a trial whose time is over has one. In the kernel, whose addresses are high, it
; comes too late.
global bench_on_nmi
bench_on_nmi:
    cmp dword [rsp + 4], 0
    je over
    iretq
over:
    push 0
    push HANG
    jmp leave_snippet

section .bss
global bench_ended
back: resq 1
bench_ended: resq 7
