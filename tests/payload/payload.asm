; SPDX-License-Identifier: MIT
; A foreign kernel in small: multiboot 1 entry, its own way to long mode, its own GDT, IDT, TSS and ring 3.
; It shares no line with ntpmu, so that it sees the virtual PMU as a stranger does.
MAGIC equ 0x1badb002
FLAGS equ 3
CODE equ 8
DATA equ 16
USER_DATA equ 0x1b
USER_CODE equ 0x23
TSS equ 0x28

section .multiboot align=4
    dd MAGIC, FLAGS, -(MAGIC + FLAGS)

section .bss align=4096 nobits
pml4:   resb 4096
pdpt:   resb 4096
dirs:   resb 4096 * 4
        resb 8192
stack_top:
        resb 4096
nmi_stack_top:
        resb 4096
trap_stack_top:
        resb 4096
user_stack_top:
global idt
idt:    resb 4096
tss:    resb 104
saved:  resq 1

section .data align=8
gdt:
    dq 0
    dq 0x00af9a000000ffff, 0x00cf92000000ffff   ; ring 0
    dq 0x00cff2000000ffff, 0x00affa000000ffff   ; ring 3: SS, CS
tss_entry:
    dq 0, 0
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
    mov edi, dirs
    mov eax, 0x87                       ; present, writable, user, 2 MB
    mov ecx, 2048
.fill:
    mov [edi], eax
    mov dword [edi + 4], 0
    add edi, 8
    add eax, 0x200000
    dec ecx
    jnz .fill
    mov dword [pdpt], dirs + 7
    mov dword [pdpt + 8], dirs + 0x1007
    mov dword [pdpt + 16], dirs + 0x2007
    mov dword [pdpt + 24], dirs + 0x3007
    mov dword [pml4], pdpt + 7
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
    jmp CODE:long_mode

bits 64
long_mode:
    mov ax, DATA
    mov ds, ax
    mov es, ax
    mov ss, ax
    mov rsp, stack_top
    mov qword [tss + 4], trap_stack_top ; RSP0
    mov qword [tss + 36], nmi_stack_top ; IST1
    mov rax, tss
    mov rdx, rax
    and edx, 0xffffff
    shl rdx, 16
    mov rcx, 0x890000000067
    or rdx, rcx
    mov [tss_entry], rdx
    lgdt [gdtr]
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

; extern const uint8_t stubs[256][16]; the handler gets a frame of vector, error, RIP, CS, RFLAGS, RSP, SS
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
    push rax
    push rcx
    push rdx
    push rsi
    push rdi
    push r8
    push r9
    push r10
    push r11
    lea rdi, [rsp + 72]
    extern trap_handler
    cld
    call trap_handler
    pop r11
    pop r10
    pop r9
    pop r8
    pop rdi
    pop rsi
    pop rdx
    pop rcx
    pop rax
    add rsp, 16
    iretq

; A fault while fault_resume is not 0 goes on there, with its vector in fault_vector.
; uint64_t fault_rdmsr(uint32_t msr, uint64_t *value), fault_wrmsr(uint32_t msr, uint64_t value),
; fault_rdpmc(uint32_t selector, uint64_t *value): 0 or the vector.
extern fault_resume, fault_vector
%macro guard 0
    mov qword [fault_vector], 0
    mov qword [fault_resume], .out
%endmacro
%macro unguard 0
.out:
    mov qword [fault_resume], 0
    mov rax, [fault_vector]
    ret
%endmacro

global fault_rdmsr, fault_wrmsr, fault_rdpmc
fault_rdmsr:
    guard
    mov ecx, edi
    rdmsr
    mov [rsi], eax
    mov [rsi + 4], edx
    unguard
fault_wrmsr:
    guard
    mov ecx, edi
    mov eax, esi
    mov rdx, rsi
    shr rdx, 32
    wrmsr
    unguard
fault_rdpmc:
    guard
    mov ecx, edi
    rdpmc
    mov [rsi], eax
    mov [rsi + 4], edx
    unguard

; void gate_loop(uint32_t msr, uint64_t on, uint64_t off, uint64_t loops): between the two WRMSRs, the first counted
; and the second not, 2 * loops + 4 instructions
global gate_loop
gate_loop:
    mov r8, rcx
    mov r9, rdx
    mov ecx, edi
    mov eax, esi
    mov rdx, rsi
    shr rdx, 32
    wrmsr
.again:
    dec r8
    jnz .again
    mov eax, r9d
    mov rdx, r9
    shr rdx, 32
    wrmsr
    ret

; void gate_halt(uint32_t msr, uint64_t on, uint64_t off): the same around STI; HLT, woken by an interrupt
global gate_halt
gate_halt:
    mov r9, rdx
    mov ecx, edi
    mov eax, esi
    mov rdx, rsi
    shr rdx, 32
    wrmsr
    sti
    hlt
    cli
    mov eax, r9d
    mov rdx, r9
    shr rdx, 32
    wrmsr
    ret

; void run_user(uint64_t loops): 2 * loops + 1 instructions in ring 3, the last one a SYSCALL
global run_user, syscall_return, user_loop
run_user:
    push rbx
    push rbp
    push r12
    push r13
    push r14
    push r15
    mov [saved], rsp
    push USER_DATA
    push user_stack_top
    push 0x202
    push USER_CODE
    push user_loop
    iretq
user_loop:
    dec rdi
    jnz user_loop
    syscall
syscall_return:
    mov rsp, [saved]
    pop r15
    pop r14
    pop r13
    pop r12
    pop rbp
    pop rbx
    ret
