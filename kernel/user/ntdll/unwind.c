/* SPDX-License-Identifier: MIT */
/* Unwinds one frame, by the compiler's tables in .pdata and .xdata. Source: Microsoft's "x64
 * exception handling". The tables are the program's own: errors in them harm only the program. */
#include "unwind.h"
#include "kernel/nt/nt_unwind.h"

struct unwind_info {
    uint8_t version_flags, prologue, codes,
        frame; /* frame: register, offset / 16 in the upper half */
    struct unwind_code {
        uint8_t offset, op_info;
    } code[];
};

/* --- The function. --- */

PRUNTIME_FUNCTION search_functions(PRUNTIME_FUNCTION table, size_t count, ULONG rva)
{
    size_t low = 0, high = count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (rva < table[middle].BeginAddress)
            high = middle;
        else if (rva >= table[middle].EndAddress)
            low = middle + 1;
        else
            return &table[middle];
    }
    return NULL;
}

/* --- Undoing its prologue. --- */

static DWORD64 *context_register(CONTEXT *context, unsigned n) { return &context->Rax + n; }

struct unwinding {
    CONTEXT *context;
    DWORD64 frame; /* base of offsets */
    bool machine_frame;
};

static ULONG operand(const struct unwind_code *code, unsigned scale, bool wide)
{
    const USHORT *next = (const USHORT *)(code + 1);
    return wide ? next[0] | (ULONG)next[1] << 16 : next[0] * scale;
}

static void unwind_machine_frame(struct unwinding *u, bool error_code)
{
    const DWORD64 *at = (const DWORD64 *)u->context->Rsp + error_code;
    u->context->Rip = at[0];
    u->context->Rsp = at[3];
    u->machine_frame = true;
}

static void undo_code(struct unwinding *u, const struct unwind_info *info,
                      const struct unwind_code *code)
{
    CONTEXT *c = u->context;
    unsigned n = code->op_info >> 4;
    switch (code->op_info & 15) {
    case PUSH_REGISTER:
        *context_register(c, n) = *(DWORD64 *)c->Rsp;
        c->Rsp += 8;
        break;
    case ALLOCATE_LARGE: c->Rsp += operand(code, 8, n); break;
    case ALLOCATE_SMALL: c->Rsp += 8 * n + 8; break;
    case SET_FRAME:
        c->Rsp = *context_register(c, info->frame & 15) - 16 * (info->frame >> 4);
        break;
    case SAVE_REGISTER:
    case SAVE_REGISTER_FAR:
        *context_register(c, n) =
            *(DWORD64 *)(u->frame + operand(code, 8, (code->op_info & 15) == SAVE_REGISTER_FAR));
        break;
    case SAVE_XMM:
    case SAVE_XMM_FAR:
        (&c->Xmm0)[n] =
            *(M128A *)(u->frame + operand(code, 16, (code->op_info & 15) == SAVE_XMM_FAR));
        break;
    case MACHINE_FRAME: unwind_machine_frame(u, n); break;
    }
}

/* Undoes the part of the prologue before `offset`. */
static void undo_codes(struct unwinding *u, const struct unwind_info *info, ULONG offset)
{
    for (unsigned i = 0; i < info->codes;
         i += unwind_slots(info->code[i].op_info & 15, info->code[i].op_info >> 4))
        if (info->code[i].offset <= offset)
            undo_code(u, info, &info->code[i]);
}

/* --- Epilogues. They have no codes: the instructions show what is left to do. --- */

static bool is_rex(uint8_t b) { return (b & 0xf0) == 0x40; }

/* ADD RSP, n or LEA RSP, [frame + n]. */
static const uint8_t *step_over_release(const uint8_t *p, CONTEXT *c,
                                        const struct unwind_info *info)
{
    unsigned frame = info->frame & 15;
    int n;
    if (p[0] == 0x48 && p[1] == 0x83 && p[2] == 0xc4) {
        c->Rsp += (DWORD64)(int8_t)p[3];
        return p + 4;
    }
    if (p[0] == 0x48 && p[1] == 0x81 && p[2] == 0xc4) {
        memcpy(&n, p + 3, sizeof n);
        c->Rsp += (DWORD64)(LONG64)n;
        return p + 7;
    }
    if (frame && (p[0] & 0xfe) == 0x48 && p[1] == 0x8d && (p[2] & 0x38) == 0x20 &&
        ((p[2] & 7u) | (p[0] & 1u) << 3) == frame && (p[2] & 7) != 4) {
        unsigned mode = p[2] >> 6;
        if (mode == 1)
            n = (int8_t)p[3];
        else if (mode == 2)
            memcpy(&n, p + 3, sizeof n);
        else
            return p;
        c->Rsp = *context_register(c, frame) + (DWORD64)(LONG64)n;
        return p + (mode == 1 ? 4 : 7);
    }
    return p;
}

static const uint8_t *step_over_pops(const uint8_t *p, CONTEXT *c)
{
    for (;;) {
        unsigned high = is_rex(*p) ? (*p & 1u) << 3 : 0;
        const uint8_t *pop = p + is_rex(*p);
        if ((*pop & 0xf8) != 0x58)
            return p;
        *context_register(c, (*pop & 7u) | high) = *(DWORD64 *)c->Rsp;
        c->Rsp += 8;
        p = pop + 1;
    }
}

/* Whether a jump to `target` is a tail call. A jump into the middle of another function is not: it
 * returns from a part that the compiler placed elsewhere. */
static bool leaves(DWORD64 target, const RUNTIME_FUNCTION *function, DWORD64 base)
{
    DWORD64 its_base, rva = target - base;
    if (rva >= function->BeginAddress && rva < function->EndAddress)
        return false;
    const RUNTIME_FUNCTION *other = RtlLookupFunctionEntry(target, &its_base, NULL);
    return !other || its_base + other->BeginAddress == target;
}

/* A return or a tail call. An indirect tail call goes through memory, or through a register with
 * REX.W; the jump of a switch has no REX.W. */
static bool ends_function(const uint8_t *p, const RUNTIME_FUNCTION *function, DWORD64 base)
{
    int32_t distance;
    if (*p == 0xc3 || *p == 0xc2 || (*p == 0xf3 && p[1] == 0xc3))
        return true;
    if (*p == 0xff)
        return p[1] == 0x25;
    if ((*p & 0xf8) == 0x48 && p[1] == 0xff)
        return (p[2] & 0x38) == 0x20;
    if (*p != 0xe9 && *p != 0xeb)
        return false;
    if (*p == 0xe9)
        memcpy(&distance, p + 1, sizeof distance);
    else
        distance = (int8_t)p[1];
    return leaves((DWORD64)(p + (*p == 0xe9 ? 5 : 2)) + (DWORD64)(LONG64)distance, function, base);
}

/* If the rest of the function is an epilogue, executes it up to the return. */
static bool finish_epilogue(DWORD64 pc, CONTEXT *context, const struct unwind_info *info,
                            const RUNTIME_FUNCTION *function, DWORD64 base)
{
    CONTEXT after = *context;
    const uint8_t *p = step_over_release((const uint8_t *)pc, &after, info);
    p = step_over_pops(p, &after);
    if (!ends_function(p, function, base))
        return false;
    *context = after;
    return true;
}

/* --- The whole. --- */

static const struct unwind_info *info_of(DWORD64 base, const RUNTIME_FUNCTION *function)
{
    if (function->UnwindData & 1) /* shared with another function */
        function = (const RUNTIME_FUNCTION *)(base + (function->UnwindData & ~1u));
    return (const struct unwind_info *)(base + function->UnwindData);
}

static const void *behind_codes(const struct unwind_info *info)
{
    return &info->code[(info->codes + 1u) & ~1u];
}

static bool has_frame(const struct unwind_info *info, ULONG offset)
{
    if (!(info->frame & 15))
        return false;
    if (offset >= info->prologue || info->version_flags >> 3 & UNW_FLAG_CHAININFO)
        return true;
    for (unsigned i = 0; i < info->codes;
         i += unwind_slots(info->code[i].op_info & 15, info->code[i].op_info >> 4))
        if ((info->code[i].op_info & 15) == SET_FRAME)
            return info->code[i].offset <= offset;
    return false;
}

static void return_from(CONTEXT *context)
{
    context->Rip = *(DWORD64 *)context->Rsp;
    context->Rsp += 8;
}

PEXCEPTION_ROUTINE NTAPI RtlVirtualUnwind(DWORD HandlerType, DWORD64 ImageBase, DWORD64 ControlPc,
                                          PRUNTIME_FUNCTION FunctionEntry, PCONTEXT ContextRecord,
                                          PVOID *HandlerData, PDWORD64 EstablisherFrame,
                                          PKNONVOLATILE_CONTEXT_POINTERS ContextPointers)
{
    const struct unwind_info *info = info_of(ImageBase, FunctionEntry);
    ULONG offset = (ULONG)(ControlPc - ImageBase - FunctionEntry->BeginAddress);
    bool in_body = offset >= info->prologue;
    struct unwinding u = { ContextRecord, ContextRecord->Rsp, false };
    if (has_frame(info, offset))
        u.frame = *context_register(ContextRecord, info->frame & 15) - 16 * (info->frame >> 4);
    *EstablisherFrame = u.frame;
    *HandlerData = NULL;
    if (in_body && finish_epilogue(ControlPc, ContextRecord, info, FunctionEntry, ImageBase)) {
        return_from(ContextRecord);
        return NULL;
    }
    const struct unwind_info *first = info;
    undo_codes(&u, info, offset);
    while (info->version_flags >> 3 & UNW_FLAG_CHAININFO) {
        info = info_of(ImageBase, behind_codes(info));
        undo_codes(&u, info, ~0u);
    }
    if (!u.machine_frame)
        return_from(ContextRecord);
    if (!in_body || !(first->version_flags >> 3 & HandlerType) || first != info)
        return NULL;
    const ULONG *handler = behind_codes(first);
    *HandlerData = (PVOID)(handler + 1);
    return (PEXCEPTION_ROUTINE)(ImageBase + *handler);
}
