; SPDX-License-Identifier: MIT
; Three loops side by side, for a histogram: four instructions an iteration each.
section .text

; uint64_t hot_mix(uint64_t iterations), hot_add(..), hot_turn(..); hot_end is after them
global hot_mix, hot_add, hot_turn, hot_end
align 64
hot_mix:
    xor rax, rcx
    add rax, 5
    dec rcx
    jnz hot_mix
    ret
align 64
hot_add:
    add rax, rcx
    add rax, rax
    dec rcx
    jnz hot_add
    ret
align 64
hot_turn:
    rol rax, 3
    not rax
    dec rcx
    jnz hot_turn
    ret
align 64
hot_end:
    ret
