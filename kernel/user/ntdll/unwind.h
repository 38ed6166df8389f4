/* SPDX-License-Identifier: MIT */
/* What the files of ntdll about exceptions share. */
#pragma once
#include "ntdll.h"

/* For an unwinding: the caller's registers are in a CONTEXT at RSP + 20h. */
#define SAVED_IN_CONTEXT                                                                           \
    "    .seh_savereg %rbx, 0xb0\n"                                                                \
    "    .seh_savereg %rbp, 0xc0\n"                                                                \
    "    .seh_savereg %rsi, 0xc8\n"                                                                \
    "    .seh_savereg %rdi, 0xd0\n"                                                                \
    "    .seh_savereg %r12, 0xf8\n"                                                                \
    "    .seh_savereg %r13, 0x100\n"                                                               \
    "    .seh_savereg %r14, 0x108\n"                                                               \
    "    .seh_savereg %r15, 0x110\n"                                                               \
    "    .seh_savexmm %xmm6, 0x220\n"                                                              \
    "    .seh_savexmm %xmm7, 0x230\n"                                                              \
    "    .seh_savexmm %xmm8, 0x240\n"                                                              \
    "    .seh_savexmm %xmm9, 0x250\n"                                                              \
    "    .seh_savexmm %xmm10, 0x260\n"                                                             \
    "    .seh_savexmm %xmm11, 0x270\n"                                                             \
    "    .seh_savexmm %xmm12, 0x280\n"                                                             \
    "    .seh_savexmm %xmm13, 0x290\n"                                                             \
    "    .seh_savexmm %xmm14, 0x2a0\n"                                                             \
    "    .seh_savexmm %xmm15, 0x2b0\n"

/* unwind.c */
PEXCEPTION_ROUTINE NTAPI RtlVirtualUnwind(DWORD HandlerType, DWORD64 ImageBase, DWORD64 ControlPc,
                                          PRUNTIME_FUNCTION FunctionEntry, PCONTEXT ContextRecord,
                                          PVOID *HandlerData, PDWORD64 EstablisherFrame,
                                          PKNONVOLATILE_CONTEXT_POINTERS ContextPointers);

/* functions.c: goes on to the callers, until one is the program's own code or the stack ends. */
void unwind_to_program(PCONTEXT context);

/* The function around an address, in a table; NULL: none. */
PRUNTIME_FUNCTION search_functions(PRUNTIME_FUNCTION table, size_t count, ULONG rva);

/* functions.c, and for drivers handlers/handlers.c. */
PRUNTIME_FUNCTION NTAPI RtlLookupFunctionEntry(DWORD64 ControlPc, PDWORD64 ImageBase,
                                               PUNWIND_HISTORY_TABLE HistoryTable);
struct stack {
    DWORD64 low, high;
};
/* The memory where frames can be. */
struct stack current_stack(void);
/* Whether code at pc that is in no table is a leaf: it calls and saves nothing. */
bool can_look_through(DWORD64 pc);

/* Services. */
NTSTATUS NTAPI NtRaiseException(PEXCEPTION_RECORD ExceptionRecord, PCONTEXT ContextRecord,
                                BOOLEAN FirstChance);
NTSTATUS NTAPI NtContinue(PCONTEXT ContextRecord, BOOLEAN TestAlert);

/* dispatch.c */
VOID NTAPI RtlRaiseException(PEXCEPTION_RECORD ExceptionRecord);

/* vectored.c: the handlers that a program added; EXCEPTION_CONTINUE_EXECUTION or _SEARCH. */
LONG call_vectored(EXCEPTION_POINTERS *pointers);
/* The filter of last resort. */
LONG call_unhandled(EXCEPTION_POINTERS *pointers);

/* dispatch.c. True: a handler repaired it; continue at `context`. */
bool dispatch_exception(PEXCEPTION_RECORD record, PCONTEXT context);

/* missing.c: ends the program if the exception is the use of an import that no library has. */
void missing_used(const EXCEPTION_POINTERS *pointers);
