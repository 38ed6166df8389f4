; SPDX-License-Identifier: MIT
; Code whose every instruction has a name, run while counters write records, or stepped.
%include "kernel/base/registers.inc"
section .bss
align 16
resb 4096
stack_top:
section .text
LENGTH equ 8 + 8 + 16 * 8 + 16 * 16 ; of struct pebs_step

; An instruction, and its row in pebs_rows: address, text, where it loads or stores, or 0.
%macro mem 2+
    %defstr %%name %2
%%at: %2
    [section .rodata]
%%text: db %%name, 0
    [section .data]
    dq %%at, %%text, %1
    __SECT__
%endmacro
%macro op 1+
    mem 0, %1
%endmacro

section .data
align 8
global pebs_rows, pebs_cursor
pebs_cursor: dq 0
cell: dq 0x1122334455667788, 0
rsp_outside: dq 0
pebs_rows:
section .text

; Registers into the words from RBX + 16 on; none: leaves one out.
%macro keep 1-*
    %assign n 2
    %rep %0
    %ifnidn %1, none
    mov [rbx + 8 * n], %1
    %endif
    %assign n n + 1
    %rotate 1
    %endrep
%endmacro

; void pebs_run(const struct pebs_run *run): on a stack of its own, with 0 in the registers that it
; needs no more. Counted: the WRMSR that enables, CALL, the program, four moves.
global pebs_run
pebs_run:
    push_all CALLEE_SAVED
    mov [rel rsp_outside], rsp
    lea rsp, [rel stack_top - 8]
    mov [rsp], rdi
    mov rbx, rdi
    zero rsi, rbp, r8, r9, r10, r12, r13, r14, r15
    mov r11, [rdi + 24]
    pushfq
    mov rax, [rdi + 32]
    or [rsp], rax
    mov ecx, [rdi]
    mov eax, [rdi + 8]
    mov edx, [rdi + 12]
    popfq
op  wrmsr
op  call r11
op  mov rdi, [rsp]
op  mov ecx, [rdi]
op  mov eax, [rdi + 16]
op  mov edx, [rdi + 20]
    wrmsr
    pushfq
    and qword [rsp], ~0x100
    popfq
    mov rsp, [rel rsp_outside]
    pop_all CALLEE_SAVED
    ret

global pebs_program
align 16
pebs_program:
op  mov rax, 0x1001200230034004
op  mov rcx, -2
op  mov rdx, 0x303
op  mov rbx, 0x4040404040
op  mov rbp, 0x5050
op  lea rsi, [rel cell]
op  lea rdi, [rel cell + 8]
op  mov r8, 0x888
op  mov r9, 0x999
op  mov r10, 0xaaa
op  mov r11, 0xbbb
op  mov r12, 0xccc
op  mov r13, 0xddd
op  mov r14, 0xeee
op  mov r15, -1
op  movq xmm0, rax
op  movq xmm7, rbx
op  movq xmm15, r15
op  punpcklqdq xmm0, xmm7
op  movdqa xmm8, xmm0
op  pxor xmm15, xmm8
op  add rcx, rax
mem cell, mov rdx, [rsi]
mem cell + 8, mov [rdi], rbx
mem cell + 8, add [rsi + 8], rdx
op  cmp rax, rbx
op  jmp .jumped
op  nop
.jumped:
op  std
op  cld
op  sub r8, r9
op  jc .carried
op  nop
.carried:
op  jz .never
.never:
op  push r14
op  pop r9
op  call .inside
op  xchg rax, r15
op  imul r12, r13, 3
op  inc rbp
op  dec r10
op  stc
op  adc r11, 0
op  neg rbx
op  ret
.inside:
op  not r14
op  ret
    [section .data]
    dq 0, 0, 0
    __SECT__

; The handler of #DB: adds what a step left to where pebs_cursor points.
global pebs_on_step
pebs_on_step:
    push rbx
    mov rbx, [rel pebs_cursor]
    keep rax, rcx, rdx, none, none, rbp, rsi, rdi, r8, r9, r10, r11, r12, r13, r14, r15
    pop rax
    mov [rbx + 40], rax
    mov rcx, [rsp]
    mov [rbx], rcx
    mov rcx, [rsp + 16]
    mov [rbx + 8], rcx
    mov rcx, [rsp + 24]
    mov [rbx + 48], rcx
%assign n 0
%rep 16
    movups [rbx + 144 + 16 * n], xmm %+ n
%assign n n + 1
%endrep
    add qword [rel pebs_cursor], LENGTH
    mov rcx, [rbx + 24]
    xchg rax, rbx
    mov rax, [rax + 16]
    iretq
