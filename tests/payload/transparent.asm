; SPDX-License-Identifier: MIT
; A guest that looks where a hypervisor shows: probes, each a few instructions that end in INT 81h, run by
; transparent.c in a ring and a mode. The machine is its own: multiboot 1 entry, long mode, GDT, IDT, TSS.
MAGIC equ 0x1badb002
FLAGS equ 3
K64 equ 0x08
KDATA equ 0x10
U32 equ 0x1b
UDATA equ 0x23
U64 equ 0x2b
UDATA_EXIT equ 0x33                     ; SYSEXIT's to 64-bit code
TSS equ 0x38
ABSENT equ 0x48
K32 equ 0x50
ABSENT_DATA equ 0x58
CONFORMING equ 0x60
FAR_MAP equ 0x8000000000                ; the first GB once more, by one page of 1 GB
TF equ 0x100
IF equ 0x200

section .multiboot align=4
    dd MAGIC, FLAGS, -(MAGIC + FLAGS)

section .bss align=4096 nobits
pml4:   resb 4096
pdpt:   resb 4096
pdpt_far: resb 4096
dir:    resb 4096
        resb 8192
stack_top:
        resb 4096
nmi_stack_top:
        resb 8192
trap_stack_top:
        resb 4096
global probe_stack_top
probe_stack_top:
global idt
idt:    resb 4096
scratch: resb 4096
tss:    resb 104
saved:  resq 1

section .data align=8
global gdt
gdt:
    dq 0
    dq 0x00af9a000000ffff, 0x00cf92000000ffff
    dq 0x00cffa000000ffff, 0x00cff2000000ffff, 0x00affa000000ffff, 0x00cff2000000ffff
tss_entry:
    dq 0, 0
    dq 0x00af1a000000ffff, 0x00cf9a000000ffff, 0x00cf12000000ffff, 0x00af9e000000ffff
gdtr:
    dw $ - gdt - 1
    dq gdt
idtr:
    dw 4095
    dq idt

section .text
bits 32
global start
start:
    cli
    mov esp, stack_top
    mov ebp, eax
    mov edi, dir
    mov eax, 0x87                       ; present, writable, user, 2 MB
    mov ecx, 512
.fill:
    mov [edi], eax
    add edi, 8
    add eax, 0x200000
    loop .fill
    mov dword [pdpt], dir + 7
    mov dword [pdpt + 8], 0x40000087    ; 1 GB
    mov dword [pdpt + 24], 0xc0000087
    mov dword [pdpt_far], 0x87
    mov dword [pml4], pdpt + 7
    mov dword [pml4 + 8], pdpt_far + 7
    mov eax, cr4
    or eax, 0x620                       ; PAE, OSFXSR, OSXMMEXCPT
    mov cr4, eax
    mov eax, pml4
    mov cr3, eax
    mov ecx, 0xc0000080
    rdmsr
    or eax, 0x101                       ; LME, SCE
    wrmsr
    mov eax, cr0
    or eax, 0x80000001
    mov cr0, eax
    lgdt [gdtr]
    jmp K64:long_mode

bits 64
long_mode:
    mov ax, KDATA
    mov ds, ax
    mov es, ax
    mov ss, ax
    mov rsp, stack_top
    mov qword [tss + 4], trap_stack_top ; RSP0
    mov qword [tss + 36], nmi_stack_top ; IST1
    mov word [tss + 102], 104
    mov rax, tss
    mov rdx, rax
    and edx, 0xffffff
    shl rdx, 16
    mov rcx, 0x890000000067
    or rdx, rcx
    mov [tss_entry], rdx
    mov ax, TSS
    ltr ax
    lidt [idtr]
    mov edi, ebp
    mov esi, ebx
    extern payload_main
    call payload_main
.halt:
    cli
    hlt
    jmp .halt

; extern const uint8_t stubs[256][16]; the handler gets RAX, RCX, ..., vector, error, RIP, CS, RFLAGS, RSP, SS
global stubs
align 16
stubs:
%assign vector 0
%rep 256
    align 16
    %if !(vector == 8 || (vector >= 10 && vector <= 14) || vector == 17)
    push 0
    %endif
    push vector
    jmp trap
%assign vector vector + 1
%endrep

align 16
trap:
    cld
    push r11
    push r10
    push r9
    push r8
    push rdi
    push rsi
    push rbx
    push rdx
    push rcx
    push rax
    mov rdi, rsp
    mov eax, ds
    push rax
    mov eax, KDATA
    mov ds, eax
    mov es, eax
    extern trap_handler
    call trap_handler
    pop rcx
    mov ds, ecx
    mov es, ecx
    test eax, eax
    jnz recover
    pop rax
    pop rcx
    pop rdx
    pop rbx
    pop rsi
    pop rdi
    pop r8
    pop r9
    pop r10
    pop r11
    add rsp, 16
    iretq

; void run(const struct probe *p): IRET to it; comes back when trap_handler says so.
struc PROBE
.name:  resq 1
.code:  resq 1
.cs:    resq 1
.flags: resq 1
endstruc
global run
run:
    push rbx
    push rbp
    push r12
    push r13
    push r14
    push r15
    pushfq
    mov [saved], rsp
    mov rax, [rdi + PROBE.cs]
    mov ecx, KDATA
    test eax, 3
    jz .ring0
    mov ecx, UDATA
    mov ds, ecx
    mov es, ecx
.ring0:
    push rcx
    push probe_stack_top
    push qword [rdi + PROBE.flags]
    push rax
    push qword [rdi + PROBE.code]
    mov eax, 1
    mov ecx, 2
    mov edx, 3
    mov ebx, 4
    mov esi, 5
    mov edi, 6
    mov ebp, 7
    iretq
recover:
    mov ecx, KDATA
    mov ds, ecx
    mov es, ecx
    mov ss, ecx
    mov rsp, [saved]
    popfq
    pop r15
    pop r14
    pop r13
    pop r12
    pop rbp
    pop rbx
    ret

; Where SYSCALL and SYSENTER lead. Noted as vectors 100h and up: where to, RCX, R11.
%macro door 2
global %1
%1:
    mov r12, rsp
    mov rsp, trap_stack_top - 2048
    push KDATA
    push r12
    pushfq
    push K64
    push rcx
    push 0
    push %2
    jmp trap
%endmacro
door lstar_entry, 0x100
door cstar_entry, 0x101
door sysenter_entry, 0x102

; uint64_t try_wrmsr(uint32_t msr, uint64_t value), try_rdmsr(uint32_t msr, uint64_t *value): 0 or the vector.
extern fault_resume, fault_vector
global try_wrmsr, try_rdmsr
try_wrmsr:
    mov qword [fault_vector], 0
    mov qword [fault_resume], .out
    mov ecx, edi
    mov eax, esi
    mov rdx, rsi
    shr rdx, 32
    wrmsr
.out:
    mov qword [fault_resume], 0
    mov rax, [fault_vector]
    ret
try_rdmsr:
    mov qword [fault_vector], 0
    mov qword [fault_resume], .out
    mov ecx, edi
    rdmsr
    mov [rsi], eax
    mov [rsi + 4], edx
.out:
    mov qword [fault_resume], 0
    mov rax, [fault_vector]
    ret

; --- The probes: name, selector, flags, then code. ---
%assign number 0
%macro probe 3-4 0
    %assign number number + 1
    section .rodata
%%text: db %1, 0
    section .probes
    dq %%text, probe_%[number] + %4, %2, %3
    section .text
    align 16
    bits 64
    %if %2 == U32 || %2 == K32
    bits 32
    %endif
probe_%[number]:
%endmacro
%macro done 0
    int 0x81
%endmacro

section .rodata
global probes, probes_end
section .probes align=8
probes:

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
    done
probe "INT3, ring 3", U64, 2
    nop
    int3
    done
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
    done
probe "INT n, ring 3", U64, 0x3202 & ~0x3000
    int 0x88
    done
probe "INT n behind prefixes", U64, 2
    db 0x66, 0x48
    int 0x88
    done
probe "ICEBP", K64, 2
    db 0xf1
    done

; Flags, TF.
probe "TF in ring 0", K64, 2 + TF
    nop
    pushfq
    pop rbx
    done
probe "TF in ring 3", U64, 2 + TF
    mov eax, 0xd
    xor ecx, ecx
    cpuid
    nop
    done
probe "TF by POPF", K64, 2
    pushfq
    or dword [rsp], TF
    popfq
    nop
    and dword [rsp - 8], ~TF
    sub rsp, 8
    popfq
    nop
    done
probe "TF over MOV SS", K64, 2
    mov ebx, ss
    pushfq
    or dword [rsp], TF
    popfq
    mov ss, ebx
    nop
    nop
    done
probe "TF over a fault", U64, 2 + TF
    nop
    ud2
probe "TF over REP", U64, 2 + TF
    mov rdi, scratch
    mov ecx, 3
    cld
    rep stosb
    done
probe "TF over CPUID, RDMSR, INT3", K64, 2 + TF
    mov eax, 0xd
    xor ecx, ecx
    cpuid
    mov ecx, 0x1b
    rdmsr
    int3
    done
probe "PUSHF", U64, 0x246
    pushfq
    pop rax
    done
probe "IRET to ring 3 with TF", K64, 2
    push UDATA
    push probe_stack_top
    push 2 + TF
    push U64
    push .there
    iretq
.there:
    nop
    done

; Breakpoints. 701h: DR0's, local and global, LE.
probe "breakpoint, execute", K64, 2
    mov rax, .here
    mov dr0, rax
    mov eax, 0x403
    mov dr7, rax
    nop
.here:
    inc ebx
    inc ebx
    mov eax, 0x400
    mov dr7, rax
    mov rax, dr6
    done
probe "breakpoint, execute, in a loop", K64, 2
    mov rax, .here
    mov dr0, rax
    mov eax, 0x403
    mov dr7, rax
    mov ecx, 3
.again:
    nop
.here:
    dec ecx
    jnz .again
    mov eax, 0x400
    mov dr7, rax
    done
probe "breakpoint, write", K64, 2
    mov rax, scratch
    mov dr1, rax
    mov eax, 0xd0040c
    mov dr7, rax
    mov ecx, [scratch]
    mov [scratch], ecx
    inc dword [scratch + 4]
    nop
    inc dword [scratch]
    nop
    nop
    mov eax, 0x400
    mov dr7, rax
    done
probe "breakpoint, access", K64, 2
    mov rax, scratch + 8
    mov dr2, rax
    mov eax, 0x0f000430
    mov dr7, rax
    mov ecx, [scratch + 8]
    nop
    nop
    mov eax, 0x400
    mov dr7, rax
    done
probe "breakpoint matched, not enabled", K64, 2
    mov rax, .here
    mov dr0, rax
    mov eax, 0x400
    mov dr7, rax
    nop
.here:
    inc ebx
    mov rax, dr6
    done
probe "breakpoint, execute, ring 3, TF", U64, 2 + TF
    nop
    nop
    done
probe "DR6 as written", K64, 2
    mov eax, 0xffff4ff1
    mov dr6, rax
    nop
    mov rax, dr6
    xor ecx, ecx
    mov dr6, rcx
    nop
    mov rdx, dr6
    done
probe "DR7 as written", K64, 2
    mov eax, 0x10400
    mov dr7, rax
    nop
    mov rcx, dr7
    mov eax, 0x400
    mov dr7, rax
    mov rdx, dr7
    done
probe "BS stays in DR6 until written", K64, 2 + TF
    nop
    pushfq
    and dword [rsp], ~TF
    popfq
    mov rax, dr6
    done

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
probe "SYSCALL, compatibility mode", U32, 0x246
    mov ebp, 0x1234
    syscall
    done
probe "SYSCALL, compatibility mode, TF", U32, 2 + TF
    nop
    syscall
    done
probe "SYSENTER, compatibility mode", U32, 0x246
    mov ebp, esp
    sysenter
probe "SYSENTER, 64-bit mode", U64, 0x246
    mov ebp, esp
    sysenter
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
probe "SYSEXIT to 32-bit code", K32, 2
    mov ecx, probe_stack_top
    mov edx, .there
    sysexit
bits 32
.there:
    mov ecx, cs
    mov edx, ss
    done
probe "SYSEXIT from ring 3", U32, 2
    sysexit

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
    xor eax, eax
    xor ebx, ebx
    xor ecx, ecx
    xor edx, edx
    done

; Interrupts, by the APIC's shorthand for itself.
probe "interrupt by the APIC", K64, 2
    mov rsi, 0xfee00300
    mov dword [rsi], 0x44040
    nop
    sti
    nop
    nop
    done
probe "interrupt, vector below 32", K64, 2
    mov rsi, 0xfee00300
    mov dword [rsi], 0x4401e
    nop
    sti
    nop
    nop
    done
probe "interrupts, two in order of priority", K64, 2
    mov rsi, 0xfee00300
    mov dword [rsi], 0x44041
    mov dword [rsi], 0x44060
    sti
    nop
    nop
    done
probe "interrupt behind STI; CLI", K64, 2
    mov rsi, 0xfee00300
    mov dword [rsi], 0x44040
    sti
    cli
    nop
    mov ebx, 9
    sti
    nop
    nop
    done
probe "interrupt, HLT", K64, 2
    mov rsi, 0xfee00300
    mov dword [rsi], 0x44040
    sti
    hlt
    done
probe "interrupt held by TPR", K64, 2
    mov eax, 5
    mov cr8, rax
    mov rsi, 0xfee00300
    mov dword [rsi], 0x44041
    sti
    nop
    mov ebx, 8
    xor eax, eax
    mov cr8, rax
    nop
    nop
    done
probe "interrupt in ring 3", K64, 2
    mov rsi, 0xfee00300
    mov dword [rsi], 0x44042
    push UDATA
    push probe_stack_top
    push 2 + IF
    push U64
    push .there
    iretq
.there:
    nop
    done
probe "interrupt in ring 3, TF", K64, 2
    mov rsi, 0xfee00300
    mov dword [rsi], 0x44042
    push UDATA
    push probe_stack_top
    push 2 + IF + TF
    push U64
    push .there
    iretq
.there:
    nop
    done
probe "interrupt in compatibility mode", K64, 2
    mov rsi, 0xfee00300
    mov dword [rsi], 0x44042
    push UDATA
    push probe_stack_top
    push 2 + IF
    push U32
    push .there
    iretq
bits 32
.there:
    nop
    done
probe "NMI", K64, 2
    mov rsi, 0xfee00300
    mov dword [rsi], 0x44400
    nop
    nop
    mov ebx, 3
    done
probe "NMI in ring 3", U64, 2
    mov ebx, 3
    mov rsi, 0xfee00300
    mov dword [rsi], 0x44400
    nop
    nop
    done
probe "timer's interrupt, HLT", K64, 2
    mov rsi, 0xfee00320
    mov dword [rsi], 0x50
    mov dword [rsi + 0x60], 100000
    sti
    hlt
    done

; The FPU, XSAVE, segments.
probe "SSE", U64, 2
    mov eax, 0x3f800000
    movd xmm3, eax
    addss xmm3, xmm3
    mov eax, 0xd
    xor ecx, ecx
    cpuid
    movd eax, xmm3
    int 0x88
    movd ebx, xmm3
    xor ecx, ecx
    xor edx, edx
    done
probe "CR4.OSXSAVE in CPUID", K64, 2
    mov eax, 1
    cpuid
    mov esi, ecx
    mov rax, cr4
    or eax, 0x40000
    mov cr4, rax
    mov eax, 1
    cpuid
    mov edi, ecx
    shr esi, 27
    and esi, 1
    shr edi, 27
    and edi, 1
    xor eax, eax
    xor ebx, ebx
    xor ecx, ecx
    xor edx, edx
    done
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
    done
probe "size of XSAVE's area in CPUID", K64, 2
    mov eax, 0xd
    xor ecx, ecx
    cpuid
    done
probe "CR4.PKE in CPUID", K64, 2
    mov eax, 7
    xor ecx, ecx
    cpuid
    mov esi, ecx
    mov rax, cr4
    or eax, 0x400000
    mov cr4, rax
    mov eax, 7
    xor ecx, ecx
    cpuid
    mov edi, ecx
    mov rax, cr4
    and eax, ~0x400000
    mov cr4, rax
    shr esi, 4
    and esi, 1
    shr edi, 4
    and edi, 1
    xor eax, eax
    xor ebx, ebx
    xor ecx, ecx
    xor edx, edx
    done
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
    done
probe "FS base survives exits", K64, 2
    mov ecx, 0xc0000100
    mov eax, scratch + 64
    xor edx, edx
    wrmsr
    mov ebx, [fs:16]
    int 0x88
    rdmsr
    mov esi, [fs:16]
    done
probe "REP MOVSB", U64, 2
    mov esi, scratch
    mov edi, scratch + 512
    mov ecx, 100
    cld
    rep movsb
    mov eax, ecx
    done
probe "CMPXCHG16B, LOCK", U64, 2
    lock inc dword [scratch + 32]
    xor eax, eax
    xor edx, edx
    done
probe "RDPMC in ring 3, CR4.PCE clear; TSC goes on", U64, 2
    rdtsc
    mov ebx, eax
    rdtsc
    sub eax, ebx
    cmp eax, 0
    seta al
    movzx eax, al
    xor ebx, ebx
    xor edx, edx
    done
global probes_end
section .probes
probes_end:
