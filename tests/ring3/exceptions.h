/* SPDX-License-Identifier: MIT */
/* Ways for a ring-3 thread to die: X(name, assembly, exit status, address). The address is that of
 * the page fault; NO_FAULT where there is none, UNKNOWN where Windows cannot know it, ANY where it
 * is not known here. RAX, RCX, RDX, RSI and RDI are the code's own. */
#pragma once

#define NO_FAULT 0
#define ANY UINT64_C(1)
#define UNKNOWN ~UINT64_C(0)

/* clang-format off */
#define ARITHMETIC(X)                                                                              \
    X(divide, "xor %%ecx,%%ecx\nmov $1,%%eax\ncltd\ndiv %%ecx",                                    \
      STATUS_INTEGER_DIVIDE_BY_ZERO, NO_FAULT)                                                     \
    X(divide_signed, "xor %%ecx,%%ecx\nmov $1,%%eax\ncqto\nidiv %%rcx",                            \
      STATUS_INTEGER_DIVIDE_BY_ZERO, NO_FAULT)                                                     \
    X(divide_memory, "movq $0,-64(%%rsp)\nmov $1,%%eax\ncqto\nidivq -64(%%rsp)",                   \
      STATUS_INTEGER_DIVIDE_BY_ZERO, NO_FAULT)                                                     \
    X(overflow, "mov $0x80000000,%%eax\ncltd\nmov $-1,%%ecx\nidiv %%ecx",                          \
      STATUS_INTEGER_OVERFLOW, NO_FAULT)                                                           \
    X(overflow_64, "mov $1,%%edx\nmov $1,%%ecx\nxor %%eax,%%eax\ndiv %%rcx",                       \
      STATUS_INTEGER_OVERFLOW, NO_FAULT)                                                           \
    X(overflow_16, "mov $1,%%edx\nmov $1,%%ecx\nxor %%eax,%%eax\ndiv %%cx",                        \
      STATUS_INTEGER_OVERFLOW, NO_FAULT)                                                           \
    X(overflow_8, "mov $0x8000,%%eax\nmov $1,%%ecx\ndiv %%cl",                                     \
      STATUS_INTEGER_OVERFLOW, NO_FAULT)                                                           \
    X(overflow_high, "mov $0x8000,%%eax\nmov $0x100,%%ecx\ndiv %%ch",                              \
      STATUS_INTEGER_OVERFLOW, NO_FAULT)                                                           \
    X(overflow_low, "mov $0x8000,%%eax\nmov $0x100,%%ecx\ndiv %%cl",                               \
      STATUS_INTEGER_DIVIDE_BY_ZERO, NO_FAULT)                                                     \
    X(overflow_stack, "movq $-1,-64(%%rsp)\nmov $0x80000000,%%eax\ncltd\n"                         \
      "idivl -64(%%rsp)",                                                                          \
      STATUS_INTEGER_OVERFLOW, NO_FAULT)                                                           \
    X(overflow_indexed, "movl $-1,-32(%%rsp)\nmov $-2,%%rcx\nmov $0x80000000,%%eax\n"              \
      "cltd\nidivl -16(%%rsp,%%rcx,8)",                                                            \
      STATUS_INTEGER_OVERFLOW, NO_FAULT)                                                           \
    X(overflow_relative, "mov $-1,%%rdx\nxor %%eax,%%eax\n"                                        \
      "divq user_begin(%%rip)",                                                             \
      STATUS_INTEGER_OVERFLOW, NO_FAULT)                                                           \
    X(overflow_absolute, "mov $-1,%%rdx\nxor %%eax,%%eax\ndivq user_begin",                 \
      STATUS_INTEGER_OVERFLOW, NO_FAULT)                                                           \
    X(x87, "fninit\nmovl $0x37b,-64(%%rsp)\nfldcw -64(%%rsp)\nfld1\n"                              \
      "fldz\nfdivrp\nfwait",                                                                       \
      STATUS_FLOAT_DIVIDE_BY_ZERO, NO_FAULT)                                                       \
    X(x87_invalid, "fninit\nmovl $0x37e,-64(%%rsp)\nfldcw -64(%%rsp)\nfldz\n"                      \
      "fldz\nfdivrp\nfwait",                                                                       \
      STATUS_FLOAT_INVALID_OPERATION, NO_FAULT)

/* What an emulator may leave out: stack faults of x87, and exceptions of SSE. */
#define EMULATED(X)                                                                                \
    X(x87_stack, "fninit\nmovl $0x37e,-64(%%rsp)\nfldcw -64(%%rsp)\n"                              \
      "fstp %%st(1)\nfwait",                                                                       \
      STATUS_FLOAT_STACK_CHECK, NO_FAULT)                                                          \
    X(sse_divide, "movl $0x1d80,-64(%%rsp)\nldmxcsr -64(%%rsp)\nmov $1,%%eax\n"                    \
      "cvtsi2sd %%eax,%%xmm0\nxorps %%xmm1,%%xmm1\n"                                               \
      "divsd %%xmm1,%%xmm0",                                                                       \
      STATUS_FLOAT_DIVIDE_BY_ZERO, ANY)                                                            \
    X(sse_invalid, "movl $0x1f00,-64(%%rsp)\nldmxcsr -64(%%rsp)\n"                                 \
      "xorps %%xmm0,%%xmm0\nxorps %%xmm1,%%xmm1\n"                                                 \
      "divsd %%xmm1,%%xmm0",                                                                       \
      STATUS_FLOAT_INVALID_OPERATION, ANY)                                                         \
    X(sse_inexact, "movl $0x0f80,-64(%%rsp)\nldmxcsr -64(%%rsp)\nmov $1,%%eax\n"                   \
      "cvtsi2sd %%eax,%%xmm0\nmov $3,%%eax\ncvtsi2sd %%eax,%%xmm1\n"                               \
      "divsd %%xmm1,%%xmm0",                                                                       \
      STATUS_FLOAT_INEXACT_RESULT, ANY)

#define ILLEGAL(X)                                                                                 \
    X(ud2, "ud2", STATUS_ILLEGAL_INSTRUCTION, NO_FAULT)                                            \
    X(push_es, ".byte 0x06", STATUS_ILLEGAL_INSTRUCTION, NO_FAULT)                                 \
    X(lock_nop, ".byte 0xf0,0x90", STATUS_ILLEGAL_INSTRUCTION, NO_FAULT)                           \
    X(ud2_without_stack, "xor %%esp,%%esp\nud2", STATUS_ILLEGAL_INSTRUCTION, NO_FAULT)             \
    X(ud2_on_kernel_stack, "mov $0xffffffff81000000,%%rsp\nud2", STATUS_ILLEGAL_INSTRUCTION, NO_FAULT)

#define DEBUGGING(X)                                                                               \
    X(int3, "int3", STATUS_BREAKPOINT, NO_FAULT)                                                   \
    X(int_3, ".byte 0xcd,0x03", STATUS_BREAKPOINT, NO_FAULT)                                       \
    X(trap_flag, "pushfq\norl $0x100,(%%rsp)\npopfq\nnop\nnop", STATUS_SINGLE_STEP, NO_FAULT)

#define PRIVILEGED(X)                                                                              \
    X(hlt, "hlt", STATUS_PRIVILEGED_INSTRUCTION, NO_FAULT)                                         \
    X(cli, "cli", STATUS_PRIVILEGED_INSTRUCTION, NO_FAULT)                                         \
    X(sti, "sti", STATUS_PRIVILEGED_INSTRUCTION, NO_FAULT)                                         \
    X(in, "mov $0x3fd,%%edx\nin %%dx,%%al", STATUS_PRIVILEGED_INSTRUCTION, NO_FAULT)               \
    X(in_immediate, "in $0x21,%%al", STATUS_PRIVILEGED_INSTRUCTION, NO_FAULT)                      \
    X(out, "mov $0xf4,%%edx\nout %%eax,%%dx", STATUS_PRIVILEGED_INSTRUCTION, NO_FAULT)             \
    X(out_word, "mov $0xf4,%%edx\nout %%ax,%%dx", STATUS_PRIVILEGED_INSTRUCTION, NO_FAULT)         \
    X(out_immediate, "out %%al,$0xf4", STATUS_PRIVILEGED_INSTRUCTION, NO_FAULT)                    \
    X(ins, "lea -64(%%rsp),%%rdi\nmov $0x3fd,%%edx\ninsb", STATUS_PRIVILEGED_INSTRUCTION, NO_FAULT) \
    X(outs, "lea -64(%%rsp),%%rsi\nmov $0xf4,%%edx\noutsb", STATUS_PRIVILEGED_INSTRUCTION, NO_FAULT) \
    X(rdmsr, "mov $0xc0000080,%%ecx\nrdmsr", STATUS_PRIVILEGED_INSTRUCTION, NO_FAULT)              \
    X(wrmsr, "mov $0xc0000080,%%ecx\nxor %%eax,%%eax\nxor %%edx,%%edx\nwrmsr", STATUS_PRIVILEGED_INSTRUCTION, \
      NO_FAULT)                                                                                    \
    X(wrmsr_pmu, "mov $0x186,%%ecx\nxor %%eax,%%eax\nxor %%edx,%%edx\nwrmsr", STATUS_PRIVILEGED_INSTRUCTION, \
      NO_FAULT)                                                                                    \
    X(rdpmc, "xor %%ecx,%%ecx\nrdpmc", STATUS_PRIVILEGED_INSTRUCTION, NO_FAULT)                    \
    X(read_cr0, "mov %%cr0,%%rax", STATUS_PRIVILEGED_INSTRUCTION, NO_FAULT)                        \
    X(write_cr0, "xor %%eax,%%eax\nmov %%rax,%%cr0", STATUS_PRIVILEGED_INSTRUCTION, NO_FAULT)      \
    X(write_cr3, "xor %%eax,%%eax\nmov %%rax,%%cr3", STATUS_PRIVILEGED_INSTRUCTION, NO_FAULT)      \
    X(write_cr4, "mov $0x720,%%eax\nmov %%rax,%%cr4", STATUS_PRIVILEGED_INSTRUCTION, NO_FAULT)     \
    X(write_cr8, "mov $15,%%eax\nmov %%rax,%%cr8", STATUS_PRIVILEGED_INSTRUCTION, NO_FAULT)        \
    X(read_dr7, "mov %%db7,%%rax", STATUS_PRIVILEGED_INSTRUCTION, NO_FAULT)                        \
    X(write_dr0, "mov %%rax,%%db0", STATUS_PRIVILEGED_INSTRUCTION, NO_FAULT)                       \
    X(lgdt, "lgdt -64(%%rsp)", STATUS_PRIVILEGED_INSTRUCTION, NO_FAULT)                            \
    X(lidt, "lidt -64(%%rsp)", STATUS_PRIVILEGED_INSTRUCTION, NO_FAULT)                            \
    X(lldt, "xor %%eax,%%eax\nlldt %%ax", STATUS_PRIVILEGED_INSTRUCTION, NO_FAULT)                 \
    X(ltr, "mov $0x28,%%eax\nltr %%ax", STATUS_PRIVILEGED_INSTRUCTION, NO_FAULT)                   \
    X(lmsw, "lmsw %%ax", STATUS_PRIVILEGED_INSTRUCTION, NO_FAULT)                                  \
    X(clts, "clts", STATUS_PRIVILEGED_INSTRUCTION, NO_FAULT)                                       \
    X(invlpg, "invlpg (%%rsp)", STATUS_PRIVILEGED_INSTRUCTION, NO_FAULT)                           \
    X(swapgs, "swapgs", STATUS_PRIVILEGED_INSTRUCTION, NO_FAULT)

/* QEMU's TCG, from 9.1 on, executes them in ring 3: its tables lost the check of the CPL in June
 * 2024. The SDM and the APM say #GP. */
#define CACHES(X)                                                                                  \
    X(invd, "invd", STATUS_PRIVILEGED_INSTRUCTION, NO_FAULT)                                       \
    X(wbinvd, "wbinvd", STATUS_PRIVILEGED_INSTRUCTION, NO_FAULT)

#define MEMORY(X)                                                                                  \
    X(read_null, "mov 0,%%eax", STATUS_ACCESS_VIOLATION, 0)                                        \
    X(read_unmapped, "mov 0x1234,%%eax", STATUS_ACCESS_VIOLATION, 0x1234)                          \
    X(write_unmapped, "movl $1,0x1234", STATUS_ACCESS_VIOLATION, 0x1234)                           \
    X(write_text, "movb $0x90,user_begin", STATUS_ACCESS_VIOLATION, ANY)                    \
    X(read_kernel, "mov $0xffffffff81000000,%%rax\nmov (%%rax),%%eax", STATUS_ACCESS_VIOLATION, 0xffffffff81000000) \
    X(write_kernel, "mov $0xffffffff81000000,%%rax\nmov %%eax,(%%rax)", STATUS_ACCESS_VIOLATION, 0xffffffff81000000) \
    X(read_direct_map, "mov $0xffff800000001000,%%rax\nmov (%%rax),%%eax", STATUS_ACCESS_VIOLATION, \
      0xffff800000001000)                                                                          \
    X(read_non_canonical, "mov $0x0000800000000000,%%rax\nmov (%%rax),%%eax", STATUS_ACCESS_VIOLATION, UNKNOWN) \
    X(push_non_canonical, "mov $0x1234567812345678,%%rsp\npush %%rax", STATUS_ACCESS_VIOLATION, UNKNOWN) \
    X(push_unmapped, "mov $0x2000,%%esp\npush %%rax", STATUS_ACCESS_VIOLATION, 0x1ff8)             \
    X(stack_overflow, "1: sub $512,%%rsp\nmov %%eax,(%%rsp)\njmp 1b", STATUS_STACK_OVERFLOW, ANY)  \
    X(execute_null, "xor %%eax,%%eax\njmp *%%rax", STATUS_ACCESS_VIOLATION, 0)                     \
    X(execute_stack, "movl $0x90909090,-64(%%rsp)\nlea -64(%%rsp),%%rax\njmp *%%rax", STATUS_ACCESS_VIOLATION, ANY) \
    X(execute_data, "mov $user_exception_count,%%eax\njmp *%%rax", STATUS_ACCESS_VIOLATION, ANY)   \
    X(execute_kernel, "mov $0xffffffff81000000,%%rax\njmp *%%rax", STATUS_ACCESS_VIOLATION, 0xffffffff81000000) \
    X(execute_non_canonical, "mov $0x0000800000000000,%%rax\njmp *%%rax", STATUS_ACCESS_VIOLATION, UNKNOWN) \
    X(int_0x80, "int $0x80", STATUS_ACCESS_VIOLATION, UNKNOWN)                                     \
    X(int_timer, "int $0xd1", STATUS_ACCESS_VIOLATION, UNKNOWN)                                    \
    X(int_nmi, "int $2", STATUS_ACCESS_VIOLATION, UNKNOWN)                                         \
    X(int_double_fault, "int $8", STATUS_ACCESS_VIOLATION, UNKNOWN)                                \
    X(load_segment, "mov $0xfff8,%%eax\nmov %%ax,%%ds", STATUS_ACCESS_VIOLATION, UNKNOWN)          \
    X(load_kernel_stack, "mov $0x10,%%eax\nmov %%ax,%%ss", STATUS_ACCESS_VIOLATION, UNKNOWN)

#define EXCEPTIONS(X) ARITHMETIC(X) ILLEGAL(X) DEBUGGING(X) PRIVILEGED(X) MEMORY(X)

#define EXCEPTION_KIND(name, code, status, address) KIND_##name,
enum exception_kind {
    EXCEPTIONS(EXCEPTION_KIND) KIND_COUNT,
    EMULATED(EXCEPTION_KIND) CACHES(EXCEPTION_KIND) KIND_ALL
};
/* clang-format on */
