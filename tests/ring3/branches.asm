; SPDX-License-Identifier: MIT
; What tests/pmu/lbr.c records in ring 3, between two INTs: ring 0 turns the list on and off.
%include "tests/harness/branches.inc"
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
