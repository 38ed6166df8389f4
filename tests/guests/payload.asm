; SPDX-License-Identifier: MIT
; A foreign kernel in small. It runs none of ntpmu's code, so that it sees the virtual PMU as a
; stranger does.
%include "tests/guests/guest.inc"

; uint64_t rewritten(void): executes a routine, pushes other code over it, and executes it again.
; Returns 12 in octal, what the routine put into EAX. No CALL between: it stores, too.
global rewritten
rewritten:
    mov r8, rsp
    xor r9d, r9d
    lea rsp, [.routine + 8]
    jmp .routine
.back:
    lea r9d, [r9 * 8 + rax]
    cmp r9d, 8
    jae .end
    push qword [.other]
    jmp .routine
.end:
    mov rsp, r8
    mov eax, r9d
    ret
align 8
.routine:
    mov eax, 1
    jmp short .back
    nop
.other:
    db 0b8h, 2, 0, 0, 0, 0ebh, (.back - .routine - 7) & 0ffh, 90h

; uint64_t on_clean_stack(uint64_t top, uint32_t msr, uint64_t on, const uint64_t *entry): starts a
; counter, and waits on another stack for its interrupt. Returns the stack's page-table entry as the
; interrupt's handler finds it before it stores anything; 0: no interrupt came.
global on_clean_stack, clean_interrupt
on_clean_stack:
    mov r8, rdx
    mov r9, rcx
    mov r10, rsp
    xor r11d, r11d
    mov ecx, esi
    write_msr r8
    mov edx, 100000
    mov rsp, rdi
    sti
.wait:
    test r11, r11
    jnz .came
    dec edx
    jnz .wait
.came:
    cli
    mov rsp, r10
    mov rax, r11
    ret
clean_interrupt:
    mov r11, [r9]
    mov eax, 0xfee000b0
    mov dword [rax], 0
    iretq

; void gate_loop(uint32_t msr, uint64_t on, uint64_t off, uint64_t loops): between the two WRMSRs,
; the first counted and the second not, 2 * loops + 4 instructions
%macro gate 1
global %1
%1:
    mov r8, rcx
    mov r9, rdx
    mov r10d, edi
    mov ecx, edi
    write_msr rsi
%endmacro
gate gate_loop
.again:
    dec r8
    jnz .again
    write_msr r9
    ret

; void gate_pauses(uint32_t msr, uint64_t on, uint64_t off, uint64_t loops): the same with a PAUSE
; in each iteration: 3 * loops + 4
gate gate_pauses
.again:
    dec r8
    pause
    jnz .again
    write_msr r9
    ret

; void gate_code(uint32_t msr, uint64_t on, uint64_t off, const void *code): the same around a call
; of code that was copied there, fills the next page, and has 5 instructions: 11
gate gate_code
    call r8
    mov ecx, r10d
    write_msr r9
    ret
global filling, filling_end
section .data                           ; not on a page of code
filling:
    lea rdi, [r8 + 4096]
    mov ecx, 4096
    mov eax, 0x5a
    rep stosb
    ret
filling_end:
section .text

; void run_user(uint64_t loops): 2 * loops + 1 instructions in ring 3, the last one a SYSCALL
global run_user, user_loop, recover
run_user:
    enter
    push UDATA
    push probe_stack_top
    push 0x202
    push U64
    push user_loop
    iretq
user_loop:
    dec rdi
    jnz user_loop
    syscall                             ; to recover
