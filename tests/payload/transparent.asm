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
CODE16 equ 0x68
DATA16 equ 0x70
LOW equ 0x8000                           ; real mode code
FAR_MAP equ 0x8000000000                ; the first GB once more, by one page of 1 GB
TF equ 0x100
IF equ 0x200

section .multiboot align=4
    dd MAGIC, FLAGS, -(MAGIC + FLAGS)

section .bss align=4096 nobits
pml5:   resb 4096
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
real_result: resq 2

section .data align=8
global gdt
gdt:
    dq 0
    dq 0x00af9a000000ffff, 0x00cf92000000ffff
    dq 0x00cffa000000ffff, 0x00cff2000000ffff, 0x00affa000000ffff, 0x00cff2000000ffff
tss_entry:
    dq 0, 0
    dq 0x00af1a000000ffff, 0x00cf9a000000ffff, 0x00cf12000000ffff, 0x00af9e000000ffff
    dq 0x00009a000000ffff, 0x000092000000ffff   ; CODE16, DATA16
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
    mov edx, pml4
    test byte [ebx], 4                  ; a command line that ends so: page tables of five levels
    jz .levels
    mov esi, [ebx + 16]
.line:
    inc esi
    cmp byte [esi], 0
    jne .line
    cmp dword [esi - 4], "la57"
    jne .levels
    or eax, 0x1000
    mov dword [pml5], pml4 + 7
    mov edx, pml5
.levels:
    mov cr4, eax
    mov cr3, edx
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

%include "tests/payload/probes_real.asm"

; --- The probes: name, selector, flags, then code. ---
%assign number 0
%macro probe 3-4 0
    %assign number number + 1
    section .rodata
%%text: db %1, 0
    section LIST
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
global probes, silicon
%define LIST .probes
section .probes align=8
probes:

%include "tests/payload/probes_traps.asm"
%include "tests/payload/probes_modes.asm"
%include "tests/payload/probes_machine.asm"
    done
global probes_end, silicon_end
section .probes
probes_end:
%define LIST .silicon
section .silicon align=8
silicon:
%include "tests/payload/probes_silicon.asm"
section .silicon
silicon_end:
