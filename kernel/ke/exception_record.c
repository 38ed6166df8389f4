/* SPDX-License-Identifier: MIT */
/* What Windows calls a processor's exception. Sources: Windows' documentation of EXCEPTION_RECORD
 * and of the status codes; Intel SDM vol. 3 "Exception and interrupt reference". */
#include "kernel/ke/copy.h"
#include "kernel/ke/exception.h"
#include "kernel/base/insn.h"
#include "kernel/base/string.h"
#include "kernel/base/vectors.h"
#include "kernel/base/x86.h"
#include "kernel/ke/thread.h"

#define PF_WRITE (1u << 1)
#define PF_FETCH (1u << 4)

/* The instruction at RIP, of which as many bytes are read as there are. */
static struct insn read_insn(uint64_t rip)
{
    struct insn i = { .wide = true, .length = INSN_MAX };
    if (!NT_SUCCESS(copy_in(i.byte, (const void *)rip, INSN_MAX)))
        for (i.length = 0; i.length < INSN_MAX; i.length++) /* at a page's end */
            if (!NT_SUCCESS(copy_in(i.byte + i.length, (const void *)(rip + i.length), 1)))
                break;
    insn_parse(&i);
    return i;
}

/* #GP says nothing of its cause. As in Windows, an instruction that ring 3 may not execute is
 * STATUS_PRIVILEGED_INSTRUCTION, anything else an access violation. */
static bool is_privileged(const struct insn *i)
{
    uint8_t op = i->op;
    if (i->map == MAP_ONE) /* HLT CLI STI INS OUTS; IN and OUT */
        return op == 0xf4 || op == 0xfa || op == 0xfb || (op >= 0x6c && op <= 0x6f) ||
               (op & 0xf4) == 0xe4;
    return i->map == MAP_0F && (op == 0x00 || op == 0x01 || op == 0x06 || op == 0x08 ||
                                op == 0x09 || (op >= 0x20 && op <= 0x23) || op == 0x30 ||
                                op == 0x32 || op == 0x33); /* WRMSR RDMSR RDPMC */
}

/* --- Division: by zero, or a quotient that is too large? --- */

static uint64_t register_of(const struct trap_frame *f, unsigned number)
{
    const uint64_t registers[] = { f->rax, f->rcx, f->rdx, f->rbx, f->rsp, f->rbp, f->rsi, f->rdi,
                                   f->r8,  f->r9,  f->r10, f->r11, f->r12, f->r13, f->r14, f->r15 };
    return registers[number];
}

/* Where the memory operand of an instruction without immediate operands is, its segment's base not
 * counted. */
static uint64_t operand_address(const struct trap_frame *f, const struct insn *i)
{
    struct insn_memory m;
    unsigned end = insn_memory(i, &m);
    uint64_t address = (uint64_t)m.displacement + (m.relative ? f->rip + end : 0);
    address += m.base != INSN_NONE ? register_of(f, m.base) : 0;
    return address + (m.index != INSN_NONE ? register_of(f, m.index) << m.scale : 0);
}

static uint64_t byte_register(const struct trap_frame *f, unsigned number, bool has_rex)
{
    bool high = !has_rex && number >= 4 && number < 8;
    return high ? register_of(f, number - 4) >> 8 : register_of(f, number);
}

/* The divisor of DIV or IDIV; 0 also if it is unknown. */
static uint64_t divisor_of(const struct trap_frame *f)
{
    struct insn i = read_insn(f->rip);
    unsigned size = i.op == 0xf6 ? 1 : i.rex & REX_W ? 8 : i.operand16 ? 2 : 4;
    uint64_t value = 0;
    if (!insn_is(&i, MAP_ONE, 0xf6) && !insn_is(&i, MAP_ONE, 0xf7))
        return 0;
    if (insn_has_memory(&i))
        copy_in(&value, (const void *)operand_address(f, &i), size);
    else
        value = size == 1 ? byte_register(f, insn_rm(&i), i.rex) : register_of(f, insn_rm(&i));
    return value << (64 - 8 * size);
}

/* --- Floating point. --- */

/* The highest of the exceptions that are raised and not masked, in the order of x87 and SSE. */
static NTSTATUS float_status(unsigned raised)
{
    static const NTSTATUS statuses[] = {
        STATUS_FLOAT_INVALID_OPERATION, STATUS_FLOAT_DENORMAL_OPERAND, STATUS_FLOAT_DIVIDE_BY_ZERO,
        STATUS_FLOAT_OVERFLOW,          STATUS_FLOAT_UNDERFLOW,        STATUS_FLOAT_INEXACT_RESULT,
    };
    static const uint8_t order[] = { 0, 2, 1, 3, 4, 5 };
    for (unsigned i = 0; i < sizeof order; i++)
        if (raised >> order[i] & 1)
            return statuses[order[i]];
    return STATUS_FLOAT_MULTIPLE_TRAPS;
}

#define FSW_STACK_FAULT (1u << 6)
#define MXCSR_MASKS 7 /* where they begin */

static NTSTATUS x87_status(void)
{
    XSAVE_FORMAT x __attribute__((aligned(16))) = { 0 };
    fxsave(&x);
    unsigned raised = x.StatusWord & ~(unsigned)x.ControlWord & 0x3f;
    return raised & 1 && x.StatusWord & FSW_STACK_FAULT ? STATUS_FLOAT_STACK_CHECK
                                                        : float_status(raised);
}

static NTSTATUS simd_status(ULONG_PTR *mxcsr)
{
    XSAVE_FORMAT x __attribute__((aligned(16))) = { 0 };
    fxsave(&x);
    *mxcsr = x.MxCsr;
    return float_status(x.MxCsr & ~(x.MxCsr >> MXCSR_MASKS) & 0x3f);
}

/* --- The record. --- */

static void access_violation(EXCEPTION_RECORD *r, uint64_t kind, uint64_t address)
{
    r->ExceptionCode = STATUS_ACCESS_VIOLATION;
    r->NumberParameters = 2;
    r->ExceptionInformation[0] = kind;
    r->ExceptionInformation[1] = address;
}

static void general_protection(const struct trap_frame *frame, EXCEPTION_RECORD *r)
{
    struct insn i = read_insn(frame->rip);
    /* INT 29h, __fastfail: a program's own check failed; ECX says which. The error code says so
     * too, but QEMU's is another one in long mode. */
    if (insn_is(&i, MAP_ONE, 0xcd) && i.modrm == INT_FAST_FAIL) {
        r->ExceptionCode = STATUS_STACK_BUFFER_OVERRUN;
        r->ExceptionFlags = EXCEPTION_NONCONTINUABLE;
        r->NumberParameters = 1;
        r->ExceptionInformation[0] = (uint32_t)frame->rcx;
    } else if (is_privileged(&i)) {
        r->ExceptionCode = STATUS_PRIVILEGED_INSTRUCTION;
    } else {
        access_violation(r, EXCEPTION_READ_FAULT, ~0ul);
    }
}

void exception_record(struct trap_frame *frame, uint64_t fault_address, NTSTATUS status,
                      EXCEPTION_RECORD *r)
{
    *r = (EXCEPTION_RECORD){ .ExceptionAddress = (PVOID)frame->rip };
    switch (frame->vector) {
    case EXC_DIVIDE:
        r->ExceptionCode =
            divisor_of(frame) ? STATUS_INTEGER_OVERFLOW : STATUS_INTEGER_DIVIDE_BY_ZERO;
        break;
    case EXC_DEBUG:
        r->ExceptionCode = STATUS_SINGLE_STEP;
        frame->rflags &= ~(uint64_t)RFLAGS_TF; /* as Windows does: one step */
        break;
    case EXC_BREAKPOINT:
        r->ExceptionAddress = (PVOID)--frame->rip;
        r->ExceptionCode = STATUS_BREAKPOINT;
        r->NumberParameters = 1; /* 0: an INT3 */
        break;
    case EXC_BOUND: r->ExceptionCode = STATUS_ARRAY_BOUNDS_EXCEEDED; break;
    case EXC_INVALID_OPCODE: r->ExceptionCode = STATUS_ILLEGAL_INSTRUCTION; break;
    case EXC_GENERAL_PROTECTION: general_protection(frame, r); break;
    case EXC_PAGE_FAULT:
        access_violation(r,
                         frame->error & PF_FETCH   ? EXCEPTION_EXECUTE_FAULT
                         : frame->error & PF_WRITE ? EXCEPTION_WRITE_FAULT
                                                   : EXCEPTION_READ_FAULT,
                         fault_address);
        r->ExceptionCode = status;
        break;
    case EXC_X87:
        r->ExceptionCode = x87_status();
        r->NumberParameters = 1;
        break;
    case EXC_ALIGNMENT: r->ExceptionCode = STATUS_DATATYPE_MISALIGNMENT; break;
    case EXC_SIMD:
        r->NumberParameters = 2;
        r->ExceptionCode = simd_status(&r->ExceptionInformation[1]);
        break;
    default: /* stack, segments */ access_violation(r, EXCEPTION_READ_FAULT, ~0ul); break;
    }
}
