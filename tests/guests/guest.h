/* SPDX-License-Identifier: MIT */
/* What guests of the virtual PMU begin with, beside guest.inc: traps, COM1, the APIC, the end. */
#pragma once
#include "kernel/base/x86.h"

struct frame {
    uint64_t rax, rcx, rdx, rbx, rsi, rdi, r8, r9, r10, r11;
    uint64_t vector, error, rip, cs, rflags, rsp, ss;
};

struct gate {
    uint16_t low, selector;
    uint8_t ist, type;
    uint16_t middle;
    uint32_t high, zero;
};

extern struct gate idt[256];
extern const uint8_t stubs[256][16], probe_stack_top[];
uint64_t try_wrmsr(uint32_t msr, uint64_t value);
uint64_t try_rdmsr(uint32_t msr, uint64_t *value);
bool trap_handler(struct frame *frame);
void payload_main(uint32_t magic, uint32_t info);

#define APIC(offset) (*(volatile uint32_t *)(uint64_t)(0xfee00000 + (offset)))

uint64_t fault_resume, fault_vector;

static inline bool is_intel(void) { return cpuid(0, 0).ebx == 0x756e6547; }

/* 0 if it faults. */
static inline uint64_t read_msr(uint32_t msr)
{
    uint64_t value = 0;
    try_rdmsr(msr, &value);
    return value;
}

/* Counter 0 counts nothing, instructions or branches; on plain QEMU these registers do nothing. */
static inline void start_event(bool intel, unsigned event)
{
    static const uint64_t events[2][3] = { { 0, 0x4300c0, 0x4300c2 }, { 0, 0x4300c0, 0x4300c4 } };
    try_wrmsr(intel ? 0x38f : 0xc0000301, 1);
    try_wrmsr(intel ? 0x186 : 0xc0010000, 0);
    try_wrmsr(intel ? 0xc1 : 0xc0010004, 0);
    try_wrmsr(intel ? 0x186 : 0xc0010000, events[intel][event]);
}

static inline void put(char c)
{
    for (unsigned i = 0; i < 100000 && !(in8(0x3fd) & 0x20); i++)
        ;
    out8(0x3f8, (uint8_t)c);
}

static inline void say(const char *s)
{
    while (*s)
        put(*s++);
}

static inline void say_hex(const char *name, uint64_t v)
{
    say(name);
    for (int shift = 60; shift >= 0; shift -= 4)
        if (v >> shift || !shift)
            put("0123456789abcdef"[v >> shift & 15]);
}

/* Each % of the text is the next of the values, hexadecimal. */
#define say_all(text, ...) say_values(text, (const uint64_t[]){ __VA_ARGS__ })
static inline void say_values(const char *text, const uint64_t *values)
{
    for (; *text; text++)
        if (*text == '%')
            say_hex("", *values++);
        else
            put(*text);
}

/* Status for isa-debug-exit. */
static inline void end(unsigned code)
{
    out32(0xf4, code);
    for (;;)
        cli_hlt();
}

/* A fault that try_... expects goes on after it. */
static inline bool expected_fault(struct frame *f)
{
    if (!fault_resume)
        return false;
    fault_vector = f->vector;
    f->rip = fault_resume;
    return true;
}

static inline void set_gate(unsigned v, const uint8_t *to, uint16_t selector, uint8_t ist,
                            uint8_t type)
{
    uint64_t at = (uint64_t)to;
    idt[v] = (struct gate){ (uint16_t)at,         selector, ist, type, (uint16_t)(at >> 16),
                            (uint32_t)(at >> 32), 0 };
}

/* No interrupt of the PICs; the APIC is on. */
static inline void mask_pics(void)
{
    out8(0x21, 0xff);
    out8(0xa1, 0xff);
    APIC(0xf0) = 0x1ff;
}
