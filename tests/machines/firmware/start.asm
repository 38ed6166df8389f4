; SPDX-License-Identifier: MIT
; Bad firmware: a multiboot 1 image that leaves the machine as no loader should, then starts the
; kernel that came as its module. 32-bit protected mode all the time.
MAGIC equ 0x1badb002
FLAGS equ 3

section .multiboot align=4
    dd MAGIC, FLAGS, -(MAGIC + FLAGS)

section .bss align=4096 nobits
    resb 16384
stack_top:

section .text
bits 32
global start
start:
    cli
    cld
    mov esp, stack_top
    lgdt [gdtr]
    jmp 8:.own_gdt
.own_gdt:
    mov cx, 16
    mov ds, cx
    mov es, cx
    mov ss, cx
    push ebx
    push eax
    extern firmware_main
    call firmware_main              ; does not return
    ud2

; handover(entry, info): as a loader would, but for what firmware_main left.
global handover
handover:
    mov ecx, [esp + 4]
    mov ebx, [esp + 8]
    mov eax, 0x2badb002
    jmp ecx

; An interrupt that is never ended.
global never_ended
never_ended:
    iretd

section .data align=8
gdt:
    dq 0, 0x00cf9a000000ffff, 0x00cf92000000ffff
gdtr:
    dw $ - gdt - 1
    dd gdt
