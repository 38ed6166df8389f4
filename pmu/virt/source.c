/* SPDX-License-Identifier: MIT */
/* Takes an instruction of the guest's 64-bit code apart, as far as translate.c copies it: the
 * common integer instructions that can neither fault, but for their access to memory, nor leave
 * ring and mode. All else is refused, and stepped. Sources: SDM volume 2, "Instruction Format",
 * "Opcode Map". */
#include "kernel/base/string.h"
#include "pmu/virt/blocks.h"

/* clang-format off */
/* . step it   m ModRM   b, z: and an immediate of 8 or 16/32 bits   a A accumulator, the same immediates
 * r register in the opcode   i I and an immediate of 8 bits or of the operand's size   n accumulator   f flags only
 * P p push, pop   q Q push of an immediate   j J conditional jump   k K jump   C call   R ret   S ret n   L leave
 * l lea   t F6, F7   g FF   - N nop, with ModRM */
static const char one_byte[] =
    "mmmmaA..mmmmaA.." "mmmmaA..mmmmaA.." "mmmmaA..mmmmaA.." "mmmmaA..mmmmaA.."
    "................" "PPPPPPPPpppppppp" "...m....Qzqb...." "jjjjjjjjjjjjjjjj"
    "bz.bmmmmmmmm.l.." "-rrrrrrrnn......" "........aA......" "iiiiiiiiIIIIIIII"
    "bbSR..bz.L......" "mmmm............" "........CK.k...." ".....fttff....mg";
static const char two_bytes[] =
    "................" "..............NN" "................" "................"
    "mmmmmmmmmmmmmmmm" "................" "................" "................"
    "JJJJJJJJJJJJJJJJ" "mmmmmmmmmmmmmmmm" "...mbm.....mbm.m" "mm.m..mm..bmmmmm"
    "mm......rrrrrrrr" "................" "................" "................";
/* clang-format on */
_Static_assert(sizeof one_byte == 257 && sizeof two_bytes == 257, "one letter each");

static COLD uint8_t next(struct source *s) { return s->at < 15 ? s->byte[s->at++] : 0; }

int64_t number(const struct source *s, unsigned place, unsigned size)
{
    uint64_t value = 0;
    memcpy(&value, s->byte + place, size);
    return size == 1 ? (int8_t)value : size == 4 ? (int32_t)value : (int64_t)value;
}

static COLD bool prefix(struct source *s, uint8_t b)
{
    switch (b) {
    case 0x64:
    case 0x65: s->segment = b == 0x64 ? SLOT_FS : SLOT_GS; return true;
    case 0x66: s->operand16 = true; return true;
    case 0xf0: s->lock = true; return true;
    case 0xf3: s->repeat = true; return true;
    case 0x2e: return true;
    }
    return false;
}

unsigned size_of_immediate(const struct source *s)
{
    bool wide = s->rex & REX_W;
    unsigned whole = s->operand16 && !wide ? 2 : 4;
    switch (s->form) {
    case 'b':
    case 'a':
    case 'i':
    case 'q':
    case 'j':
    case 'k': return 1;
    case 'z':
    case 'A': return s->op == 0xc6 ? 1 : whole;
    case 'I': return wide ? 8 : whole;
    case 'Q':
    case 'J':
    case 'K':
    case 'C': return 4;
    case 'S': return 2;
    case 't': return s->mod >> 3 & 7 ? 0 : s->op == 0xf6 ? 1 : whole;
    }
    return 0;
}

bool is_one_of(char form, const char *forms)
{
    while (*forms && *forms != form)
        forms++;
    return *forms;
}

bool parse(struct source *s)
{
    uint8_t b = next(s);
    s->segment = SLOT_ZERO;
    while (prefix(s, b))
        b = next(s);
    if ((b & 0xf0) == 0x40) {
        s->rex = b;
        b = next(s);
    }
    s->two = b == 0x0f;
    s->op = s->two ? next(s) : b;
    s->form = s->two ? two_bytes[s->op] : one_byte[s->op];
    s->modrm = is_one_of(s->form, "mbzltgN");
    s->operand_at = s->at;
    if (s->modrm) {
        s->mod = next(s);
        unsigned mod = s->mod >> 6, rm = s->mod & 7, base = rm == 4 && mod != 3 ? next(s) & 7 : rm;
        s->memory = mod != 3;
        s->at += mod == 1 ? 1 : mod == 2 || (mod == 0 && base == 5) ? 4 : 0;
    }
    s->immediate_at = s->at;
    s->at += size_of_immediate(s);
    return s->at <= s->length;
}

bool is_group(const struct source *s)
{
    if (s->two)
        return s->op == 0xba || (s->op & 0xf0) == 0x90;
    return (s->op >= 0x80 && s->op <= 0x83) || s->op >= 0xc0;
}

static COLD bool of_bytes(const struct source *s)
{
    if (s->two)
        return (s->op & 0xf0) == 0x90 || s->op == 0xb0 || s->op == 0xc0;
    return s->form == 'i' || (s->form != 'I' && s->form != 'r' && s->form != 'n' && !(s->op & 1));
}

/* A register's number; without REX the numbers 4 to 7 of bytes are AH to BH. */
static COLD unsigned named(const struct source *s, unsigned n, bool extended, bool byte)
{
    n |= extended ? 8 : 0;
    return byte && !s->rex && n >= 4 ? n - 4 : n;
}

unsigned rm_of(const struct source *s)
{
    bool byte = of_bytes(s) || (s->two && (s->op == 0xb6 || s->op == 0xbe));
    return named(s, s->mod & 7, s->rex & REX_B, byte);
}

unsigned reg_of(const struct source *s) { return named(s, group(s), s->rex & REX_R, of_bytes(s)); }

unsigned op_register(const struct source *s)
{
    return named(s, s->op & 7, s->rex & REX_B, s->form == 'i');
}

bool rm_is_rsp(const struct source *s) { return s->modrm && !s->memory && rm_of(s) == RSP; }

static COLD bool lockable(const struct source *s)
{
    unsigned op = s->op;
    if (!s->memory)
        return false;
    if (s->two)
        return op == 0xb0 || op == 0xb1 || op == 0xc0 || op == 0xc1 || (op == 0xba && group(s) > 4);
    return (op < 0x38 && (op & 7) < 2) || (op >= 0x80 && op <= 0x83 && group(s) != 7) ||
           op == 0x86 || op == 0x87 || (op >= 0xfe && group(s) < 2) ||
           (s->form == 't' && (group(s) & 6) == 2);
}

bool refused(const struct source *s)
{
    bool jumps = is_one_of(s->form, "PpqQjJkKCRSLg"), wide = s->rex & REX_W;
    if (s->form == '.' || (s->lock && !lockable(s)) || (s->operand16 && jumps && s->op != 0xff))
        return true;
    if (s->repeat)
        return !s->two || s->op != 0x1e || s->mod != 0xfa; /* ENDBR64 */
    if (s->two) {
        bool bit_of_register = s->op == 0xa3 || s->op == 0xab || s->op == 0xb3 || s->op == 0xbb;
        /* QEMU 7.2 forgets the immediate behind a RIP-relative SHLD or SHRD. */
        return (bit_of_register && s->memory) || ((s->op & 0xf7) == 0xa4 && is_relative(s)) ||
               (s->op == 0xba && group(s) < 4) ||
               (s->form == 'r' && (s->operand16 || op_register(s) == RSP));
    }
    switch (s->op) {
    case 0x90: return s->rex & REX_B; /* XCHG */
    case 0x8d: return !s->memory || (is_relative(s) && (!wide || reg_of(s) == RSP));
    case 0xc2: return s->byte[s->immediate_at + 1] & 0x80; /* QEMU 7.2 adds a signed number */
    case 0xc6:
    case 0xc7: return group(s);
    case 0xf6: return group(s) == 1 || group(s) >= 6;
    case 0xf7: /* DIV and IDIV: not of 16 bits, nor by RSP */
        return group(s) == 1 || (group(s) >= 6 && (s->operand16 || rm_is_rsp(s)));
    case 0xfe: return group(s) > 1;
    case 0xff: /* INC, DEC, CALL, JMP */
        return group(s) > 1 && (s->operand16 || (group(s) != 4 && group(s) != 2));
    }
    if (s->form == 'I')
        return op_register(s) == RSP || (s->operand16 && wide);
    return is_one_of(s->form, "irPp") && op_register(s) == RSP;
}

uint32_t used(const struct source *s)
{
    uint32_t mask = 0;
    unsigned op = s->op;
    if (s->modrm && !s->memory)
        mask |= BIT(rm_of(s));
    if (s->modrm && !is_group(s))
        mask |= BIT(reg_of(s));
    if (s->two)
        return mask | (op == 0xa5 || op == 0xad ? BIT(RCX) : 0) |
               (op == 0xb0 || op == 0xb1 ? BIT(RAX) : 0) |
               (s->form == 'r' ? BIT(op_register(s)) : 0);
    if (op == 0xd2 || op == 0xd3)
        mask |= BIT(RCX);
    if (s->form == 'a' || s->form == 'A' || (s->form == 'r' && op < 0x98))
        mask |= BIT(RAX);
    if (s->form == 'n' || (s->form == 't' && group(s) >= 4))
        mask |= BIT(RAX) | BIT(RDX);
    if (s->form == 'r' || s->form == 'i' || s->form == 'I')
        mask |= BIT(op_register(s));
    return mask;
}

bool without_flags(const struct source *s)
{
    if (s->two)
        return s->form == 'r' || (s->op & 0xf7) == 0xb6 || (s->op & 0xf7) == 0xb7;
    return (s->op >= 0x86 && s->op <= 0x9f) || (s->op >= 0xb0 && s->op <= 0xbf) || s->op == 0x63 ||
           s->op == 0xc6 || s->op == 0xc7 || (s->form == 't' && group(s) == 2);
}
