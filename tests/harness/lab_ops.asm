; SPDX-License-Identifier: MIT
; One routine for each class of instructions, with what it does: those that a decoder has to tell
; apart, and those that a hypervisor may intercept. Called with RDI pointing at 512 writable bytes;
; it starts with RSI = RDI, RCX = 2, RAX = 0, ZF = 1, CF = 0. struct lab_op (lab.h): lab_ops,
; lab_ops_end

%define LD (1 << 0)
%define ST (1 << 8)
%define BR (1 << 16)
%define CO (1 << 24)
%define TK (1 << 32)
%define FA (1 << 40)
%define NEED(bit) ((bit) << 48)         ; this bit of ECX of CPUID leaf 1 (bit 0 is not used so)
%define EXITS (1 << 53)                 ; a hypervisor may intercept it
%define MORE(n) (((n) & 0xff) << 56)    ; instructions beside those that the first row has
%define OVER MORE(-1)                   ; it jumps over the NOP
%define RW (LD + ST)
%define JUMP (BR + TK)
%define CC (BR + CO)

%macro entry 2                          ; effects, name
section .rodata
    dq %%code, %1, %%name
section .rodata.names progbits alloc noexec nowrite
%%name:
    db %2, 0
section .text
align 16
%%code:
    mov rsi, rdi
    mov ecx, 2
    xor eax, eax
%endmacro

%macro op 2+                            ; effects, instruction
    %defstr text %2
    entry %1, text
    %2
    nop                                 ; a branch to $ + its length + 1 jumps over this
    ret
%endmacro

%macro two 3                            ; effects, two instructions
    %defstr text %3
    entry %1 + MORE(1), text
    %2
    %3
    nop
    ret
%endmacro

section .rodata
align 8
global lab_ops
lab_ops:
    op 0, nop
    op 0, nop dword [rdi]
    op 0, lea rax, [rdi + rax * 4 + 8]
    op 0, mov rax, rdi
    op 0, prefetcht0 [rdi]
    op 0, clflush [rdi]
    op 0, mfence
    op 0, xchg rax, rdx
    op 0, bswap eax
    op 0, mov rax, cr4
    op LD, mov rax, [rdi]
    op LD, db 0x26, 0x2e, 0x36, 0x3e, 0x48, 0x8b, 0x07 ; segments that are none: mov rax, [rdi]
    op LD, mov al, [rdi + 1]
    op LD, mov r8, [rdi + rcx * 8 + 16]
    op LD, mov r9, [rel lab_op_cell]
    op LD, mov rax, [abs qword lab_op_cell]
    op LD, movzx eax, byte [rdi + 200]
    op LD, movsxd rax, dword [rdi]
    op LD, add rax, [rdi]
    op LD, cmp [rdi], rax
    op LD, cmp dword [rdi], 1
    op LD, cmp byte [rdi], 1
    op LD, test [rdi], rax
    op LD, test byte [rdi], 1
    op LD, imul rax, [rdi], 5
    op LD, mul qword [rdi]
    op LD, cmovz rax, [rdi]
    op LD, bt dword [rdi], 1
    op LD + NEED(23), popcnt rax, [rdi]
    op LD, bsf rax, [rdi]
    op LD, lodsb
    op LD, scasq
    op LD, cmpsw
    op LD, movups xmm0, [rdi]
    op LD, movq xmm0, [rdi]
    op LD + NEED(9), pshufb xmm0, [rdi]
    op LD, fld qword [rdi]
    op LD, ldmxcsr [rel mxcsr]
    op ST, mov [rdi], rax
    op ST, mov byte [rdi + 9], 4
    op ST, mov qword [rdi], 4
    op ST, mov [abs qword lab_op_cell], rax
    op ST, sete [rdi]
    op ST, stosd
    op ST, movups [rdi], xmm0
    op ST, movq [rdi], xmm0
    op ST, movnti [rdi], rax
    op ST, fnstcw [rdi]
    op ST, stmxcsr [rdi]
    op ST, sgdt [rdi]
    op ST, mov [rdi], ds
    op ST, fxsave [rdi]
    op RW, add [rdi], rax
    op RW, or byte [rdi], 1
    op RW, lock inc dword [rdi]
    op RW, dec byte [rdi]
    op RW, not qword [rdi]
    op RW, neg dword [rdi]
    op RW, shl qword [rdi], 3
    op RW, shl qword [rdi], cl
    op RW, xchg [rdi], rax
    op RW, lock cmpxchg [rdi], rdx
    op RW, lock xadd [rdi], rax
    op RW, lock cmpxchg8b [rdi]
    op RW, bts dword [rdi], 3
    op RW, movsb
    op RW, movsq
    op JUMP + OVER, jmp short $ + 3
    op JUMP + OVER, jmp strict near $ + 6
    op CC + TK + OVER, jz short $ + 3
    op CC + TK + OVER, jz strict near $ + 7
    op CC, jnz short $ + 3
    op CC, jnz strict near $ + 7
    op CC + TK + OVER, loop $ + 3
    op CC + TK + OVER, loope $ + 3
    op CC, loopne $ + 3
    op CC + TK + OVER, loop $ + 4, ecx
    op CC, jrcxz $ + 3
    op CC, jecxz $ + 4
    op 2 * JUMP + RW + MORE(1), call lab_op_return

    op EXITS, rdtsc
    op EXITS, pause
    op EXITS, clts
    op EXITS, invlpg [rdi]
    op EXITS, in al, 0x80               ; of POST codes
    op EXITS, out 0x80, al
    two EXITS, {mov rax, cr0}, {mov cr0, rax}
    two EXITS, {mov rax, cr3}, {mov cr3, rax}
    two EXITS, {mov rax, cr4}, {mov cr4, rax}
    two EXITS, {mov rax, cr8}, {mov cr8, rax}
    two EXITS, {mov rax, dr7}, {mov dr7, rax}
    two EXITS + LD + ST, {sgdt [rdi]}, {lgdt [rdi]}
    two EXITS + LD + ST, {sidt [rdi]}, {lidt [rdi]}
    two EXITS, {sldt ax}, {lldt ax}
    two EXITS, {smsw ax}, {lmsw ax}
    two EXITS, {xor ecx, ecx}, rdpmc
    two EXITS + NEED(27), {xor ecx, ecx}, xgetbv
    two EXITS, {mov ecx, 0x1b}, rdmsr   ; of the local APIC's base

    entry MORE(2) + EXITS, "wrmsr"
    mov ecx, 0xc0000080                 ; EFER
    rdmsr
    wrmsr
    nop
    ret
    entry MORE(2) + EXITS, "xor ecx, ecx; cpuid"
    mov r8, rbx
    xor ecx, ecx
    cpuid
    mov rbx, r8
    ret
    entry RW, "pushfq; popfq"
    pushfq
    popfq
    ret
    entry JUMP, "jmp rax"
    lea rax, [rel lab_op_to]
    jmp rax
    entry 2 * JUMP + RW + MORE(1), "call rax"
    lea rax, [rel lab_op_return]
    call rax
    ret
    entry JUMP + LD + OVER, "jmp [rel]"
    jmp [rel lab_op_pointer]
    entry 2 * JUMP + RW + LD, "call [rel]"
    call [rel lab_op_pointer]
    ret
    entry RW + LD, "push [rdi]; pop rax"
    push qword [rdi]
    pop rax
    ret
    entry RW + ST, "push rax; pop [rdi]"
    push rax
    pop qword [rdi]
    ret
    entry RW + MORE(1), "push rbp; leave"
    push rbp
    mov rbp, rsp
    leave
    ret
    entry 2 * ST + BR + FA + LD + MORE(3), "retfq"
    mov eax, cs
    push rax
    lea rax, [rel lab_op_to]
    push rax
    retfq
    entry 5 * ST + BR + FA + LD + MORE(8), "iretq"
global lab_op_iret
lab_op_iret:
    mov rdx, rsp
    mov eax, ss
    push rax
    push rdx
    pushfq
    mov eax, cs
    push rax
    lea rax, [rel lab_op_to]
    push rax
    iretq
section .rodata
global lab_ops_end
lab_ops_end:
lab_op_pointer: dq lab_op_return
mxcsr: dd 0x1f80

section .text
lab_op_to:
lab_op_return:
    ret
section .bss
global lab_op_cell
align 8
lab_op_cell: resq 1
