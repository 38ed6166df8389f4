; SPDX-License-Identifier: MIT
; One routine for each instruction that the virtual PMU's decoder has to class, with what it does.
; Called with RDI pointing at 512 writable bytes; it starts with RSI = RDI, RCX = 2, RAX = 0,
; ZF = 1, CF = 0.
; struct vpmu_op { void (*code)(uint64_t); uint64_t effects; const char *name; }: vpmu_ops,
; vpmu_ops_end

%define LD (1 << 0)
%define ST (1 << 8)
%define BR (1 << 16)
%define CO (1 << 24)
%define TK (1 << 32)
%define FA (1 << 40)
%define NEED(bit) ((bit) << 48)         ; this bit of ECX of CPUID leaf 1 (bit 0 is not used so)
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

section .rodata
align 8
global vpmu_ops
vpmu_ops:
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
    op LD, mov r9, [rel vpmu_cell]
    op LD, mov rax, [abs qword vpmu_cell]
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
    op ST, mov [abs qword vpmu_cell], rax
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
    op JUMP, jmp short $ + 3
    op JUMP, jmp near $ + 6
    op CC + TK, jz short $ + 3
    op CC + TK, jz near $ + 7
    op CC, jnz short $ + 3
    op CC, jnz near $ + 7
    op CC + TK, loop $ + 3
    op CC + TK, loope $ + 3
    op CC, loopne $ + 3
    op CC + TK, loop $ + 4, ecx
    op CC, jrcxz $ + 3
    op CC, jecxz $ + 4
    op 2 * JUMP + RW, call vpmu_return

    entry 0, "xor ecx, ecx; cpuid"
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
    lea rax, [rel vpmu_to]
    jmp rax
    entry 2 * JUMP + RW, "call rax"
    lea rax, [rel vpmu_return]
    call rax
    ret
    entry JUMP + LD, "jmp [rel]"
    jmp [rel vpmu_pointer]
    entry 2 * JUMP + RW + LD, "call [rel]"
    call [rel vpmu_pointer]
    ret
    entry RW + LD, "push [rdi]; pop rax"
    push qword [rdi]
    pop rax
    ret
    entry RW + ST, "push rax; pop [rdi]"
    push rax
    pop qword [rdi]
    ret
    entry RW, "push rbp; leave"
    push rbp
    mov rbp, rsp
    leave
    ret
    entry 2 * ST + BR + FA + LD, "retfq"
    mov eax, cs
    push rax
    lea rax, [rel vpmu_to]
    push rax
    retfq
    entry 5 * ST + BR + FA + LD, "iretq"
    mov rdx, rsp
    mov eax, ss
    push rax
    push rdx
    pushfq
    mov eax, cs
    push rax
    lea rax, [rel vpmu_to]
    push rax
    iretq
section .rodata
global vpmu_ops_end
vpmu_ops_end:
vpmu_pointer: dq vpmu_return
mxcsr: dd 0x1f80

section .text
vpmu_to:
vpmu_return:
    ret
section .bss
global vpmu_cell
align 8
vpmu_cell: resq 1
