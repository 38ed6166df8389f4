/* SPDX-License-Identifier: MIT */
/* Ring 3's half of tests/kernel/entry.c. */
#include "tests/ring3/helpers.h"

#define NO_SERVICE 0x800
#define NON_CANONICAL UINT64_C(0x1234567812345678)
#define FLAGS_SETTABLE 0x40dd5u
#define FLAGS_FIXED 0x202u

void user_spin_with_flags(uint64_t unused);
void user_half_syscall(uint64_t entry);
uint64_t user_spinning; /* atomic */
uint64_t user_gs = USER_GS_LEFT;

void user_spin_with_flags(uint64_t unused)
{
    asm volatile("pushfq\norl $0x40400,(%%rsp)\npopfq\nmovq $1,%0\n1: pause\njmp 1b"
                 : "=m"(user_spinning));
}

/* What SYSCALL leaves, and a jump instead of it. */
static uint64_t half_syscall(uint64_t entry, uint64_t flags, uint64_t *result)
{
    register uint64_t r11 asm("r11") = flags;
    *result = NO_SERVICE;
    asm volatile("lea 1f(%%rip),%%rcx\njmp *%[entry]\n1: pushfq\npop %[flags]\ncld"
                 : "+a"(*result), [flags] "+r"(r11)
                 : [entry] "r"(entry)
                 : "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "memory", "cc");
    return r11;
}

void user_enter(uint64_t entry)
{
    uint64_t result;
    for (;; __atomic_fetch_add(&user_spinning, 1, __ATOMIC_RELAXED)) {
        if (__atomic_load_n(&user_gs, __ATOMIC_RELAXED) != USER_GS_LEFT)
            RING3_WRITE_BASE(gs, user_gs);
        half_syscall(entry, FLAGS_FIXED, &result);
        asm volatile("syscall"
                     : "=a"(result)
                     : "a"(NO_SERVICE)
                     : "rcx", "rdx", "r8", "r9", "r10", "r11", "memory", "cc");
        ZwYieldExecution();
    }
}

static EXCEPTION_RECORD record;
static uint64_t go_on_at;

static LONG go_on(PEXCEPTION_POINTERS e)
{
    memcpy(&record, e->ExceptionRecord, sizeof record);
    e->ContextRecord->Rip = go_on_at;
    return EXCEPTION_CONTINUE_EXECUTION;
}

void user_half_syscall(uint64_t entry)
{
    uint64_t result;
    CHECK_EQ(half_syscall(entry, FLAGS_FIXED, &result), FLAGS_FIXED);
    CHECK_STATUS((NTSTATUS)result, STATUS_INVALID_SYSTEM_SERVICE);
    for (unsigned bit = 0; bit < 32; bit++)
        if (bit != 8) /* TF would trap */
            CHECK_EQ(half_syscall(entry, 1u << bit, &result),
                     (1u << bit & FLAGS_SETTABLE) | FLAGS_FIXED);
    /* A place to return to that no return can reach. */
    PVOID h = AddVectoredExceptionHandler(1, go_on);
    asm volatile(
        "lea 1f(%%rip),%%rax\nmov %%rax,%0\nmov %[rcx],%%rcx\nmov $0x202,%%r11d\nmov $0x800,%%eax\n"
        "jmp *%[entry]\n1:"
        : "=m"(go_on_at)
        : [rcx] "r"(NON_CANONICAL), [entry] "r"(entry)
        : "rax", "rcx", "r11", "memory", "cc");
    CHECK_STATUS(record.ExceptionCode, STATUS_ACCESS_VIOLATION);
    CHECK_EQ((uint64_t)record.ExceptionAddress, entry);
    CHECK_EQ(record.ExceptionInformation[0], EXCEPTION_EXECUTE_FAULT);
    RemoveVectoredExceptionHandler(h);
}
