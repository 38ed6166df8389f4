; SPDX-License-Identifier: MIT
; Probes of transparent.asm whose answer is the model's processor's and not QEMU's: run with the
; word "silicon", and tests/host/transparent.t knows what each vendor's says.
probe "SYSCALL, compatibility mode", U32, 0x246
    mov ebp, 0x1234
    syscall
    done
probe "SYSCALL, compatibility mode, TF", U32, 2 + TF
    nop
    syscall
    done
probe "SYSRET, compatibility mode", K32, 2
    mov ecx, .there
    sysret
.there:
    done
probe "SYSENTER, compatibility mode", U32, 0x246
    mov ebp, esp
    sysenter
probe "SYSENTER, 64-bit mode", U64, 0x246
    mov ebp, esp
    sysenter
probe "SYSEXIT to 32-bit code", K32, 2
    mov ecx, probe_stack_top
    mov edx, .there
    sysexit
.there:
    mov ecx, cs
    mov edx, ss
    done
probe "SYSEXIT to 64-bit code", K64, 2
    mov ecx, probe_stack_top
    mov edx, .there
    o64 sysexit
.there:
    mov ecx, cs
    mov edx, ss
    done
probe "SYSEXIT from ring 3", U32, 2
    sysexit
probe "SYSENTER, SYSENTER_CS 0", K64, 2
    mov ecx, 0x174
    zero eax, edx
    wrmsr
    sysenter
probe "SYSENTER_CS back", K64, 2
    mov ecx, 0x174
    mov eax, 8
    xor edx, edx
    wrmsr
    done
probe "MONITOR, which CPUID does not offer", K64, 2
    mov eax, scratch
    zero ecx, edx
    db 0x0f, 0x01, 0xc8
    done
probe "MWAIT, which CPUID does not offer", K64, 2
    zero eax, ecx
    db 0x0f, 0x01, 0xc9
    done
