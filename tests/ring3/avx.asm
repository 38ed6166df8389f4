; SPDX-License-Identifier: MIT
; All sixteen YMM registers at once, also those that a function of Windows must keep.
section .text

; void avx_load(const uint64_t values[64])
global avx_load
avx_load:
%assign n 0
%rep 16
    vmovups ymm %+ n, [rcx + 32 * n]
%assign n n + 1
%endrep
    ret

; void avx_store(uint64_t values[64])
global avx_store
avx_store:
%assign n 0
%rep 16
    vmovups [rcx + 32 * n], ymm %+ n
%assign n n + 1
%endrep
    ret

; void avx_clear(void): everything but XMM and x87 back to its initial state
global avx_clear
avx_clear:
    vzeroall
    ret

; void avx512_load(const uint64_t values[136]): ZMM16 to 31 (the rest is AVX's), then K0 to K7
global avx512_load
avx512_load:
%assign n 0
%rep 16
%assign m n + 16
    vmovups zmm %+ m, [rcx + 64 * n]
%assign n n + 1
%endrep
%assign n 0
%rep 8
    kmovq k %+ n, [rcx + 1024 + 8 * n]
%assign n n + 1
%endrep
    ret

; void avx512_store(uint64_t values[136])
global avx512_store
avx512_store:
%assign n 0
%rep 16
%assign m n + 16
    vmovups [rcx + 64 * n], zmm %+ m
%assign n n + 1
%endrep
%assign n 0
%rep 8
    kmovq [rcx + 1024 + 8 * n], k %+ n
%assign n n + 1
%endrep
    ret
