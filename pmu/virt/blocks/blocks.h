/* SPDX-License-Identifier: MIT */
/* Guest code that the host executes, block by block, where a counter needs each instruction
 * decoded: translate.c makes the blocks, blocks.c runs them. Shared by all CPUs; L: the token. */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include "pmu/virt/guest.h"
#include "pmu/virt/vcpu.h"

/* For what is rarely executed: small rather than fast. */
#define COLD __attribute__((cold))

/* Instructions of one run, at most. */
enum { RUN_MOST = 2000 };
enum { PARTS = 8, BLOCK_BYTES = 48, BLOCK_INSTRUCTIONS = 32, CODE_SIZE = 7 << 17 };

_Static_assert(EVENT_MISSES - EVENT_BRANCHES == SUM_WORDS * SUM_FIELDS - 2, "one field is free");
static inline unsigned sum_word(enum event e) { return (e - EVENT_BRANCHES) / SUM_FIELDS; }
static inline unsigned sum_shift(enum event e)
{
    return (e - EVENT_BRANCHES) % SUM_FIELDS * SUM_BITS;
}

static inline void count_event(struct vcpu *v, enum event e)
{
    v->stack.state.sums.word[sum_word(e)] += 1ul << sum_shift(e);
}

static inline uint64_t get64(const void *from)
{
    uint64_t value;
    __builtin_memcpy(&value, from, sizeof value);
    return value;
}

static inline void put64(void *to, uint64_t value) { __builtin_memcpy(to, &value, sizeof value); }

/* What a part does beside its code. */
enum special {
    PLAIN,
    CALL,
    CALL_REGISTER,
    CALL_LOADED,
    JUMP_REGISTER,
    JUMP_LOADED,
    LEAVE,
    DIVIDE,
    PUSH_LOADED,
    STRING
};

/* What of SSE and AVX the guest, or a block, uses; on registers that host and guest share. */
enum vectors { NO_VECTORS, VECTORS_SSE2, VECTORS_SSE4, VECTORS_AVX2 };

/* At most one access to memory, by the first instruction; the others use registers alone. */
struct part {
    const uint8_t *code; /* after its access was looked up; NULL: nothing to execute */
    uint64_t displacement;
    uint64_t before;                     /* small sums of the block up to here */
    int32_t stack;                       /* added to RSP, between address and code */
    uint8_t offset;                      /* of the block up to here, in bytes */
    uint8_t base, index, scale, segment; /* slots of struct block_state */
    uint8_t special, operand;            /* operand: the register of a jump or division */
    uint8_t after;                       /* bytes of immediate after a RIP-relative operand */
    uint8_t size, aligned;               /* of its access: bytes; bits that are 0 */
    bool access : 1, store : 1, last : 1;
    bool wide : 1, is_signed : 1; /* of a division */
};

/* Small sums: those of a block, each below 64, the second word's between those of the first. */
enum { SMALL_BITS = 6, SMALL_INSTRUCTIONS = SUM_INSTRUCTIONS + SMALL_BITS };
#define SMALL_SUMS 0x003f03f03f03f03fu
static inline unsigned small_shift(enum event e) { return sum_shift(e) + SMALL_BITS * sum_word(e); }
static inline struct sums whole_sums(uint64_t small)
{
    return (struct sums){ { small & SMALL_SUMS, small >> SMALL_BITS & SMALL_SUMS } };
}

/* block.condition: that of Jcc; or 16 + 0 to 3 for LOOPNE, LOOPE, LOOP and JRCXZ, by ECX alone. */
enum { LOOPS = 16, LOOP_ECX = 4 };

/* Where a block ends: RIP, what was executed, the block that followed it. */
struct way {
    uint64_t rip;
    uint64_t sums; /* small */
    union {
        struct block *link;
        const uint8_t *go; /* of a hot block: the code that comes then */
    };
};

struct block {
    uint64_t rip;
    uint64_t checked;     /* the time at which the code was last compared */
    const uint8_t *code;  /* where it was then */
    const uint8_t *enter; /* what executes it */
    struct way way[2];    /* by whether it jumps; one without a condition does */
    const uint8_t *bytes; /* its code, when it was made */
    struct part *part;
    uint16_t runs; /* until it is hot */
    uint8_t length, instructions, parts, condition, vectors;
    uint8_t branch_class; /* enum branch */
    uint8_t branch, from; /* offsets: of the branch at the end, of FROM in the list */
    uint8_t compared;     /* quirk fused: that of a last comparison, and 1; else 0 */
    bool conditional : 1;
    bool predicted : 1;   /* it is of runs that look at branches */
    bool hot : 1;         /* its code does all that is common, and goes on with other hot ones */
    bool flags_saved : 1; /* ... when it ends */
    bool linked : 1;      /* to such ones, or they to it */
    bool user : 1;        /* it is ring 3's */
};

/* Its branch goes back: a hot block counts it as one that jumps, before it does. */
static inline bool block_jumps_back(const struct block *b)
{
    return b->conditional && b->way[true].rip <= b->rip;
}

/* It jumps by a register or memory. */
static inline bool part_computes_target(const struct part *p)
{
    return p->special == JUMP_LOADED || p->special == JUMP_REGISTER || p->special == CALL_LOADED ||
           p->special == CALL_REGISTER;
}
static inline bool block_computes_target(const struct block *b)
{
    return b->parts && part_computes_target(&b->part[b->parts - 1]);
}

/* What a hot block's code returns: a part that blocks.c must begin; or that it ended, and 1 more
 * where it jumps; or that it did not begin, as it does not fit. Of the flags all but what its end
 * says is saved. */
enum { HOT_ENDED = 0x100, HOT_NOT_BEGUN = 0x200 };

/* Where translate.c puts a block: free space for this much of each. */
struct block_space {
    unsigned most;        /* instructions */
    struct part *part;    /* PARTS */
    uint8_t *code;        /* BLOCK_CODE_MOST */
    const uint8_t *first; /* of all code */
    bool hot;
};
#define BLOCK_CODE_MOST 8192

#define BIT(n) (1u << (n))

/* An instruction of 64-bit code. */
struct copied {
    struct insn i;
    char form, vector; /* copied.c */
    bool has_modrm, memory;
    struct insn_memory at;
    unsigned immediate_at, size; /* size: of all of it */
};

/* DIV or IDIV. */
static inline bool copied_divides(const struct copied *s)
{
    return s->form == 't' && insn_reg(&s->i) >= 6;
}

/* copied.c */
/* Takes apart the one that begins s->i.byte. False: its bytes end before it does. */
COLD bool copied_parse(struct copied *s);
/* Must be stepped: it may fault, access more than one place, or is no instruction. */
COLD bool copied_is_refused(const struct copied *s);
COLD bool copied_form_is(char form, const char *forms);
COLD unsigned copied_immediate_size(const struct copied *s);
/* Registers: of ModRM.rm, ModRM.reg, the opcode's low bits. */
COLD unsigned copied_rm(const struct copied *s);
COLD unsigned copied_reg(const struct copied *s);
COLD unsigned copied_op_register(const struct copied *s);
/* ModRM.reg is part of the opcode; ModRM.rm is RSP, which must be replaced. */
COLD bool copied_is_group(const struct copied *s);
COLD bool copied_rm_is_rsp(const struct copied *s);
/* The registers that it uses, as bits, besides those of an address. */
COLD uint32_t copied_registers(const struct copied *s);
/* Of form v: what it needs, its access to memory. */
COLD enum vectors copied_vectors(const struct copied *s);
/* In bytes: of an operand that ModRM names. */
COLD unsigned copied_access_size(const struct copied *s);
COLD unsigned copied_vector_alignment(const struct copied *s);
/* What it does with flags: nothing; reads them, writes all, or all by CF, or some. */
enum flags_use { FLAGS_NONE, FLAGS_READ, FLAGS_WRITTEN, FLAGS_CARRY, FLAGS_MIXED };
COLD enum flags_use copied_flags(const struct copied *s);

/* translate.c */
/* Makes the block that begins at RIP, whose code is at `code` of the host. 0 instructions: the
 * first one must be stepped. Changes no state of the guest. */
COLD void block_translate(struct vcpu *v, struct block *b, const uint8_t *code,
                          struct block_space *space);
/* Its space is free. */
COLD void block_forget_code(void);

/* kept_blocks.c: this run looks at branches. Its blocks are others, which do not become hot: hot
 * ones are faster only where one follows the other. */
extern bool block_predicts;
/* The block at RIP. NULL: its first instruction must be stepped. */
struct block *block_look_up(struct vcpu *v, enum vectors allowed);
/* Makes it a hot one, if it can be. It is the one at RIP. */
COLD void block_heat(struct vcpu *v, struct block *b);

/* chain.c: into a hot block's code, and where that jumps at its end, with flags saved or not. */
void blocks_enter(void);
void blocks_leave(void);
extern const uint8_t blocks_leave_flags[];
/* After this way of a hot block that one comes, which is hot too. */
void block_link(struct block *b, bool jumps, struct block *next);
/* ... after a jump there by a register or memory. */
void block_add_target(struct block *b);
/* By the lowest bits of RIP: where such a jump leads, and the code; or a RIP with others. */
enum { TARGETS = 1024 };
extern struct targets {
    uint64_t rip[TARGETS];
    const uint8_t *code[TARGETS];
} block_targets[2]; /* of each ring */
/* Whether its code is what stands there. */
bool block_is_same(const struct block *b, const uint8_t *bytes);
/* No hot block goes on with another. */
void blocks_unlink(void);
/* ... of this ring, in which a run begins, if one of them may not execute now as it is. */
void blocks_keep_links(struct vcpu *v, bool user, enum vectors allowed);
/* It goes on with none. */
void block_unlink(struct block *b);

/* begin_part.c: what comes before the part's code. False: it must be stepped, and did nothing. */
bool part_begin(struct vcpu *v, const struct part *p, struct block *b);

/* blocks.c: reads the boot option hot=. */
void blocks_start(void);
/* Before an entry for a step. Executes what it can of the guest's code in the host,
 * counted exactly, up to an instruction that must be stepped, or to this time. Takes a pending
 * interrupt first. */
void blocks_run(struct vcpu *v, uint64_t end);

/* system_code.c: at a run's end. Executes the system instruction at RIP. Returns whether it did. */
bool system_run(struct vcpu *v);

/* rep_strings.c: executes the string instruction that the part is. False: it is left to the next,
 * which, at a run's end, executes iterations of the one at RIP. Returns whether it is complete, and
 * counted. */
bool strings_run_part(struct vcpu *v, const struct part *p);
bool strings_run(struct vcpu *v);
