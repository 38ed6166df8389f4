/* SPDX-License-Identifier: MIT */
/* All registers at once, into a CONTEXT and back. */
#include "unwind.h"

#define AT(field, offset) C_ASSERT(offsetof(CONTEXT, field) == (offset))
AT(ContextFlags, 0x30);
AT(MxCsr, 0x34);
AT(SegCs, 0x38);
AT(EFlags, 0x44);
AT(Rax, 0x78);
AT(Rsp, 0x98);
AT(R8, 0xb8);
AT(R15, 0xf0);
AT(Rip, 0xf8);
AT(FltSave, 0x100);

/* void RtlCaptureContext(CONTEXT *): the state after the return of the call. */
asm(".text\n"
    ".globl RtlCaptureContext\n"
    "RtlCaptureContext:\n"
    "    pushfq\n"
    "    mov %rax, 0x78(%rcx)\n"
    "    mov %rcx, 0x80(%rcx)\n"
    "    mov %rdx, 0x88(%rcx)\n"
    "    mov %rbx, 0x90(%rcx)\n"
    "    mov %rbp, 0xa0(%rcx)\n"
    "    mov %rsi, 0xa8(%rcx)\n"
    "    mov %rdi, 0xb0(%rcx)\n"
    "    mov %r8, 0xb8(%rcx)\n"
    "    mov %r9, 0xc0(%rcx)\n"
    "    mov %r10, 0xc8(%rcx)\n"
    "    mov %r11, 0xd0(%rcx)\n"
    "    mov %r12, 0xd8(%rcx)\n"
    "    mov %r13, 0xe0(%rcx)\n"
    "    mov %r14, 0xe8(%rcx)\n"
    "    mov %r15, 0xf0(%rcx)\n"
    "    mov 8(%rsp), %rax\n" /* the return address */
    "    mov %rax, 0xf8(%rcx)\n"
    "    lea 16(%rsp), %rax\n"
    "    mov %rax, 0x98(%rcx)\n"
    "    mov %cs, 0x38(%rcx)\n"
    "    mov %ds, 0x3a(%rcx)\n"
    "    mov %es, 0x3c(%rcx)\n"
    "    mov %fs, 0x3e(%rcx)\n"
    "    mov %gs, 0x40(%rcx)\n"
    "    mov %ss, 0x42(%rcx)\n"
    "    pop %rax\n"
    "    mov %eax, 0x44(%rcx)\n"
    "    stmxcsr 0x34(%rcx)\n"
    "    fxsave64 0x100(%rcx)\n"
    "    movl $0x10000f, 0x30(%rcx)\n" /* CONTEXT_FULL | CONTEXT_SEGMENTS */
    "    mov 0x78(%rcx), %rax\n"
    "    ret\n");

/* void restore(const CONTEXT *): RIP, flags and RCX are popped from the new stack. */
DECLSPEC_NORETURN void restore(const CONTEXT *context);
asm(".text\n"
    ".globl restore\n"
    "restore:\n"
    "    fxrstor64 0x100(%rcx)\n"
    "    ldmxcsr 0x34(%rcx)\n"
    "    mov 0x98(%rcx), %r8\n"
    "    mov 0xf8(%rcx), %rax\n"
    "    mov %rax, -8(%r8)\n"
    "    mov 0x44(%rcx), %eax\n"
    "    mov %rax, -16(%r8)\n"
    "    mov 0x80(%rcx), %rax\n"
    "    mov %rax, -24(%r8)\n"
    "    mov 0x78(%rcx), %rax\n"
    "    mov 0x88(%rcx), %rdx\n"
    "    mov 0x90(%rcx), %rbx\n"
    "    mov 0xa0(%rcx), %rbp\n"
    "    mov 0xa8(%rcx), %rsi\n"
    "    mov 0xb0(%rcx), %rdi\n"
    "    mov 0xc0(%rcx), %r9\n"
    "    mov 0xc8(%rcx), %r10\n"
    "    mov 0xd0(%rcx), %r11\n"
    "    mov 0xd8(%rcx), %r12\n"
    "    mov 0xe0(%rcx), %r13\n"
    "    mov 0xe8(%rcx), %r14\n"
    "    mov 0xf0(%rcx), %r15\n"
    "    lea -24(%r8), %rsp\n" /* at once: in ring 0 interrupts use what is below */
    "    mov 0xb8(%rcx), %r8\n"
    "    pop %rcx\n"
    "    popfq\n"
    "    ret\n");

/* _JUMP_BUFFER, as setjmp fills it. */
struct jump_buffer {
    DWORD64 frame, rbx, rsp, rbp, rsi, rdi, r12, r13, r14, r15, rip;
    ULONG mxcsr;
    USHORT x87, spare;
    M128A xmm[10]; /* 6 to 15 */
};

static void take_jump(CONTEXT *c, const struct jump_buffer *from)
{
    c->Rbx = from->rbx;
    c->Rsp = from->rsp;
    c->Rbp = from->rbp;
    c->Rsi = from->rsi;
    c->Rdi = from->rdi;
    c->R12 = from->r12;
    c->R13 = from->r13;
    c->R14 = from->r14;
    c->R15 = from->r15;
    c->Rip = from->rip;
    c->MxCsr = from->mxcsr;
    memcpy(&c->Xmm6, from->xmm, sizeof from->xmm);
}

/* void consolidate(CONTEXT *, EXCEPTION_RECORD *): calls the record's first parameter, which
 * handles a C++ exception, and restores the context at the address that it returns. An unwinding
 * out of there goes on at the context, through an interrupt's frame. */
C_ASSERT(sizeof(CONTEXT) == 0x4d0 && offsetof(EXCEPTION_RECORD, ExceptionInformation) == 0x20);
DECLSPEC_NORETURN void consolidate(const CONTEXT *context, PEXCEPTION_RECORD record);
asm(".text\n"
    ".globl consolidate\n"
    ".seh_proc consolidate\n"
    "consolidate:\n"
    "    .seh_pushframe\n"
    "    sub $0x518, %rsp\n"
    "    .seh_stackalloc 0x4f0\n" /* without that frame, of 28h */
    SAVED_IN_CONTEXT "    .seh_endprologue\n"
    "    mov %rdx, %rbx\n"
    "    mov %rcx, %rdx\n"
    "    lea 0x20(%rsp), %rcx\n"
    "    mov $0x4d0, %r8d\n"
    "    call memcpy\n"
    "    mov 0x118(%rsp), %rax\n" /* RIP */
    "    mov %rax, 0x4f0(%rsp)\n"
    "    mov 0xb8(%rsp), %rax\n" /* RSP */
    "    mov %rax, 0x508(%rsp)\n"
    "    mov %rbx, %rcx\n"
    "    call *0x20(%rbx)\n"
    "    mov %rax, 0x118(%rsp)\n"
    "    lea 0x20(%rsp), %rcx\n"
    "    call restore\n"
    "    nop\n"
    "    .seh_endproc\n");

/* The first parameter of STATUS_LONGJUMP points to setjmp's registers, that of
 * STATUS_UNWIND_CONSOLIDATE to a routine. */
VOID __cdecl RtlRestoreContext(PCONTEXT ContextRecord, struct _EXCEPTION_RECORD *ExceptionRecord)
{
    const DWORD code =
        ExceptionRecord && ExceptionRecord->NumberParameters ? ExceptionRecord->ExceptionCode : 0;
    if (code == (DWORD)STATUS_LONGJUMP)
        take_jump(ContextRecord, (const void *)ExceptionRecord->ExceptionInformation[0]);
    if (code == (DWORD)STATUS_UNWIND_CONSOLIDATE)
        consolidate(ContextRecord, ExceptionRecord);
    restore(ContextRecord);
}
