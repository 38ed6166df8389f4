/* SPDX-License-Identifier: MIT */
/* NtContinue and NtRaiseException with anything in them; exceptions that cannot be delivered; many
 * at once. */
#include "tests/ring3/helpers.h"

#define NON_CANONICAL UINT64_C(0x0000800000000000)
#define FLAGS_SETTABLE 0x40dd5u /* CF PF AF ZF SF TF DF OF AC */
#define FLAGS_FIXED 0x202u      /* IF, and the bit that is always 1 */

static CONTEXT context, back;
static EXCEPTION_RECORD record;
static volatile uint64_t passes;
static uint64_t flags;

#define CAPTURE(into)                                                                              \
    asm volatile(                                                                                  \
        "lea 1f(%%rip),%%rax\nmov %%rax,0xf8(%0)\nmov %%rsp,0x98(%0)\n"                            \
        "mov %%rbp,0xa0(%0)\nmov %%rbx,0x90(%0)\nmov %%r12,0xd8(%0)\nmov %%r13,0xe0(%0)\n"         \
        "mov %%r14,0xe8(%0)\nmov %%r15,0xf0(%0)\n1: pushfq\npop %1\ncld"                           \
        :                                                                                          \
        : "r"(&(into)), "m"(flags)                                                                 \
        : "rax", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "memory", "cc")

#define IN_XMM7 UINT64_C(0x0123456789abcdef)

/* Goes on at the capture, with these flags and selectors of nonsense; what flags there are then. */
static __attribute__((noinline)) uint64_t go_on_with(uint32_t wanted)
{
    uint64_t xmm7 = 0;
    memset(&context, 0, sizeof context);
    passes = 0;
    CAPTURE(context);
    if (passes++) {
        asm volatile("movq %%xmm7,%0" : "=r"(xmm7));
        CHECK_EQ(xmm7, IN_XMM7); /* the context has a 0, and no CONTEXT_FLOATING_POINT */
        return flags;
    }
    context.ContextFlags = CONTEXT_CONTROL | CONTEXT_INTEGER | CONTEXT_SEGMENTS;
    context.SegCs = 8, context.SegSs = 0x10, context.SegDs = 0xfff8, context.SegEs = 3;
    context.SegFs = context.SegGs = 0xffff;
    context.EFlags = wanted;
    asm volatile("movq %0,%%xmm7" : : "r"(IN_XMM7) : "xmm7");
    CHECK_STATUS(ZwContinue(&context, FALSE), STATUS_UNSUCCESSFUL);
    return 0;
}

TEST_USER(handling_input, flags_and_selectors,
          "NtContinue sets the flags that ring 3 may set and no other, and keeps ring 3's "
          "selectors, and floating-point registers that the context does not have")
{
    uint16_t cs = 0, ss = 0;
    for (unsigned bit = 0; bit < 32; bit++)
        if (bit != 8) /* TF would trap */
            CHECK_EQ(go_on_with(1u << bit), (1u << bit & FLAGS_SETTABLE) | FLAGS_FIXED);
    CHECK_EQ(go_on_with(~0x100u), (FLAGS_SETTABLE & ~0x100u) | FLAGS_FIXED);
    CHECK_EQ(go_on_with(0), FLAGS_FIXED);
    asm volatile("mov %%cs,%0\nmov %%ss,%1" : "=r"(cs), "=r"(ss));
    CHECK_EQ(cs, 0x33);
    CHECK_EQ(ss, 0x2b);
}

TEST_USER(handling_input, pointers,
          "NtContinue and NtRaiseException refuse misaligned pointers and those to no memory or to "
          "the kernel's")
{
    static const uint64_t bad[] = { 0, 0x12345670, (uint64_t)KERNEL_ADDRESS, NON_CANONICAL,
                                    ~UINT64_C(15) };
    memset(&context, 0, sizeof context);
    memset(&record, 0, sizeof record);
    CHECK_STATUS(ZwContinue((PCONTEXT)((uint64_t)&context + 8), FALSE),
                 STATUS_DATATYPE_MISALIGNMENT);
    CHECK_STATUS(ZwRaiseException(&record, (PCONTEXT)((uint64_t)&context + 1), TRUE),
                 STATUS_DATATYPE_MISALIGNMENT);
    for (unsigned i = 0; i < ARRAY_SIZE(bad); i++) {
        CHECK_STATUS(ZwContinue((PCONTEXT)bad[i], FALSE), STATUS_ACCESS_VIOLATION);
        CHECK_STATUS(ZwRaiseException(&record, (PCONTEXT)bad[i], TRUE), STATUS_ACCESS_VIOLATION);
        CHECK_STATUS(ZwRaiseException((PEXCEPTION_RECORD)bad[i], &context, TRUE),
                     STATUS_ACCESS_VIOLATION);
        CHECK_STATUS(ZwRaiseException((PEXCEPTION_RECORD)bad[i], NULL, FALSE),
                     STATUS_ACCESS_VIOLATION);
    }
    record.NumberParameters = 16;
    CHECK_STATUS(ZwRaiseException(&record, &context, TRUE), STATUS_INVALID_PARAMETER);
    record.NumberParameters = ~0u;
    CHECK_STATUS(ZwRaiseException(&record, &context, FALSE), STATUS_INVALID_PARAMETER);
    context.ContextFlags = CONTEXT_CONTROL;
    context.Rip = NON_CANONICAL;
    record.NumberParameters = 0;
    CHECK_STATUS(ZwContinue(&context, FALSE), STATUS_ACCESS_VIOLATION);
    CHECK_STATUS(ZwRaiseException(&record, &context, TRUE), STATUS_ACCESS_VIOLATION);
    context.Rip = UINT64_C(0xffff7fffffffffff);
    CHECK_STATUS(ZwContinue(&context, FALSE), STATUS_ACCESS_VIOLATION);
}

static EXCEPTION_RECORD found;
static CONTEXT found_in;

static LONG go_back(PEXCEPTION_POINTERS e)
{
    memcpy(&found, e->ExceptionRecord, sizeof found);
    memcpy(&found_in, e->ContextRecord, sizeof found_in);
    memcpy(e->ContextRecord, &back, sizeof back);
    return EXCEPTION_CONTINUE_EXECUTION;
}

/* Calls it; an exception on the way comes back here. */
static __attribute__((noinline)) bool survive(void (*function)(void))
{
    PVOID h = AddVectoredExceptionHandler(1, go_back);
    memset(&back, 0, sizeof back);
    memset(&found, 0, sizeof found);
    passes = 0;
    CAPTURE(back);
    back.ContextFlags = CONTEXT_CONTROL | CONTEXT_INTEGER;
    back.EFlags = FLAGS_FIXED;
    bool came_back = passes++;
    if (!came_back)
        function();
    RemoveVectoredExceptionHandler(h);
    return came_back;
}

static void go_to_kernel(void)
{
    context.ContextFlags = CONTEXT_CONTROL;
    context.Rip = (uint64_t)KERNEL_ADDRESS;
    context.Rsp = back.Rsp - 4096;
    ZwContinue(&context, FALSE);
}

static void go_far(void)
{
    context.ContextFlags = CONTEXT_CONTROL | CONTEXT_INTEGER;
    context.Rip = (uint64_t)UNMAPPED;
    context.Rsp = (back.Rsp - 4096) | 7; /* the dispatcher's stack is aligned all the same */
    context.Rax = 1, context.R11 = 11, context.Rcx = 12;
    ZwContinue(&context, FALSE);
}

static void raise(void)
{
    memset(&context, 0, sizeof context);
    context.ContextFlags = CONTEXT_CONTROL | CONTEXT_INTEGER;
    context.Rip = 0x1111;
    context.Rsp = back.Rsp - 4096;
    context.R9 = 99;
    memset(&record, 0, sizeof record);
    record.ExceptionCode = (NTSTATUS)0xe0001234;
    record.ExceptionFlags = EXCEPTION_NONCONTINUABLE;
    record.ExceptionAddress = (PVOID)0x2222;
    record.NumberParameters = 15;
    for (unsigned i = 0; i < 15; i++)
        record.ExceptionInformation[i] = i * 7 + 1;
    ZwRaiseException(&record, &context, TRUE);
}

TEST_USER(handling_input, places,
          "code that continues at an address that is not its own takes an exception there, with "
          "the registers it asked for")
{
    CHECK(survive(go_to_kernel));
    CHECK_STATUS(found.ExceptionCode, STATUS_ACCESS_VIOLATION);
    CHECK(found.ExceptionAddress == KERNEL_ADDRESS);
    CHECK_EQ(found.ExceptionInformation[1], (uint64_t)KERNEL_ADDRESS);
    CHECK(survive(go_far));
    CHECK(found.ExceptionAddress == UNMAPPED);
    CHECK_EQ(found.ExceptionInformation[0], EXCEPTION_EXECUTE_FAULT);
    CHECK_EQ(found_in.Rsp, (back.Rsp - 4096) | 7);
    CHECK_EQ(found_in.Rax, 1);
    CHECK_EQ(found_in.R11, 11); /* SYSRET could not have restored these */
    CHECK_EQ(found_in.Rcx, 12);
}

TEST_USER(handling_input, raised,
          "an exception that ring 3 raises comes to its dispatcher as it was raised, in the "
          "context that was given")
{
    CHECK(survive(raise));
    CHECK(memcmp(&found, &record, sizeof found) == 0);
    CHECK_EQ(found_in.Rip, 0x1111);
    CHECK_EQ(found_in.Rsp, back.Rsp - 4096);
    CHECK_EQ(found_in.R9, 99);
}

/* --- What cannot be delivered. --- */

static LONG fault_again(PEXCEPTION_POINTERS e)
{
    asm volatile("ud2");
    return EXCEPTION_CONTINUE_SEARCH;
}

static DWORD fault(PVOID unused)
{
    asm volatile("ud2");
    return 0;
}

static DWORD fault_without_stack(PVOID unused)
{
    asm volatile("mov $0x12345000,%%esp\nud2" : : : "memory");
    return 0;
}

/* Where the last of the stack goes: into the call of a handler, or nothing is left for the next
 * exception. */
static void check_full(NTSTATUS status)
{
    if (status != STATUS_ILLEGAL_INSTRUCTION)
        CHECK_STATUS(status, STATUS_ACCESS_VIOLATION);
}

TEST_USER(handling_input, without_end,
          "a handler that faults again and again ends its thread when the stack is full, and "
          "nobody else's")
{
    PVOID h = AddVectoredExceptionHandler(1, fault_again);
    for (unsigned i = 0; i < 3; i++)
        check_full(ring3_run(fault, NULL));
    RemoveVectoredExceptionHandler(h);
}

TEST_USER(handling_input, without_stack,
          "an exception without a valid stack ends the thread with the exception's status, and no "
          "handler is called")
{
    passes = 0;
    memset(&found, 0, sizeof found);
    PVOID h = AddVectoredExceptionHandler(1, go_back);
    for (unsigned i = 0; i < 3; i++)
        CHECK_STATUS(ring3_run(fault_without_stack, NULL), STATUS_ILLEGAL_INSTRUCTION);
    CHECK_STATUS(found.ExceptionCode, STATUS_SUCCESS);
    RemoveVectoredExceptionHandler(h);
}

static BYTE *guarded;
static void read_guarded(void) { *(volatile BYTE *)guarded; }

TEST_USER(handling_input, guard_page,
          "the first access to a guard page is STATUS_GUARD_PAGE_VIOLATION, the next is none")
{
    guarded = VirtualAlloc(NULL, 1, MEM_COMMIT | MEM_RESERVE, PAGE_READWRITE | PAGE_GUARD);
    CHECK(survive(read_guarded));
    CHECK_STATUS(found.ExceptionCode, STATUS_GUARD_PAGE_VIOLATION);
    CHECK(!survive(read_guarded));
    CHECK(VirtualFree(guarded, 0, MEM_RELEASE));
}

TEST_USER(handling_input, debug_registers,
          "a thread's debug registers and last branch read as 0; to set one is "
          "STATUS_NOT_SUPPORTED")
{
    static const size_t refused[] = { offsetof(CONTEXT, Dr0), offsetof(CONTEXT, Dr1),
                                      offsetof(CONTEXT, Dr2), offsetof(CONTEXT, Dr3),
                                      offsetof(CONTEXT, Dr7) };
    record.NumberParameters = 0;
    for (unsigned i = 0; i < ARRAY_SIZE(refused); i++) {
        memset(&context, 0, sizeof context);
        *(uint64_t *)((uint8_t *)&context + refused[i]) = UINT64_C(1) << 63 >> i;
        context.ContextFlags = CONTEXT_DEBUG_REGISTERS;
        CHECK_STATUS(ZwContinue(&context, FALSE), STATUS_NOT_SUPPORTED);
        CHECK_STATUS(ZwRaiseException(&record, &context, TRUE), STATUS_NOT_SUPPORTED);
    }
    context.Dr0 = context.Dr3 = context.Dr6 = ~UINT64_C(0);
    context.LastBranchFromRip = context.DebugControl = ~UINT64_C(0);
    CHECK(GetThreadContext(GetCurrentThread(), &context));
    CHECK_EQ(context.Dr0 | context.Dr3 | context.Dr6 | context.Dr7, 0);
    CHECK_EQ(context.LastBranchFromRip | context.DebugControl, 0);
}

/* --- Many at once. --- */

#define ITERATIONS 200
static uint64_t wrong; /* atomic */

static LONG count_fault(PEXCEPTION_POINTERS e)
{
    CONTEXT *c = e->ContextRecord;
    if (c->R12 != (c->R13 ^ UINT64_C(0x5555)) || c->FltSave.XmmRegisters[7].Low != c->R12)
        __atomic_fetch_add(&wrong, 1, __ATOMIC_RELAXED);
    c->Rax++;
    c->Rip += 2;
    return EXCEPTION_CONTINUE_EXECUTION;
}

static DWORD fault_often(PVOID number)
{
    uint64_t mine = (uint64_t)number * UINT64_C(0x1234567890) + 1, count = 0;
    for (unsigned i = 0; i < ITERATIONS; i++)
        asm volatile("mov %[mine],%%r12\nmov %%r12,%%r13\nxor $0x5555,%%r13\nmovq %%r12,%%xmm7\n"
                     "ud2\nmovq %%xmm7,%%r13\nsub %%r12,%%r13\nadd %%r13,%%rax"
                     : "+a"(count)
                     : [mine] "r"(mine + i)
                     : "r12", "r13", "xmm7");
    return (DWORD)count;
}

TEST_USER(handling_input, many,
          "eight threads on all CPUs that fault all the time each keep their own registers [slow]")
{
    HANDLE threads[8];
    PVOID h = AddVectoredExceptionHandler(1, count_fault);
    for (unsigned i = 0; i < 8; i++)
        threads[i] = ring3_start(fault_often, (PVOID)(uint64_t)i);
    for (unsigned i = 0; i < 8; i++)
        CHECK_EQ(ring3_end(threads[i]), ITERATIONS);
    CHECK_EQ(wrong, 0);
    RemoveVectoredExceptionHandler(h);
}
