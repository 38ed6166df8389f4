; SPDX-License-Identifier: MIT
; What peers' suites of unit tests ask of a PMU: code whose events are known. The rest is peers.c.
%include "tests/guests/guest.inc"

section .bss align=64
line:   resb 64
bytes:  resb 1000

section .text
; void measured(uint32_t msr, uint64_t on, uint64_t loops, uint64_t off): WRMSR of `on`, loops,
; WRMSR of `off`. A loop has 8 instructions, and one more where bit 30 of the generator is set; two
; conditional branches, of which one is as random as that bit; one load, of a line that is in no
; cache. Beside the loops there are the first WRMSR and three instructions.
global measured
measured:
    mov r8, rdx
    mov r10, rcx
    mov ecx, edi
    mov r9d, 1
    write_msr rsi
.again:
    clflush [line]
    mov rax, [line]
    imul r9, r9, 0x41c64e6d
    add r9, 12345
    bt r9, 30
    jnc .even
    nop
.even:
    dec r8
    jnz .again
    write_msr r10
    ret

; void streamed(uint32_t msr, uint64_t on, uint64_t loops, uint64_t off): the same; a line is
; flushed, it and those after it are loaded, in order, and then the stack is used, whose line they
; have driven out.
global streamed
streamed:
    mov r8, rdx
    mov r10, rcx
    mov r9d, 28 << 20
    mov ecx, edi
    write_msr rsi
    clflush [r9]
    mfence
.again:
    mov rax, [r9]
    add r9, 64
    dec r8
    jnz .again
    call .next
.next:
    pop rax
    write_msr r10
    ret

; void emulated(uint32_t msr, uint64_t on, uint64_t off): the same; 52 instructions between, of
; which a hypervisor emulates 30, and again the first WRMSR and three
global emulated
emulated:
    push rbx
    mov r9d, edi
    mov r10, rdx
    mov ecx, edi
    write_msr rsi
%rep 10
    xor eax, eax
    cpuid
    mov ecx, 0x1d9                      ; DEBUGCTL
    rdmsr
    in al, 0x61
%endrep
    nop
    mov ecx, r9d
    write_msr r10
    pop rbx
    ret

; void strings(uint32_t msr, uint64_t on, uint64_t off): the same; five instructions between, of
; which one fills 1,000 bytes.
global strings
strings:
    mov r9d, edi
    mov r10, rdx
    mov ecx, edi
    write_msr rsi
    lea rdi, [bytes]
    mov ecx, 1000
    xor eax, eax
    rep stosb
    mov ecx, r9d
    write_msr r10
    ret

; uint64_t rewritten(void): executes a routine, pushes other code over it, and executes it again.
; Returns 12 in octal, the digits being what the routine put into EAX. No CALL between: it stores,
; too.
global rewritten
rewritten:
    mov r8, rsp
    xor r9d, r9d
    lea rsp, [.routine + 8]
    jmp .routine
.back:
    lea r9d, [r9 * 8 + rax]
    cmp r9d, 8
    jae .end
    push qword [.other]
    jmp .routine
.end:
    mov rsp, r8
    mov eax, r9d
    ret
align 8
.routine:
    mov eax, 1
    jmp short .back
    nop
.other:
    db 0b8h, 2, 0, 0, 0, 0ebh, (.back - .routine - 7) & 0ffh, 90h

; uint64_t on_clean_stack(uint64_t top, uint32_t msr, uint64_t on, const uint64_t *entry): starts a
; counter, and waits on another stack for its interrupt. Returns the stack's page-table entry as the
; interrupt's handler finds it before it stores anything; 0: no interrupt came.
global on_clean_stack, clean_interrupt
on_clean_stack:
    mov r8, rdx
    mov r9, rcx
    mov r10, rsp
    xor r11d, r11d
    mov ecx, esi
    write_msr r8
    mov edx, 100000
    mov rsp, rdi
    sti
.wait:
    test r11, r11
    jnz .came
    dec edx
    jnz .wait
.came:
    cli
    mov rsp, r10
    mov rax, r11
    ret
clean_interrupt:
    mov r11, [r9]
    mov eax, 0xfee000b0
    mov dword [rax], 0
    iretq
