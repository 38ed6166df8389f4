; SPDX-License-Identifier: MIT
; Every way into ring 0: 256 vector stubs, NMI, double fault, machine check and debug exception on
; their own stacks, SYSCALL.
; The pushes make a struct trap_frame (trap.h).
%include "layout.inc"
%include "kernel/base/registers.inc"
extern trap_dispatch, trap_user, trap_nmi, syscall_dispatch

; A struct trap_frame's, from its end.
%define FRAME rax, rcx, rdx, rbx, rbp, rsi, rdi, r8, r9, r10, r11, r12, r13, r14, r15

; The AC that ring 3 set must not open user memory to us. Not CLAC: CPUs without SMAP lack it, and a
; KVM that emulates ring 0 was seen to fail at it.
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
%if vector == 2 || vector == 8 || vector == 18
    vector_stub vector, paranoid
%elif vector == 1
    vector_stub vector, debug
%else
    vector_stub vector, trap_common
%endif
%assign vector vector + 1
%endrep

align 16
trap_common:
    push_all FRAME
    close_user_memory
    cld
    mov rdi, rsp
    xor ebp, ebp
    test byte [rsp + 17 * 8 + 8], 3     ; CS
    jnz trap_from_ring3
    call trap_dispatch
    cli
trap_leave:
    pop_all FRAME
    add rsp, 16                         ; vector, error code
    iretq

trap_from_ring3:
    swapgs
    call trap_user
; A new thread, and a system call that changed more than SYSRET restores, come to ring 3 by this,
; with a frame on top of the kernel stack.
global trap_return
trap_return:
    cli
    swapgs
    jmp trap_leave

; Out of ring 3 (a step) it goes on on the thread's stack. Ring 3 has no breakpoints that MOV SS
; could carry into ring 0, but a test's may be at the entry's first instruction.
align 16
debug:
    test byte [rsp + 2 * 8 + 8], 3      ; CS
    jz paranoid
    push rax
    swapgs
    mov rax, rsp
    mov rsp, [gs:CPU_KERNEL_RSP]
    swapgs
%assign offset 7 * 8                    ; SS to vector
%rep 7
    push qword [rax + offset]
%assign offset offset - 8
%endrep
    mov rax, [rax]
    jmp trap_common

; NMI, double fault, machine check, and #DB as said above, may come between SYSCALL and SWAPGS, with
; CS of ring 0 and GS of ring 3. Ring 3 may load any value into its GS base, so whose it is shows by
; the GDT, which is in the CPU's block: if the GS base is not the block, SWAPGS makes it so.
align 16
paranoid:
    push_all FRAME
    close_user_memory
    cld
    sub rsp, 16
    sgdt [rsp + 6]
    pop rbx
    pop rbx                             ; its base
    mov ecx, 0xc0000101                 ; GS_BASE
    rdmsr
    shl rdx, 32
    lea rax, [rax + rdx + CPU_GDT]
    sub rbx, rax
    jz .have_gs
    swapgs
.have_gs:
    mov rdi, rsp
    xor ebp, ebp
    call trap_nmi
    test rbx, rbx
    jz .out
    swapgs
.out:
    pop_all FRAME
    add rsp, 16
    iretq

; SYSCALL: RAX service number, R10 RDX R8 R9 the first arguments, more on the caller's
; stack.
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
    push_all FRAME
    xor ebp, ebp
    sti
    mov rdi, rsp
    call syscall_dispatch
    cli
    cmp qword [rsp + 15 * 8], TRAP_SYSCALL
    jne trap_return                     ; SYSRET does not restore RCX and R11
    swapgs
    pop_all FRAME
    add rsp, 16
    pop rcx                             ; RIP: below USER_END, checked when mapped
    add rsp, 8
    pop r11
    pop rsp
    o64 sysret
