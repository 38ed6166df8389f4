; SPDX-License-Identifier: MIT
; The virtual PMU's few instructions that C cannot express: into the guest and out again, between
; two readings of the instruction clock; the host's interrupt stubs; the wait for the token.
; Source: AMD64 APM volume 2, "Secure Virtual Machine".
%include "layout.inc"
%include "kernel/base/registers.inc"

%define RCX_AT 8
%define RDX_AT 16
%define RBX_AT 24
%define START_AT 32                     ; RSP lives in the VMCB: its place holds the first reading
%define RBP_AT 40
%define RSI_AT 48
%define RDI_AT 56

HOST_STACK_SIZE equ 16384               ; svm.h

section .text
; uint64_t svm_run(uint64_t vmcb, struct registers *r, const uint32_t *nmis, uint32_t seen)
; Runs the guest until its next exit; returns the clock's advance. GIF is set again on return, IF is
; clear.
; If an NMI came since `seen`, does not run it and returns -1: it may have been the alarm for this
; run.
global svm_run
svm_run:
    push_all CALLEE_SAVED
    push rsi
    clgi
    cmp [rdx], ecx
    jne .not_now
    mov [rsi], rdi                      ; RAX lives in the VMCB too
    mov rcx, [rsi + RCX_AT]
    mov rbx, [rsi + RBX_AT]
    mov rbp, [rsi + RBP_AT]
    mov rdi, [rsi + RDI_AT]
%assign number 8
%rep 8
    mov r%[number], [rsi + 8 * number]
%assign number number + 1
%endrep
    rdtsc
    mov [rsi + START_AT], eax
    mov [rsi + START_AT + 4], edx
    mov rdx, [rsi + RDX_AT]
    mov rax, [rsi]
    mov rsi, [rsi + RSI_AT]
    vmrun
.exited:
    xchg rsi, [rsp]
    mov [rsi + RDX_AT], rdx
    rdtsc
    shl rdx, 32
    or rax, rdx
    sub rax, [rsi + START_AT]
    mov [rsi + RCX_AT], rcx
    mov [rsi + RBX_AT], rbx
    mov [rsi + RBP_AT], rbp
    mov [rsi + RDI_AT], rdi
%assign number 8
%rep 8
    mov [rsi + 8 * number], r%[number]
%assign number number + 1
%endrep
    pop qword [rsi + RSI_AT]
.out:
    pop_all CALLEE_SAVED
    stgi                                ; an NMI that ended the run is taken here
    ret
.not_now:
    pop rsi
    mov rax, -1
    jmp .out

; void svm_launch(struct vcpu *v, void *host_stack_top, uint64_t *rsp, uint64_t *rip,
;                 void (*host)(struct vcpu *))
; Comes back as the guest; the host goes on in host(v), which does not return, on its own stack.
global svm_launch
svm_launch:
    push_all CALLEE_SAVED
    mov [rdx], rsp
    mov rax, .guest
    mov [rcx], rax
    mov rsp, rsi
    xor ebp, ebp
    call r8
    ud2
.guest:
    pop_all CALLEE_SAVED
    ret

; void svm_save(uint64_t vmcb)
global svm_save
svm_save:
    mov rax, rdi
    vmsave
    ret

; Guest code of known length: 2 * RCX instructions, then an exit by VMMCALL or INT3.
global svm_run_call, svm_run_int
svm_run_call:
    dec rcx
    jnz svm_run_call
    vmmcall
svm_run_int:
    dec rcx
    jnz svm_run_int
    int3

; uint32_t svm_take_interrupt(void): lets one pending interrupt in; its vector + TAKEN, or 0.
TAKEN equ 256                           ; svm.h
global svm_take_interrupt
svm_take_interrupt:
    xor eax, eax
taking:
    sti
    nop
    nop
    cli
    ret

; uint32_t svm_halt(void): halts until an interrupt or NMI; the interrupt's vector + TAKEN, or 0.
global svm_halt
svm_halt:
    xor eax, eax
    sti
    hlt
    cli
taken:
    ret

; void svm_wait(uint32_t *halted, const uint32_t *nmis, uint32_t seen)
; Sets *halted and halts, unless an NMI came since `seen`. HLT would sleep through an NMI that comes
; between the test and HLT: so svm_nmi moves the saved RIP after the HLT.
global svm_wait
svm_wait:
    mov dword [rdi], 1
wait_from:
    cmp [rsi], edx
    jne wait_to
    hlt
wait_to:
    ret

; The NMI count stands at the bottom of the host stack that the NMI came on.
global svm_nmi
svm_nmi:
    push rax
    mov rax, rsp
    and rax, -HOST_STACK_SIZE
    inc dword [rax]
    mov rax, wait_from
    cmp [rsp + 8], rax
    jb .out
    mov rax, wait_to
    cmp [rsp + 8], rax
    jae .out
    mov [rsp + 8], rax
.out:
    pop rax
    iretq

; One stub for each vector, 8 bytes apart. Exceptions are our own mistakes. But between `taking` and
; `taken` any vector is an interrupt, as the guest may have given its interrupts vectors below 32:
; svm_take_interrupt and svm_halt return it in EAX. The saved IF is cleared, so that no second one
; comes in.
global svm_stubs
extern virt_host_fault
align 8
svm_stubs:
%assign vector 0
%rep 256
    align 8
  %if vector == 1
    jmp host_debug
  %else
    db 0x6a, vector                     ; PUSH of a byte, with its sign
    jmp host_vector
  %endif
  %assign vector vector + 1
%endrep

host_vector:
    pop rdi
    movzx edi, dil
    mov rax, taking
    cmp [rsp], rax
    jb host_fault
    mov rax, taken
    cmp [rsp], rax
    ja host_fault
    lea eax, [rdi + TAKEN]
    and dword [rsp + 16], ~0x200
    iretq

host_fault:
    mov rsi, rsp
    and rsp, -16
    call virt_host_fault

; The guest's breakpoints are on for a few host instructions around VMRUN: RF lets the host pass
; them. On Bochs, a step whose instruction was intercepted also has its #DB here, after VMRUN,
; while the registers are still the guest's.
host_debug:
    or dword [rsp + 16], 0x10000
    iretq
