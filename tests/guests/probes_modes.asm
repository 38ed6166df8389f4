; SPDX-License-Identifier: MIT
; Probes of transparent.asm: system calls, compatibility mode, far pages.
; System calls.
probe "SYSCALL", U64, 0x246
    syscall
    done
probe "SYSCALL with TF", U64, 2 + TF
    syscall
    done
probe "SYSCALL from ring 0", K64, 2
    syscall
    done
probe "SYSRET to 64-bit code", K64, 2
    mov rcx, .there
    mov r11d, 0x246
    o64 sysret
.there:
    pushfq
    pop rbx
    mov esi, cs
    mov edi, ss
    done
probe "SYSRET to 32-bit code", K64, 2
    mov ecx, .there
    mov r11d, 0x202
    sysret
bits 32
.there:
    inc ebx
    mov ecx, cs
    mov edx, ss
    done
probe "SYSRET with TF", K64, 2
    mov rcx, .there
    mov r11d, 2 + TF
    o64 sysret
.there:
    nop
    done
probe "SYSRET from ring 3", U64, 2
    o64 sysret
probe "SYSCALL, EFER.SCE clear", K64, 2
    mov ecx, 0xc0000080
    rdmsr
    and eax, ~1
    wrmsr
    rdmsr
    mov ebx, eax
    syscall
probe "EFER.SCE back", K64, 2
    mov ecx, 0xc0000080
    rdmsr
    or eax, 1
    wrmsr
    rdmsr
    done
probe "SYSENTER, no SYSENTER_CS", K64, 2
    mov ecx, 0x174
    rdmsr
    mov ebx, eax
    xor eax, eax
    wrmsr
    rdmsr
    mov esi, eax
    mov eax, ebx
    wrmsr
    rdmsr
    done

; Compatibility mode.
probe "INT 80h, compatibility mode", U32, 0x246
    mov eax, 20
    int 0x88
    inc eax
    done
probe "INT n of ring 0's gate, compatibility mode", U32, 2
    int 0x82
probe "INT3, compatibility mode", U32, 2
    int3
    done
probe "INTO, compatibility mode", U32, 0x802
    into
    done
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
    done
probe "INC and DEC are no prefixes there", U32, 2
    inc eax
    dec eax
    inc ecx
    int 0x88
    done
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
    done
probe "CPUID, compatibility mode", U32, 2
    mov eax, 0xd
    xor ecx, ecx
    cpuid
    done
probe "32-bit code in ring 0", K32, 2
    mov ecx, 3
.again:
    dec ecx
    jnz .again
    pushfd
    pop ecx
    int 0x88
    done

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
    done
