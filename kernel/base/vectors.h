/* SPDX-License-Identifier: MIT */
/* Vectors of exceptions and interrupts, the frame that the CPU and entry.asm push, IDT entries. */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include "kernel/base/layout.h"

#define VECTOR_RESCHEDULE 0x2f /* DISPATCH_LEVEL */
#define VECTOR_DPC 0x2e        /* DISPATCH_LEVEL: drivers' deferred calls */
#define VECTOR_TIMER 0xd1      /* CLOCK_LEVEL */
#define VECTOR_CALL 0xe1       /* IPI_LEVEL: smp_call */
#define VECTOR_PMI 0xfe        /* PROFILE_LEVEL */
#define VECTOR_PMI_NOTED 0xfd  /* PROFILE_LEVEL: after the NMI, where PMIs are NMIs */
#define VECTOR_SPURIOUS 0xff

enum {
    EXC_DIVIDE = 0,
    EXC_DEBUG = 1,
    EXC_NMI = 2,
    EXC_BREAKPOINT = 3,
    EXC_BOUND = 5,
    EXC_INVALID_OPCODE = 6,
    EXC_DOUBLE_FAULT = 8,
    EXC_GENERAL_PROTECTION = 13,
    EXC_PAGE_FAULT = 14,
    EXC_X87 = 16,
    EXC_ALIGNMENT = 17,
    EXC_MACHINE_CHECK = 18,
    EXC_SIMD = 19,
    EXC_FAST_FAIL = 31 /* no processor's: the gate of INT 29h leads here */
};

#define INT_FAST_FAIL 0x29 /* Windows' __fastfail: a program's or a driver's own check failed */

/* Pushed by entry.asm, lowest address first. */
struct trap_frame {
    uint64_t r15, r14, r13, r12, r11, r10, r9, r8, rdi, rsi, rbp, rbx, rdx, rcx, rax;
    uint64_t vector, error, rip, cs, rflags, rsp, ss;
};

/* An entry of the IDT. */
struct gate {
    uint16_t offset_low, selector;
    uint8_t ist, type;
    uint16_t offset_middle;
    uint32_t offset_high, reserved;
};
_Static_assert(sizeof(struct gate) == 16, "IDT entry");
#define GATE_RING0 0x8e /* types: an interrupt gate, and one for INT from ring 3 too */
#define GATE_RING3 0xee

static inline void gate_set(struct gate *gate, uint64_t to)
{
    gate->offset_low = (uint16_t)to;
    gate->offset_middle = (uint16_t)(to >> 16);
    gate->offset_high = (uint32_t)(to >> 32);
}

static inline uint64_t gate_to(const struct gate *gate)
{
    return (uint64_t)gate->offset_high << 32 | (uint32_t)gate->offset_middle << 16 |
           gate->offset_low;
}

static inline bool trap_from_user(const struct trap_frame *frame) { return frame->cs & 3; }
