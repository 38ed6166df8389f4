/* SPDX-License-Identifier: MIT */
/* Stack walks: the record after one of a hook whose stacks a session wants. Ring 0 is walked by its
 * frame pointers, then ring 3 by the unwind data of its images, which are read as they lie in the
 * current address space. Interrupts are off: an absent page, or whatever else is wrong in ring 3,
 * ends the walk, and the stack is shorter. A context switch has the stack of the new thread, whose
 * address space is the current one already.
 * NT: at most ETW_STACK_MOST addresses, Windows 192. An epilogue is known by ADD, POP and RET
 * alone.
 * Sources: Microsoft's "x64 exception handling"; for the record snail and TraceEvent. */
#include "kernel/base/cpu.h"
#include "kernel/base/layout.h"
#include "kernel/base/vectors.h"
#include "kernel/ke/context.h"
#include "kernel/ke/etw_session.h"
#include "kernel/ke/thread.h"

#define PARTS_MOST 4    /* of one function's unwind data */
#define IMAGE_MOST 1024 /* times 64 KB, of which an image's base is a multiple */
#define UNW_CHAINED 4   /* of version_flags >> 3 */
#define SAVED_RBP 4     /* words of what switch.asm saves */
#define SAVED_RIP 7

enum { RSP = 4 };
enum operation {
    PUSH_REGISTER,
    ALLOCATE_LARGE,
    ALLOCATE_SMALL,
    SET_FRAME,
    SAVE_REGISTER,
    SAVE_REGISTER_FAR,
    EPILOGUE,
    SPARE,
    SAVE_XMM,
    SAVE_XMM_FAR,
    MACHINE_FRAME
};

struct addresses {
    uint64_t *at;
    unsigned count;
};

struct user_walk {
    uint64_t pc, r[16];        /* registers by their numbers */
    uint64_t base, end;        /* the image that pc is in, or was */
    uint32_t table, count;     /* its functions: RVA, number */
    uint32_t from, to, unwind; /* the function found last: RVAs */
};

static bool add_address(struct addresses *to, uint64_t address)
{
    if (to->count == ETW_STACK_MOST)
        return false;
    to->at[to->count++] = address;
    return true;
}

/* Whether two words can lie there. */
static bool is_on_stack(const struct thread *thread, uint64_t at)
{
    return at - (uint64_t)thread->stack <= KERNEL_STACK_SIZE - 16 && !(at & 7);
}

static void walk_kernel(const struct thread *thread, uint64_t rbp, struct addresses *to)
{
    while (is_on_stack(thread, rbp)) {
        const uint64_t *frame = (const uint64_t *)rbp;
        if (!frame[1] || !add_address(to, frame[1]) || frame[0] <= rbp)
            return;
        rbp = frame[0];
    }
}

/* Reads what lies in ring 3 at an address below USER_END, or goes to the label. */
#define PEEK_UNCHECKED(address, value, absent)                                                     \
    asm goto("1: mov (%[at]),%[read]\n" FIXUP("1b", "%l[" #absent "]")                             \
             : [read] "=r"(value)                                                                  \
             : [at] "r"(address)                                                                   \
             : "rax"                                                                               \
             : absent)

/* Reads 8 bytes of ring 3; false: they are not there. */
static inline __attribute__((always_inline)) bool peek(uint64_t at, uint64_t *value)
{
    uint64_t read = 0;
    if (at > USER_END - sizeof read)
        return false;
    PEEK_UNCHECKED(at, read, absent);
    *value = read;
    return true;
absent:
    return false;
}

static bool pop(struct user_walk *w, uint64_t *value)
{
    bool read = peek(w->r[RSP], value);
    w->r[RSP] += 8;
    return read;
}

/* The image is the next one below: its headers lie at its base. */
static bool find_image(struct user_walk *w)
{
    uint64_t base = w->pc & ~0xfffful, value, header;
    if (w->pc >= w->base && w->pc < w->end)
        return true;
    for (unsigned i = 0; i < IMAGE_MOST; i++, base -= 0x10000) {
        if (!base || !peek(base, &value))
            return false;
        if ((value & 0xffff) != 0x5a4d) /* MZ */
            continue;
        if (!peek(base + 0x3c, &value))
            return false;
        header = base + (uint32_t)value;
        if (!peek(header, &value) || (uint32_t)value != 0x4550 || /* PE */
            !peek(header + 0x50, &value) || w->pc - base >= (uint32_t)value)
            return false;
        w->base = base;
        w->end = base + (uint32_t)value;
        if (!peek(header + 0xa0, &value)) /* the exception directory */
            return false;
        w->table = (uint32_t)value;
        w->count = (uint32_t)(value >> 32) / 12;
        w->from = w->to = 0;
        return true;
    }
    return false;
}

/* Most of a walk's instructions are here: the table is checked once, then each step of the search
 * reads the begin of a function alone. */
static bool find_function(struct user_walk *w)
{
    uint32_t rva = (uint32_t)(w->pc - w->base), left = w->count, begin;
    uint64_t entry = w->base + w->table, rest;
    if (rva >= w->from && rva < w->to)
        return true;
    if (!left || entry + 12ul * left > USER_END)
        return false;
    while (left > 1) {
        uint64_t middle = entry + 12ul * (left / 2);
        PEEK_UNCHECKED(middle, begin, absent);
        entry = rva >= begin ? middle : entry;
        left -= left / 2;
    }
    PEEK_UNCHECKED(entry, begin, absent);
    if (!peek(entry + 4, &rest) || rva < begin || rva >= (uint32_t)rest)
        return false;
    w->from = begin;
    w->to = (uint32_t)rest;
    w->unwind = (uint32_t)(rest >> 32);
    return !(w->unwind & 1); /* one that shares another's data: no compiler makes it */
absent:
    return false;
}

/* The number of slots of an operation. */
static unsigned slots_of(uint64_t code)
{
    switch ((enum operation)(code >> 8 & 15)) {
    case ALLOCATE_LARGE: return code >> 12 & 15 ? 3 : 2;
    case SAVE_REGISTER:
    case SAVE_XMM: return 2;
    case SAVE_REGISTER_FAR:
    case SAVE_XMM_FAR:
    case SPARE: return 3;
    default: return 1;
    }
}

/* Undoes an operation: a slot and the three after it. Offsets count from `frame`; `head` is the
 * first word of the unwind data. */
static bool undo(struct user_walk *w, uint64_t code, uint64_t frame, uint64_t head)
{
    unsigned n = code >> 12 & 15;
    switch ((enum operation)(code >> 8 & 15)) {
    case PUSH_REGISTER: return pop(w, &w->r[n]);
    case ALLOCATE_LARGE:
        w->r[RSP] += n ? code >> 16 & 0xffffffff : 8 * (code >> 16 & 0xffff);
        return true;
    case SET_FRAME: w->r[RSP] = w->r[head >> 24 & 15] - (head >> 24 & 0xf0); return true;
    case SAVE_REGISTER: return peek(frame + 8 * (code >> 16 & 0xffff), &w->r[n]);
    case SAVE_REGISTER_FAR: return peek(frame + (code >> 16 & 0xffffffff), &w->r[n]);
    case MACHINE_FRAME: return false; /* ring 3 has none */
    default: return true;
    }
}

/* Undoes the operations of one part of a prologue that stand before `offset`; most are pushes and
 * small blocks. */
static bool undo_part(struct user_walk *w, uint64_t at, uint64_t end, uint32_t offset,
                      uint64_t head)
{
    uint64_t code, frame = w->r[RSP];
    if (head >> 24 & 15)
        frame = w->r[head >> 24 & 15] - (head >> 24 & 0xf0);
    if (end > USER_END - sizeof code)
        return false;
    while (at < end) {
        PEEK_UNCHECKED(at, code, absent);
        bool done = (uint8_t)code <= offset;
        if (!(code & 0xf00)) {
            if (done && !pop(w, &w->r[code >> 12 & 15]))
                return false;
            at += 2;
        } else if ((code & 0xf00) == ALLOCATE_SMALL << 8) {
            w->r[RSP] += done ? 8 * (code >> 12 & 15) + 8 : 0;
            at += 2;
        } else if (done && !undo(w, code, frame, head)) {
            return false;
        } else {
            at += 2 * slots_of(code);
        }
    }
    return true;
absent:
    return false;
}

/* Undoes the prologue up to `offset`, and all of the function's other parts. */
static bool undo_prologue(struct user_walk *w, uint64_t head, uint32_t offset)
{
    uint64_t rva = w->unwind, next;
    for (unsigned part = 0; part < PARTS_MOST; part++) {
        uint64_t at = w->base + rva + 4, codes = head >> 16 & 255;
        if (!undo_part(w, at, at + 2 * codes, offset, head))
            return false;
        if (!(head >> 3 & UNW_CHAINED))
            return true;
        if (!peek(at + 2 * ((codes + 1) & ~1ul) + 4, &next) || !peek(w->base + (next >> 32), &head))
            return false;
        rva = next >> 32;
        offset = ~0u;
    }
    return false;
}

/* Whether an instruction can be one of an epilogue: ADD RSP, POP, RET. */
static bool begins_epilogue(uint32_t code)
{
    if ((code & 0xfffdff) == 0xc48148) /* 81 or 83 */
        return true;
    code >>= (code & 0xf0) == 0x40 ? 8 : 0;
    return (code & 0xf8) == 0x58 || (code & 0xff) == 0xc3 || (code & 0xffff) == 0xc3f3;
}

/* What is left of an epilogue, up to its RET. Otherwise nothing changes. */
static bool finish_epilogue(struct user_walk *w)
{
    uint64_t at = w->pc, code;
    if (!peek(at, &code) || !begins_epilogue((uint32_t)code))
        return false;
    struct user_walk after = *w;
    if ((code & 0xffffff) == 0xc48348) { /* ADD RSP, imm8 */
        after.r[RSP] += code >> 24 & 255;
        at += 4;
    } else if ((code & 0xffffff) == 0xc48148) { /* ADD RSP, imm32 */
        after.r[RSP] += code >> 24 & 0xffffffff;
        at += 7;
    }
    for (;;) {
        if (!peek(at, &code))
            return false;
        unsigned rex = (code & 0xf0) == 0x40, high = rex && code & 1 ? 8 : 0;
        code >>= 8 * rex;
        if ((code & 0xf8) != 0x58) /* POP */
            break;
        if (!pop(&after, &after.r[(code & 7) | high]))
            return false;
        at += 1 + rex;
    }
    if ((code & 0xff) != 0xc3 && (code & 0xffff) != 0xc3f3)
        return false;
    *w = after;
    return true;
}

/* To the caller. Only the first function, where the thread stands, can be in its prologue, in an
 * epilogue, or a leaf. */
static bool step_out(struct user_walk *w, bool first)
{
    uint64_t head, before = w->r[RSP];
    if (!find_image(w))
        return false;
    if (find_function(w)) {
        uint32_t offset = (uint32_t)(w->pc - w->base) - w->from;
        if (!peek(w->base + w->unwind, &head))
            return false;
        bool in_body = offset >= (head >> 8 & 255);
        if (!(first && in_body && finish_epilogue(w)) && !undo_prologue(w, head, offset))
            return false;
    } else if (!first) {
        return false;
    }
    return pop(w, &w->pc) && w->pc && w->pc < USER_END && w->r[RSP] > before;
}

static void walk_user(const struct thread *thread, uint64_t pc, struct addresses *to)
{
    const struct trap_frame *f = context_frame(thread);
    struct user_walk w = {
        .pc = pc ? pc : f->rip,
        .r = { f->rax, f->rcx, f->rdx, f->rbx, f->rsp, f->rbp, f->rsi, f->rdi, f->r8, f->r9, f->r10,
               f->r11, f->r12, f->r13, f->r14, f->r15 },
    };
    if (!trap_from_user(f) || !w.pc)
        return;
    uint64_t flags = read_flags();
    if (cpu_features.smap)
        write_flags(flags | RFLAGS_AC);
    for (bool first = true; add_address(to, w.pc) && step_out(&w, first);)
        first = false;
    write_flags(flags);
}

unsigned etw_walk(const struct thread *thread, const struct trap_frame *sample,
                  uint64_t at[ETW_STACK_MOST])
{
    struct addresses to = { at, 0 };
    uint64_t here = (uint64_t)__builtin_frame_address(0);
    bool user = sample && trap_from_user(sample);
    if (sample && !user) {
        add_address(&to, sample->rip);
        walk_kernel(thread, sample->rbp, &to);
    } else if (!sample && is_on_stack(thread, here)) {
        walk_kernel(thread, here, &to);
    } else if (!sample && is_on_stack(thread, thread->rsp)) {
        const uint64_t *saved = (const uint64_t *)thread->rsp;
        add_address(&to, saved[SAVED_RIP]);
        walk_kernel(thread, saved[SAVED_RBP], &to);
    }
    if (thread->process)
        walk_user(thread, user ? sample->rip : 0, &to);
    return to.count;
}
