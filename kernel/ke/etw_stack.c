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
#include "kernel/ke/etw_stream.h"
#include "kernel/ke/thread.h"
#include "kernel/nt/nt_unwind.h"

#define PARTS_MOST 4    /* of one function's unwind data */
#define IMAGE_MOST 1024 /* times 64 KB, of which an image's base is a multiple */
#define UNW_CHAINED 4   /* of version_flags >> 3 */
#define SAVED_RBP 4     /* words of what switch.asm saves */
#define SAVED_RIP 7

enum { RSP = 4 };

struct addresses {
    uint64_t *at;
    unsigned count;
};

struct user_walk {
    uint64_t pc, r[16];  /* registers by their numbers */
    uint64_t base, size; /* the image that pc is in, or was */
    uint64_t table;      /* where its functions are, and how many */
    uint32_t count;
    uint32_t from, length, unwind; /* the function found last: RVAs */
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

/* Reads what lies in ring 3, or goes to the label. In an image an address is its base, which is
 * below USER_END, and a few times 4 GB: nothing of ring 0 lies there. Those of stacks are any. */
#define READ(address, value, absent)                                                               \
    asm goto("1: mov (%[at]),%[read]\n" FIXUP("1b", "%l[" #absent "]")                             \
             : [read] "=r"(value)                                                                  \
             : [at] "r"(address)                                                                   \
             : "rax"                                                                               \
             : absent)

/* Reads 8 bytes of ring 3; false: they are not there. */
static inline __attribute__((always_inline)) bool peek(uint64_t at, uint64_t *value)
{
    uint64_t read = 0;
    if (at >> 63)
        return false;
    READ(at, read, absent);
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
static __attribute__((noinline)) bool find_image(struct user_walk *w)
{
    uint64_t base = w->pc & ~0xfffful, value, header;
    for (unsigned i = 0; i < IMAGE_MOST; i++, base -= 0x10000) {
        if (!base || !peek(base, &value))
            return false;
        if ((value & 0xffff) != 0x5a4d) /* MZ */
            continue;
        READ(base + 0x3c, value, absent);
        header = base + (uint32_t)value;
        READ(header, value, absent);
        if ((uint32_t)value != 0x4550) /* PE */
            return false;
        READ(header + 0x50, value, absent);
        w->base = base;
        w->size = (uint32_t)value;
        READ(header + 0xa0, value, absent); /* the exception directory */
        w->table = base + (uint32_t)value;
        w->count = (uint32_t)(value >> 32) / 12;
        w->length = 0;
        return w->pc - base < w->size;
    }
absent:
    return false;
}

/* Each step of the search reads the begin of a function alone. */
static __attribute__((noinline)) bool find_function(struct user_walk *w, uint32_t rva)
{
    uint64_t entry = w->table, left = w->count, half, range;
    uint32_t begin, unwind;
    if (!left)
        return false;
    while ((half = left / 2)) {
        uint64_t middle = entry + 12 * half;
        READ(middle, begin, absent);
        entry = rva >= begin ? middle : entry;
        left -= half;
    }
    READ(entry, range, absent);
    READ(entry + 8, unwind, absent);
    begin = (uint32_t)range;
    w->length = (uint32_t)(range >> 32) - begin;
    if (rva - begin >= w->length || unwind & 1) /* shares another's data: no compiler makes it */
        goto absent;
    w->from = begin;
    w->unwind = unwind;
    return true;
absent:
    w->length = 0;
    return false;
}

static unsigned slots_of(uint64_t code) { return unwind_slots(code >> 8 & 15, code >> 12 & 15); }

/* What the offsets of a part count from, whose first word is `head`. */
static uint64_t frame_of(const struct user_walk *w, uint64_t rsp, uint64_t head)
{
    return head >> 24 & 15 ? w->r[head >> 24 & 15] - (head >> 24 & 0xf0) : rsp;
}

/* Undoes an operation that is rare: a slot and the three after it. */
static __attribute__((noinline)) bool undo(struct user_walk *w, uint64_t code, uint64_t frame,
                                           uint64_t head)
{
    unsigned n = code >> 12 & 15;
    switch ((enum operation)(code >> 8 & 15)) {
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

/* Goes to the first operation of a prologue that stands before `offset`, as all after it do. */
static __attribute__((noinline)) uint64_t skip_later(uint64_t at, uint64_t end, uint32_t offset)
{
    uint64_t code;
    for (; at < end; at += 2 * slots_of(code)) {
        READ(at, code, absent);
        if ((uint8_t)code <= offset && (code & 0xf00) != EPILOGUE << 8)
            return at;
    }
absent:
    return end;
}

/* Undoes the operations of one part of a prologue; most are pushes and small blocks. */
static inline __attribute__((always_inline)) bool undo_part(struct user_walk *w, uint64_t at,
                                                            uint64_t end, uint64_t head)
{
    uint64_t code, rsp = w->r[RSP], frame = frame_of(w, rsp, head);
    for (; at < end; at += 2) {
        READ(at, code, absent);
        if (!(code & 0xf00)) {
            if (!peek(rsp, &w->r[code >> 12 & 15]))
                return false;
            rsp += 8;
        } else if ((code & 0xf00) == ALLOCATE_SMALL << 8) {
            rsp += 8 * (code >> 12 & 15) + 8;
        } else {
            w->r[RSP] = rsp;
            if (!undo(w, code, frame, head))
                return false;
            rsp = w->r[RSP];
            at += 2 * slots_of(code) - 2;
        }
    }
    w->r[RSP] = rsp;
    return true;
absent:
    return false;
}

/* The other parts of a function, whose first part's data are at `at`. */
static __attribute__((noinline)) bool undo_chained(struct user_walk *w, uint64_t at, uint64_t head)
{
    uint64_t next;
    for (unsigned part = 1; part < PARTS_MOST; part++) {
        READ(at + 2 * ((head >> 16 & 255) + (head >> 16 & 1)) + 4, next, absent);
        at = w->base + (next >> 32);
        READ(at, head, absent);
        at += 4;
        if (!undo_part(w, at, at + 2 * (head >> 16 & 255), head))
            return false;
        if (!(head >> 3 & UNW_CHAINED))
            return true;
    }
absent:
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
static __attribute__((noinline)) bool finish_epilogue(struct user_walk *w)
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

/* Undoes what the function has done up to `offset`. Only where the thread stands, `first`, can that
 * be less than its prologue, or its epilogue have begun. */
static inline __attribute__((always_inline)) bool undo_function(struct user_walk *w, bool first,
                                                                uint32_t offset)
{
    uint64_t head, data = w->base + w->unwind, at = data + 4, end;
    READ(data, head, absent);
    end = at + 2 * (head >> 16 & 255);
    if (first && offset < (head >> 8 & 255))
        at = skip_later(at, end, offset);
    else if (first && finish_epilogue(w))
        return true;
    return undo_part(w, at, end, head) &&
           (!(head >> 3 & UNW_CHAINED) || undo_chained(w, data + 4, head));
absent:
    return false;
}

/* To the caller. A function without data is a leaf, and only the first. */
static inline __attribute__((always_inline)) bool step_out(struct user_walk *w, bool first)
{
    uint64_t before = w->r[RSP];
    if (w->pc - w->base >= w->size && !find_image(w))
        return false;
    uint32_t rva = (uint32_t)(w->pc - w->base);
    bool found = rva - w->from < w->length || find_function(w, rva);
    if (found ? !undo_function(w, first, rva - w->from) : !first)
        return false;
    return pop(w, &w->pc) && w->pc - 1 < USER_END - 1 && w->r[RSP] > before;
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
