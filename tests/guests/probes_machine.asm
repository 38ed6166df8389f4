; SPDX-License-Identifier: MIT
; Probes of transparent.asm: interrupts, FPU, segments, what every guest asks its machine.
; Interrupts, by the APIC's shorthand for itself.
probe "interrupt by the APIC", K64, 2
    send 0x44040
    nop
    sti
    times 2 nop
probe "interrupt, vector below 32", K64, 2
    send 0x4401e
    nop
    sti
    times 2 nop
probe "interrupts, two in order of priority", K64, 2
    send 0x44041
    send 0x44060
    sti
    times 2 nop
probe "interrupt after STI; CLI", K64, 2
    send 0x44040
    sti
    cli
    nop
    mov ebx, 9
    sti
    times 2 nop
probe "interrupt, HLT", K64, 2
    send 0x44040
    sti
    hlt
probe "interrupt held by TPR", K64, 2
    set cr8, 5
    send 0x44041
    sti
    nop
    mov ebx, 8
    xor eax, eax
    mov cr8, rax
    times 2 nop
probe "interrupt in ring 3", K64, 2
    send 0x44042
    go_to U64, 2 + IF
.there:
    nop
probe "interrupt in ring 3, TF", K64, 2
    send 0x44042
    go_to U64, 2 + IF + TF
.there:
    nop
probe "interrupt in compatibility mode", K64, 2
    send 0x44042
    go_to U32, 2 + IF
bits 32
.there:
    nop
probe "NMI", K64, 2
    send 0x44400
    times 2 nop
    mov ebx, 3
probe "NMI in ring 3", U64, 2
    mov ebx, 3
    send 0x44400
    times 2 nop
probe "timer's interrupt, HLT", K64, 2
    mov rsi, 0xfee00320
    mov dword [rsi], 0x50
    mov dword [rsi + 0x60], 100000
    sti
    hlt
probe "timer's interrupt, periodic", K64, 2
    mov rsi, 0xfee00320
    mov dword [rsi], 0x20053
    mov dword [rsi + 0x60], 2000000
    sti
    hlt
    mov ebx, 1
    hlt
    mov dword [rsi], 0x10000
    mov dword [rsi + 0x60], 0
probe "PIT's interrupt by the IO-APIC", K64, 2
    mov rsi, 0xfec00000
    mov dword [rsi], 0x14               ; pin 2
    mov dword [rsi + 0x10], 0x51
    pit_once 0xff
    sti
    hlt
    mov dword [rsi + 0x10], 0x10000
probe "PIT's NMI by the IO-APIC", K64, 2
    mov rsi, 0xfec00000
    mov dword [rsi], 0x14
    mov dword [rsi + 0x10], 0x400
    pit_once 0xff
    hlt
    mov dword [rsi + 0x10], 0x10000
    mov al, 0x36                        ; the BIOS's, for real mode
    out 0x43, al
    xor eax, eax
    out 0x40, al
    out 0x40, al
probe "HPET's interrupt by the IO-APIC", K64, 2
    mov rsi, 0xfec00000
    mov dword [rsi], 0x38               ; pin 20
    mov rdi, 0xfed00000
    mov dword [rdi + 0x10], 1
    mov dword [rdi + 0x100], 0x2904     ; timer 0: pin 20, 32 bits
    mov eax, [rdi + 0xf0]
    add eax, 20000
    mov [rdi + 0x108], eax
    mov dword [rsi + 0x10], 0x52
    sti
    xor eax, eax
    hlt
    mov dword [rsi + 0x10], 0x10000
    mov dword [rdi + 0x100], 0

; The FPU, XSAVE, segments.
probe "CR4.OSXSAVE in CPUID", K64, 2
    mov eax, 1
    cpuid
    mov esi, ecx
    change cr4, or, 0x40000
    mov eax, 1
    cpuid
    mov edi, ecx
    shr esi, 27
    and esi, 1
    shr edi, 27
    and edi, 1
    zero eax, ebx, ecx, edx
probe "XSETBV, XGETBV, XSAVE", K64, 2
    xor ecx, ecx
    xgetbv
    mov eax, 7
    xsetbv
    xgetbv
    mov ebx, eax
    mov rdi, scratch + 1024
    mov edx, 0
    xsave [rdi]
    xrstor [rdi]
    mov esi, [rdi + 512]
    xor edi, edi
probe "AVX registers survive exits", U64, 2
    mov eax, 0x1234567
    vmovd xmm3, eax
    vinsertf128 ymm3, ymm3, xmm3, 1
    int 0x88
    ask_cpuid 0xd
    vextractf128 xmm4, ymm3, 1
    vmovd ebx, xmm4
    zero ecx, edx
probe "size of XSAVE's area in CPUID", K64, 2
    ask_cpuid 0xd
probe "CR4.PKE in CPUID", K64, 2
    ask_cpuid 7
    mov esi, ecx
    change cr4, or, 0x400000
    ask_cpuid 7
    mov edi, ecx
    change cr4, and, ~0x400000
    shr esi, 4
    and esi, 1
    shr edi, 4
    and edi, 1
    zero eax, ebx, ecx, edx
probe "SWAPGS, GS base", K64, 2
    mov ecx, 0xc0000101
    mov eax, scratch
    xor edx, edx
    wrmsr
    mov ecx, 0xc0000102
    mov eax, scratch + 64
    wrmsr
    mov dword [scratch + 16], 0x11
    mov dword [scratch + 80], 0x22
    mov ebx, [gs:16]
    swapgs
    int3
    mov esi, [gs:16]
    swapgs
    mov edi, [gs:16]
probe "FS base survives exits", K64, 2
    mov ecx, 0xc0000100
    mov eax, scratch + 64
    xor edx, edx
    wrmsr
    mov ebx, [fs:16]
    int 0x88
    rdmsr
    mov esi, [fs:16]
probe "RDPMC in ring 3, CR4.PCE clear; TSC goes on", U64, 2
    rdtsc
    mov ebx, eax
    rdtsc
    sub eax, ebx
    cmp eax, 0
    seta al
    movzx eax, al
    zero ebx, edx
