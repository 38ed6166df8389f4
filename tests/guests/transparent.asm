; SPDX-License-Identifier: MIT
; A guest that looks where a hypervisor shows: probes, each a few instructions that end in INT 81h,
; run by transparent.c in a ring and a mode.
%include "tests/guests/guest.inc"
LOW equ 0x8000                          ; real mode code
FAR_MAP equ 0x8000000000                ; the first GB once more, by one page of 1 GB
READ_ONLY_PAGE equ FAR_MAP + 0x40000000 ; pages of its own, and none after them
LAST_PAGE equ READ_ONLY_PAGE + 4096
TF equ 0x100
IF equ 0x200

extern scratch, second_page, table_far

section .bss
real_result: resw 8
real_end_of_memory: resd 1
real_blocks: resw 6

section .text
; void run(const struct probe *p): IRET to it; comes back when trap_handler says so.
struc PROBE
.name:  resq 1
.code:  resq 1
.cs:    resq 1
.flags: resq 1
endstruc
global run
run:
    enter
    mov rax, [rdi + PROBE.cs]
    mov ecx, KDATA
    test eax, 3
    jz .ring0
    mov ecx, UDATA
    mov ds, ecx
    mov es, ecx
.ring0:
    push rcx
    push probe_stack_top
    push qword [rdi + PROBE.flags]
    push rax
    push qword [rdi + PROBE.code]
    mov eax, 1
    mov ecx, 2
    mov edx, 3
    mov ebx, 4
    mov esi, 5
    mov edi, 6
    mov ebp, 7
    mov r11d, 2                         ; flags, where SYSRET takes them
    iretq

; Where SYSCALL and SYSENTER lead. Noted as vectors 100h and up: where to, RCX, R11.
%macro door 2
global %1
%1:
    mov r12, rsp
    mov rsp, trap_stack_top - 2048
    push KDATA
    push r12
    pushfq
    push K64
    push rcx
    push 0
    push %2
    jmp trap
%endmacro
door lstar_entry, 0x100
door cstar_entry, 0x101
door sysenter_entry, 0x102

%include "tests/guests/probes_real.asm"

; --- The probes: name, selector, flags, then code. INT 81h ends it, where the next one begins. ---
%assign number 0
%macro probe 3-4 0
    section .text
    int 0x81
    %assign number number + 1
    section .rodata
%%text: db %1, 0
    section LIST
    dq %%text, probe_%[number] + %4, %2, %3
    section .text
    align 16
    bits 64
    %if %2 == U32 || %2 == K32
    bits 32
    %endif
probe_%[number]:
%endmacro
%macro set 2                            ; a control or debug register, by RAX
    mov rax, %2
    mov %1, rax
%endmacro
%macro ask_cpuid 1
    mov eax, %1
    xor ecx, ecx
    cpuid
%endmacro
%macro send 1                           ; the APIC's ICR
    mov rsi, 0xfee00300
    mov dword [rsi], %1
%endmacro
%macro go_to 2                          ; .there in ring 3: selector, flags
    push UDATA
    push probe_stack_top
    push %2
    push %1
    push .there
    iretq
%endmacro
%macro pit_once 1                       ; after so many ticks
    mov al, 0x30
    out 0x43, al
    mov al, %1
    out 0x40, al
    xor eax, eax
    out 0x40, al
%endmacro

section .rodata
global probes, silicon
%define LIST .probes
section .probes align=8
probes:

%include "tests/guests/probes_traps.asm"
%include "tests/guests/probes_modes.asm"
%include "tests/guests/probes_machine.asm"
%include "tests/guests/probes_pages.asm"
global probes_end, silicon_end
section .probes
probes_end:
%define LIST .silicon
section .silicon align=8
silicon:
%include "tests/guests/probes_silicon.asm"
section .text
    int 0x81
section .silicon
silicon_end:
