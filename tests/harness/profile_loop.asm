; SPDX-License-Identifier: MIT
; A loop of known addresses and length for the tests of sampling.
section .text

; void profile_loop(uint64_t iterations): profile_loop_start to profile_loop_end; 10 instructions an
; iteration, no REP.
global profile_loop, profile_loop_start, profile_loop_end
align 64
profile_loop:
profile_loop_start:
    add rax, 1
    add rcx, 3
    xor rdx, rax
    add r8, rcx
    lea r9, [r8 + rdx]
    xor r10, r9
    add r11, 7
    sub rsi, r11
    dec rdi
    jnz profile_loop_start
profile_loop_end:
    ret
