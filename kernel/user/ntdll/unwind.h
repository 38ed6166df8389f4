/* SPDX-License-Identifier: MIT */
/* Exceptions in ring 3: what the files of ntdll that deal with them share. */
#pragma once
#include "ntdll.h"

/* unwind.c */
PEXCEPTION_ROUTINE NTAPI RtlVirtualUnwind(DWORD HandlerType, DWORD64 ImageBase, DWORD64 ControlPc,
                                          PRUNTIME_FUNCTION FunctionEntry, PCONTEXT ContextRecord,
                                          PVOID *HandlerData, PDWORD64 EstablisherFrame,
                                          PKNONVOLATILE_CONTEXT_POINTERS ContextPointers);

/* Services. */
NTSTATUS NTAPI NtRaiseException(PEXCEPTION_RECORD ExceptionRecord, PCONTEXT ContextRecord,
                                BOOLEAN FirstChance);
NTSTATUS NTAPI NtContinue(PCONTEXT ContextRecord, BOOLEAN TestAlert);

/* dispatch.c */
VOID NTAPI RtlRaiseException(PEXCEPTION_RECORD ExceptionRecord);

/* vectored.c: the handlers that a program added; EXCEPTION_CONTINUE_EXECUTION or _SEARCH. */
LONG call_vectored(EXCEPTION_POINTERS *pointers, bool continue_handlers);
/* The filter of last resort. */
LONG call_unhandled(EXCEPTION_POINTERS *pointers);

/* dispatch.c. True: a handler repaired it, and `context` says where to go on. */
bool dispatch_exception(PEXCEPTION_RECORD record, PCONTEXT context);
