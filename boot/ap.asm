; SPDX-License-Identifier: MIT
; Where an application processor starts: in real mode at AP_PAGE. smp.c copies ap_start..ap_end
; there.
; Ends in smp_ap_main on the stack whose address smp.c left in AP_STACK, as a guest of the virtual
; PMU if there is one, which gets the boot_info.ap_pages whose address is in AP_ROOM.
%include "layout.inc"
extern boot_gdtr_low, enter_paging, virt_ap, smp_ap_main
%define HERE(label) (AP_PAGE + label - ap_start)

section .rodata
global ap_start, ap_end
bits 16
ap_start:
    cli
    xor ax, ax
    mov ds, ax
    o32 lgdt [HERE(gdtr)]
    mov eax, cr0
    or al, 1
    mov cr0, eax
    jmp dword 0x18:HERE(protected)
align 8
gdt:
    dq 0, 0, 0x00cf92000000ffff, 0x00cf9a000000ffff
gdtr:
    dw 31
    dd HERE(gdt)
bits 32
protected:
    mov ax, SEL_KERNEL_SS
    mov ds, ax
    mov es, ax
    mov ss, ax
    mov esp, AP_STACK
    mov eax, enter_paging
    call eax
    jmp SEL_KERNEL_CS:HERE(long_mode)
bits 64
long_mode:
    mov rax, ap_long_mode
    jmp rax
ap_end:

section .text
ap_long_mode:
    mov rsp, [abs AP_STACK]
    xor eax, eax
    mov ds, eax
    mov es, eax
    mov fs, eax
    mov gs, eax
    xor ebp, ebp
    mov rdi, [abs AP_ROOM]
    call virt_ap
    call smp_ap_main                    ; does not return
    ud2
