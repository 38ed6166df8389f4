; SPDX-License-Identifier: MIT
; The libraries of ring 3, as files inside the image; built from kernel/user/.
section .rodata
%macro library 1
    dq %%name, %%start, %%end
    [section .images align=16]
%%name: db %1, 0
    align 16
%%start: incbin %1
%%end:
    __SECT__
%endmacro

; extern const struct linked_image linked_images[]; a NULL name ends it
global linked_images
align 8
linked_images:
    library "ntdll.dll"
    library "kernel32.dll"
    library "msvcrt.dll"
    library "advapi32.dll"
    library "ntoskrnl.exe"
    library "hal.dll"
    library "handlers.sys"
    dq 0, 0, 0
