; SPDX-License-Identifier: MIT
; The ring-3 stubs of the services, under their Zw names (Nt names are the kernel's own), and the
; entries of threads.
%include "layout.inc"

%macro service 2
global %1
%1:
    mov eax, %2
    mov r10, rcx                        ; SYSCALL overwrites RCX
    syscall
    ret
%endmacro

section .text
%include "services.inc"
service no_such_service, 0x800

; A thread's first instruction: RDI start routine, RSI its argument. The routine's result is the
; exit status.
global user_thread_start
user_thread_start:
    mov rax, rdi
    mov rdi, rsi
    xor ebp, ebp
    and rsp, -16
    call rax
    mov esi, eax
.end:
    xor edi, edi                        ; this thread
    call ZwTerminateThread
    ud2

; The same for a process's first thread, whose routine returns nothing.
global user_process_start
user_process_start:
    mov rax, rdi
    mov rdi, rsi
    xor ebp, ebp
    and rsp, -16
    call rax
    xor esi, esi
    jmp user_thread_start.end

; The kernel delivers an exception here (KiUserExceptionDispatcher): RSP, 16-aligned, points to a
; struct exception_frame.
global user_exception_entry
extern exception_handled
user_exception_entry:
    lea rdi, [rsp + 0x4f0]              ; the record
    mov rsi, rsp                        ; the context
    xor ebp, ebp
    call exception_handled
    mov rdi, rsp
    xor esi, esi
    test eax, eax
    jnz .continue
    lea rdi, [rsp + 0x4f0]
    mov rsi, rsp
    xor edx, edx                        ; nobody handled it
    call ZwRaiseException
    ud2
.continue:
    call ZwContinue
    ud2
