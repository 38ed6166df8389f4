; SPDX-License-Identifier: MIT
; The tests that run in ring 3: the file ring3.exe, and its pointers to their records.
section .images align=16
global ring3_file, ring3_file_end
ring3_file:
    incbin "ring3.exe"
ring3_file_end:

section .ring3_tests align=8
    incbin "ring3.tests"
