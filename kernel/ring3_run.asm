; SPDX-License-Identifier: MIT
; A run in ring 3: the entry, the code that runs there, and the returns. One CPU at a time.
%include "layout.inc"
%include "kernel/base/registers.inc"

; Copied to a page of ring 3. Each entry executes a jump and 2 * RCX instructions, and returns by
; INT3. An instruction that raises an exception is the first and has two bytes; its handler resumes
; at the next one.
section .text
global ring3_code, ring3_code_end, ring3_plain, ring3_undefined, ring3_page_fault
ring3_code:
ring3_page_fault:
    mov al, [rsi]
    jmp short ring3_loop
ring3_undefined:
    ud2
    jmp short ring3_loop
ring3_plain:
    jmp short ring3_loop
ring3_loop:
    dec rcx
    jnz ring3_loop
    int3
ring3_code_end:

; void ring3_enter(uint64_t rip, uint64_t rflags, uint64_t iterations, void *rsp0): returns when
; the code has executed INT3.
; Traps use this stack, below what is saved here.
global ring3_enter
ring3_enter:
    push_all CALLEE_SAVED
    mov [rel back], rsp
    mov [rel entry], rdi
    mov rax, rsp
    and rax, -16
    mov [rcx], rax
    mov rcx, rdx
    xor eax, eax
    push SEL_USER_SS
    push rax
    push rsi
    push SEL_USER_CS
    push rdi
    xor esi, esi                        ; the address that ring3_page_fault reads is not mapped
    swapgs
    iretq

global ring3_on_int3
ring3_on_int3:
    swapgs
    mov rsp, [rel back]
    pop_all CALLEE_SAVED
    ret

; The exception that the entry's first instruction raises: on after it. All others are the
; kernel's, as if it had caught them. Arguments: bytes of the error code, the kernel's handler.
extern ring3_kernels_undefined, ring3_kernels_page_fault
%macro expect 2
    cmp word [rsp + %1 + 8], SEL_USER_CS
    jne %%other
    push rax
    mov rax, [rel entry]
    cmp [rsp + %1 + 8], rax
    pop rax
    jne %%other
    add rsp, %1
    add qword [rsp], 2
    iretq
%%other:
    jmp [rel %2]
%endmacro
global ring3_on_undefined, ring3_on_page_fault
ring3_on_undefined: expect 0, ring3_kernels_undefined
ring3_on_page_fault: expect 8, ring3_kernels_page_fault

; They call ring3_interrupted(from ring 3, NMI), which must not use GS: it is ring 3's.
extern ring3_interrupted
%macro handler 2
global %1
%1:
    push_all CALLER_SAVED
    mov esi, %2
    jmp interrupted
%endmacro
handler ring3_on_interrupt, 0
handler ring3_on_nmi, 1
interrupted:
    mov rdi, [rsp + 10 * 8]             ; CS
    and edi, 3
    cld
    call ring3_interrupted
    pop_all CALLER_SAVED
    iretq

section .bss
back: resq 1
entry: resq 1                           ; where ring 3 began
