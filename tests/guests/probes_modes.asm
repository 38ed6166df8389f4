; SPDX-License-Identifier: MIT
; Probes of transparent.asm: system calls, compatibility mode, far pages.
; System calls.
probe "SYSCALL", U64, 0x246
    syscall
probe "SYSCALL with TF", U64, 2 + TF
    syscall
probe "SYSCALL from ring 0", K64, 2
    syscall
probe "SYSRET to 64-bit code", K64, 2
    mov rcx, .there
    mov r11d, 0x246
    o64 sysret
.there:
    pushfq
    pop rbx
    mov esi, cs
    mov edi, ss
probe "SYSRET to 32-bit code", K64, 2
    mov ecx, .there
    mov r11d, 0x202
    sysret
bits 32
.there:
    inc ebx
    mov ecx, cs
    mov edx, ss
probe "SYSRET with TF", K64, 2
    mov rcx, .there
    mov r11d, 2 + TF
    o64 sysret
.there:
    nop
probe "SYSRET from ring 3", U64, 2
    o64 sysret
probe "SYSCALL, EFER.SCE clear", K64, 2
    change_msr 0xc0000080, and, ~1
    rdmsr
    mov ebx, eax
    syscall
probe "EFER.SCE back", K64, 2
    change_msr 0xc0000080, or, 1
    rdmsr

; Compatibility mode.
probe "INT 80h, compatibility mode", U32, 0x246
    mov eax, 20
    int 0x88
    inc eax
probe "INT n of ring 0's gate, compatibility mode", U32, 2
    int 0x82
probe "INT3, compatibility mode", U32, 2
    int3
probe "INTO, compatibility mode", U32, 0x802
    into
probe "BOUND, compatibility mode", U32, 2
    mov dword [scratch], 5
    mov dword [scratch + 4], 9
    mov ecx, 4
    bound ecx, [scratch]
probe "#UD, compatibility mode", U32, 2
    ud2
probe "#PF, compatibility mode", U32, 2
    mov ecx, [0x80001234]
probe "TF, compatibility mode", U32, 2 + TF
    inc ecx
    pushfd
    pop edx
probe "INC and DEC are no prefixes there", U32, 2
    inc eax
    dec eax
    inc ecx
    int 0x88
probe "from 64-bit to 32-bit code and back, far", K64, 2
    push K32
    push .narrow
    o64 retf
bits 32
.narrow:
    inc ebx
    mov ecx, cs
    int 0x88
    jmp K64:.wide
bits 64
.wide:
    inc ebx
    mov edx, cs
    int 0x88
probe "CPUID, compatibility mode", U32, 2
    ask_cpuid 0xd
probe "32-bit code in ring 0", K32, 2
    mov ecx, 3
.again:
    dec ecx
    jnz .again
    pushfd
    pop ecx
    int 0x88

; Far pages: code and data by a page of 1 GB.
probe "code in a page of 1 GB", K64, 2, FAR_MAP
    mov ecx, 5
.again:
    dec ecx
    jnz .again
    int3
    ud2
probe "code in a page of 1 GB, ring 3", U64, 2, FAR_MAP
    mov ecx, 5
.again:
    dec ecx
    jnz .again
    int 0x88
    cpuid
    zero eax, ebx, ecx, edx
