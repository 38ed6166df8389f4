/* SPDX-License-Identifier: MIT */
/* Exceptions and the registers of a thread, laid out as in winnt.h. Ring 3's stack at the entry of
 * its dispatchers is laid out as public debuggers show it. */
#pragma once
#include "kernel/nt/nt.h"

#define STATUS_LONGJUMP ((NTSTATUS)0x80000026)
#define STATUS_ARRAY_BOUNDS_EXCEEDED ((NTSTATUS)0xC000008C)
#define STATUS_FLOAT_DENORMAL_OPERAND ((NTSTATUS)0xC000008D)
#define STATUS_FLOAT_DIVIDE_BY_ZERO ((NTSTATUS)0xC000008E)
#define STATUS_FLOAT_INEXACT_RESULT ((NTSTATUS)0xC000008F)
#define STATUS_FLOAT_INVALID_OPERATION ((NTSTATUS)0xC0000090)
#define STATUS_FLOAT_OVERFLOW ((NTSTATUS)0xC0000091)
#define STATUS_FLOAT_STACK_CHECK ((NTSTATUS)0xC0000092)
#define STATUS_FLOAT_UNDERFLOW ((NTSTATUS)0xC0000093)
#define STATUS_INTEGER_OVERFLOW ((NTSTATUS)0xC0000095)

#define EXCEPTION_NONCONTINUABLE 0x00000001
#define EXCEPTION_MAXIMUM_PARAMETERS 15
/* ExceptionInformation[0] of an access violation. */
#define EXCEPTION_READ_FAULT 0
#define EXCEPTION_WRITE_FAULT 1
#define EXCEPTION_EXECUTE_FAULT 8

typedef struct _EXCEPTION_RECORD {
    NTSTATUS ExceptionCode;
    ULONG ExceptionFlags;
    struct _EXCEPTION_RECORD *ExceptionRecord;
    PVOID ExceptionAddress;
    ULONG NumberParameters;
    ULONG_PTR ExceptionInformation[EXCEPTION_MAXIMUM_PARAMETERS];
} EXCEPTION_RECORD, *PEXCEPTION_RECORD;
ABI_SIZE(EXCEPTION_RECORD, 0x98);
ABI_FIELD(EXCEPTION_RECORD, ExceptionInformation, 0x20);

typedef struct _M128A {
    ULONGLONG Low;
    LONGLONG High;
} __attribute__((aligned(16))) M128A;

/* As FXSAVE64 writes it. */
typedef struct _XSAVE_FORMAT {
    USHORT ControlWord, StatusWord;
    UCHAR TagWord, Reserved1;
    USHORT ErrorOpcode;
    ULONG ErrorOffset;
    USHORT ErrorSelector, Reserved2;
    ULONG DataOffset;
    USHORT DataSelector, Reserved3;
    ULONG MxCsr, MxCsr_Mask;
    M128A FloatRegisters[8], XmmRegisters[16];
    UCHAR Reserved4[96];
} XSAVE_FORMAT, XMM_SAVE_AREA32;
ABI_SIZE(XSAVE_FORMAT, 512);
ABI_FIELD(XSAVE_FORMAT, MxCsr, 24);
ABI_FIELD(XSAVE_FORMAT, XmmRegisters, 160);

#define CONTEXT_AMD64 0x00100000
#define CONTEXT_CONTROL (CONTEXT_AMD64 | 0x01)
#define CONTEXT_INTEGER (CONTEXT_AMD64 | 0x02)
#define CONTEXT_SEGMENTS (CONTEXT_AMD64 | 0x04)
#define CONTEXT_FLOATING_POINT (CONTEXT_AMD64 | 0x08)
#define CONTEXT_DEBUG_REGISTERS (CONTEXT_AMD64 | 0x10)
#define CONTEXT_FULL (CONTEXT_CONTROL | CONTEXT_INTEGER | CONTEXT_FLOATING_POINT)
#define CONTEXT_ALL (CONTEXT_FULL | CONTEXT_SEGMENTS | CONTEXT_DEBUG_REGISTERS)

typedef struct _CONTEXT {
    ULONG64 P1Home, P2Home, P3Home, P4Home, P5Home, P6Home;
    ULONG ContextFlags, MxCsr;
    USHORT SegCs, SegDs, SegEs, SegFs, SegGs, SegSs;
    ULONG EFlags;
    ULONG64 Dr0, Dr1, Dr2, Dr3, Dr6, Dr7;
    ULONG64 Rax, Rcx, Rdx, Rbx, Rsp, Rbp, Rsi, Rdi, R8, R9, R10, R11, R12, R13, R14, R15, Rip;
    XMM_SAVE_AREA32 FltSave;
    M128A VectorRegister[26];
    ULONG64 VectorControl, DebugControl, LastBranchToRip, LastBranchFromRip, LastExceptionToRip,
        LastExceptionFromRip;
} CONTEXT, *PCONTEXT;
ABI_SIZE(CONTEXT, 0x4d0);
ABI_FIELD(CONTEXT, ContextFlags, 0x30);
ABI_FIELD(CONTEXT, Rax, 0x78);
ABI_FIELD(CONTEXT, Rip, 0xf8);
ABI_FIELD(CONTEXT, FltSave, 0x100);
ABI_FIELD(CONTEXT, VectorRegister, 0x300);

typedef struct _CONTEXT_CHUNK {
    LONG Offset;
    ULONG Length;
} CONTEXT_CHUNK;

typedef struct _CONTEXT_EX {
    CONTEXT_CHUNK All, Legacy, XState;
    ULONG64 Reserved;
} CONTEXT_EX;
ABI_SIZE(CONTEXT_EX, 0x20);

/* RSP points to this when KiUserExceptionDispatcher begins. `rip` to `ss` are a frame for IRETQ, so
 * that an unwinder continues at the place of the exception. */
struct exception_frame {
    CONTEXT context;
    CONTEXT_EX context_ex;
    EXCEPTION_RECORD record;
    uint64_t align;
    uint64_t rip, cs, eflags, rsp, ss;
    uint64_t align2;
};
ABI_SIZE(struct exception_frame, 0x5c0);
ABI_FIELD(struct exception_frame, record, 0x4f0);
ABI_FIELD(struct exception_frame, rip, 0x590);

/* The argument of an exception handler. */
typedef struct _EXCEPTION_POINTERS {
    PEXCEPTION_RECORD ExceptionRecord;
    PCONTEXT ContextRecord;
} EXCEPTION_POINTERS, *PEXCEPTION_POINTERS;
