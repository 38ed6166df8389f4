/* SPDX-License-Identifier: MIT */
/* INT 15h leads to a few bytes at the end of the BIOS's extended data area, which its own map
 * reserves: VMMCALL, a call of the BIOS, VMMCALL, IRET. The first exit sends all functions but
 * those of memory straight to the BIOS; the second one changes what these return. Sources: ACPI
 * 6.4, "INT 15H, E820H"; BIOS data area, 40:0E; Ralf Brown's list, INT 15h, AX E801h and AH
 * 88h. */
#include "kernel/base/layout.h"
#include "kernel/base/string.h"
#include "kernel/base/x86.h"
#include "pmu/virt/guests/bios.h"
#include "pmu/virt/guest.h"
#include "pmu/virt/vcpu.h"

enum { VECTOR_AT = 0x15 * 4, EBDA_AT = 0x40e, SIZE = 16, CALL_AT = 4, SECOND_AT = 9 };
#define EBDA_FIRST 0x80000u
#define EBDA_END 0xa0000u
#define SMAP 0x534d4150u /* what E820h returns in EAX */
#define MEMORY 1u
#define CARRY 1ul
#define VMMCALL_LENGTH 3
#define WORD 0xffffu

static uint8_t code[SIZE] = { 0x0f, 0x01, 0xd9, 0x9c, 0x9a, 0, 0, 0, 0, 0x0f, 0x01, 0xd9, 0xcf };
static uint64_t place, limit; /* of the code; of the guest's memory; 0: none */
static uint32_t bios;         /* its INT 15h: offset, segment */
static unsigned function;     /* AX of the call that the BIOS executes now */

static uint8_t *low_memory(uint32_t physical) { return (uint8_t *)(DIRECT_MAP + physical); }

/* The last bytes of the extended data area; 0: there is none, or they are in use. */
static uint32_t find_place(void)
{
    static const uint8_t none[SIZE];
    uint16_t segment;
    memcpy(&segment, low_memory(EBDA_AT), sizeof segment);
    uint32_t start = segment * 16u, end;
    if (start < EBDA_FIRST || start >= EBDA_END)
        return 0;
    end = start + *low_memory(start) * 1024u; /* its first byte is its size */
    return end > start && end <= EBDA_END && !memcmp(low_memory(end - SIZE), none, SIZE)
               ? end - SIZE
               : 0;
}

void bios_hide(uint64_t end)
{
    uint32_t to = find_place(), ours = to << 12; /* a segment's first byte */
    memcpy(&bios, low_memory(VECTOR_AT), sizeof bios);
    if (!to || !bios)
        return;
    memcpy(code + CALL_AT + 1, &bios, sizeof bios);
    memcpy(low_memory(to), code, SIZE);
    memcpy(low_memory(VECTOR_AT), &ours, sizeof ours);
    place = to;
    limit = end;
}

static bool is_of_memory(unsigned ax) { return ax == 0xe820 || ax == 0xe801 || ax >> 8 == 0x88; }

static void go_to_bios(struct vcpu *v)
{
    v->vmcb.cs.selector = (uint16_t)(bios >> 16);
    v->vmcb.cs.base = v->vmcb.cs.selector * 16u;
    v->vmcb.rip = bios & WORD;
}

static void lower_register(uint64_t *reg, uint64_t most)
{
    if ((*reg & WORD) > most)
        *reg = (*reg & ~(uint64_t)WORD) | most;
}

/* The range at ES:DI ends where we begin. */
static void clip_range(struct vcpu *v)
{
    struct {
        uint64_t start, size;
        uint32_t type;
    } __attribute__((packed)) range;
    uint64_t at = v->vmcb.es.base + (v->r.rdi & WORD);
    if ((uint32_t)v->vmcb.rax != SMAP || guest_read(v, at, &range, sizeof range) != sizeof range)
        return;
    if (range.type == MEMORY && range.start < limit && range.size > limit - range.start)
        guest_write64(v, at + sizeof range.start, limit - range.start);
}

/* E801h: KB from 1 to 16 MB in AX and CX, then blocks of 64 KB in BX and DX; 88h: KB from 1 MB. */
static void clip_sizes(struct vcpu *v)
{
    uint64_t kb = (limit - (1 << 20)) >> 10, first = 15 << 10;
    lower_register(&v->vmcb.rax, kb);
    if (function != 0xe801)
        return;
    lower_register(&v->r.rcx, kb);
    lower_register(&v->r.rbx, kb > first ? (kb - first) / 64 : 0);
    lower_register(&v->r.rdx, kb > first ? (kb - first) / 64 : 0);
}

/* The caller's flags, which IRET restores, get the BIOS's carry. */
static void finish_call(struct vcpu *v)
{
    uint64_t flags, at = v->vmcb.ss.base + (v->vmcb.rsp & WORD) + 4;
    uint64_t carry = v->vmcb.rflags & CARRY;
    if (!carry && function == 0xe820)
        clip_range(v);
    else if (!carry)
        clip_sizes(v);
    if (guest_read(v, at, &flags, sizeof flags) == sizeof flags)
        guest_write64(v, at, (flags & ~CARRY) | carry);
}

bool bios_call(struct vcpu *v)
{
    uint64_t at = v->vmcb.cs.base + v->vmcb.rip;
    bool first = at == place;
    if (!place || v->vmcb.cr0 & CR0_PE || (!first && at != place + SECOND_AT))
        return false;
    v->vmcb.shadow = 0;
    if (first)
        function = v->vmcb.rax & WORD;
    else
        finish_call(v);
    if (first && !is_of_memory(function))
        go_to_bios(v);
    else
        v->vmcb.rip += VMMCALL_LENGTH;
    return true;
}
