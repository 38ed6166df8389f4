/* SPDX-License-Identifier: MIT */
/* Access to the guest's memory and code. Physical addresses that the boot page tables do not map
 * count as not present; a payload's memory map has none. No contents of the guest's
 * page tables or code can make the host fault. Source: AMD64 APM volume 2, "Long-Mode Page
 * Translation". */
#include "kernel/base/boot_info.h"
#include "kernel/base/layout.h"
#include "kernel/base/msr.h"
#include "kernel/base/string.h"
#include "kernel/base/x86.h"
#include "pmu/virt/guest.h"
#include "pmu/virt/blocks/nested.h"
#include "pmu/virt/vcpu.h"

#define PTE_PRESENT 1ul
#define PTE_WRITABLE 2ul
#define PTE_USER 4ul
#define PTE_ACCESSED (1ul << 5)
#define PTE_DIRTY (1ul << 6)
#define PTE_LARGE (1ul << 7)
#define PTE_LARGE_PAT (1ul << 12)
#define PTE_KEY 59 /* the protection key's first bit */
#define PTE_NX (1ul << 63)
#define PTE_ADDRESS 0x000ffffffffff000
#define CR4_PSE (1u << 4)
#define LOW_END 0xa0000u
#define HIGH_START 0x100000u

static void *map_physical(uint64_t physical, unsigned size)
{
    return physical + size <= boot_info.mapped_end ? (void *)(DIRECT_MAP + physical) : NULL;
}

bool guest_is_canonical(const struct vcpu *v, uint64_t address)
{
    return is_canonical(address, v->vmcb.cr4 & CR4_LA57 ? 7 : 16);
}

/* A write sets the bits that the processor sets; atomic, as other CPUs may change the entry. */
static void mark_entry(void *entry, bool leaf)
{
    uint8_t *low = entry, bits = PTE_ACCESSED | (leaf ? PTE_DIRTY : 0);
    if ((*low & bits) != bits)
        __atomic_fetch_or(low, bits, __ATOMIC_RELAXED);
}

/* The host's address of the byte; NULL if it is not mapped, or out of reach. Writes are those of
 * ring 0, or of ring 3 where it has just written. Without PAE entries have four bytes. */
static void *translate_address(const struct vcpu *v, uint64_t address, bool write)
{
    if (!(v->vmcb.cr0 & CR0_PG))
        return map_physical((uint32_t)address, 1);
    bool old = !(v->vmcb.cr4 & CR4_PAE), pae = !old && !(v->vmcb.efer & EFER_LMA);
    unsigned bits = old ? 10 : 9, size = old ? 4 : 8;
    unsigned first = old ? 22 : pae ? 30 : v->vmcb.cr4 & CR4_LA57 ? 48 : 39;
    uint64_t table = v->vmcb.cr3 & (old ? 0xfffff000 : pae ? 0xffffffe0 : PTE_ADDRESS);
    uint64_t needed = PTE_PRESENT | (write && v->vmcb.cr0 & CR0_WP ? PTE_WRITABLE : 0);
    if (old || pae)
        address = (uint32_t)address;
    else if (!guest_is_canonical(v, address))
        return NULL;
    for (unsigned shift = first;; shift -= bits) {
        void *at = map_physical(table + (address >> shift & ((1u << bits) - 1)) * size, size);
        uint64_t entry = !at ? 0 : old ? *(uint32_t *)at : *(uint64_t *)at;
        bool pdpt = pae && shift == 30; /* has neither permissions nor an accessed bit */
        uint64_t wanted = pdpt ? PTE_PRESENT : needed;
        if ((entry & wanted) != wanted)
            return NULL;
        uint64_t low = (1ul << shift) - 1, frame = entry & PTE_ADDRESS;
        bool large = shift > 12 && entry & PTE_LARGE && (!old || v->vmcb.cr4 & CR4_PSE);
        bool reserved = pdpt || shift > 30 || frame & low & ~PTE_LARGE_PAT;
        if (large && !old && reserved)
            return NULL;
        if (write && !pdpt)
            mark_entry(at, shift == 12 || large);
        if (shift == 12 || large)
            return map_physical((frame & ~low) | (address & low), 1);
        table = frame;
    }
}

uint64_t guest_physical(const struct vcpu *v, uint64_t address)
{
    uint64_t at = (uint64_t)translate_address(v, address, false);
    return at ? at - DIRECT_MAP : UINT64_MAX;
}

uint8_t *guest_ram_page(uint64_t page)
{
    for (unsigned i = 0; i < boot_info.memory_count; i++) {
        const struct boot_memory *m = &boot_info.memory[i];
        if (page >= m->start && page + PAGE_SIZE <= m->start + m->size)
            return page < LOW_END || page >= HIGH_START ? map_physical(page, PAGE_SIZE) : NULL;
    }
    return NULL;
}

/* Whether the access is allowed by `all`, the AND of the entries, `some`, their OR, and the last
 * one's protection key: a key that forbids anything is left to the processor. */
static bool access_permitted(const struct vcpu *v, uint64_t all, uint64_t some, uint64_t leaf,
                             enum access access)
{
    bool user_page = all & PTE_USER, fetch = access == ACCESS_EXECUTE;
    uint64_t forbids = fetch ? CR4_SMEP : v->vmcb.rflags & RFLAGS_AC ? 0 : CR4_SMAP;
    if (v->vmcb.cpl == 3 ? !user_page : user_page && v->vmcb.cr4 & forbids)
        return false;
    if (user_page && !fetch && v->stack.state.pkru >> (leaf >> PTE_KEY & 15) * 2 & 3)
        return false;
    if (some & PTE_NX && (fetch || !(v->vmcb.efer & EFER_NXE)))
        return false;
    return all & PTE_ACCESSED && (access != ACCESS_WRITE || all & PTE_WRITABLE);
}

uint8_t *guest_page(const struct vcpu *v, uint64_t address, enum access access)
{
    uint64_t all = UINT64_MAX, some = 0, table = v->vmcb.cr3 & PTE_ADDRESS;
    if (!guest_is_canonical(v, address))
        return NULL;
    for (unsigned shift = v->vmcb.cr4 & CR4_LA57 ? 48 : 39;; shift -= 9) {
        const uint64_t *entry = map_physical(table + (address >> shift & 511) * 8, 8);
        if (!entry || !(*entry & PTE_PRESENT))
            return NULL;
        all &= *entry;
        some |= *entry;
        table = *entry & PTE_ADDRESS;
        bool large = shift > 12 && *entry & PTE_LARGE;
        if (shift != 12 && !large)
            continue;
        uint64_t low = (1ul << shift) - PAGE_SIZE;
        bool dirty = access != ACCESS_WRITE || *entry & PTE_DIRTY;
        if (shift > 30 || table & low & ~(large ? PTE_LARGE_PAT : 0) || !dirty ||
            !access_permitted(v, all, some, *entry, access))
            return NULL;
        table = (table & ~low) | (address & low);
        if (access == ACCESS_WRITE)
            nested_written(table);
        return guest_ram_page(table);
    }
}

unsigned guest_read(const struct vcpu *v, uint64_t address, void *to, unsigned size)
{
    const uint8_t *from = NULL;
    for (unsigned i = 0; i < size; i++) {
        if (!from || !((address + i) & (PAGE_SIZE - 1)))
            from = translate_address(v, address + i, false);
        if (!from)
            return i;
        ((uint8_t *)to)[i] = *from++;
    }
    return size;
}

bool guest_write(const struct vcpu *v, uint64_t address, const void *from, unsigned size)
{
    unsigned first = PAGE_SIZE - (unsigned)(address & (PAGE_SIZE - 1));
    first = size < first ? size : first;
    uint8_t *low = translate_address(v, address, true);
    uint8_t *high = first < size ? translate_address(v, address + first, true) : low;
    if (!low || !high)
        return false;
    nested_written((uint64_t)low - DIRECT_MAP);
    nested_written((uint64_t)high - DIRECT_MAP);
    memcpy(low, from, first);
    memcpy(high, (const uint8_t *)from + first, size - first);
    return true;
}

bool guest_write64(const struct vcpu *v, uint64_t address, uint64_t value)
{
    return guest_write(v, address, &value, sizeof value);
}

bool guest_in_long_mode(const struct vcpu *v) { return v->vmcb.cs.attributes & SEGMENT_LONG; }

void guest_insn(const struct vcpu *v, struct insn *i)
{
    uint64_t rip = guest_in_long_mode(v) ? v->vmcb.rip : (uint32_t)(v->vmcb.cs.base + v->vmcb.rip);
    *i = (struct insn){ .wide = guest_in_long_mode(v) };
    i->length = (uint8_t)guest_read(v, rip, i->byte, INSN_MAX);
    insn_parse(i);
}

uint64_t guest_register(const struct vcpu *v, unsigned number)
{
    return number == RAX   ? v->vmcb.rax
           : number == RSP ? v->vmcb.rsp
                           : ((const uint64_t *)(const void *)&v->r)[number];
}
