; SPDX-License-Identifier: MIT
; Branches between two system calls, for tests of branch records in traces. Each b has its t.
section .text
%define NO_SERVICE 0xffff

%macro row 2
    dq %1, %2
%endmacro

; uint64_t [8][2], from and to, oldest first: the classes JCC, REL_CALL, RET, IND_CALL, RET,
; IND_JMP, REL_JMP, and SYSCALL, whose target is ring 0's.
section .data
global trace_branch_rows, trace_call_rows
align 8
trace_branch_rows:
    row b1, t1
    row b2, f2
    row r2, n2
    row b3, f3
    row r3, n3
    row b4, t4
    row b5, t5
    row b6, 0
; uint64_t [3][2]
trace_call_rows:
    row c1, g1
    row c2, g2
    row c3, g3

section .text
; void trace_branches(void)
global trace_branches
align 16
trace_branches:
    mov eax, NO_SERVICE
    syscall
    xor eax, eax
b1: jz t1
    ud2
t1:
b2: call f2
n2: lea rax, [rel f3]
b3: call rax
n3: lea rax, [rel t4]
b4: jmp rax
    ud2
t4:
b5: jmp strict near t5
    ud2
t5: mov eax, NO_SERVICE
b6: syscall
    ret
f2:
r2: ret
f3:
r3: ret

; void trace_calls(void): three calls that have not returned, and one that has
global trace_calls
align 16
trace_calls:
    mov eax, NO_SERVICE
    syscall
c1: call g1
    ret
g1: call f2
c2: call g2
    ret
g2: lea rax, [rel g3]
c3: call rax
    ret
g3: mov eax, NO_SERVICE
    syscall
    ret
