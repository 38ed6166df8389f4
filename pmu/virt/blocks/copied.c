/* SPDX-License-Identifier: MIT */
/* Takes an instruction of the guest's 64-bit code apart, as far as translate.c copies it: the
 * common integer instructions that can neither fault, but for their access to memory, nor leave
 * ring and mode. All else is refused, and stepped. Sources: SDM volume 2, "Instruction Format",
 * "Opcode Map". */
#include "kernel/base/bits.h"
#include "kernel/base/string.h"
#include "pmu/virt/blocks/blocks.h"

/* clang-format off */
/* . step it   m ModRM   b, z: and an immediate of 8 or 16/32 bits   a A accumulator, the same immediates
 * v SSE, AVX   r register in the opcode   i I and an immediate of 8 bits or of the operand's size   n accumulator   f flags only
 * P p push, pop   q Q push of an immediate   j J conditional jump   o LOOP and its kin   k K jump   C call   R ret   S ret n   L leave
 * l lea   t F6, F7   g FF   - N nop, with ModRM   x MOVS, STOS */
static const char one_byte[] =
    "mmmmaA..mmmmaA.." "mmmmaA..mmmmaA.." "mmmmaA..mmmmaA.." "mmmmaA..mmmmaA.."
    "................" "PPPPPPPPpppppppp" "...m....Qzqb...." "jjjjjjjjjjjjjjjj"
    "bz.bmmmmmmmm.l.." "-rrrrrrrnn......" "....xx..aAxx...." "iiiiiiiiIIIIIIII"
    "bbSR..bz.L......" "mmmm............" "oooo....CK.k...." ".....fttff....mg";
static const char two_bytes[] =
    "................" "..............NN" "................" "................"
    "mmmmmmmmmmmmmmmm" "................" "................" "................"
    "JJJJJJJJJJJJJJJJ" "mmmmmmmmmmmmmmmm" "...mbm.....mbm.m" "mm.m..mm..bmmmmm"
    "mm......rrrrrrrr" "................" "................" "................";
/* clang-format on */
_Static_assert(sizeof one_byte == 257 && sizeof two_bytes == 257, "one letter each");

/* SSE and AVX; floating point too, as all its exceptions are masked (blocks.c).
 * x memory is aligned; VEX has a third operand   X the same, with an immediate   a moves, aligned
 * u moves, not aligned   h half a register, memory alone, not of VEX   q 8 bytes   d MOVD, MOVQ
 * k PMOVMSKB   s shift by immediate   i PSHUFD   p PCMPISTRI   b broadcast of VEX   z VZEROUPPER
 * w FNSTCW   By the prefix packed, or of 4 or 8 bytes: f arithmetic   F the same, with an immediate
 * m MOVSS, MOVSD   o one operand, packed   e the same, from half a register   c COMIS and UCOMIS
 * I from an integer register   t to one   g of VEX, on integer registers: BMI */
enum { NONE = 1, P66 = 2, PF3 = 4, PF2 = 8, SCALAR = PF3 | PF2, EVERY = 15 };
static const struct {
    uint8_t map, prefixes, first, last;
    char kind;
    /* clang-format off */
} vectors[] = {
    { MAP_ONE, NONE, 0xd9, 0xd9, 'w' }, { MAP_0F, SCALAR, 0x10, 0x11, 'm' }, { MAP_0F, SCALAR, 0x2a, 0x2a, 'I' }, { MAP_0F, SCALAR, 0x2c, 0x2d, 't' },
    { MAP_0F, NONE | P66, 0x2e, 0x2f, 'c' }, { MAP_0F, NONE | P66, 0x51, 0x51, 'o' }, { MAP_0F, SCALAR, 0x51, 0x51, 'f' },
    { MAP_0F, EVERY, 0x58, 0x59, 'f' }, { MAP_0F, NONE, 0x5a, 0x5a, 'e' }, { MAP_0F, P66, 0x5a, 0x5a, 'o' },
    { MAP_0F, SCALAR, 0x5a, 0x5a, 'f' }, { MAP_0F, NONE | P66 | PF3, 0x5b, 0x5b, 'o' }, { MAP_0F, EVERY, 0x5c, 0x5f, 'f' },
    { MAP_0F, EVERY, 0xc2, 0xc2, 'F' }, { MAP_0F, NONE | P66, 0xc6, 0xc6, 'X' }, { MAP_0F, PF3, 0xe6, 0xe6, 'e' },
    { MAP_0F, P66 | PF2, 0xe6, 0xe6, 'o' }, { MAP_0F, NONE | P66, 0x10, 0x11, 'u' }, { MAP_0F, NONE | P66, 0x12, 0x13, 'h' }, { MAP_0F, NONE | P66, 0x14, 0x15, 'x' },
    { MAP_0F, NONE | P66, 0x16, 0x17, 'h' }, { MAP_0F, NONE | P66, 0x28, 0x29, 'a' }, { MAP_0F, NONE | P66, 0x54, 0x57, 'x' },
    { MAP_0F, P66, 0x60, 0x6d, 'x' }, { MAP_0F, P66, 0x6e, 0x6e, 'd' }, { MAP_0F, P66, 0x6f, 0x6f, 'a' },
    { MAP_0F, PF3, 0x6f, 0x6f, 'u' }, { MAP_0F, P66, 0x70, 0x70, 'i' }, { MAP_0F, P66, 0x71, 0x73, 's' },
    { MAP_0F, P66, 0x74, 0x76, 'x' }, { MAP_0F, NONE, 0x77, 0x77, 'z' }, { MAP_0F, P66, 0x7e, 0x7e, 'd' },
    { MAP_0F, PF3, 0x7e, 0x7e, 'q' }, { MAP_0F, P66, 0x7f, 0x7f, 'a' }, { MAP_0F, PF3, 0x7f, 0x7f, 'u' },
    { MAP_0F, P66, 0xd1, 0xd5, 'x' }, { MAP_0F, P66, 0xd6, 0xd6, 'q' }, { MAP_0F, P66, 0xd7, 0xd7, 'k' },
    { MAP_0F, P66, 0xd8, 0xe5, 'x' }, { MAP_0F, P66, 0xe7, 0xe7, 'a' }, { MAP_0F, P66, 0xe8, 0xef, 'x' },
    { MAP_0F, P66, 0xf1, 0xf6, 'x' }, { MAP_0F, P66, 0xf8, 0xfe, 'x' }, { MAP_0F38, P66, 0x00, 0x0b, 'x' },
    { MAP_0F38, P66, 0x29, 0x29, 'x' }, { MAP_0F38, P66, 0x37, 0x40, 'x' }, { MAP_0F38, P66, 0x58, 0x59, 'b' },
    { MAP_0F38, P66, 0x78, 0x79, 'b' }, { MAP_0F38, NONE, 0xf2, 0xf3, 'g' }, { MAP_0F38, NONE | SCALAR, 0xf5, 0xf5, 'g' },
    { MAP_0F38, EVERY, 0xf7, 0xf7, 'g' }, { MAP_0F3A, P66, 0x0f, 0x0f, 'X' }, { MAP_0F3A, P66, 0x63, 0x63, 'p' },
};
/* clang-format on */

static COLD bool of_bytes(const struct copied *s);

/* The last byte of VEX: vvvv, inverted, from bit 3; L in bit 2; the prefix. */
static COLD unsigned vex_byte(const struct insn *i) { return i->byte[i->modrm_at - 2]; }

static COLD bool is_long_vector(const struct copied *s) { return s->i.vex && vex_byte(&s->i) & 4; }

/* Of these prefixes at most one; PREFIXES: there are more. */
enum { NO_PREFIX, PREFIX_66, PREFIX_F3, PREFIX_F2, PREFIXES };
static COLD unsigned vector_prefix(const struct insn *i)
{
    if (i->vex)
        return vex_byte(i) & 3;
    if (i->operand16 + i->repeat + i->repeat_not > 1)
        return PREFIXES;
    return i->operand16 ? PREFIX_66 : i->repeat ? PREFIX_F3 : i->repeat_not ? PREFIX_F2 : NO_PREFIX;
}

/* One number alone. */
static COLD bool is_scalar(const struct copied *s)
{
    return copied_form_is(s->vector, "mItc") ||
           (copied_form_is(s->vector, "fF") && vector_prefix(&s->i) >= PREFIX_F3);
}

/* 0: it is none of these. */
static COLD char vector_kind(const struct insn *i)
{
    unsigned pp = vector_prefix(i);
    if (pp == PREFIXES || i->lock || i->address32 || (i->map == MAP_ONE && i->op != 0xd9))
        return 0;
    if (i->vex && (i->prefixes != !!i->segment ||
                   (i->byte[i->prefixes] == 0xc4 && (i->byte[i->prefixes + 1] & 0x1c))))
        return 0;
    for_each_in(row, vectors)
        if (i->map == row->map && row->prefixes >> pp & 1 && i->op >= row->first &&
            i->op <= row->last)
            return row->kind;
    return 0;
}

/* VEX: what raises #UD, and what has other operands there. */
static COLD bool vex_is_refused(const struct copied *s)
{
    char kind = s->vector;
    bool three = copied_form_is(kind, "xXsfFIg") || (kind == 'm' && !s->memory);
    if (kind == 'h' || (!three && (vex_byte(&s->i) & 0x78) != 0x78))
        return true;
    if (is_long_vector(s) && (copied_form_is(kind, "qdpeg") || is_scalar(s)))
        return true;
    return s->i.rex & REX_W && !copied_form_is(kind, "dItg"); /* of C4 */
}

/* F3: BLSR, BLSMSK and BLSI, by ModRM.reg. */
static COLD uint32_t bmi_registers(const struct copied *s)
{
    uint32_t mask = BIT(~vex_byte(&s->i) >> 3 & 15);
    return mask | (s->i.op == 0xf3 ? 0 : BIT(copied_reg(s))) | (s->memory ? 0 : BIT(copied_rm(s)));
}

/* What would raise #UD, or use RSP. */
static COLD bool vector_is_refused(const struct copied *s)
{
    static const uint8_t shifts[] = { 0x54, 0x54, 0xcc }; /* ModRM.reg of 71h to 73h */
    const struct insn *i = &s->i;
    char kind = s->vector;
    if (i->vex ? vex_is_refused(s) : copied_form_is(kind, "bzg"))
        return true;
    if (kind == 's')
        return s->memory || !(shifts[i->op - 0x71] >> insn_reg(i) & 1);
    if (kind == 'k')
        return s->memory || copied_reg(s) == RSP;
    if (kind == 'g') /* not with RSP, R13 to R15: hot blocks have others there */
        return bmi_registers(s) & (BIT(RSP) | 0xe000u) ||
               (s->i.op == 0xf3 && (insn_reg(i) - 1u) > 2);
    if (kind == 'w')
        return !s->memory || insn_reg(i) != 7;
    if (kind == 't')
        return copied_reg(s) == RSP || (i->vex && s->memory);
    if (copied_form_is(kind, "dI"))
        return !s->memory && copied_rm(s) == RSP;
    return kind == 'h' && !s->memory;
}

static COLD unsigned copied_vector_size(const struct copied *s)
{
    if (s->vector == 'w')
        return 2;
    if (copied_form_is(s->vector, "Ig"))
        return s->i.rex & REX_W ? 8 : 4;
    if (is_scalar(s))
        return vector_prefix(&s->i) % 2 ? 8 : 4; /* 66: of COMISD */
    return copied_form_is(s->vector, "hqdbe") ? 8 : is_long_vector(s) ? 32 : 16;
}

unsigned copied_vector_alignment(const struct copied *s)
{
    bool aligned =
        s->vector == 'a' || (!s->i.vex && copied_form_is(s->vector, "xXifFo") && !is_scalar(s));
    return aligned ? copied_vector_size(s) - 1 : 0;
}

unsigned copied_access_size(const struct copied *s)
{
    bool two = s->i.map == MAP_0F;
    unsigned whole = s->i.rex & REX_W ? 8 : s->i.operand16 ? 2 : 4;
    if (s->form == 'v')
        return copied_vector_size(s);
    if (copied_divides(s) || (s->form == 'g' && insn_reg(&s->i) > 1))
        return 8;
    return two && (s->i.op & 0xf7) == 0xb7   ? 2
           : two && (s->i.op & 0xf7) == 0xb6 ? 1
           : !two && s->i.op == 0x63         ? 4
           : of_bytes(s)                     ? 1
                                             : whole;
}

enum vectors copied_vectors(const struct copied *s)
{
    return s->form != 'v'       ? NO_VECTORS
           : s->i.vex           ? VECTORS_AVX2
           : s->i.map != MAP_0F ? VECTORS_SSE4
                                : VECTORS_SSE2;
}

unsigned copied_immediate_size(const struct copied *s)
{
    bool wide = s->i.rex & REX_W;
    unsigned whole = s->i.operand16 && !wide ? 2 : 4;
    switch (s->form) {
    case 'b':
    case 'a':
    case 'i':
    case 'q':
    case 'j':
    case 'o':
    case 'k': return 1;
    case 'z':
    case 'A': return s->i.op == 0xc6 ? 1 : whole;
    case 'I': return wide ? 8 : whole;
    case 'Q':
    case 'J':
    case 'K':
    case 'C': return 4;
    case 'S': return 2;
    case 'v': return copied_form_is(s->vector, "XFsip");
    case 't': return insn_reg(&s->i) ? 0 : s->i.op == 0xf6 ? 1 : whole;
    }
    return 0;
}

bool copied_form_is(char form, const char *forms)
{
    while (*forms && *forms != form)
        forms++;
    return *forms;
}

bool copied_parse(struct copied *s)
{
    struct insn *i = &s->i;
    i->wide = true;
    insn_parse(i);
    s->form = i->vex || i->repeat_not || i->map > MAP_0F ? '.'
              : i->map == MAP_0F                         ? two_bytes[i->op]
                                                         : one_byte[i->op];
    if (i->address32 && s->form != 'o')
        s->form = '.';
    s->vector = vector_kind(i);
    if (s->vector)
        s->form = 'v';
    s->has_modrm = copied_form_is(s->form, "mbzltgNv") && s->vector != 'z';
    s->memory = s->has_modrm && insn_has_memory(i);
    s->immediate_at = s->has_modrm ? insn_memory(i, &s->at) : i->modrm_at;
    s->size = s->immediate_at + copied_immediate_size(s);
    return s->size <= i->length;
}

static bool is_two(const struct copied *s) { return s->i.map == MAP_0F; }

bool copied_is_group(const struct copied *s)
{
    if (is_two(s))
        return s->i.op == 0xba || (s->i.op & 0xf0) == 0x90;
    return (s->i.op >= 0x80 && s->i.op <= 0x83) || s->i.op >= 0xc0;
}

static bool of_bytes(const struct copied *s)
{
    if (is_two(s))
        return (s->i.op & 0xf0) == 0x90 || s->i.op == 0xb0 || s->i.op == 0xc0;
    return s->form == 'i' || (s->form != 'I' && s->form != 'r' && s->form != 'n' && !(s->i.op & 1));
}

/* A register's number; without REX the numbers 4 to 7 of bytes are AH to BH. */
static COLD unsigned register_number(const struct copied *s, unsigned n, bool extended, bool byte)
{
    n |= extended ? 8 : 0;
    return byte && !s->i.rex && n >= 4 ? n - 4 : n;
}

unsigned copied_rm(const struct copied *s)
{
    bool byte = of_bytes(s) || (is_two(s) && (s->i.op == 0xb6 || s->i.op == 0xbe));
    return register_number(s, s->i.modrm & 7, s->i.rex & REX_B, byte);
}

unsigned copied_reg(const struct copied *s)
{
    return register_number(s, insn_reg(&s->i), s->i.rex & REX_R, of_bytes(s));
}

unsigned copied_op_register(const struct copied *s)
{
    return register_number(s, s->i.op & 7, s->i.rex & REX_B, s->form == 'i');
}

bool copied_rm_is_rsp(const struct copied *s)
{
    return s->has_modrm && !s->memory && copied_rm(s) == RSP;
}

static COLD bool may_lock(const struct copied *s)
{
    unsigned op = s->i.op;
    if (!s->memory)
        return false;
    if (is_two(s))
        return op == 0xb0 || op == 0xb1 || op == 0xc0 || op == 0xc1 ||
               (op == 0xba && insn_reg(&s->i) > 4);
    return (op < 0x38 && (op & 7) < 2) || (op >= 0x80 && op <= 0x83 && insn_reg(&s->i) != 7) ||
           op == 0x86 || op == 0x87 || (op >= 0xfe && insn_reg(&s->i) < 2) ||
           (s->form == 't' && (insn_reg(&s->i) & 6) == 2);
}

bool copied_is_refused(const struct copied *s)
{
    bool jumps = copied_form_is(s->form, "PpqQjJokKCRSLg"), wide = s->i.rex & REX_W;
    if (s->form == 'v')
        return vector_is_refused(s) || insn_rex_is_ignored(&s->i);
    if (s->form == '.' || insn_rex_is_ignored(&s->i) || (s->i.lock && !may_lock(s)) ||
        (s->i.operand16 && jumps && s->i.op != 0xff))
        return true;
    if (s->form == 'x')
        return !s->i.repeat || s->i.segment || s->i.lock;
    if (s->i.repeat)
        return !is_two(s) || s->i.operand16 ||
               ((s->i.op != 0x1e || s->i.modrm != 0xfa) && s->i.op != 0xbc &&
                s->i.op != 0xbd); /* ENDBR64, TZCNT, LZCNT */
    if (is_two(s)) {
        bool bit_of_register =
            s->i.op == 0xa3 || s->i.op == 0xab || s->i.op == 0xb3 || s->i.op == 0xbb;
        /* QEMU 7.2 forgets the immediate after a RIP-relative SHLD or SHRD. */
        /* MOVZX and MOVSX of AH to BH to ESP */
        bool odd =
            (s->i.op & 0xf7) == 0xb6 && !s->i.rex && s->i.modrm >= 0xe4 && s->i.modrm <= 0xe7;
        return odd || (bit_of_register && s->memory) ||
               ((s->i.op & 0xf7) == 0xa4 && s->at.relative) ||
               (s->i.op == 0xba && insn_reg(&s->i) < 4) ||
               (s->form == 'r' && (s->i.operand16 || copied_op_register(s) == RSP));
    }
    switch (s->i.op) {
    case 0x90: return s->i.rex & REX_B; /* XCHG */
    case 0x8d: return !s->memory || (s->at.relative && (!wide || copied_reg(s) == RSP));
    case 0xc2: return s->i.byte[s->immediate_at + 1] & 0x80; /* QEMU 7.2 adds a signed number */
    case 0xc6:
    case 0xc7: return insn_reg(&s->i);
    case 0xf6: return insn_reg(&s->i) == 1 || insn_reg(&s->i) >= 6;
    case 0xf7: /* DIV and IDIV: not of 16 bits, nor by RSP */
        return insn_reg(&s->i) == 1 ||
               (insn_reg(&s->i) >= 6 && (s->i.operand16 || copied_rm_is_rsp(s)));
    case 0xfe: return insn_reg(&s->i) > 1;
    case 0xff: /* INC, DEC, CALL, JMP, PUSH */
        return insn_reg(&s->i) > 1 &&
               (s->i.operand16 || (insn_reg(&s->i) != 4 && insn_reg(&s->i) != 2 &&
                                   (insn_reg(&s->i) != 6 || !s->memory)));
    }
    if (s->form == 'I')
        return copied_op_register(s) == RSP || (s->i.operand16 && wide);
    return copied_form_is(s->form, "irPp") && copied_op_register(s) == RSP;
}

uint32_t copied_registers(const struct copied *s)
{
    uint32_t mask = 0;
    unsigned op = s->i.op;
    if (s->form == 'v' && s->vector == 'g')
        return bmi_registers(s);
    if (s->form == 'v')
        return copied_form_is(s->vector, "kt")                 ? BIT(copied_reg(s))
               : s->vector == 'p'                              ? BIT(RCX)
               : copied_form_is(s->vector, "dI") && !s->memory ? BIT(copied_rm(s))
                                                               : 0;
    if (s->has_modrm && !s->memory)
        mask |= BIT(copied_rm(s));
    if (s->has_modrm && !copied_is_group(s))
        mask |= BIT(copied_reg(s));
    if (is_two(s))
        return mask | (op == 0xa5 || op == 0xad ? BIT(RCX) : 0) |
               (op == 0xb0 || op == 0xb1 ? BIT(RAX) : 0) |
               (s->form == 'r' ? BIT(copied_op_register(s)) : 0);
    if (op == 0xd2 || op == 0xd3)
        mask |= BIT(RCX);
    if (s->form == 'a' || s->form == 'A' || (s->form == 'r' && op < 0x98))
        mask |= BIT(RAX);
    if (s->form == 'n' || (s->form == 't' && insn_reg(&s->i) >= 4))
        mask |= BIT(RAX) | BIT(RDX);
    if (s->form == 'r' || s->form == 'i' || s->form == 'I')
        mask |= BIT(copied_op_register(s));
    return mask;
}

static COLD bool ignores_flags(const struct copied *s)
{
    if (s->form == 'v' && s->vector == 'g') /* not ANDN, BEXTR, BZHI and those of the lowest bit */
        return s->i.op > 0xf3 && vector_prefix(&s->i);
    if (s->form == 'v')
        return !copied_form_is(s->vector, "pc");
    if (is_two(s))
        return s->form == 'r' || (s->i.op & 0xf7) == 0xb6 || (s->i.op & 0xf7) == 0xb7;
    return (s->i.op >= 0x86 && s->i.op <= 0x9f) || (s->i.op >= 0xb0 && s->i.op <= 0xbf) ||
           s->i.op == 0x63 || s->i.op == 0xc6 || s->i.op == 0xc7 || copied_divides(s) ||
           (s->form == 't' && insn_reg(&s->i) == 2);
}

/* ADD OR ADC SBB AND SUB XOR CMP by their number. */
static COLD enum flags_use arithmetic(unsigned n)
{
    return n == 2 || n == 3 ? FLAGS_CARRY : FLAGS_WRITTEN;
}

enum flags_use copied_flags(const struct copied *s)
{
    unsigned op = s->i.op, reg = insn_reg(&s->i);
    if (ignores_flags(s))
        return FLAGS_NONE;
    if (s->form == 'v')
        return FLAGS_WRITTEN;
    if (is_two(s))
        return (op & 0xf0) == 0x40 || (op & 0xf0) == 0x90 ? FLAGS_READ
               : op == 0xaf                               ? FLAGS_WRITTEN
                                                          : FLAGS_MIXED;
    if (op < 0x40)
        return arithmetic(op >> 3);
    if (op >= 0x80 && op <= 0x83)
        return arithmetic(reg);
    if (op == 0x69 || op == 0x6b || (op | 1) == 0x85 || (op | 1) == 0xa9 || s->form == 't')
        return FLAGS_WRITTEN;
    if (s->form == 'g' || op == 0xfe)
        return FLAGS_CARRY;
    bool shifts = (op | 1) == 0xc1 && s->i.byte[s->immediate_at] & 31;
    return reg >= 4 && (shifts || (op | 1) == 0xd1) ? FLAGS_WRITTEN : FLAGS_MIXED;
}
