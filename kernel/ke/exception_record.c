/* SPDX-License-Identifier: MIT */
/* What Windows calls a processor's exception. Sources: Windows' documentation of EXCEPTION_RECORD
 * and of the status codes; Intel SDM vol. 3 "Exception and interrupt reference". */
#include "kernel/ke/exception.h"
#include "kernel/base/string.h"
#include "kernel/base/vectors.h"
#include "kernel/base/x86.h"
#include "kernel/ke/thread.h"
#include "kernel/mm/vm.h"

#define CODE_MAX 15 /* bytes of an instruction */
#define PF_WRITE (1u << 1)
#define PF_FETCH (1u << 4)

/* As many bytes of the instruction as there are. */
static unsigned read_code(uint64_t rip, uint8_t *code)
{
    unsigned n = 0;
    if (NT_SUCCESS(copy_in(code, (const void *)rip, CODE_MAX)))
        return CODE_MAX;
    while (n < CODE_MAX && NT_SUCCESS(copy_in(code + n, (const void *)(rip + n), 1)))
        n++; /* at a page's end */
    return n;
}

static bool is_prefix(uint8_t b)
{
    return b == 0x66 || b == 0x67 || b == 0xf0 || b == 0xf2 || b == 0xf3 || b == 0x2e ||
           b == 0x36 || b == 0x3e || b == 0x26 || b == 0x64 || b == 0x65;
}

struct instruction {
    uint8_t code[CODE_MAX + 8]; /* zeros behind what there is */
    unsigned opcode;            /* where it is */
    uint8_t rex;
    bool operand16;
};

static struct instruction decode(uint64_t rip)
{
    struct instruction i = { .opcode = 0 };
    read_code(rip, i.code);
    while (i.opcode < CODE_MAX && is_prefix(i.code[i.opcode]))
        i.operand16 |= i.code[i.opcode++] == 0x66;
    if ((i.code[i.opcode] & 0xf0) == 0x40)
        i.rex = i.code[i.opcode++];
    return i;
}

/* #GP says nothing of its cause. As in Windows, an instruction that ring 3 may not execute is
 * STATUS_PRIVILEGED_INSTRUCTION, anything else an access violation. */
static bool is_privileged(const struct instruction *i)
{
    uint8_t b = i->code[i->opcode], c = i->code[i->opcode + 1];
    if (b == 0xf4 || b == 0xfa || b == 0xfb || (b >= 0x6c && b <= 0x6f) || (b & 0xf4) == 0xe4)
        return true; /* HLT CLI STI INS OUTS; IN and OUT */
    if (b != 0x0f)
        return false;
    return c == 0x00 || c == 0x01 || c == 0x06 || c == 0x08 || c == 0x09 ||
           (c >= 0x20 && c <= 0x23) || c == 0x30 || c == 0x32 || c == 0x33; /* WRMSR RDMSR RDPMC */
}

/* --- Division: by zero, or a quotient that is too large? --- */

static uint64_t register_of(const struct trap_frame *f, unsigned number)
{
    const uint64_t registers[] = { f->rax, f->rcx, f->rdx, f->rbx, f->rsp, f->rbp, f->rsi, f->rdi,
                                   f->r8,  f->r9,  f->r10, f->r11, f->r12, f->r13, f->r14, f->r15 };
    return registers[number];
}

static int32_t signed_at(const uint8_t *code, unsigned size)
{
    int32_t value;
    memcpy(&value, code, sizeof value);
    return size == 1 ? (int8_t)*code : size == 4 ? value : 0;
}

/* Where the memory operand of an instruction without immediate operands is, its segment's base not
 * counted. */
static uint64_t operand_address(const struct trap_frame *f, const struct instruction *i)
{
    const uint8_t *modrm = i->code + i->opcode + 1, *after = modrm + 1;
    unsigned mod = *modrm >> 6, rm = *modrm & 7;
    unsigned size = mod == 1 ? 1 : mod == 2 ? 4 : 0; /* of the displacement */
    uint64_t address = 0;
    if (rm == 4) {
        unsigned sib = *after++, index = (sib >> 3 & 7) | (i->rex & 2 ? 8 : 0);
        if (index != 4)
            address = register_of(f, index) << (sib >> 6);
        rm = sib & 7;
        if (rm == 5 && mod == 0)
            size = 4;
        else
            address += register_of(f, rm | (i->rex & 1 ? 8 : 0));
    } else if (rm == 5 && mod == 0) {
        size = 4;
        address = f->rip + (uint64_t)(after + 4 - i->code);
    } else {
        address = register_of(f, rm | (i->rex & 1 ? 8 : 0));
    }
    return address + (uint64_t)(int64_t)signed_at(after, size);
}

static uint64_t byte_register(const struct trap_frame *f, unsigned number, bool has_rex)
{
    bool high = !has_rex && number >= 4 && number < 8;
    return high ? register_of(f, number - 4) >> 8 : register_of(f, number);
}

/* The divisor of DIV or IDIV; 0 also if it cannot be told. */
static uint64_t divisor_of(const struct trap_frame *f)
{
    struct instruction i = decode(f->rip);
    uint8_t b = i.code[i.opcode], modrm = i.code[i.opcode + 1];
    unsigned size = b == 0xf6 ? 1 : i.rex & 8 ? 8 : i.operand16 ? 2 : 4;
    unsigned rm = (modrm & 7) | (i.rex & 1 ? 8 : 0);
    uint64_t value = 0;
    if (b != 0xf6 && b != 0xf7)
        return 0;
    if (modrm >> 6 != 3)
        copy_in(&value, (const void *)operand_address(f, &i), size);
    else
        value = size == 1 ? byte_register(f, rm, i.rex) : register_of(f, rm);
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

/* __fastfail: a program's own check failed; ECX says which. */
static void fast_fail(const struct trap_frame *frame, EXCEPTION_RECORD *r)
{
    r->ExceptionCode = STATUS_STACK_BUFFER_OVERRUN;
    r->ExceptionFlags = EXCEPTION_NONCONTINUABLE;
    r->NumberParameters = 1;
    r->ExceptionInformation[0] = (uint32_t)frame->rcx;
}

static void general_protection(const struct trap_frame *frame, EXCEPTION_RECORD *r)
{
    struct instruction i = decode(frame->rip);
    /* INT 29h; its error code says so too, but QEMU's is another one in long mode. */
    if (i.code[i.opcode] == 0xcd && i.code[i.opcode + 1] == INT_FAST_FAIL)
        fast_fail(frame, r);
    else if (is_privileged(&i))
        r->ExceptionCode = STATUS_PRIVILEGED_INSTRUCTION;
    else
        access_violation(r, EXCEPTION_READ_FAULT, ~0ul);
}

static void breakpoint(struct trap_frame *frame, EXCEPTION_RECORD *r)
{
    frame->rip--;
    r->ExceptionAddress = (PVOID)frame->rip;
    r->ExceptionCode = STATUS_BREAKPOINT;
    r->NumberParameters = 1; /* 0: an INT3 */
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
    case EXC_BREAKPOINT: breakpoint(frame, r); break;
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
