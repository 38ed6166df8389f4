; SPDX-License-Identifier: MIT
; An image as a hypervisor's suite of unit tests is: multiboot 1 with no flag set, linked for 64 bits and made an ELF32 file
; afterwards, its own tables. The rest is suite.c.
MAGIC equ 0x1badb002
CODE equ 8
DATA equ 16

section .multiboot align=4
    dd MAGIC, 0, -MAGIC

section .bss align=4096 nobits
pml4:   resb 4096
pdpt:   resb 4096
dirs:   resb 4096 * 4
        resb 8192
stack_top:
global idt
idt:    resb 4096

section .data align=8
gdt:
    dq 0, 0x00af9a000000ffff, 0x00cf92000000ffff
gdtr:
    dw $ - gdt - 1
    dq gdt
idtr:
    dw 4095
    dq idt

section .text
bits 32
global start
start:
    mov esp, stack_top
    mov edi, dirs
    mov eax, 0x83                       ; present, writable, 2 MB
    mov ecx, 2048
.fill:
    mov [edi], eax
    add edi, 8
    add eax, 0x200000
    loop .fill
    mov edi, pdpt
    mov eax, dirs + 3
    mov ecx, 4
.dirs:
    mov [edi], eax
    add edi, 8
    add eax, 4096
    loop .dirs
    mov dword [pml4], pdpt + 3
    mov eax, cr4
    or eax, 0x620                       ; PAE, OSFXSR, OSXMMEXCPT
    mov cr4, eax
    mov eax, pml4
    mov cr3, eax
    mov ecx, 0xc0000080
    rdmsr
    or eax, 0x100
    wrmsr
    mov eax, cr0
    or eax, 0x80000001
    mov cr0, eax
    lgdt [gdtr]
    jmp CODE:long_mode
bits 64
long_mode:
    mov ax, DATA
    mov ds, ax
    mov es, ax
    mov ss, ax
    lidt [idtr]
    mov edi, ebx
    extern suite_main
    call suite_main
    ud2

; void undefined(void): the handler of #UD goes on behind the UD2
global undefined, interrupt
undefined:
    extern undefined_seen
    inc dword [undefined_seen]
    add qword [rsp], 2
    iretq
interrupt:
    extern interrupts_seen
    inc dword [interrupts_seen]
    push rax
    mov eax, 0xfee000b0
    mov dword [rax], 0
    pop rax
    iretq

; void counted(uint32_t msr, uint64_t on, uint64_t loops): between the WRMSR that starts the counter, which counts, and the
; one that stops it, which does not, 2 * loops + 2 instructions
global counted
counted:
    mov r8, rdx
    mov ecx, edi
    mov eax, esi
    mov rdx, rsi
    shr rdx, 32
    wrmsr
.again:
    dec r8
    jnz .again
    xor eax, eax
    xor edx, edx
    wrmsr
    ret
