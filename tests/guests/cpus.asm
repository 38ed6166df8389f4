; SPDX-License-Identifier: MIT
; A guest with several CPUs: how another one begins, and ways to write the local APIC. The rest is
; cpus.c.
%include "tests/guests/guest.inc"
LOW equ 0x8000                          ; where the others begin
APIC_ICR equ 0xfee00300
APIC_TPR equ 0xfee00080

section .bss align=16
global began, go_on
go_on:  resq 1                          ; what it calls in long mode; 0: it halts, and stays so
        resb 4096
other_stack_top:
        resb 24 << 20                   ; over the place where the kernel was

%define AT(label) (LOW + label - other)
began equ AT(kept)

section .text
; void place(void): copies the code; an NMI in real mode comes to it.
global place
place:
    mov esi, other
    mov edi, LOW
    mov ecx, other_end - other
    rep movsb
    mov dword [abs 2 * 4], AT(nmi)
    ret

bits 16
other:
    mov ebx, cs                         ; before anything else changes
    mov ebp, esp
    mov sp, 0x7000
    pushfd
    pop esi
    mov ecx, ds
    xor eax, eax
    mov ds, ax
    mov [AT(kept.dx)], edx
    mov [AT(kept.sp)], ebp
    mov [AT(kept.flags)], esi
    mov [AT(kept.cs)], bx
    mov [AT(kept.ds)], cx
    mov eax, cr0
    mov [AT(kept.cr0)], eax
    mov eax, cr4
    mov [AT(kept.cr4)], eax
    mov ecx, 0xc0000080
    rdmsr
    mov [AT(kept.efer)], eax
    mov [AT(kept.di)], edi
    mov eax, dr7
    mov [AT(kept.dr7)], eax
    mov ecx, 0x1d9
    rdmsr
    mov [AT(kept.debugctl)], eax
    sgdt [AT(kept.gdt)]
    sidt [AT(kept.idt)]
    o32 lgdt [AT(low_gdtr)]
    mov eax, 0x11
    mov cr0, eax
    jmp dword K32:AT(protected)
nmi:
    inc dword [cs:AT(kept.nmis)]
    iret
align 8
low_gdtr:
    dw CODE16 - 1
    dd gdt
align 8
kept:                                   ; of the last CPU that began: struct began of cpus.c
.dx:    dd 0
.cr0:   dd 0
.cr4:   dd 0
.efer:  dd 0
.di:    dd 0
.dr7:   dd 0
.debugctl: dd 0
.nmis:  dd 0
.flags: dd 0
.sp:    dd 0
.cs:    dw 0
.ds:    dw 0
.gdt:   dw 0, 0, 0, 0
.idt:   dw 0, 0, 0, 0
.count: dd 0
bits 32
protected:
    load_segments KDATA
    mov eax, 0x620
    mov cr4, eax
    mov eax, pml4
    mov cr3, eax
    change_msr 0xc0000080, or, 0x100
    mov eax, 0x80000011
    mov cr0, eax
    jmp K64:AT(wide)
bits 64
wide:
    mov rax, long_mode_high
    jmp rax
other_end:

long_mode_high:
    mov rsp, other_stack_top
    lidt [idtr]
    lock inc dword [AT(kept.count)]
    mov rax, [go_on]
    test rax, rax
    jz .stay
    call rax
.stay:
    hlt
    jmp .stay

; void move_register(uint32_t icr), move_offset(uint32_t icr), move_wide(...): ICR by MOV of a
; register, by MOV with an absolute address, by MOV of R15D. void move_number(void): INIT to all
; others, by MOV of a number. void or_at(uint32_t at): OR of 8 bytes of the
; local APIC's registers with INIT.
global move_register, move_offset, move_wide, move_number, or_at
move_register:
    mov rsi, APIC_ICR
    mov [rsi], edi
    ret
move_offset:
    mov eax, edi
    mov [abs qword APIC_ICR], eax
    ret
move_wide:
    push r15
    mov r15d, edi
    xor edi, edi
    mov r8, APIC_ICR - 64
    mov ecx, 16
    mov [r8 + rcx * 4], r15d
    pop r15
    ret
move_number:
    mov rsi, APIC_ICR
    mov dword [rsi], 0xc4500
    ret
or_at:
    mov esi, edi
    mov rax, 0x450000004500
    or [rsi], rax
    ret

; uint32_t change_priority(void): the task priority after OR, XCHG, ADD and INC of it in memory.
global change_priority
change_priority:
    mov rsi, APIC_TPR
    mov dword [rsi], 0
    or dword [rsi], 0x10
    mov eax, 0x20
    xchg [rsi], eax
    shl eax, 8
    add dword [rsi], 3
    inc dword [rsi]
    or eax, [rsi]
    mov dword [rsi], 0
    ret

; uint32_t change_by_msr(void): the same of the x2APIC, after writes.
global change_by_msr
change_by_msr:
    mov ecx, 0x808
    xor edx, edx
    mov eax, 0x10
    wrmsr
    rdmsr
    mov esi, eax
    mov eax, 0x24
    wrmsr
    rdmsr
    shl esi, 8
    or esi, eax
    xor eax, eax
    wrmsr
    mov eax, esi
    ret

; void loops(uint64_t n): 2 n instructions, n of them branches
global loops
loops:
    dec rdi
    jnz loops
    ret
