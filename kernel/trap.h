/* SPDX-License-Identifier: MIT */
/* Exceptions and interrupts. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#define VECTOR_TIMER 0xd1      /* CLOCK_LEVEL */
#define VECTOR_CALL 0xe1       /* IPI_LEVEL: smp_call */
#define VECTOR_RESCHEDULE 0xe2 /* IPI_LEVEL */
#define VECTOR_PMI 0xfe        /* PROFILE_LEVEL */
#define VECTOR_PMI_NOTED 0xfd  /* PROFILE_LEVEL: after the NMI, where PMIs are NMIs */
#define VECTOR_SPURIOUS 0xff

/* Pushed by entry.asm, lowest address first. */
struct trap_frame {
    uint64_t r15, r14, r13, r12, r11, r10, r9, r8, rdi, rsi, rbp, rbx, rdx, rcx, rax;
    uint64_t vector, error, rip, cs, rflags, rsp, ss;
};

static inline bool trap_from_user(const struct trap_frame *frame) { return frame->cs & 3; }

/* Fills the IDT (boot CPU) and loads it (every CPU). */
void trap_init(void);
void trap_init_cpu(void);

/* How often each vector came, all CPUs; for tests and reports. Atomic. */
extern uint64_t trap_counts[256];
