; SPDX-License-Identifier: MIT
; What tests/pmu/lbr.c records in ring 3, between two INTs: ring 0 turns the list on and off.
%include "tests/harness/branches.inc"
CODE_32 equ 0x23 ; selectors, as in Windows
CODE_64 equ 0x33
%macro mark 1
global user_%1
user_%1:
%endmacro
section .text
data_of_branches user

; void user_branches(uint64_t unused)
align 16
    mark branches
    int 0x82
    mark started
    branches user
    mov eax, SYSCALL_OF_BRANCHES
    mark b18
    syscall
    mark n18
    mark stop
    int 0x81
    ret
    functions_of_branches user

; void user_narrow(uint64_t unused): the same for code of 32 bits.
align 16
    mark narrow
    int 0x82
    mark started_narrow
    xor eax, eax
    mark b40
    jmp dword far [rel to_narrow]
bits 32
    mark b41
    jz user_b42
    ud2
    mark b42
    jmp short user_t42
    ud2
    mark t42
    mov eax, user_b44
    mark b43
    jmp eax
    ud2
    mark b44
    jmp CODE_64:user_b45
bits 64
    mark b45
    int 0x81
    ret
to_narrow:
    dd user_b41
    dw CODE_32
