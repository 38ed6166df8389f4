/* SPDX-License-Identifier: MIT */
/* Exceptions in a driver: what __try, __except and __finally compile to, which is a table for
 * __C_specific_handler. gcc has no such words, hence the functions in assembly that call another
 * one between their labels. */
#include <intrin.h>
#include "check_driver.h"

typedef VOID ACTION(PVOID Argument);

#define GUARD(name, row)                                                                           \
    asm(".text\n"                                                                                  \
        ".globl " name "\n"                                                                        \
        ".seh_proc " name "\n" name ":\n"                                                          \
        "    sub $0x28, %rsp\n"                                                                    \
        "    .seh_stackalloc 0x28\n"                                                               \
        "    .seh_endprologue\n"                                                                   \
        "    mov %rcx, %rax\n"                                                                     \
        "    mov %rdx, %rcx\n"                                                                     \
        "1:  call *%rax\n"                                                                         \
        "    xor %eax, %eax\n"                                                                     \
        "2:  add $0x28, %rsp\n"                                                                    \
        "    ret\n"                                                                                \
        "    .seh_handler __C_specific_handler, @except, @unwind\n"                                \
        "    .seh_handlerdata\n"                                                                   \
        "    .long 1\n" row "    .text\n"                                                          \
        "    .seh_endproc\n")

/* __try { Action(Argument); return 0; } __except (EXCEPTION_EXECUTE_HANDLER) { return
 * GetExceptionCode(); } */
NTSTATUS guarded(ACTION *Action, PVOID Argument);
GUARD("guarded", "    .rva 1b, 2b\n    .long 1\n    .rva 2b\n");
/* guarded with __except (filter(GetExceptionInformation())). */
NTSTATUS filtered(ACTION *Action, PVOID Argument);
GUARD("filtered", "    .rva 1b, 2b, filter, 2b\n");
/* __try { Action(Argument); } __finally { finally(AbnormalTermination()); } */
NTSTATUS finished(ACTION *Action, PVOID Argument);
GUARD("finished", "    .rva 1b, 2b, finally\n    .long 0\n");

static LONG answer, filters, finals;
static NTSTATUS seen;
static PVOID seen_at;

LONG filter(PEXCEPTION_POINTERS Pointers, PVOID Frame);
LONG filter(PEXCEPTION_POINTERS Pointers, PVOID Frame)
{
    filters++;
    seen = Pointers->ExceptionRecord->ExceptionCode;
    seen_at = Pointers->ExceptionRecord->ExceptionAddress;
    if (answer == EXCEPTION_CONTINUE_EXECUTION)
        Pointers->ContextRecord->Rip += 2; /* after UD2 */
    return answer;
}

VOID finally(BOOLEAN Abnormal, PVOID Frame);
VOID finally(BOOLEAN Abnormal, PVOID Frame) { finals += Abnormal ? 1 : 100; }

/* --- What goes wrong. --- */

static VOID nothing(PVOID Argument) {}
static VOID read_it(PVOID Argument) { (void)*(volatile LONG *)Argument; }
static VOID write_it(PVOID Argument) { *(volatile LONG *)Argument = 1; }
static VOID raise_it(PVOID Argument) { ExRaiseStatus((NTSTATUS)(ULONG_PTR)Argument); }
static VOID raise_violation(PVOID Argument) { ExRaiseAccessViolation(); }
static VOID raise_misaligned(PVOID Argument) { ExRaiseDatatypeMisalignment(); }
static VOID divide(PVOID Argument)
{
    *(volatile LONG *)Argument = 100 / *(volatile LONG *)Argument;
}
static VOID undefined(PVOID Argument)
{
    asm volatile("ud2\n\tmovl $7, (%0)" : : "r"(Argument) : "memory");
}
static VOID breakpoint(PVOID Argument) { asm volatile("int3"); }

static PVOID (*volatile copy)(PVOID, const VOID *, SIZE_T);
static VOID copy_it(PVOID Argument)
{
    UCHAR bytes[64];
    copy(bytes, Argument, sizeof bytes);
}

struct range {
    PVOID Address;
    SIZE_T Length;
    ULONG Alignment;
};
static VOID probe_read(PVOID Argument)
{
    const struct range *r = Argument;
    ProbeForRead(r->Address, r->Length, r->Alignment);
}
static VOID probe_write(PVOID Argument)
{
    const struct range *r = Argument;
    ProbeForWrite(r->Address, r->Length, r->Alignment);
}

static VOID finish_raise(PVOID Argument) { finished(raise_it, Argument); }
static VOID filter_raise(PVOID Argument) { filtered(raise_it, Argument); }

/* One that is handled inside another one's way out. */
static VOID raise_twice(PVOID Argument)
{
    IS(guarded(raise_it, (PVOID)(ULONG_PTR)0xc0000222), (NTSTATUS)0xc0000222);
    raise_it(Argument);
}

#define NOWHERE ((PVOID)(ULONG_PTR)0x10)

static VOID check_kinds(VOID)
{
    LONG zero = 0, value = 0;
    IS(guarded(nothing, NULL), 0);
    IS(guarded(read_it, NOWHERE), STATUS_ACCESS_VIOLATION);
    IS(guarded(write_it, NOWHERE), STATUS_ACCESS_VIOLATION);
    IS(guarded(copy_it, NOWHERE), STATUS_ACCESS_VIOLATION); /* in memcpy */
    IS(guarded(raise_it, (PVOID)(ULONG_PTR)0xc0000123), (NTSTATUS)0xc0000123);
    IS(guarded(raise_violation, NULL), STATUS_ACCESS_VIOLATION);
    IS(guarded(raise_misaligned, NULL), STATUS_DATATYPE_MISALIGNMENT);
    IS(guarded(divide, &zero), STATUS_INTEGER_DIVIDE_BY_ZERO);
    IS(guarded(undefined, &value), STATUS_ILLEGAL_INSTRUCTION);
    IS(value, 0);
    IS(guarded(breakpoint, NULL), STATUS_BREAKPOINT);
    IS(guarded(raise_twice, (PVOID)(ULONG_PTR)0xc0000111), (NTSTATUS)0xc0000111);
}

static VOID check_probes(VOID)
{
    struct range kernel = { &checks, 4, 4 }, odd = { (PVOID)(ULONG_PTR)0x10001, 4, 4 },
                 none = { &checks, 0, 4 };
    struct range wraps = { (PVOID)(ULONG_PTR)0x10000, ~(SIZE_T)0, 1 },
                 absent = { (PVOID)(ULONG_PTR)0x10000, 4, 4 };
    IS(guarded(probe_read, &kernel), STATUS_ACCESS_VIOLATION);
    IS(guarded(probe_write, &kernel), STATUS_ACCESS_VIOLATION);
    IS(guarded(probe_read, &odd), STATUS_DATATYPE_MISALIGNMENT);
    IS(guarded(probe_write, &odd), STATUS_DATATYPE_MISALIGNMENT);
    IS(guarded(probe_read, &wraps), STATUS_ACCESS_VIOLATION);
    IS(guarded(probe_read, &none), 0);
    IS(guarded(probe_write, &none), 0);
    IS(guarded(probe_read, &absent), 0); /* only whether it is a program's at all */
    IS(guarded(probe_write, &absent), STATUS_ACCESS_VIOLATION);
}

static VOID check_filters(VOID)
{
    LONG value = 0;
    answer = EXCEPTION_EXECUTE_HANDLER;
    IS(filtered(read_it, NOWHERE), STATUS_ACCESS_VIOLATION);
    IS(seen, STATUS_ACCESS_VIOLATION);
    IS((ULONG_PTR)seen_at - (ULONG_PTR)read_it < 16, TRUE);
    answer = EXCEPTION_CONTINUE_SEARCH;
    IS(guarded(filter_raise, (PVOID)(ULONG_PTR)0xc0000001), (NTSTATUS)0xc0000001);
    IS(filters, 2);
    answer = EXCEPTION_CONTINUE_EXECUTION;
    IS(filtered(undefined, &value), 0);
    IS(value, 7);
    IS(filters, 3);
    IS(finished(nothing, NULL), 0);
    IS(finals, 0); /* its code is called by the compiler's own then */
    IS(guarded(finish_raise, (PVOID)(ULONG_PTR)0xc0000002), (NTSTATUS)0xc0000002);
    IS(finals, 1);
}

/* Registers that a function must leave as they were, of both kinds. */
static VOID check_registers(VOID)
{
    register LONG a asm("rbx") = 11, b asm("r12") = 12, c asm("r15") = 13;
    volatile double parts[4] = { 0.5, 1.5, 2.5, 3.5 };
    double sum = 0, product = 1;
    KIRQL irql;
    asm volatile("" : "+r"(a), "+r"(b), "+r"(c));
    for (int i = 0; i < 400; i++) {
        sum += parts[i % 4];
        product = product * 0.5 + parts[i % 4];
        if (guarded(read_it, NOWHERE) != STATUS_ACCESS_VIOLATION)
            wrong++;
    }
    asm volatile("" : "+r"(a), "+r"(b), "+r"(c));
    IS(__readeflags() >> 9 & 1, 1); /* interrupts */
    IS(a + 100 * b + 10000 * c, 131211);
    IS(sum, 800);
    IS(product > 5.0 && product < 6.0, TRUE);
    KeRaiseIrql(DISPATCH_LEVEL, &irql);
    IS(guarded(raise_it, (PVOID)(ULONG_PTR)0xc0000003), (NTSTATUS)0xc0000003);
    IS(KeGetCurrentIrql(), DISPATCH_LEVEL);
    KeLowerIrql(irql);
}

NTSTATUS NTAPI DriverEntry(PDRIVER_OBJECT DriverObject, PUNICODE_STRING RegistryPath)
{
    DriverObject->DriverUnload = unload;
    copy = (PVOID(*)(PVOID, const VOID *, SIZE_T))memcpy;
    check_kinds();
    check_probes();
    check_filters();
    check_registers();
    return check_result();
}
