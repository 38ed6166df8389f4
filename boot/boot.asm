; SPDX-License-Identifier: MIT
; From the loader (multiboot 1 or 2, 32-bit protected mode, no paging) to boot_main in long mode.
; The tables made here map the first 4 GB at 0 and at DIRECT_MAP, and 2 GB of it at KERNEL_VMA. The
; kernel soon makes its own; the virtual PMU's host side keeps these, and CPUs start on them.
%include "layout.inc"
%include "boot/paging.inc"

MB1_MAGIC equ 0x1badb002
; Modules on pages, memory map, addresses below: QEMU loads a flat file.
MB1_FLAGS equ 0x10003
MB2_MAGIC equ 0xe85250d6

extern load_start, load_end, bss_end
section .multiboot align=8
mb2:
    dd MB2_MAGIC, 0, mb2_end - mb2, -(MB2_MAGIC + (mb2_end - mb2))
    align 8
    dw 2, 0                             ; load addresses: the file is flat
    dd 24, mb2, load_start, load_end, bss_end
    align 8
    dw 3, 0                             ; entry
    dd 12, _start
    align 8
    dw 5, 1                             ; a linear framebuffer if possible: any size, 32 bits
    dd 20, 0, 0, 32
    align 8
    dw 0, 0
    dd 8
mb2_end:
    align 4
mb1:
    dd MB1_MAGIC, MB1_FLAGS, -(MB1_MAGIC + MB1_FLAGS)
    dd mb1, load_start, load_end, bss_end, _start

section .bss align=4096 nobits
global boot_pml4
boot_pml4:  resb PAGE_SIZE
pdpt_low:   resb PAGE_SIZE              ; 4 GB, at 0 and at DIRECT_MAP
pdpt_high:  resb PAGE_SIZE              ; 2 GB at KERNEL_VMA
page_dirs:  resb PAGE_SIZE * 4
boot_stack: resb KERNEL_STACK_SIZE
global boot_stack_top
boot_stack_top:

%define PHYS(label) (label - KERNEL_VMA)

bits 32
section .boot progbits alloc exec nowrite align=16
global _start
_start:
    cli
    cld
    mov esp, PHYS(boot_stack_top)
    mov ebp, eax                        ; magic; EBX stays the loader's info
    xor eax, eax
    mov dr7, eax                        ; no breakpoint of firmware's
    mov eax, 0x80000000
    push ebx
    cpuid
    pop ebx
    cmp eax, 0x80000001
    jb no_long_mode
    push ebx
    mov eax, 0x80000001
    cpuid
    pop ebx
    test edx, 1 << 29
    jz no_long_mode

    mov edi, PHYS(page_dirs)            ; 2,048 pages of 2 MB, present and writable
    mov eax, 0x83
    mov ecx, 2048
.fill:
    mov [edi], eax
    add edi, 8
    add eax, 0x200000
    loop .fill
    mov eax, PHYS(page_dirs) + 3
    mov [PHYS(pdpt_low)], eax
    mov [PHYS(pdpt_high) + 510 * 8], eax
    add eax, PAGE_SIZE
    mov [PHYS(pdpt_low) + 8], eax
    mov [PHYS(pdpt_high) + 511 * 8], eax
    add eax, PAGE_SIZE
    mov [PHYS(pdpt_low) + 16], eax
    add eax, PAGE_SIZE
    mov [PHYS(pdpt_low) + 24], eax
    mov eax, PHYS(pdpt_low) + 3
    mov [PHYS(boot_pml4)], eax
    mov [PHYS(boot_pml4) + 256 * 8], eax
    mov dword [PHYS(boot_pml4) + 511 * 8], PHYS(pdpt_high) + 3

    enter_paging PHYS(boot_pml4)
    lgdt [boot_gdtr_low]
    jmp SEL_KERNEL_CS:.long_mode_low

bits 64
.long_mode_low:
    mov rax, .long_mode
    jmp rax

section .text
.long_mode:
    lgdt [rel boot_gdtr]
    xor eax, eax
    mov ds, eax
    mov es, eax
    mov fs, eax
    mov gs, eax
    mov ax, SEL_KERNEL_SS
    mov ss, ax
    mov rsp, boot_stack_top
    mov edi, ebp
    mov esi, ebx
    xor ebp, ebp
    extern boot_main
    call boot_main                      ; does not return
    ud2

bits 32
section .boot
no_long_mode:
    mov esi, no_long_mode_text
.next:
    lodsb
    test al, al
    jz .halt
    mov dx, 0x3f8
    out dx, al
    jmp .next
.halt:
    hlt
    jmp .halt
no_long_mode_text: db 10, "ntpmu: this processor has no 64-bit mode", 10, 0

align 8
boot_gdt:
    dq 0
    dq 0x00af9a000000ffff               ; SEL_KERNEL_CS
    dq 0x00cf92000000ffff               ; SEL_KERNEL_SS
boot_gdt_end:
boot_gdtr_low:
    dw boot_gdt_end - boot_gdt - 1
    dq boot_gdt

section .rodata
global boot_gdtr
boot_gdtr:
    dw boot_gdt_end - boot_gdt - 1
    dq boot_gdt + KERNEL_VMA            ; wherever the image lies
