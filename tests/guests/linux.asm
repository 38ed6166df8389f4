; SPDX-License-Identifier: MIT
; A Linux kernel in small, as far as its loader can see: the header of the boot protocol, and
; 64-bit code that says what it was given. A flat file: setup of 5 sectors, then what the loader
; puts where the header wants it.
; Source: Linux documentation, "The Linux/x86 Boot Protocol", "Zero Page".
SECTORS equ 4
PREFERRED equ 0x1000000
MEMORY equ 0x800000
org PREFERRED - (SECTORS + 1) * 512
bits 64
begin:
    times 0x1f1 - ($ - begin) db 0
    db SECTORS
    times 0x1fe - ($ - begin) db 0
    dw 0xaa55, 0x66eb
    db "HdrS"
    dw 0x20f                            ; version of the protocol
    times 0x211 - ($ - begin) db 0
    db 1                                ; the kernel's place is high
    times 0x22c - ($ - begin) db 0
    dd 0x7fffffff                       ; the initrd's highest byte
    dd 0x200000                         ; alignment
    db 1, 21                            ; relocatable
    dw 1                                ; it has a 64-bit entry
    dd 2047                             ; length of a command line
    times 0x258 - ($ - begin) db 0
    dq PREFERRED
    dd MEMORY
    times (SECTORS + 1) * 512 - ($ - begin) db 0

kernel:
    times 0x200 db 0xf4                 ; the 32-bit entry halts
%macro tell 1+                          ; a text
    call %%after
    db %1, 0
%%after:
    pop rsi
    call say
%endmacro
%macro tell_number 1
    mov rax, %1
    call say_number
%endmacro
entry:
    lea rsp, [rel kernel + MEMORY]      ; all of it must be there
    mov rbx, rsi                        ; the boot parameters
    tell "linux: command line <"
    mov esi, [rbx + 0x228]
    call say
    tell ">", 10, "linux: initrd of "
    mov eax, [rbx + 0x21c]
    call say_number
    tell "bytes <"
    mov esi, [rbx + 0x218]
    test esi, esi
    jz .none
    call say                            ; a text, in the test
.none:
    tell ">", 10, "linux: MiB of memory "
    movzx ecx, byte [rbx + 0x1e8]
    lea rdx, [rbx + 0x2d0]
    xor eax, eax
.memory:
    cmp dword [rdx + 16], 1
    jne .ours
    add rax, [rdx + 8]
.ours:
    add rdx, 20
    loop .memory
    shr rax, 20
    call say_number
    tell 10, "linux: loaded at "
    lea rax, [rel kernel]
    call say_number
    tell 10, "linux: cs ss flags cr0 efer "
    tell_number cs
    tell_number ss
    pushfq
    pop rax
    and eax, 0x200                      ; IF
    call say_number
    tell_number cr0
    mov ecx, 0xc0000080
    rdmsr
    call say_number
    tell 10
    call load_selectors                 ; of the loader's GDT
    lgdt [rel gdtr]
    call load_selectors
    mov eax, 0x10
    mov dx, 0xf4
    out dx, eax
.halt:
    hlt
    jmp .halt

load_selectors:
    pop rbx
    mov eax, 0x18
    mov ds, eax
    mov ss, eax
    push 0x10
    push rbx
    retfq

say:                                    ; RSI: a text that ends with 0
    mov edx, 0x3f8
.next:
    lodsb
    test al, al
    jz .out
    out dx, al
    jmp .next
.out:
    ret

say_number:                             ; RAX, hexadecimal, and a space
    mov edi, 60
    mov r8, rax
    mov edx, 0x3f8
.digit:
    mov ecx, edi
    mov rax, r8
    shr rax, cl
    jnz .show
    test edi, edi
    jnz .next
.show:
    and eax, 15
    lea rcx, [rel digits]
    mov al, [rcx + rax]
    out dx, al
.next:
    sub edi, 4
    jns .digit
    mov al, ' '
    out dx, al
    ret

digits: db "0123456789abcdef"
align 8
gdt: dq 0, 0, 0x00af9b000000ffff, 0x00cf93000000ffff
gdtr: dw $ - gdt - 1
    dq gdt
