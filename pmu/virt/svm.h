/* SPDX-License-Identifier: MIT */
/* svm.asm: the instructions that C cannot express. */
#pragma once
#include <stddef.h>
#include <stdint.h>

#define HOST_STACK_SIZE 16384

/* In the order of the register numbers; RAX and RSP are in the VMCB, and svm.asm uses their
 * places here. */
struct registers {
    uint64_t vmcb, rcx, rdx, rbx, start, rbp, rsi, rdi, r8, r9, r10, r11, r12, r13, r14, r15;
};
_Static_assert(offsetof(struct registers, r11) == 88, "svm.asm");

struct vcpu;

#define SVM_NOT_RUN UINT64_MAX
uint64_t svm_run(uint64_t vmcb, struct registers *r, const uint32_t *nmis, uint32_t seen);
void svm_launch(struct vcpu *v, void *host_stack_top, uint64_t *rsp, uint64_t *rip,
                void (*host)(struct vcpu *v));
void svm_run_call(void);
void svm_run_int(void);
#define TAKEN 256u /* added to a vector */
uint32_t svm_take_interrupt(void);
uint32_t svm_halt(void);
void svm_wait(uint32_t *halted, const uint32_t *nmis, uint32_t seen);
void svm_nmi(void);
/* VMSAVE: the guest's TR, LDTR, FS and GS into its VMCB. */
void svm_save(uint64_t vmcb);
extern char svm_stubs[];
