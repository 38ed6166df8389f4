; SPDX-License-Identifier: MIT
; Probes of transparent.asm: exceptions, flags, breakpoints.
; Exceptions.
probe "#DE", K64, 2
    xor edx, edx
    mov ecx, edx
    div ecx
probe "#DE, ring 3", U64, 2
    xor ecx, ecx
    div ecx
probe "INT3", K64, 2
    int3
probe "INT3, ring 3", U64, 2
    nop
    int3
probe "#UD", K64, 2
    ud2
probe "#UD, ring 3", U64, 2
    nop
    ud2
probe "#PF, read", K64, 2
    mov eax, [abs qword 0x123456789a]
probe "#PF, write", U64, 2
    mov rax, 0x12345678f0
    inc dword [rax]
probe "#PF, fetch", K64, 2
    mov rax, 0x1234567000
    jmp rax
probe "#GP, not canonical", K64, 2
    mov rax, 0x8000000000000000
    mov rax, [rax]
probe "#SS, not canonical", K64, 2
    mov rbp, 0x8000000000000000
    mov rax, [rbp]
probe "#GP, RDMSR in ring 3", U64, 2
    rdmsr
probe "#GP, HLT in ring 3", U64, 2
    hlt
probe "#GP, CLI in ring 3", U64, 2
    cli
probe "#NP, segment load", K64, 2
    mov eax, ABSENT_DATA
    mov gs, eax
probe "#NP, gate's segment", K64, 2
    int 0x83
probe "#NP, gate's segment, exception", U64, 2
    mov eax, 1
    int 0x86
probe "#NP, gate", U64, 2
    int 0x85
probe "#GP, INT n of ring 0's gate", U64, 2
    int 0x82
probe "#GP, gate without segment", K64, 2
    int 0x84
probe "#GP, beyond the IDT's entries of use", U64, 2
    int 0xf0
probe "INT n, ring 0", K64, 2
    int 0x88
probe "INT n, ring 3", U64, 0x3202 & ~0x3000
    int 0x88
probe "INT n after prefixes", U64, 2
    db 0x66, 0x48
    int 0x88
probe "ICEBP", K64, 2
    db 0xf1

; Flags, TF.
probe "TF in ring 0", K64, 2 + TF
    nop
    pushfq
    pop rbx
probe "TF in ring 3", U64, 2 + TF
    ask_cpuid 0xd
    nop
probe "TF by POPF", K64, 2
    pushfq
    or dword [rsp], TF
    popfq
    nop
    and dword [rsp - 8], ~TF
    sub rsp, 8
    popfq
    nop
probe "TF over MOV SS", K64, 2
    mov ebx, ss
    pushfq
    or dword [rsp], TF
    popfq
    mov ss, ebx
    times 2 nop
probe "TF over a fault", U64, 2 + TF
    nop
    ud2
probe "TF over REP", U64, 2 + TF
    mov rdi, scratch
    mov ecx, 3
    cld
    rep stosb
probe "TF over CPUID, RDMSR, INT3", K64, 2 + TF
    ask_cpuid 0xd
    mov ecx, 0x1b
    rdmsr
    int3
probe "PUSHF", U64, 0x246
    pushfq
    pop rax
probe "PUSHF of 16 bits at the end of the last page", K64, 0x246
    mov rbx, rsp
    mov rsp, LAST_PAGE + 4096
    pushfw
    movzx eax, word [rsp]
    mov rsp, rbx
probe "PUSHF of 16 bits, eight bytes end between its own", K64, 0x246
    mov rbx, rsp
    mov rsp, LAST_PAGE + 9
    pushfw
    movzx eax, word [rsp]
    mov rsp, rbx
probe "PUSHF to a page that is read only, CR0.WP 0", K64, 0x246
    mov rbx, rsp
    mov rcx, cr0
    mov rdx, rcx
    btr rdx, 16
    mov cr0, rdx
    mov rsp, READ_ONLY_PAGE + 4096
    pushfq
    pop rax
    mov rsp, rbx
    mov cr0, rcx
    mov ecx, 16
probe "IRET to ring 3 with TF", K64, 2
    go_to U64, 2 + TF
.there:
    nop

; Breakpoints. 701h: DR0's, local and global, LE.
probe "breakpoint, execute", K64, 2
    set dr0, .here
    set dr7, 0x403
    nop
.here:
    inc ebx
    inc ebx
    set dr7, 0x400
    mov rax, dr6
probe "breakpoint, execute, in a loop", K64, 2
    set dr0, .here
    set dr7, 0x403
    mov ecx, 3
.again:
    nop
.here:
    dec ecx
    jnz .again
    set dr7, 0x400
probe "breakpoint, write", K64, 2
    set dr1, scratch
    set dr7, 0xd0040c
    mov ecx, [scratch]
    mov [scratch], ecx
    inc dword [scratch + 4]
    nop
    inc dword [scratch]
    times 2 nop
    set dr7, 0x400
probe "breakpoint, access", K64, 2
    set dr2, scratch + 8
    set dr7, 0x0f000430
    mov ecx, [scratch + 8]
    times 2 nop
    set dr7, 0x400
probe "breakpoint, I/O", K64, 2
    change cr4, or, 8
    set dr0, 0x80
    set dr7, 0x20403
    out 0x80, al
    times 2 nop
    set dr7, 0x400
    change cr4, and, ~8
    xor eax, eax
probe "breakpoint matched, not enabled", K64, 2
    set dr0, .here
    set dr7, 0x400
    nop
.here:
    inc ebx
    mov rax, dr6
probe "breakpoint, execute, ring 3, TF", U64, 2 + TF
    times 2 nop
probe "DR6 as written", K64, 2
    set dr6, 0xffff4ff1
    nop
    mov rax, dr6
    xor ecx, ecx
    mov dr6, rcx
    nop
    mov rdx, dr6
probe "DR7 as written", K64, 2
    set dr7, 0x10400
    nop
    mov rcx, dr7
    set dr7, 0x400
    mov rdx, dr7
probe "BS stays in DR6 until written", K64, 2 + TF
    nop
    pushfq
    and dword [rsp], ~TF
    popfq
    mov rax, dr6
