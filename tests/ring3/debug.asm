; SPDX-License-Identifier: MIT
; What breakpoints and steps of debug.c find.
section .text

; void debug_places(void)
global debug_places, debug_place
debug_places:
    xor eax, eax
debug_place:
    inc eax
    ret

; void debug_mov_ss(void): a system call that does not exist, after a MOV SS from debug_ss.
global debug_mov_ss
debug_mov_ss:
    mov eax, 0xfffff
    mov ss, [rel debug_ss]
    syscall
    ret

; void debug_walk(void): steps from its first NOP to debug_walk_end.
global debug_walk, debug_walk_jump, debug_walk_target, debug_walk_end
debug_walk:
    pushfq
    or dword [rsp], 0x100
    popfq
    nop
debug_walk_jump:
    jmp debug_walk_target
    nop
debug_walk_target:
    nop
    nop
debug_walk_end:
    ret

; void debug_fault(void): a jump to UD2.
global debug_fault, debug_fault_target
debug_fault:
    jmp debug_fault_target
    nop
debug_fault_target:
    ud2
    ret

section .data
global debug_ss
align 8
debug_ss: dq 0x2b
