; SPDX-License-Identifier: MIT
; Where an application processor starts: in real mode, at the beginning of any page below 1 MB, to
; which ap_start..ap_end are copied. At AP_TABLES, AP_STACK and AP_PAGES in that page is what it
; needs (layout.h).
; Ends in smp_ap_main, as a guest of the virtual PMU if there is one.
%include "layout.inc"
%include "boot/paging.inc"
extern boot_gdtr, virt_ap, smp_ap_main
%define HERE(label) (label - ap_start)

section .rodata
global ap_start, ap_end
bits 16
ap_start:
    cli
    mov ax, cs
    mov ds, ax
    movzx ebx, ax
    shl ebx, 4                          ; the page; it stays in EBX
    add [HERE(gdtr) + 2], ebx
    add [HERE(to_protected)], ebx
    add [HERE(to_long)], ebx
    o32 lgdt [HERE(gdtr)]
    mov eax, cr0
    or al, 1
    mov cr0, eax
    jmp far dword [HERE(to_protected)]
align 8
gdt:
    dq 0, 0x00af9a000000ffff, 0x00cf92000000ffff, 0x00cf9a000000ffff
gdtr:
    dw 31
    dd HERE(gdt)
to_protected:
    dd HERE(protected)
    dw 0x18
to_long:
    dd HERE(long_mode)
    dw SEL_KERNEL_CS
bits 32
protected:
    mov ax, SEL_KERNEL_SS
    mov ds, ax
    mov es, ax
    mov ss, ax
    enter_paging [ebx + AP_TABLES]
    jmp far [ebx + HERE(to_long)]
bits 64
long_mode:
    mov rax, ap_long_mode
    jmp rax
ap_end:

section .text
ap_long_mode:
    mov ebx, ebx                        ; clears the upper half
    lgdt [rel boot_gdtr]
    mov rsp, [rbx + AP_STACK]
    xor eax, eax
    mov ds, eax
    mov es, eax
    mov fs, eax
    mov gs, eax
    xor ebp, ebp
    mov rdi, [rbx + AP_PAGES]
    call virt_ap
    call smp_ap_main                    ; does not return
    ud2
