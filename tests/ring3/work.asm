; SPDX-License-Identifier: MIT
; Stretches of known length. work_N executes N instructions more than work_0; no REP, no call. Their
; page is theirs alone: where a page has a REP string instruction, the virtual PMU executes it in
; blocks, a hundred times as slowly.
section .text align=4096

; void work_N(void)
global work_0, work_1, work_10

%macro loop_of 2                        ; %2 instructions, an even number: 1 + 2 * (%2 / 2 - 1) + 1
global %1
align 16
%1:
    mov ecx, %2 / 2 - 1
.again:
    dec ecx
    jnz .again
    nop
    ret
%endmacro

align 16
work_0:
    ret
align 16
work_1:
    nop
    ret
align 16
work_10:
    times 10 nop
    ret
loop_of work_1000, 1000
loop_of work_100000, 100000
loop_of work_1000000, 1000000

; void work_pages(char *at, uint64_t n): reads at n pages downwards, 4 instructions each.
global work_pages
work_pages:
    mov al, [rcx]
    sub rcx, 4096
    dec rdx
    jnz work_pages
    ret

; uint64_t work_pmc_pair(uint32_t selector): the difference of two RDPMCs with nothing but moves
; between:
; RDPMC, MOV, MOV, LFENCE retire from the first reading to the second.
global work_pmc_pair
work_pmc_pair:
    lfence
    rdpmc
    mov r8d, eax
    mov r9d, edx
    lfence
    rdpmc
    shl rdx, 32
    or rax, rdx
    shl r9, 32
    or r8, r9
    sub rax, r8
    ret

align 4096
