; SPDX-License-Identifier: MIT
; Probes of transparent.asm: what a guest does to its page tables, and what lies across two pages.
PAIR equ FAR_MAP + 0x40004000           ; and the next page are not side by side in memory
PAIR_ENTRY equ table_far + 8 * 4
SMAP equ 0x200000
DEVICE_PAGE equ ASKED - 4096            ; nobody else writes to these two
ASKED equ 0x901000

; The first page of PAIR becomes the second; %1 tells the processor so.
%macro move_page 1+
    mov dword [second_page], 0x11
    mov dword [scratch], 0x22
    mov rbx, PAIR
    mov rsi, PAIR_ENTRY
    mov rdi, [rsi]
    mov ecx, [rbx]
    mov rax, [rsi + 8]
    mov [rsi], rax
    mov rax, cr3
    %1
    mov edx, [rbx]
    mov [rsi], rdi
    mov rax, cr3
    %1
    mov eax, [rbx]
    zero ebx, rdi
%endmacro
probe "MOV CR3 forgets", K64, 2
    move_page mov cr3, rax
probe "INVLPG forgets", K64, 2
    move_page invlpg [rbx]
probe "MOV CR3 and CR2, and back", K64, 2
    mov rbx, cr3
    lea rax, [rbx + 8]
    mov cr3, rax
    mov rcx, cr3
    mov cr3, rbx
    mov rdx, cr3
    mov eax, 0x1234
    mov cr2, rax
    mov rsi, cr2
probe "MOV CR3, ring 3", U64, 2
    mov cr3, rax
; transparent.c gives it back.
%macro allow_access 0
    and byte [pml4], ~4                 ; all but FAR_MAP is ring 0's
    change cr4, or, SMAP
    mov rbx, PAIR
    stac
    mov ecx, [rbx]
    mov [rbx], ecx
    mov ecx, 7
%endmacro
probe "CLAC forgets", K64, 2
    allow_access
    clac
    mov edx, [rbx]
probe "CLAC forgets what is written", K64, 2
    allow_access
    clac
    mov [rbx], edx
probe "STAC, then CLAC", K64, 2
    allow_access
    pushfq
    pop rdx
    clac
    pushfq
    pop rsi
    stac
    mov edi, [rbx]
    zero edi
probe "CLAC in ring 3", U64, 2
    clac
probe "RDTSCP, CLI, STD", K64, 0x202
    mov ecx, 0xc0000103
    mov eax, 0x55
    zero edx
    wrmsr
    rdtscp
    zero eax, edx
    cli
    std
    pushfq
    pop rbx
    cld
    pushfq
    pop rdx

probe "an access across two pages", K64, 2
    mov dword [second_page + 4092], 0x44332211
    mov dword [scratch], 0x88776655
    mov rbx, PAIR + 4096
    mov ecx, [rbx - 2]
    mov edx, [rbx - 4]
    mov dword [rbx - 3], 0xddccbbaa
    mov esi, [second_page + 4092]
    mov edi, [scratch]
    zero eax
probe "an access across the last page's end", K64, 2
    mov rbx, LAST_PAGE + 4096
    mov byte [rbx - 1], 0x55
    mov word [rbx - 1], 0x7777
probe "code across two pages, changed", K64, 2
    mov word [second_page + 4094], 0x11b8 ; MOV EAX, n; RET
    mov dword [scratch], 0xc3443322
    mov rbx, PAIR + 4094
    call rbx
    mov ecx, eax
    mov byte [scratch + 2], 0x99
    call rbx
    mov edx, eax
    mov byte [second_page + 4095], 0x88
    call rbx
    mov esi, eax
probe "the end of an instruction in the second page, changed", K64, 2
    mov byte [second_page + 4095], 0xc2 ; RET 0
    mov word [scratch], 0
    mov rbx, PAIR + 4095
    call rbx
    push rcx
    mov word [scratch], 8
    call rbx
probe "code across two pages, which changes what follows", K64, 2
    mov word [second_page + 4094], 0x43fe ; INC BYTE [RBX + 4]; MOV AL, n; RET
    mov dword [scratch], 0xc311b004
    mov rbx, PAIR + 4094
    call rbx
    mov ecx, eax
    call rbx
    mov edx, eax
    call rbx
probe "PUSHFQ changes code that ran", K64, 2
    mov word [second_page], 0xb848      ; MOV RAX, n; RET
    mov qword [second_page + 2], 0
    mov byte [second_page + 10], 0xc3
    mov rbx, PAIR
    mov rsi, rsp
    lea rdi, [second_page + 10]
    call rbx
    mov rcx, rax
    mov rsp, rdi
    pushfq
    mov rsp, rsi
    call rbx
; By %1 12 times: %2, MOV AL, n and the way back, at RBX. What follows is for each third time.
%macro often 2
    mov dword [rbx], %2
    lea rdi, [.back]
    mov ecx, 12
    mov esi, 3
    zero ebp
.again:
    zero eax
    %1 rbx
.back:
    imul ebp, ebp, 3
    add ebp, eax
    dec esi
    jnz .same
    mov esi, 3
%endmacro
%macro often_end 0-1+
.same: %1
    dec ecx
    jnz .again
    mov eax, ebp
%endmacro
probe "CALL by a register of code that changes every third time", K64, 2
    mov rbx, PAIR + 16
    often call, 0xc311b0
    inc byte [second_page + 17]
    often_end
probe "a jump to code that a step changes every third time", K64, 2
    mov rbx, PAIR + 16
    mov r8d, 2
    often jmp, 0xe7ff11b0
    btc [second_page + 17], r8d
    often_end
; By fw_cfg: the next byte of its key 0. Its numbers have their high byte first.
probe "a jump to code that a device changes every third time", K64, 2
    mov dword [ASKED], 0x0a000000
    mov dword [ASKED + 4], 0x01000000
    mov rbx, DEVICE_PAGE + 17
    bswap rbx
    mov [ASKED + 8], rbx
    mov rbx, DEVICE_PAGE + 16
    often jmp, 0xe7ff11b0
    mov eax, ASKED
    bswap eax
    mov edx, 0x518
    out dx, eax
    mov dword [ASKED], 0x02000000
    often_end btc [ASKED + 64], ecx     ; a step
probe "code across the last page's end", K64, 2
    mov word [scratch + 4094], 0x11b8
    mov rbx, LAST_PAGE + 4094
    jmp rbx
