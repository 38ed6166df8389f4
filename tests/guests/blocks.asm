; SPDX-License-Identifier: MIT
; Into ring 3 with all registers, and back with them by any trap: for blocks.c.
%include "tests/guests/guest.inc"

section .bss align=4096 nobits
    resb 4096 - ($ - $$) % 4096
global pdpt_user, dir_user, user_table
pdpt_user: resb 4096
dir_user:  resb 4096
user_table: resb 4096
state:  resq 1

section .text
; extern const uint8_t block_stubs[256][16]. A #DB is a step of TF's.
vector_stubs block_stubs, block_trap, 1

; void run_state(struct state *s): RAX RCX RDX RBX RSP RBP RSI RDI R8 to R15, RFLAGS, RIP; changed
; to what the trap found, and after them its vector and error code.
%define FLAGS_AT 128
%define RIP_AT 136
%define VECTOR_AT 144
%define OTHERS rcx, 8, rdx, 16, rbx, 24, rbp, 40, rsi, 48, r8, 64, r9, 72, r10, 80, r11, 88, \
    r12, 96, r13, 104, r14, 112, r15, 120
%macro load_all 1-*
    %rep %0 / 2
    mov %1, [rdi + %2]
    %rotate 2
    %endrep
%endmacro
%macro store_all 1-*
    %rep %0 / 2
    mov [rdi + %2], %1
    %rotate 2
    %endrep
%endmacro
%macro take 2                           ; from the trap's frame into the state
    mov rax, [rsp + %1]
    mov [rdi + %2], rax
%endmacro
global run_state
run_state:
    enter
    mov [state], rdi
    push UDATA
    push qword [rdi + 32]
    push qword [rdi + FLAGS_AT]
    push U64
    push qword [rdi + RIP_AT]
    mov rax, [rdi]
    load_all OTHERS
    mov rdi, [rdi + 56]
    iretq
block_trap:
    push rdi
    mov rdi, [state]
    mov [rdi], rax
    store_all OTHERS
    take 0, 56
    take 8, VECTOR_AT
    take 16, VECTOR_AT + 8
    take 24, RIP_AT
    take 40, FLAGS_AT
    take 48, 32
    cld
    jmp recover

; void set_keys(uint32_t pkru): 0: CR4.PKE is clear
global set_keys
set_keys:
    mov rax, cr4
    btr eax, 22
    mov cr4, rax
    test edi, edi
    jz .none
    bts eax, 22
    mov cr4, rax
    mov eax, edi
    xor ecx, ecx
    xor edx, edx
    wrpkru
.none:
    ret
