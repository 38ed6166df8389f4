/* SPDX-License-Identifier: MIT */
/* A program for the host: kernel/base/insn.c against Zydis, for tests/guests/insn.t. Starts of
 * instructions of 64-bit code, by chance: half are any bytes, half have prefixes and an escape
 * before. Where Zydis knows an instruction, length, place of ModRM, memory operand and prefixes
 * are the same.
 *   insn SEED CASES */
#include <Zydis/Zydis.h>
#include <stdio.h>
#include <string.h>
#include "kernel/base/insn.h"
#include "tests/guests/fuzz/fuzz.h"

static uint64_t instructions, kinds[ZYDIS_MNEMONIC_MAX_VALUE + 1];

static uint8_t any_prefix(void)
{
    static const uint8_t prefixes[] = { 0x26, 0x2e, 0x36, 0x3e, 0x64, 0x65,
                                        0x66, 0x67, 0xf0, 0xf2, 0xf3 };
    return (uint8_t)(fuzz_below(2) ? 0x40 + fuzz_below(16) : prefixes[fuzz_below(sizeof prefixes)]);
}

static struct insn any_start(void)
{
    static const char escapes[][4] = { "",         "\x0f", "\x0f\x38", "\x0f\x3a", "\x0f\x0f",
                                       "\x0f\x78", "\xc4", "\xc5",     "\x62",     "\x8f" };
    struct insn i = { .length = INSN_MAX, .wide = true };
    uint64_t bytes[2] = { fuzz_bits(), fuzz_bits() };
    memcpy(i.byte, bytes, INSN_MAX);
    if (fuzz_below(2))
        return i;
    unsigned at = 0;
    for (uint64_t n = fuzz_below(4); n; n--)
        i.byte[at++] = any_prefix();
    const char *escape = escapes[fuzz_below(sizeof escapes / sizeof *escapes)];
    memcpy(i.byte + at, escape, strlen(escape));
    return i;
}

static bool has(const ZydisDecodedInstruction *z, uint8_t prefix)
{
    for (unsigned n = 0; n < z->raw.prefix_count; n++)
        if (z->raw.prefixes[n].value == prefix)
            return true;
    return false;
}

static bool is_same_operand(const struct insn *i, const ZydisDecodedInstruction *z)
{
    struct insn_memory m;
    unsigned end = insn_memory(i, &m);
    if (i->modrm_at != z->raw.modrm.offset || i->modrm != i->byte[z->raw.modrm.offset])
        return false;
    if (z->raw.modrm.mod == 3 || !(z->attributes & ZYDIS_ATTRIB_HAS_SIB))
        return z->raw.modrm.mod == 3 || m.displacement == z->raw.disp.value;
    return m.scale == z->raw.sib.scale && m.displacement == z->raw.disp.value &&
           end == z->raw.sib.offset + 1u + z->raw.disp.size / 8;
}

static bool is_same(const struct insn *i, const ZydisDecodedInstruction *z)
{
    /* insn.h does not know EVEX and XOP but for their length. */
    bool known = z->encoding == ZYDIS_INSTRUCTION_ENCODING_LEGACY ||
                 z->encoding == ZYDIS_INSTRUCTION_ENCODING_VEX ||
                 z->encoding == ZYDIS_INSTRUCTION_ENCODING_3DNOW;
    bool control = z->opcode_map == ZYDIS_OPCODE_MAP_0F && (i->op & 0xfc) == 0x20 && !i->vex;
    if (insn_length(i) != z->length)
        return false;
    if (!known)
        return true;
    if (i->operand16 != has(z, 0x66) || i->address32 != has(z, 0x67) || i->lock != has(z, 0xf0) ||
        i->repeat_not != has(z, 0xf2) || (!i->vex && i->repeat != has(z, 0xf3)))
        return false;
    return !(z->attributes & ZYDIS_ATTRIB_HAS_MODRM) || control || is_same_operand(i, z);
}

int main(int argc, char *argv[])
{
    uint64_t differences = 0, mnemonics = 0, count = fuzz_begin(argc, argv, 10000000);
    ZydisDecoder decoder;
    ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
    for (fuzz_case = 0; fuzz_case < count; fuzz_case++) {
        struct insn i = any_start();
        ZydisDecodedInstruction z;
        if (ZYAN_FAILED(ZydisDecoderDecodeInstruction(&decoder, NULL, i.byte, INSN_MAX, &z)))
            continue;
        insn_parse(&i);
        instructions++;
        mnemonics += kinds[z.mnemonic]++ == 0;
        if (is_same(&i, &z) || differences++ > 20)
            continue;
        printf("%s, %u bytes, not %u:", ZydisMnemonicGetString(z.mnemonic), z.length,
               insn_length(&i));
        for (unsigned n = 0; n < INSN_MAX; n++)
            printf(" %02x", i.byte[n]);
        puts("");
    }
    printf("%lu starts, %lu instructions, %lu mnemonics, %lu differences\n", count, instructions,
           mnemonics, differences);
    return differences != 0;
}
