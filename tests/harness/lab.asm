; SPDX-License-Identifier: MIT
; Measured code of the conformance tests, ring 0. What each routine executes is in the table of
; lab.c; no REP.
%include "kernel/base/registers.inc"
section .text

; void lab_measure(const struct pmu_gate *gate, void (*work)(uint64_t), uint64_t argument)
; Counted: the WRMSR that enables (it retires enabled), CALL, the work, three moves. The WRMSR that
; disables is not.
; The two names are of the CALL and of where it returns, for lists of branches.
global lab_measure, lab_measured_call, lab_measured_return
lab_measure:
    push rbx
    mov rbx, rdi
    mov r11, rsi
    mov rdi, rdx
    mov ecx, [rbx]
    mov eax, [rbx + 8]
    mov edx, [rbx + 12]
    wrmsr
lab_measured_call:
    call r11
lab_measured_return:
    mov ecx, [rbx]
    mov eax, [rbx + 16]
    mov edx, [rbx + 20]
    wrmsr
    pop rbx
    ret

; void lab_loop(uint64_t n): n times 2 instructions.
global lab_loop
align 16
lab_loop:
    dec rdi
    jnz lab_loop
    ret

; void lab_memory(uint64_t n): n loads and n stores.
global lab_memory
align 16
lab_memory:
    mov rax, [rel cell]
    mov [rel cell], rax
    dec rdi
    jnz lab_memory
    ret

; void lab_branches(uint64_t n): each iteration calls, returns, jumps, takes one conditional branch
; and not another.
global lab_branches
align 16
lab_branches:
    call .nothing
    jmp .on
.nothing:
    ret
.on:
    test rdi, rdi
    jz .never
    dec rdi
    jnz lab_branches
.never:
    ret

; void lab_pauses(uint64_t n): each iteration a PAUSE, at which a hypervisor may take the
; processor away.
global lab_pauses
align 16
lab_pauses:
    pause
    dec rdi
    jnz lab_pauses
    ret

; void lab_exits(uint64_t n): each iteration a CPUID, which every hypervisor intercepts.
global lab_exits
align 16
lab_exits:
    push rbx
.again:
    xor eax, eax
    xor ecx, ecx
    cpuid
    dec rdi
    jnz .again
    pop rbx
    ret

; void lab_halt(uint64_t n): waits for n interrupts.
global lab_halt
align 16
lab_halt:
    sti
    hlt
    dec rdi
    jnz lab_halt
    ret

; void lab_sled(uint64_t n): instructions of one byte each, so that an interrupt's RIP is a count;
; then a loop of n iterations, for the skid.
global lab_sled, lab_sled_end
align 16
lab_sled:
    times 1000 nop
lab_sled_end:
.again:
    dec rdi
    jnz .again
    ret

; void lab_write_inside(uint64_t value): writes the counter at lab_write_msr while it runs, between
; two stretches.
global lab_write_inside, lab_write_msr
align 16
lab_write_inside:
    times 100 nop
    mov ecx, [rel lab_write_msr]
    mov rax, rdi
    mov rdx, rdi
    shr rdx, 32
    wrmsr
    times 10 nop
    ret

; uint64_t lab_steps(void (*work)(uint64_t), uint64_t argument): runs the work with TF set; the
; traps are counted by whoever handles vector 1. From the first trapped instruction to the last:
; CALL, the work, PUSHFQ, AND, POPFQ.
global lab_steps
lab_steps:
    mov r11, rdi
    mov rdi, rsi
    pushfq
    or qword [rsp], 0x100
    popfq
    call r11
    pushfq
    and qword [rsp], ~0x100
    popfq
    ret

; Interrupt handlers: void lab_interrupt(struct lab_frame *frame, unsigned vector) does the work.
extern lab_interrupt
%macro handler 2
global %1
%1:
    push rax
    mov eax, %2
    jmp interrupt
%endmacro
; bool lab_page_fault(void) says whether the test has resolved it. Another one is the kernel's.
extern lab_page_fault, lab_kernels_page_fault
global lab_on_page_fault
lab_on_page_fault:
    push_all CALLER_SAVED
    cld
    call lab_page_fault
    test al, al
    pop_all CALLER_SAVED
    jz .kernels
    add rsp, 8 ; the error code
    iretq
.kernels:
    jmp [rel lab_kernels_page_fault]
handler lab_on_step, 1
handler lab_on_nmi, 2
handler lab_on_pmi, 0xfe
interrupt:
    push_all rcx, rdx, rsi, rdi, r8, r9, r10, r11 ; with RAX above them CALLER_SAVED
    cld
    lea rdi, [rsp + 9 * 8]
    mov esi, eax
    call lab_interrupt
    pop_all CALLER_SAVED
    iretq

section .bss
cell: resq 1
lab_write_msr: resd 1
