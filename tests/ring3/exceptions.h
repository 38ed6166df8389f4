/* SPDX-License-Identifier: MIT */
/* Ways for a ring-3 thread to die: X(name, assembly, exit status, address). The address is that of
 * the page fault; NO_FAULT where there is none, UNKNOWN where Windows cannot know it, ANY where it
 * is not known here. RAX, RCX, RDX, RSI and RDI are the code's own. */
#pragma once

#define NO_FAULT 0
#define ANY UINT64_C(1)
#define UNKNOWN ~UINT64_C(0)

#define DIVISION STATUS_INTEGER_DIVIDE_BY_ZERO, NO_FAULT
#define TOO_LARGE STATUS_INTEGER_OVERFLOW, NO_FAULT
#define UNDEFINED STATUS_ILLEGAL_INSTRUCTION, NO_FAULT
#define PRIVILEGE STATUS_PRIVILEGED_INSTRUCTION, NO_FAULT
#define ACCESS(address) STATUS_ACCESS_VIOLATION, address

/* clang-format off */
#define ARITHMETIC(X)                                                                              \
    X(divide, "xor %%ecx,%%ecx\nmov $1,%%eax\ncltd\ndiv %%ecx", DIVISION)                          \
    X(divide_signed, "xor %%ecx,%%ecx\nmov $1,%%eax\ncqto\nidiv %%rcx", DIVISION)                  \
    X(divide_memory, "movq $0,-64(%%rsp)\nmov $1,%%eax\ncqto\nidivq -64(%%rsp)", DIVISION)         \
    X(overflow, "mov $0x80000000,%%eax\ncltd\nmov $-1,%%ecx\nidiv %%ecx", TOO_LARGE)               \
    X(overflow_64, "mov $1,%%edx\nmov $1,%%ecx\nxor %%eax,%%eax\ndiv %%rcx", TOO_LARGE)            \
    X(overflow_16, "mov $1,%%edx\nmov $1,%%ecx\nxor %%eax,%%eax\ndiv %%cx", TOO_LARGE)             \
    X(overflow_8, "mov $0x8000,%%eax\nmov $1,%%ecx\ndiv %%cl", TOO_LARGE)                          \
    X(overflow_high, "mov $0x8000,%%eax\nmov $0x100,%%ecx\ndiv %%ch", TOO_LARGE)                   \
    X(overflow_low, "mov $0x8000,%%eax\nmov $0x100,%%ecx\ndiv %%cl", DIVISION)                     \
    X(overflow_stack, "movq $-1,-64(%%rsp)\nmov $0x80000000,%%eax\ncltd\nidivl -64(%%rsp)",        \
      TOO_LARGE)                                                                                   \
    X(overflow_indexed, "movl $-1,-32(%%rsp)\nmov $-2,%%rcx\nmov $0x80000000,%%eax\ncltd\n"        \
      "idivl -16(%%rsp,%%rcx,8)",                                                                  \
      TOO_LARGE)                                                                                   \
    X(overflow_relative, "mov $-1,%%rdx\nxor %%eax,%%eax\ndivq user_begin(%%rip)", TOO_LARGE)      \
    X(overflow_absolute, "mov $-1,%%rdx\nxor %%eax,%%eax\ndivq user_begin", TOO_LARGE)             \
    X(x87, "fninit\nmovl $0x37b,-64(%%rsp)\nfldcw -64(%%rsp)\nfld1\nfldz\nfdivrp\nfwait",          \
      STATUS_FLOAT_DIVIDE_BY_ZERO, NO_FAULT)                                                       \
    X(x87_invalid, "fninit\nmovl $0x37e,-64(%%rsp)\nfldcw -64(%%rsp)\nfldz\nfldz\nfdivrp\nfwait",  \
      STATUS_FLOAT_INVALID_OPERATION, NO_FAULT)

/* What an emulator may leave out: stack faults of x87, and exceptions of SSE. */
#define EMULATED(X)                                                                                \
    X(x87_stack, "fninit\nmovl $0x37e,-64(%%rsp)\nfldcw -64(%%rsp)\nfstp %%st(1)\nfwait",          \
      STATUS_FLOAT_STACK_CHECK, NO_FAULT)                                                          \
    X(sse_divide, "movl $0x1d80,-64(%%rsp)\nldmxcsr -64(%%rsp)\nmov $1,%%eax\n"                    \
      "cvtsi2sd %%eax,%%xmm0\nxorps %%xmm1,%%xmm1\ndivsd %%xmm1,%%xmm0",                           \
      STATUS_FLOAT_DIVIDE_BY_ZERO, ANY)                                                            \
    X(sse_invalid, "movl $0x1f00,-64(%%rsp)\nldmxcsr -64(%%rsp)\nxorps %%xmm0,%%xmm0\n"            \
      "xorps %%xmm1,%%xmm1\ndivsd %%xmm1,%%xmm0",                                                  \
      STATUS_FLOAT_INVALID_OPERATION, ANY)                                                         \
    X(sse_inexact, "movl $0x0f80,-64(%%rsp)\nldmxcsr -64(%%rsp)\nmov $1,%%eax\n"                   \
      "cvtsi2sd %%eax,%%xmm0\nmov $3,%%eax\ncvtsi2sd %%eax,%%xmm1\ndivsd %%xmm1,%%xmm0",           \
      STATUS_FLOAT_INEXACT_RESULT, ANY)

#define ILLEGAL(X)                                                                                 \
    X(ud2, "ud2", UNDEFINED)                                                                       \
    X(push_es, ".byte 0x06", UNDEFINED)                                                            \
    X(lock_nop, ".byte 0xf0,0x90", UNDEFINED)                                                      \
    X(ud2_without_stack, "xor %%esp,%%esp\nud2", UNDEFINED)                                        \
    X(ud2_on_kernel_stack, "mov $0xffffffff81000000,%%rsp\nud2", UNDEFINED)

#define DEBUGGING(X)                                                                               \
    X(int3, "int3", STATUS_BREAKPOINT, NO_FAULT)                                                   \
    X(int_3, ".byte 0xcd,0x03", STATUS_BREAKPOINT, NO_FAULT)                                       \
    X(trap_flag, "pushfq\norl $0x100,(%%rsp)\npopfq\nnop\nnop", STATUS_SINGLE_STEP, NO_FAULT)

#define PRIVILEGED(X)                                                                              \
    X(hlt, "hlt", PRIVILEGE)                                                                       \
    X(cli, "cli", PRIVILEGE)                                                                       \
    X(sti, "sti", PRIVILEGE)                                                                       \
    X(in, "mov $0x3fd,%%edx\nin %%dx,%%al", PRIVILEGE)                                             \
    X(in_immediate, "in $0x21,%%al", PRIVILEGE)                                                    \
    X(out, "mov $0xf4,%%edx\nout %%eax,%%dx", PRIVILEGE)                                           \
    X(out_word, "mov $0xf4,%%edx\nout %%ax,%%dx", PRIVILEGE)                                       \
    X(out_immediate, "out %%al,$0xf4", PRIVILEGE)                                                  \
    X(ins, "lea -64(%%rsp),%%rdi\nmov $0x3fd,%%edx\ninsb", PRIVILEGE)                              \
    X(outs, "lea -64(%%rsp),%%rsi\nmov $0xf4,%%edx\noutsb", PRIVILEGE)                             \
    X(rdmsr, "mov $0xc0000080,%%ecx\nrdmsr", PRIVILEGE)                                            \
    X(wrmsr, "mov $0xc0000080,%%ecx\nxor %%eax,%%eax\nxor %%edx,%%edx\nwrmsr", PRIVILEGE)          \
    X(wrmsr_pmu, "mov $0x186,%%ecx\nxor %%eax,%%eax\nxor %%edx,%%edx\nwrmsr", PRIVILEGE)           \
    X(rdpmc, "xor %%ecx,%%ecx\nrdpmc", PRIVILEGE)                                                  \
    X(read_cr0, "mov %%cr0,%%rax", PRIVILEGE)                                                      \
    X(write_cr0, "xor %%eax,%%eax\nmov %%rax,%%cr0", PRIVILEGE)                                    \
    X(write_cr3, "xor %%eax,%%eax\nmov %%rax,%%cr3", PRIVILEGE)                                    \
    X(write_cr4, "mov $0x720,%%eax\nmov %%rax,%%cr4", PRIVILEGE)                                   \
    X(write_cr8, "mov $15,%%eax\nmov %%rax,%%cr8", PRIVILEGE)                                      \
    X(read_dr7, "mov %%db7,%%rax", PRIVILEGE)                                                      \
    X(write_dr0, "mov %%rax,%%db0", PRIVILEGE)                                                     \
    X(lgdt, "lgdt -64(%%rsp)", PRIVILEGE)                                                          \
    X(lidt, "lidt -64(%%rsp)", PRIVILEGE)                                                          \
    X(lldt, "xor %%eax,%%eax\nlldt %%ax", PRIVILEGE)                                               \
    X(ltr, "mov $0x28,%%eax\nltr %%ax", PRIVILEGE)                                                 \
    X(lmsw, "lmsw %%ax", PRIVILEGE)                                                                \
    X(clts, "clts", PRIVILEGE)                                                                     \
    X(invlpg, "invlpg (%%rsp)", PRIVILEGE)                                                         \
    X(swapgs, "swapgs", PRIVILEGE)

/* QEMU's TCG, from 9.1 on, executes them in ring 3: its tables lost the check of the CPL in June
 * 2024. The SDM and the APM say #GP. */
#define CACHES(X)                                                                                  \
    X(invd, "invd", PRIVILEGE)                                                                     \
    X(wbinvd, "wbinvd", PRIVILEGE)

/* Where CR4.FSGSBASE is clear. GS's base becomes what it is. */
#define BASES(X)                                                                                   \
    X(rdfsbase, "rdfsbase %%rax", UNDEFINED)                                                       \
    X(rdgsbase, "rdgsbase %%rax", UNDEFINED)                                                       \
    X(wrfsbase, "wrfsbase %%rsp", UNDEFINED)                                                       \
    X(wrgsbase, "mov %%gs:0x30,%%rax\nwrgsbase %%rax", UNDEFINED)

#define MEMORY(X)                                                                                  \
    X(read_null, "mov 0,%%eax", ACCESS(0))                                                         \
    X(read_unmapped, "mov 0x1234,%%eax", ACCESS(0x1234))                                           \
    X(write_unmapped, "movl $1,0x1234", ACCESS(0x1234))                                            \
    X(write_text, "movb $0x90,user_begin", ACCESS(ANY))                                            \
    X(read_kernel, "mov $0xffffffff81000000,%%rax\nmov (%%rax),%%eax",                             \
      ACCESS(0xffffffff81000000))                                                                  \
    X(write_kernel, "mov $0xffffffff81000000,%%rax\nmov %%eax,(%%rax)",                            \
      ACCESS(0xffffffff81000000))                                                                  \
    X(read_direct_map, "mov $0xffff800000001000,%%rax\nmov (%%rax),%%eax",                         \
      ACCESS(0xffff800000001000))                                                                  \
    X(read_non_canonical, "mov $0x0000800000000000,%%rax\nmov (%%rax),%%eax", ACCESS(UNKNOWN))     \
    X(push_non_canonical, "mov $0x1234567812345678,%%rsp\npush %%rax", ACCESS(UNKNOWN))            \
    X(push_unmapped, "mov $0x2000,%%esp\npush %%rax", ACCESS(0x1ff8))                              \
    X(stack_overflow, "1: sub $512,%%rsp\nmov %%eax,(%%rsp)\njmp 1b",                              \
      STATUS_STACK_OVERFLOW, ANY)                                                                  \
    X(execute_null, "xor %%eax,%%eax\njmp *%%rax", ACCESS(0))                                      \
    X(execute_stack, "movl $0x90909090,-64(%%rsp)\nlea -64(%%rsp),%%rax\njmp *%%rax",              \
      ACCESS(ANY))                                                                                 \
    X(execute_data, "mov $user_exception_count,%%eax\njmp *%%rax", ACCESS(ANY))                    \
    X(execute_kernel, "mov $0xffffffff81000000,%%rax\njmp *%%rax", ACCESS(0xffffffff81000000))     \
    X(execute_non_canonical, "mov $0x0000800000000000,%%rax\njmp *%%rax", ACCESS(UNKNOWN))         \
    X(int_0x80, "int $0x80", ACCESS(UNKNOWN))                                                      \
    X(int_timer, "int $0xd1", ACCESS(UNKNOWN))                                                     \
    X(int_nmi, "int $2", ACCESS(UNKNOWN))                                                          \
    X(int_double_fault, "int $8", ACCESS(UNKNOWN))                                                 \
    X(load_segment, "mov $0xfff8,%%eax\nmov %%ax,%%ds", ACCESS(UNKNOWN))                           \
    X(load_kernel_stack, "mov $0x10,%%eax\nmov %%ax,%%ss", ACCESS(UNKNOWN))

#define EXCEPTIONS(X) ARITHMETIC(X) ILLEGAL(X) DEBUGGING(X) PRIVILEGED(X) MEMORY(X)

#define EXCEPTION_KIND(name, code, ...) KIND_##name,
enum exception_kind {
    EXCEPTIONS(EXCEPTION_KIND) KIND_COUNT,
    EMULATED(EXCEPTION_KIND) CACHES(EXCEPTION_KIND) BASES(EXCEPTION_KIND) KIND_ALL
};
/* clang-format on */
