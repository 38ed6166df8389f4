; SPDX-License-Identifier: MIT
; Of transparent.asm: the way to real mode and back.

; void real_mode(void): the BIOS's interrupts, its timer, an INT n of our own; words in real_result.
; What INT 15h says of memory: the end of the last range below 4 GB, in KB from 1 MB, in 64 KB from
; 16 MB.
global real_mode, real_result, real_end_of_memory, real_blocks
%define R(label) (LOW + (label) - real_begin)
real_mode:
    enter
    cli
    mov rsi, real_begin
    mov edi, LOW
    mov ecx, real_end - real_begin
    cld
    rep movsb
    push K32
    push LOW
    o64 retf
real_begin:
bits 32
    change cr0, and, 0x7fffffff
    change_msr 0xc0000080, and, ~0x100
    jmp CODE16:R(real_16)
bits 16
real_16:
    load_segments DATA16
    change cr0, and, ~1
    jmp 0:R(real)
real:
    xor ax, ax
    mov ds, ax
    mov es, ax
    mov ss, ax
    mov sp, 0x7c00
    lidt [R(real_idtr)]
    mov al, 0xfe                        ; IRQ 0
    out 0x21, al
    mov eax, [0x46c]
    sti
.wait:
    hlt
    cmp eax, [0x46c]
    je .wait
    int 0x12
    mov [R(real_words)], ax
    mov ah, 0x0f
    int 0x10
    mov [R(real_words) + 2], ax
    xor ebx, ebx
.map:
    mov eax, 0xe820
    mov edx, 0x534d4150
    mov ecx, 20
    mov di, R(real_range)
    stc
    int 0x15
    jc .sizes
    cmp dword [R(real_range) + 16], 1   ; memory
    jne .next
    cmp dword [R(real_range) + 4], 0
    jne .next
    mov eax, [R(real_range)]
    add eax, [R(real_range) + 8]
    mov [R(real_words) + 16], eax
.next:
    test ebx, ebx
    jnz .map
.sizes:
    mov ax, 0xe801
    int 0x15
    mov [R(real_words) + 20], bx
    mov [R(real_words) + 30], dx
    mov ah, 0x88
    int 0x15
    mov [R(real_words) + 14], ax
    mov ax, 0xc000                      ; a function that is none of memory; one that is none
    int 0x15
    pushf
    pop word [R(real_words) + 22]
    mov [R(real_words) + 24], ax
    mov ax, 0x4299
    int 0x15
    pushf
    pop word [R(real_words) + 26]
    mov eax, 0xe820
    mov ebx, 0x1000                     ; no such range
    int 0x15
    pushf
    pop word [R(real_words) + 28]
    mov dword [0x60 * 4], R(real_handler)
    mov ax, 0x1234
    test ax, ax                         ; flags that do not depend on the time
    int 0x60
    mov [R(real_words) + 4], ax
    pushf
    pop word [R(real_words) + 6]
    cli
    mov al, 0xff
    out 0x21, al
    change cr0, or, 1
    jmp dword K32:R(real_32)
real_handler:
    inc ax
    mov bp, sp
    mov bx, [bp]                        ; IP
    mov [R(real_words) + 8], bx
    mov bx, [bp + 4]                    ; flags
    mov [R(real_words) + 10], bx
    pushf
    pop word [R(real_words) + 12]
    stc
    iret
real_idtr: dw 0x3ff, 0, 0
align 4
real_words: times 16 dw 0
real_range: times 5 dd 0
bits 32
real_32:
    load_segments KDATA
    change_msr 0xc0000080, or, 0x100
    change cr0, or, 0x80000000
    jmp K64:real_back
bits 64
real_end:
real_back:
    lidt [idtr]
    mov esi, R(real_words)
    mov edi, real_result
    mov ecx, 4
    rep movsq
    jmp recover
