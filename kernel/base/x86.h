/* SPDX-License-Identifier: MIT */
/* One inline wrapper per instruction, no policy. The *_fault forms survive a fault: they return 0,
 * or the vector that the instruction raised (6 or 13) through the table that trap.c searches. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CR0_PE (1u << 0)
#define CR0_MP (1u << 1)
#define CR0_EM (1u << 2)
#define CR0_TS (1u << 3)
#define CR0_ET (1u << 4)
#define CR0_NE (1u << 5)
#define CR0_WP (1u << 16)
#define CR0_AM (1u << 18)
#define CR0_PG (1u << 31)
#define CR4_PAE (1u << 5)
#define CR4_MCE (1u << 6)
#define CR4_PCE (1u << 8)
#define CR4_OSFXSR (1u << 9)
#define CR4_OSXMMEXCPT (1u << 10)
#define CR4_FSGSBASE (1u << 16)
#define CR4_OSXSAVE (1u << 18)
#define CR4_SMEP (1u << 20)
#define CR4_SMAP (1u << 21)
#define CR4_PKE (1u << 22)
#define RFLAGS_TF (1u << 8)
#define RFLAGS_IF (1u << 9)
#define RFLAGS_RF (1u << 16)
#define RFLAGS_USER 0x40dd5u /* what ring 3 may set: arithmetic flags, TF, DF, AC */
#define RFLAGS_AC (1u << 18)

/* An entry of the fault table: a fault at `from` continues at `to`, with RAX = vector. */
#define FIXUP(from, to) ".pushsection .extable,\"a\"\n.quad " from "," to "\n.popsection\n"

struct cpuid {
    uint32_t eax, ebx, ecx, edx;
};

static inline struct cpuid cpuid(uint32_t leaf, uint32_t subleaf)
{
    struct cpuid r;
    asm volatile("cpuid"
                 : "=a"(r.eax), "=b"(r.ebx), "=c"(r.ecx), "=d"(r.edx)
                 : "a"(leaf), "c"(subleaf));
    return r;
}

/* The instructions clear the upper halves. An rdpmc does not wait: instructions just before it may
 * not be in the count. After an LFENCE several may follow, where the instructions between them are
 * not counted. rdpmc_exact counts all instructions before it. */
#define READ_64(name, code)                                                                        \
    static inline uint64_t name(uint32_t which)                                                    \
    {                                                                                              \
        uint64_t low, high;                                                                        \
        asm volatile(code : "=a"(low), "=d"(high) : "c"(which) : "memory");                        \
        return high << 32 | low;                                                                   \
    }
READ_64(rdmsr, "rdmsr")
READ_64(rdpmc, "rdpmc")
READ_64(rdpmc_exact, "lfence\nrdpmc")
READ_64(xgetbv, "xgetbv")
#undef READ_64

/* Waits until all instructions before it have retired; AMD's where pmu/amd.c could make it. */
static inline void lfence(void) { asm volatile("lfence" : : : "memory"); }

/* name_fault: 0, or the vector that the instruction raised. */
#define READ_OR_FAULT(instruction)                                                                 \
    static inline unsigned instruction##_fault(uint32_t which, uint64_t *value)                    \
    {                                                                                              \
        uint32_t low = 0, high = 0, ok;                                                            \
        asm volatile("xor %2,%2\n1: " #instruction "\ninc %2\n2:\n" FIXUP("1b", "2b")              \
                     : "+a"(low), "+d"(high), "=&r"(ok)                                            \
                     : "c"(which)                                                                  \
                     : "memory", "cc");                                                            \
        if (!ok)                                                                                   \
            return low;                                                                            \
        *value = (uint64_t)high << 32 | low;                                                       \
        return 0;                                                                                  \
    }
READ_OR_FAULT(rdmsr)
READ_OR_FAULT(rdpmc)

#define WRITE_64(name)                                                                             \
    static inline void name(uint32_t which, uint64_t value)                                        \
    {                                                                                              \
        asm volatile(#name                                                                         \
                     :                                                                             \
                     : "c"(which), "a"((uint32_t)value), "d"((uint32_t)(value >> 32))              \
                     : "memory");                                                                  \
    }                                                                                              \
    static inline unsigned name##_fault(uint32_t which, uint64_t value)                            \
    {                                                                                              \
        uint32_t low = (uint32_t)value, ok;                                                        \
        asm volatile("xor %1,%1\n1: " #name "\ninc %1\n2:\n" FIXUP("1b", "2b")                     \
                     : "+a"(low), "=&r"(ok)                                                        \
                     : "c"(which), "d"((uint32_t)(value >> 32))                                    \
                     : "memory", "cc");                                                            \
        return ok ? 0 : low;                                                                       \
    }
WRITE_64(wrmsr)
WRITE_64(xsetbv)
#undef WRITE_64

static inline uint64_t rdtsc(void)
{
    uint64_t low, high;
    asm volatile("rdtsc" : "=a"(low), "=d"(high) : : "memory");
    return high << 32 | low;
}

/* Needs CR4.PKE. */
static inline uint32_t rdpkru(void)
{
    uint32_t value, zero;
    asm volatile("rdpkru" : "=a"(value), "=d"(zero) : "c"(0));
    return value;
}

#define PORT_ACCESSORS(bits, letter)                                                               \
    static inline void out##bits(uint16_t port, uint##bits##_t v)                                  \
    {                                                                                              \
        asm volatile("out" #letter " %0,%1" : : "a"(v), "Nd"(port));                               \
    }                                                                                              \
    static inline uint##bits##_t in##bits(uint16_t port)                                           \
    {                                                                                              \
        uint##bits##_t v;                                                                          \
        asm volatile("in" #letter " %1,%0" : "=a"(v) : "Nd"(port));                                \
        return v;                                                                                  \
    }
PORT_ACCESSORS(8, b)
PORT_ACCESSORS(16, w)
PORT_ACCESSORS(32, l)
#undef PORT_ACCESSORS

/* Others see the stores before this, before they see the effect of an MSR written after this. */
static inline void fence(void) { asm volatile("mfence\nlfence" : : : "memory"); }
static inline void pause(void) { asm volatile("pause" : : : "memory"); }
static inline void cli(void) { asm volatile("cli" : : : "memory"); }
static inline void sti(void) { asm volatile("sti" : : : "memory"); }
static inline void sti_hlt(void) { asm volatile("sti\nhlt" : : : "memory"); }
static inline void cli_hlt(void) { asm volatile("cli\nhlt" : : : "memory"); }

static inline uint64_t read_flags(void)
{
    uint64_t v;
    asm volatile("pushfq\npop %0" : "=r"(v) : : "memory");
    return v;
}

static inline void write_flags(uint64_t v)
{
    asm volatile("push %0\npopfq" : : "r"(v) : "memory", "cc");
}

#define ACCESSORS(name)                                                                            \
    static inline uint64_t read_##name(void)                                                       \
    {                                                                                              \
        uint64_t v;                                                                                \
        asm volatile("mov %%" #name ",%0" : "=r"(v) : : "memory");                                 \
        return v;                                                                                  \
    }                                                                                              \
    static inline void write_##name(uint64_t v)                                                    \
    {                                                                                              \
        asm volatile("mov %0,%%" #name : : "r"(v) : "memory");                                     \
    }
ACCESSORS(cr0)
ACCESSORS(cr2)
ACCESSORS(cr3)
ACCESSORS(cr4)
ACCESSORS(cr8)
ACCESSORS(dr0)
ACCESSORS(dr7)
#undef ACCESSORS

/* Both need CR4.FSGSBASE. */
static inline uint64_t rdfsbase(void)
{
    uint64_t base;
    asm volatile("rdfsbase %0" : "=r"(base));
    return base;
}

static inline void wrfsbase(uint64_t base) { asm volatile("wrfsbase %0" : : "r"(base)); }

static inline uint32_t stmxcsr(void)
{
    uint32_t value;
    asm volatile("stmxcsr %0" : "=m"(value));
    return value;
}

static inline unsigned write_cr4_fault(uint64_t value)
{
    uint64_t rax = 0;
    uint32_t ok;
    asm volatile("xor %1,%1\n1: mov %2,%%cr4\ninc %1\n2:\n" FIXUP("1b", "2b")
                 : "+a"(rax), "=&r"(ok)
                 : "r"(value)
                 : "memory", "cc");
    return ok ? 0 : (unsigned)rax;
}

static inline void invlpg(uint64_t address)
{
    asm volatile("invlpg (%0)" : : "r"(address) : "memory");
}
#define XSAVE_LIKE(name)                                                                           \
    static inline void name(void *area, uint64_t mask)                                             \
    {                                                                                              \
        asm volatile(#name "64 (%0)"                                                               \
                     :                                                                             \
                     : "r"(area), "a"((uint32_t)mask), "d"((uint32_t)(mask >> 32))                 \
                     : "memory");                                                                  \
    }                                                                                              \
    static inline unsigned name##_fault(void *area, uint64_t mask)                                 \
    {                                                                                              \
        uint32_t low = (uint32_t)mask, ok;                                                         \
        asm volatile("xor %1,%1\n1: " #name "64 (%2)\ninc %1\n2:\n" FIXUP("1b", "2b")              \
                     : "+a"(low), "=&r"(ok)                                                        \
                     : "r"(area), "d"((uint32_t)(mask >> 32))                                      \
                     : "memory", "cc");                                                            \
        return ok ? 0 : low;                                                                       \
    }
XSAVE_LIKE(xsave)
XSAVE_LIKE(xsaveopt)
XSAVE_LIKE(xrstor)
#undef XSAVE_LIKE

static inline void fxsave(void *area) { asm volatile("fxsave64 (%0)" : : "r"(area) : "memory"); }
static inline void fxrstor(const void *area)
{
    asm volatile("fxrstor64 (%0)" : : "r"(area) : "memory");
}

struct table_register {
    uint16_t limit;
    uint64_t base;
} __attribute__((packed));

static inline void lgdt(const struct table_register *r) { asm volatile("lgdt %0" : : "m"(*r)); }
static inline void lidt(const struct table_register *r) { asm volatile("lidt %0" : : "m"(*r)); }
static inline void sgdt(struct table_register *r) { asm volatile("sgdt %0" : "=m"(*r)); }
static inline void sidt(struct table_register *r) { asm volatile("sidt %0" : "=m"(*r)); }
static inline void ltr(uint16_t selector) { asm volatile("ltr %0" : : "r"(selector)); }
