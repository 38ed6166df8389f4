/* SPDX-License-Identifier: MIT */
/* Registers of other threads: of one that runs, waits, has not begun. */
#include "nt.h"

#define ONE 0x1122334455667788
#define TWO 0x99aabbccddeeff01
#define PASS (CONTEXT_CONTROL | CONTEXT_INTEGER)

/* `loop` iterates with known registers. */
extern char loop_begin[], loop_end[];
DWORD WINAPI loop(LPVOID unused);
volatile LONG stop;
ULONG64 safe_rsp;
asm(".text\n"
    "loop:\n"
    "    push %rbx\n    push %r12\n"
    "    mov %rsp, safe_rsp(%rip)\n"
    "    movabs $0x1122334455667788, %rbx\n"
    "    movabs $0x99aabbccddeeff01, %r12\n"
    "    movq %rbx, %xmm3\n"
    "loop_begin:\n"
    "    pause\n"
    "    cmpl $0, stop(%rip)\n"
    "    je loop_begin\n"
    "loop_end:\n"
    "    mov $1, %eax\n"
    "    pop %r12\n    pop %rbx\n    ret\n");

static CONTEXT get(HANDLE thread, DWORD flags)
{
    CONTEXT c = { .ContextFlags = flags };
    IS(GetThreadContext(thread, &c), TRUE);
    return c;
}

/* The context of one that iterates; it may have to begin first. */
static CONTEXT get_looping(HANDLE thread, DWORD flags)
{
    CONTEXT c = get(thread, flags);
    while (c.Rip < (ULONG64)loop_begin || c.Rip >= (ULONG64)loop_end) {
        ResumeThread(thread);
        Sleep(1);
        SuspendThread(thread);
        GetThreadContext(thread, &c); /* no check: how often is the machine's matter */
    }
    return c;
}

static HANDLE start(CONTEXT *context)
{
    HANDLE thread = CreateThread(NULL, 0, loop, NULL, 0, NULL);
    stop = 0;
    IS(SuspendThread(thread), 0);
    *context = get_looping(thread, CONTEXT_ALL);
    return thread;
}

static void check_get(void)
{
    CONTEXT c, other = { .ContextFlags = CONTEXT_INTEGER, .Rip = 5, .EFlags = 6 };
    HANDLE thread = start(&c);
    IS(c.Rbx, ONE);
    IS(c.R12, TWO);
    IS(c.FltSave.XmmRegisters[3].Low, ONE);
    IS(c.MxCsr, 0x1f80);
    IS(c.FltSave.MxCsr, 0x1f80);
    IS(c.Rsp, safe_rsp);
    IS(c.SegCs, 0x33);
    IS(c.SegSs, 0x2b);
    IS(c.EFlags & 0x3202, 0x202); /* IF, no IOPL */
    IS(c.Dr0 | c.Dr1 | c.Dr2 | c.Dr3 | c.Dr7, 0);
    IS(GetThreadContext(thread, &other), TRUE);
    IS(other.Rbx, ONE);
    IS(other.Rip + other.EFlags, 11); /* not asked for */
    other.ContextFlags = 0;
    FAILS(GetThreadContext(thread, &other), FALSE, ERROR_INVALID_PARAMETER);
    FAILS(GetThreadContext(thread, NULL), FALSE, ERROR_NOACCESS);
    FAILS(SetThreadContext(thread, &other), FALSE, ERROR_NOT_SUPPORTED);
    IS(ResumeThread(thread), 1);
    for (int i = 0; i < 20; i++) { /* one that runs is stopped for it */
        c = get(thread, PASS);
        IS(c.Rip >= (ULONG64)loop_begin && c.Rip < (ULONG64)loop_end, TRUE);
        IS(c.Rbx, ONE);
    }
    stop = 1;
    IS(end_of(thread), 1);
    c = get(GetCurrentThread(), CONTEXT_CONTROL);
    IS(c.SegCs, 0x33);
}

/* --- One that has not begun, one that waits. --- */

static volatile LONG waits;
static DWORD WINAPI wait_for_it(LPVOID event)
{
    waits = 1;
    WaitForSingleObject(event, INFINITE);
    ExitThread(3);
}

static void check_new(void)
{
    HANDLE thread = CreateThread(NULL, 0, loop, (LPVOID)5, CREATE_SUSPENDED, NULL);
    CONTEXT c = get(thread, CONTEXT_FULL);
    IS(c.Rcx, (ULONG64)loop);
    IS(c.Rdx, 5);
    IS(c.FltSave.ControlWord, 0x27f);
    IS(c.MxCsr, 0x1f80);
    IS(ResumeThread(thread), 1);
    IS(end_of(thread), 1); /* `stop` is set */
}

static void check_waiter(void)
{
    HANDLE event = CreateEventA(NULL, TRUE, FALSE, NULL);
    HANDLE thread = CreateThread(NULL, 0, wait_for_it, event, 0, NULL);
    while (!waits)
        Sleep(1);
    CONTEXT c = get(thread, CONTEXT_FULL);
    while (c.Rcx != c.Rip) { /* until it is in the service: SYSCALL writes RCX */
        Sleep(1);
        GetThreadContext(thread, &c);
    }
    IS(SetEvent(event), TRUE);
    IS(end_of(thread), 3);
    CloseHandle(event);
}

/* --- Unwinding. --- */

/* PUSH RBP; MOV RBP, RSP; more prologue: the frame is RSP's, after MOV it is RBP's. */
static void check_frame(void)
{
    static const UCHAR info[] __attribute__((aligned(4))) = { 1, 12, 2, 5, 4, 3, 1, 0x50 };
    static const UCHAR code[32] = { 0x55, 0x48, 0x89, 0xe5, [4 ... 31] = 0x90 };
    DWORD64 base = min((DWORD64)info, (DWORD64)code), frame;
    DWORD first = (DWORD)((DWORD64)code - base);
    RUNTIME_FUNCTION function = { first, first + sizeof code, (DWORD)((DWORD64)info - base) };
    for (DWORD at = 0; at < 14; at++) {
        DWORD64 stack[3] = { 3, 4, 5 }, *top = &stack[at == 0];
        CONTEXT c = { .Rsp = (DWORD64)top, .Rbp = (DWORD64)&stack[1] };
        PVOID data;
        RtlVirtualUnwind(0, base, base + first + at, &function, &c, &data, &frame, NULL);
        IS(frame, at < 4 ? (DWORD64)top : (DWORD64)&stack[1]);
        IS(c.Rip, at < 4 ? 4 : 5);
    }
}

int main(void)
{
    check_frame();
    check_get();
    check_new();
    check_waiter();
    return check_result();
}
