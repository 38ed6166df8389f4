; SPDX-License-Identifier: MIT
; An image as a hypervisor's suite of unit tests is: multiboot 1 with no flag set, linked for 64
; bits and made an ELF32 file afterwards. The rest is suite.c.
%define MULTIBOOT_FLAGS 0
%include "tests/guests/guest.inc"

; void counted(uint32_t msr, uint64_t on, uint64_t loops): between the WRMSR that starts the
; counter, which counts, and the one that stops it, which does not, 2 * loops + 2 instructions
global counted
counted:
    mov r8, rdx
    mov ecx, edi
    write_msr rsi
.again:
    dec r8
    jnz .again
    xor eax, eax
    xor edx, edx
    wrmsr
    ret
