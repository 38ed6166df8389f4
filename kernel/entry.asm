; SPDX-License-Identifier: MIT
; Every way into ring 0: 256 vector stubs, NMI and double fault on their own stacks, SYSCALL.
; The pushes make a struct trap_frame (trap.h).
%include "layout.inc"
extern trap_dispatch, trap_nmi, syscall_dispatch

%define ERROR_VECTORS(v) (v == 8 || (v >= 10 && v <= 14) || v == 17 || v == 21 || v == 29 || v == 30)

%macro push_registers 0
    push rax
    push rcx
    push rdx
    push rbx
    push rbp
    push rsi
    push rdi
    push r8
    push r9
    push r10
    push r11
    push r12
    push r13
    push r14
    push r15
%endmacro

%macro pop_registers 0
    pop r15
    pop r14
    pop r13
    pop r12
    pop r11
    pop r10
    pop r9
    pop r8
    pop rdi
    pop rsi
    pop rbp
    pop rbx
    pop rdx
    pop rcx
    pop rax
%endmacro

; The AC that ring 3 set must not open user memory to us. Not CLAC: CPUs without SMAP lack it, and a KVM that
; emulates ring 0 was seen to fail at it.
%macro close_user_memory 0
    pushfq
    and dword [rsp], ~(1 << 18)
    popfq
%endmacro

section .text
; extern const uint8_t trap_stubs[256][16]
global trap_stubs
align 16
trap_stubs:
%assign vector 0
%rep 256
    align 16
%if vector == 2 || vector == 8
    %if vector == 2
    push 0
    %endif
    push vector
    jmp paranoid
%else
    %if !ERROR_VECTORS(vector)
    push 0
    %endif
    push vector
    jmp trap_common
%endif
%assign vector vector + 1
%endrep

align 16
trap_common:
    push_registers
    test byte [rsp + 17 * 8 + 8], 3     ; CS
    jz .kernel
    swapgs
.kernel:
    close_user_memory
    cld
    mov rdi, rsp
    xor ebp, ebp
    call trap_dispatch
; Also the first way into ring 3 of a new thread, with a frame on top of its kernel stack.
global trap_return
trap_return:
    cli
    test byte [rsp + 17 * 8 + 8], 3
    jz .kernel
    swapgs
.kernel:
    pop_registers
    add rsp, 16                         ; vector, error code
    iretq

; NMI and double fault may come between SYSCALL and SWAPGS, with CS of ring 0 and GS of ring 3:
; only the GS base itself tells. Ours is in the upper half.
align 16
paranoid:
    push_registers
    close_user_memory
    cld
    xor ebx, ebx
    mov ecx, 0xc0000101                 ; GS_BASE
    rdmsr
    test edx, edx
    js .have_gs
    swapgs
    inc ebx
.have_gs:
    mov rdi, rsp
    xor ebp, ebp
    call trap_nmi
    test ebx, ebx
    jz .out
    swapgs
.out:
    pop_registers
    add rsp, 16
    iretq

; SYSCALL: RAX service number, RDI RSI RDX R10 R8 R9 the first arguments, more on the caller's stack.
; Interrupts are off (SFMASK) until the kernel stack is in place.
global syscall_entry
align 16
syscall_entry:
    swapgs
    mov [gs:CPU_USER_RSP], rsp
    mov rsp, [gs:CPU_KERNEL_RSP]
    push SEL_USER_SS
    push qword [gs:CPU_USER_RSP]
    push r11
    push SEL_USER_CS
    push rcx
    push 0
    push TRAP_SYSCALL
    push_registers
    xor ebp, ebp
    sti
    mov rdi, rsp
    call syscall_dispatch
    cli
    cmp qword [rsp + 15 * 8], TRAP_SYSCALL
    jne trap_return                     ; SYSRET does not restore RCX and R11
    swapgs
    pop_registers
    add rsp, 16
    pop rcx                             ; RIP: below USER_END, checked when mapped
    add rsp, 8
    pop r11
    pop rsp
    o64 sysret
