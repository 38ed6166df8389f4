; SPDX-License-Identifier: MIT
; Probes of transparent.asm whose answer is the model's processor's and not QEMU's: run with the
; word "silicon", and tests/guests/transparent.t knows what each vendor's says.
probe "SYSCALL, compatibility mode", U32, 0x246
    mov ebp, 0x1234
    syscall
probe "SYSCALL, compatibility mode, TF", U32, 2 + TF
    nop
    syscall
probe "SYSRET, compatibility mode", K32, 2
    mov ecx, .there
    sysret
.there:
probe "SYSENTER, compatibility mode", U32, 0x246
    mov ebp, esp
    sysenter
probe "SYSENTER, 64-bit mode", U64, 0x246
    mov ebp, esp
    sysenter
probe "SYSEXIT to 32-bit code", K32, 2
    mov ecx, probe_stack_top
    mov edx, .there
    sysexit
.there:
    mov ecx, cs
    mov edx, ss
probe "SYSEXIT to 64-bit code", K64, 2
    mov ecx, probe_stack_top
    mov edx, .there
    o64 sysexit
.there:
    mov ecx, cs
    mov edx, ss
probe "SYSEXIT from ring 3", U32, 2
    sysexit
probe "RDMSR from ring 3", U64, 2
    rdmsr
probe "HLT from ring 3", U64, 2
    hlt
probe "IN from ring 3", U64, 2
    in al, dx
probe "an undefined opcode", U64, 2
    nop
    ud2
probe "ICEBP, after an instruction", U64, 2
    nop
    db 0xf1
probe "SYSENTER, SYSENTER_CS 0", K64, 2
    mov ecx, 0x174
    zero eax, edx
    wrmsr
    sysenter
probe "SYSENTER_CS back", K64, 2
    mov ecx, 0x174
    mov eax, 8
    xor edx, edx
    wrmsr
probe "MONITOR, which CPUID does not offer", K64, 2
    mov eax, scratch
    zero ecx, edx
    db 0x0f, 0x01, 0xc8
probe "MWAIT, which CPUID does not offer", K64, 2
    zero eax, ecx
    db 0x0f, 0x01, 0xc9
; What a processor refuses.
probe "CR0.NW without CD", K64, 2
    change cr0, or, 1 << 29
probe "CR0.PG off, 64-bit mode", K64, 2
    change cr0, btr, 31
probe "CR4, all bits", K64, 2
    mov eax, -1
    mov cr4, rax
probe "CR4.PAE off, long mode", K32, 2
    change cr4, btr, 5
probe "CR4.LA57 changed, long mode", K32, 2
    change cr4, btc, 12
probe "CR4, a bit without a feature", K64, 2
    change cr4, bts, 15
probe "CR0.PG without PE", K64, 2
    change cr0, btr, 0
probe "EFER, a bit without a feature", K64, 2
    change_msr 0xc0000080, bts, 1
probe "EFER.LME off, long mode", K64, 2
    change_msr 0xc0000080, btr, 8
probe "CR0.WP and CR4.PCE on and off", K64, 2
    mov rcx, cr0
    mov rdx, cr4
    xor ecx, 1 << 16
    xor edx, 1 << 8
    mov cr0, rcx
    mov cr4, rdx
    mov rsi, cr0
    mov rdi, cr4
    xor ecx, esi
    xor edx, edi
    mov rax, rsi
    btc eax, 16
    mov cr0, rax
    mov rax, rdi
    btc eax, 8
    mov cr4, rax
    or ecx, edx
    jz .kept
    ud2
.kept:
