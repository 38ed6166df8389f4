; SPDX-License-Identifier: MIT
; Code whose every branch has a name, and tables of the branches that it takes, in their order.
%include "kernel/base/registers.inc"
%include "tests/harness/branches.inc"
MISSING equ 8
DR7_OFF equ 0x400
DR7_WRITES_OF_8 equ 0x90402 ; G0, of breakpoint 0
extern lab_measured_call, lab_measured_return
; Away from other code, as it has a repeated string instruction.
section .repeated progbits alloc exec nowrite align=16

; void lbr_program(uint64_t unused): branches of all classes. An interrupt must be pending; it comes
; before n21.
%macro mark 1
kernel_%1:
%endmacro
data_of_branches kernel
global lbr_program
align 16
lbr_program:
    branches kernel
    lea rsi, [rel cell]
    lea rdi, [rel cell + 3]
    mov ecx, 3
    rep movsb
    sti
    nop
n21:
    cli
b22: ret
    functions_of_branches kernel

; Handlers of INT3, INT 80h, #UD, #PF and the interrupt. Of #PF: [8] alone is the program's; who
; jumped there goes on at R10.
global lbr_on_int3, lbr_on_int80, lbr_on_undefined, lbr_on_page_fault, lbr_on_interrupt
lbr_on_int3:
i14: iretq
lbr_on_int80:
i15: iretq
lbr_on_undefined:
    add qword [rsp], 2
i16: iretq
lbr_on_page_fault:
    push rax
    mov rax, cr2
    cmp rax, 8
    pop rax
    jne not_b17
    add rsp, 8
    mov rdx, [rsp + 24] ; its stack
    mov r11, [rsp]
    cmp r11, MISSING
    cmove r11, r10
    mov [rsp], r11
i17: iretq
not_b17:
    jmp [rel lbr_kernels_page_fault]
lbr_on_interrupt:
i21: iretq

; Ring 3's begin and end of a list, by INT, with interrupts off in between; and its SYSCALL, which
; is the kernel's unless RAX says otherwise.
global lbr_on_start, lbr_on_stop, lbr_on_syscall, lbr_gate, lbr_kernels_syscall
global lbr_kernels_page_fault
lbr_on_start:
    and qword [rsp + 16], ~0x200
    mov eax, [rel lbr_gate + 8]
    mov edx, [rel lbr_gate + 12]
    mov ecx, [rel lbr_gate]
    wrmsr
start: iretq
lbr_on_stop:
    xor eax, eax
    xor edx, edx
    mov ecx, [rel lbr_gate]
    wrmsr
    or qword [rsp + 16], 0x200
    iretq
lbr_on_syscall:
    cmp rax, SYSCALL_OF_BRANCHES
    jne not_b18
i18: o64 sysret
not_b18:
    jmp [rel lbr_kernels_syscall]

; void lbr_trap(uint64_t unused): a single-step trap before a jump.
global lbr_trap
align 16
lbr_trap:
    pushfq
    or qword [rsp], 0x100
    popfq
    nop
b30: jmp short t30
t30:
    pushfq
    and qword [rsp], ~0x100
    popfq
    ret

; void lbr_missing(uint64_t unused): a jump to where no page is.
global lbr_missing
align 16
lbr_missing:
    lea r10, [rel t31]
b31: jmp [rel to_missing]
t31:
b32: ret

; A breakpoint of data on what the next instruction pushes; it ends, and what was pushed goes.
%macro watch_push 0
    lea rax, [rsp - 8]
    mov dr0, rax
    mov eax, DR7_WRITES_OF_8
    mov dr7, rax
%endmacro
%macro end_watch 0
    mov eax, DR7_OFF
    mov dr7, rax
    pop rax
    ret
%endmacro

; void lbr_watched(uint64_t unused), lbr_pushed(uint64_t unused): a call, a PUSH.
global lbr_watched, lbr_pushed
align 16
lbr_watched:
    watch_push
b33: call t33
t33:
    end_watch
lbr_pushed:
    watch_push
    push rax
    end_watch

; void lbr_next(uint64_t unused): a call to the next instruction, and one that is not.
global lbr_next
align 16
lbr_next:
    mov r8, rsp
c8: call d8
d8:
c9: call d9
    nop
d9: mov rsp, r8
    pop rax
    jmp rax

; void lbr_calls(uint64_t unused): calls that return, and four that do not.
global lbr_calls
align 16
lbr_calls:
    mov r8, rsp
c1: call d1
c2: call d2
d1: ret
d2:
c3: call d1
c4: call d4
    nop
d4: lea rax, [rel d5]
c5: call rax
d5: mov rsp, r8
    pop rax
    jmp rax

; void lbr_returns(uint64_t unused): returns without a call, then a call.
global lbr_returns
align 16
lbr_returns:
    mov r8, rsp
%assign n 1
%rep 3
    lea rax, [rel .next %+ n]
    push rax
    ret
.next %+ n:
%assign n n + 1
%endrep
c6: call d6
    nop
d6: mov rsp, r8
    pop rax
    jmp rax

; void lbr_deep(uint64_t n): n calls without a return.
global lbr_deep
align 16
lbr_deep:
    mov r8, rsp
    mov edi, 40
d7: dec edi
    jz deepest
c7: call d7
deepest:
    mov rsp, r8
    pop rax
    jmp rax

; A PMI: what the register that starts lists has is noted, and the list is stopped.
global lbr_on_pmi, lbr_control, lbr_controlled
lbr_on_pmi:
    push_all rax, rcx, rdx
    mov ecx, [rel lbr_control]
    rdmsr
    mov [rel lbr_controlled], rax
    xor eax, eax
    xor edx, edx
    wrmsr
    pop_all rax, rcx, rdx
    iretq

; A row of struct lbr_row, with the names of its labels: from, to, class.
%macro taken 3
    dq %1, %2, %%from, %%to, %3
    [section .rodata.str]
    %defstr from_text %1
    %defstr to_text %2
%%from: db from_text, 0
%%to: db to_text, 0
    __?SECT?__
%endmacro
JCC equ 2
REL_CALL equ 3
IND_CALL equ 4
RET_ equ 5
IND_JMP equ 6
REL_JMP equ 7
FAR_ equ 8

section .rodata
global lbr_program_rows, lbr_user_rows
align 8
lbr_program_rows:
    taken lab_measured_call, lbr_program, IND_CALL
    rows_of_branches kernel
    taken n21, lbr_on_interrupt, FAR_
    taken i21, n21, FAR_
    taken b22, lab_measured_return, RET_
    dq 0, 0, 0, 0, 0
extern user_b1, user_t1, user_b3, user_t3, user_b4, user_t4, user_b5, user_t5, user_b6, user_t6
extern user_b7, user_t7, user_b8, user_t8, user_b9, user_f9, user_x9, user_n9, user_b10, user_f10
extern user_x10, user_n10, user_b11, user_f11, user_x11, user_n11, user_b14
extern user_n14, user_b15, user_n15, user_b16, user_n16, user_b17, user_b19, user_t19, user_started
extern user_b18, user_n18, user_stop
extern user_started_narrow, user_b40, user_b41, user_b42, user_t42, user_b43, user_b44, user_b45
lbr_user_rows:
    taken start, user_started, FAR_
    rows_of_branches user
    taken user_b18, lbr_on_syscall, FAR_
    taken i18, user_n18, FAR_
    taken user_stop, lbr_on_stop, FAR_
    dq 0, 0, 0, 0, 0
global lbr_calls_rows, lbr_only_calls_rows, lbr_returns_rows, lbr_deep_rows
lbr_calls_rows:
    taken lab_measured_call, lbr_calls, IND_CALL
    taken c2, d2, REL_CALL
    taken c4, d4, REL_CALL
    taken c5, d5, IND_CALL
    dq 0, 0, 0, 0, 0
lbr_only_calls_rows:
    taken c1, d1, REL_CALL
    taken c2, d2, REL_CALL
    taken c3, d1, REL_CALL
    taken c4, d4, REL_CALL
    dq 0, 0, 0, 0, 0
lbr_returns_rows:
    taken c6, d6, REL_CALL
    dq 0, 0, 0, 0, 0
lbr_deep_rows:
%rep 32
    taken c7, d7, REL_CALL
%endrep
    dq 0, 0, 0, 0, 0
global lbr_trap_rows
lbr_trap_rows:
    taken lab_measured_call, lbr_trap, IND_CALL
    dq 0, 0, 0, 0, 0
global lbr_missing_rows, lbr_watched_rows, lbr_next_rows, lbr_narrow_rows
lbr_missing_rows:
    taken lab_measured_call, lbr_missing, IND_CALL
    taken b31, MISSING, IND_JMP
    taken MISSING, lbr_on_page_fault, FAR_
    taken i17, t31, FAR_
    taken b32, lab_measured_return, RET_
    dq 0, 0, 0, 0, 0
lbr_watched_rows:
    taken lab_measured_call, lbr_watched, IND_CALL
    taken b33, t33, REL_CALL
    dq 0, 0, 0, 0, 0
lbr_next_rows:
    taken lab_measured_call, lbr_next, IND_CALL
    taken c8, d8, REL_CALL
    taken c9, d9, REL_CALL
    dq 0, 0, 0, 0, 0
lbr_narrow_rows:
    taken start, user_started_narrow, FAR_
    taken user_b40, user_b41, FAR_
    taken user_b41, user_b42, JCC
    taken user_b42, user_t42, REL_JMP
    taken user_b43, user_b44, IND_JMP
    taken user_b44, user_b45, FAR_
    taken user_b45, lbr_on_stop, FAR_
    dq 0, 0, 0, 0, 0

section .data
cell: dq 0
to_missing: dq MISSING
lbr_controlled: dq 0
lbr_kernels_syscall: dq 0
lbr_kernels_page_fault: dq 0
lbr_gate: dq 0, 0, 0
lbr_control: dd 0
