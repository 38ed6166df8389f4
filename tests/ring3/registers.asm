; SPDX-License-Identifier: MIT
; An exception with every register known: the argument points to 15 values, of RAX RCX RDX RBX RBP
; RSI RDI R8 to R15, which are loaded, and replaced by what they are after the exception; a
; sixteenth becomes RFLAGS.
%include "kernel/base/registers.inc"
section .text

; void registers_ud2(uint64_t values[16])
global registers_ud2, registers_ud2_here
registers_ud2:
    push_all CALLEE_SAVED, rsi, rdi
    mov rdi, rcx
    push rdi
    mov rax, [rdi]
    mov rcx, [rdi + 8]
    mov rdx, [rdi + 16]
    mov rbx, [rdi + 24]
    mov rbp, [rdi + 32]
    mov rsi, [rdi + 40]
    mov r8, [rdi + 56]
    mov r9, [rdi + 64]
    mov r10, [rdi + 72]
    mov r11, [rdi + 80]
    mov r12, [rdi + 88]
    mov r13, [rdi + 96]
    mov r14, [rdi + 104]
    mov r15, [rdi + 112]
    mov rdi, [rdi + 48]
    pushfq
    or dword [rsp], 0x40401 ; AC, DF, CF
    popfq
registers_ud2_here:
    ud2
    xchg rdi, [rsp]
    mov [rdi], rax
    pushfq
    mov rax, [rsp]
    and dword [rsp], ~0x40400
    popfq
    mov [rdi + 120], rax
    mov [rdi + 8], rcx
    mov [rdi + 16], rdx
    mov [rdi + 24], rbx
    mov [rdi + 32], rbp
    mov [rdi + 40], rsi
    mov [rdi + 56], r8
    mov [rdi + 64], r9
    mov [rdi + 72], r10
    mov [rdi + 80], r11
    mov [rdi + 88], r12
    mov [rdi + 96], r13
    mov [rdi + 104], r14
    mov [rdi + 112], r15
    pop rax
    mov [rdi + 48], rax
    pop_all CALLEE_SAVED, rsi, rdi
    ret

; NTSTATUS no_such_service(void)
global no_such_service
no_such_service:
    mov eax, 0x800
    syscall
    ret

; void registers_steps(void): nine instructions with TF set, one of them a call of no service
global registers_steps, registers_steps_first
registers_steps:
    pushfq
    or qword [rsp], 0x100
    popfq
registers_steps_first:
    nop
    nop
    xor eax, eax
    inc eax
    mov eax, 0xfffff
    syscall
    pushfq
    and qword [rsp], ~0x100
    popfq
    ret

; uint64_t registers_deep(void): recursion without end, in steps of 512 bytes; 1 if it is asked to
; come back
global registers_deep, registers_deep_back
registers_deep:
    push rbp
    mov rbp, rsp
.down:
    sub rsp, 512
    mov [rsp], rax
    jmp .down
registers_deep_back:                    ; with RBP as above
    mov rsp, rbp
    pop rbp
    mov eax, 1
    ret
