; SPDX-License-Identifier: MIT
; Drivers' calls of exported routines: from Microsoft's x64 calling convention to System V's.
%include "layout.inc"

section .text
global export_thunks
extern export_begin, export_end

; uint8_t export_thunks[EXPORTS_MAX][EXPORT_THUNK_SIZE]: each puts its number into EAX.
align EXPORT_THUNK_SIZE
export_thunks:
%assign n 0
%rep EXPORTS_MAX
    mov eax, n
    jmp near export_call
    align EXPORT_THUNK_SIZE, int3
%assign n n + 1
%endrep

; The caller has kept 32 bytes above its return address for the first four arguments; the fifth and
; those after it follow there. RBX, RSI, RDI and RBP are the caller's, and XMM6 to XMM15, which the
; kernel does not use. Arguments that the routine does not have are what is in the caller's frame.
export_call:
    push rbp
    mov rbp, rsp
    push rbx
    push rsi
    push rdi
    sub rsp, 8
    mov [rbp + 0x10], rcx
    mov [rbp + 0x18], rdx
    mov [rbp + 0x20], r8
    mov [rbp + 0x28], r9
    mov edi, eax
    mov rsi, [rbp + 8]
    mov rdx, rsp ; *outer
    call export_begin
    mov rbx, rax
    movzx ecx, byte [rbx + EXPORTED_ARGUMENTS]
    cmp ecx, 6
    jbe .registers
    test cl, 1
    jz .push
    sub rsp, 8 ; an even number of words: RSP stays a multiple of 16
.push:
    dec ecx
    push qword [rbp + 0x10 + rcx * 8]
    cmp ecx, 6
    ja .push
.registers:
    mov rdi, [rbp + 0x10]
    mov rsi, [rbp + 0x18]
    mov rdx, [rbp + 0x20]
    mov rcx, [rbp + 0x28]
    mov r8, [rbp + 0x30]
    mov r9, [rbp + 0x38]
    call [rbx + EXPORTED_ADDRESS]
    lea rsp, [rbp - 0x20]
    mov rdi, rbx
    mov rsi, [rsp]
    mov rdx, rax
    mov rbx, rax
    call export_end
    mov rax, rbx
    add rsp, 8
    pop rdi
    pop rsi
    pop rbx
    pop rbp
    ret
