/* SPDX-License-Identifier: MIT */
/* Exceptions that ring 3 handles: what its dispatcher gets, and what it goes on with. */
#include "tests/ring3/helpers.h"

#define NON_CANONICAL UINT64_C(0x0000800000000000)

extern void registers_ud2(uint64_t values[16]);
extern const char registers_ud2_here[], registers_steps_first[], registers_deep_back[];
extern void registers_steps(void);
extern uint64_t registers_deep(void);

static EXCEPTION_RECORD record; /* of the last exception */
static CONTEXT context;
static uint64_t seen; /* atomic */

static LONG note(PEXCEPTION_POINTERS e)
{
    memcpy(&record, e->ExceptionRecord, sizeof record);
    memcpy(&context, e->ContextRecord, sizeof context);
    __atomic_fetch_add(&seen, 1, __ATOMIC_RELEASE);
    return EXCEPTION_CONTINUE_SEARCH;
}

/* Goes on after an instruction of two bytes. */
static uint64_t flags_of_handler;

static LONG skip_two(PEXCEPTION_POINTERS e)
{
    asm volatile("pushfq\npopq %0" : "=r"(flags_of_handler));
    note(e);
    e->ContextRecord->Rip += 2;
    return EXCEPTION_CONTINUE_EXECUTION;
}

static PVOID handle(PVECTORED_EXCEPTION_HANDLER handler)
{
    PVOID handle = AddVectoredExceptionHandler(1, handler);
    seen = 0;
    CHECK(handle != NULL);
    return handle;
}

static void check_registers(const uint64_t *v)
{
    const CONTEXT *c = &context;
    const uint64_t found[15] = { c->Rax, c->Rcx, c->Rdx, c->Rbx, c->Rbp, c->Rsi, c->Rdi, c->R8,
                                 c->R9,  c->R10, c->R11, c->R12, c->R13, c->R14, c->R15 };
    for (unsigned i = 0; i < 15; i++)
        CHECK_EQ(found[i], v[i]);
}

/* Another value for each register. */
static LONG change_all(PEXCEPTION_POINTERS e)
{
    CONTEXT *c = e->ContextRecord;
    LONG result = skip_two(e); /* notes the context */
    uint64_t *const registers[15] = { &c->Rax, &c->Rcx, &c->Rdx, &c->Rbx, &c->Rbp,
                                      &c->Rsi, &c->Rdi, &c->R8,  &c->R9,  &c->R10,
                                      &c->R11, &c->R12, &c->R13, &c->R14, &c->R15 };
    for (unsigned i = 0; i < 15; i++)
        *registers[i] = ~*registers[i];
    c->EFlags &= ~1u;
    return result;
}

TEST_USER(
    handling, registers,
    "a handler finds every register as it was, and all have its values when the code continues")
{
    uint64_t values[16], before[16];
    PVOID h = handle(change_all);
    for (unsigned i = 0; i < 15; i++)
        before[i] = values[i] = UINT64_C(0x1011111110111111) * (i + 1) + i;
    registers_ud2(values);
    CHECK_EQ(seen, 1);
    check_registers(before);
    for (unsigned i = 0; i < 15; i++)
        CHECK_EQ(values[i], ~before[i]);
    CHECK_EQ(values[15] & 0x40401, 0x40400); /* AC and DF, which the code had set, and not CF */
    CHECK_EQ(flags_of_handler & 0x40400, 0); /* nor AC: as the convention wants it */
    CHECK_STATUS(record.ExceptionCode, STATUS_ILLEGAL_INSTRUCTION);
    CHECK_EQ(record.ExceptionFlags, 0);
    CHECK(record.ExceptionRecord == NULL);
    CHECK(record.ExceptionAddress == registers_ud2_here);
    CHECK_EQ(record.NumberParameters, 0);
    CHECK_EQ((&record.NumberParameters)[1], 0); /* no field */
    CHECK_EQ(context.Rip, (uint64_t)registers_ud2_here);
    CHECK_EQ(context.EFlags & 0x40401, 0x40401);
    CHECK_EQ(context.ContextFlags, CONTEXT_ALL);
    CHECK_EQ(context.SegCs, 0x33);
    CHECK_EQ(context.SegSs, 0x2b);
    RemoveVectoredExceptionHandler(h);
}

/* --- Floating point. --- */

static LONG change_floats(PEXCEPTION_POINTERS e)
{
    XMM_SAVE_AREA32 *f = &e->ContextRecord->FltSave;
    note(e);
    for (unsigned i = 0; i < 16; i++)
        f->XmmRegisters[i].Low ^= 0xff00 + i;
    f->ControlWord = 0x27f;
    f->MxCsr = 0xffff9f80; /* with bits that there are not */
    e->ContextRecord->Rip += 2;
    asm volatile("fninit\nfldpi\npxor %%xmm3,%%xmm3\npxor %%xmm15,%%xmm15" : : : "xmm3", "xmm15");
    return EXCEPTION_CONTINUE_EXECUTION;
}

TEST_USER(handling, floating_point,
          "XMM, MXCSR and x87 are in the context, and continue as the handler left them there; "
          "what the handler itself did with them is gone")
{
    uint64_t xmm3[2] = { 3, 4 }, xmm15[2] = { 15, 16 };
    uint32_t mxcsr = 0x1fa0;
    uint16_t control = 0x37f;
    PVOID h = handle(change_floats);
    asm volatile("fninit\nfld1\nldmxcsr %[mxcsr]\nmovups %[a],%%xmm3\nmovups %[b],%%xmm15\n"
                 "ud2\n"
                 "movups %%xmm3,%[a]\nmovups %%xmm15,%[b]\nstmxcsr %[mxcsr]\nfnstcw %[control]\n"
                 "fninit\n"
                 : [a] "+m"(xmm3), [b] "+m"(xmm15), [mxcsr] "+m"(mxcsr), [control] "=m"(control)
                 :
                 : "xmm3", "xmm15");
    CHECK_EQ(context.FltSave.XmmRegisters[3].Low, 3);
    CHECK_EQ(context.FltSave.XmmRegisters[3].High, 4);
    CHECK_EQ(context.FltSave.XmmRegisters[15].High, 16);
    CHECK_EQ(context.MxCsr, 0x1fa0);
    CHECK_EQ(context.FltSave.ControlWord, 0x37f);
    CHECK_EQ(context.FltSave.FloatRegisters[0].Low, UINT64_C(0x8000000000000000)); /* 1.0 */
    CHECK_EQ(xmm3[0], 3 ^ 0xff03);
    CHECK_EQ(xmm3[1], 4);
    CHECK_EQ(xmm15[0], 15 ^ 0xff0f);
    CHECK_EQ(mxcsr & 0xffff, 0x9f80);
    CHECK_EQ(mxcsr >> 18, 0); /* nowhere does MXCSR have these */
    CHECK_EQ(control, 0x27f);
    asm volatile("ldmxcsr %0" : : "m"((uint32_t){ 0x1f80 }));
    RemoveVectoredExceptionHandler(h);
}

static LONG mask_again(PEXCEPTION_POINTERS e)
{
    note(e);
    asm volatile("fld1\nfstp %%st(0)" : :); /* x87 works in a handler of x87's exception */
    e->ContextRecord->FltSave.StatusWord = 0;
    e->ContextRecord->FltSave.ControlWord = 0x37f;
    return EXCEPTION_CONTINUE_EXECUTION;
}

TEST_USER(
    handling, x87,
    "a handler of an x87 exception uses x87, clears the exception in its context, and continues")
{
    uint16_t control = 0x37b;
    PVOID h = handle(mask_again);
    asm volatile("fninit\nfldcw %0\nfld1\nfldz\nfdivrp\nfwait\nfninit" : : "m"(control));
    CHECK_EQ(seen, 1);
    CHECK_STATUS(record.ExceptionCode, STATUS_FLOAT_DIVIDE_BY_ZERO);
    CHECK_EQ(record.NumberParameters, 1);
    CHECK_EQ(record.ExceptionInformation[0], 0);
    CHECK_EQ(context.FltSave.StatusWord & 4, 4);
    RemoveVectoredExceptionHandler(h);
}

/* --- Records. --- */

static uint64_t go_on_at;

static LONG go_on(PEXCEPTION_POINTERS e)
{
    note(e);
    e->ContextRecord->Rip = go_on_at;
    return EXCEPTION_CONTINUE_EXECUTION;
}

#define TRY(code, ...)                                                                             \
    asm volatile("lea 9f(%%rip),%%rax\nmov %%rax,%0\n" code "\n9:\n"                               \
                 : "+m"(go_on_at)                                                                  \
                 : __VA_ARGS__                                                                     \
                 : "rax", "rcx", "rdx", "memory", "cc")

TEST_USER(handling, access_violations,
          "an access violation says whether it was a read, a write or a fetch, and where; one "
          "without a page fault says -1")
{
    uint8_t *page = ring3_pages(1);
    PVOID h = handle(go_on);
    REQUIRE(page != NULL);
    page[0] = 0xc3;
    TRY("mov 0x1238,%%rcx");
    CHECK_STATUS(record.ExceptionCode, STATUS_ACCESS_VIOLATION);
    CHECK_EQ(record.NumberParameters, 2);
    CHECK_EQ(record.ExceptionInformation[0], EXCEPTION_READ_FAULT);
    CHECK_EQ(record.ExceptionInformation[1], 0x1238);
    TRY("movb $1,0x2345");
    CHECK_EQ(record.ExceptionInformation[0], EXCEPTION_WRITE_FAULT);
    CHECK_EQ(record.ExceptionInformation[1], 0x2345);
    TRY("jmp *%1", "r"(page));
    CHECK_EQ(record.ExceptionInformation[0], EXCEPTION_EXECUTE_FAULT);
    CHECK_EQ(record.ExceptionInformation[1], (uint64_t)page);
    CHECK(record.ExceptionAddress == page);
    ring3_protect(page, PAGE_READONLY);
    TRY("movb $1,5(%1)", "r"(page));
    CHECK_EQ(record.ExceptionInformation[0], EXCEPTION_WRITE_FAULT);
    CHECK_EQ(record.ExceptionInformation[1], (uint64_t)page + 5);
    TRY("mov %1,%%rcx\nmov (%%rcx),%%rcx", "r"(NON_CANONICAL));
    CHECK_EQ(record.ExceptionInformation[0], EXCEPTION_READ_FAULT);
    CHECK_EQ(record.ExceptionInformation[1], ~UINT64_C(0));
    CHECK_EQ(seen, 5);
    RemoveVectoredExceptionHandler(h);
    ring3_free(page);
}

static const uint8_t lengths[] = { 1, 1, 2, 2, 5, 2, 1, 8, 1 }; /* of the instructions stepped */
static uint64_t steps[sizeof lengths];

static LONG step_on(PEXCEPTION_POINTERS e)
{
    CHECK_STATUS(e->ExceptionRecord->ExceptionCode, STATUS_SINGLE_STEP);
    CHECK_EQ(e->ContextRecord->EFlags & 0x100, 0); /* TF is gone; who wants the next step sets it */
    if (seen < sizeof lengths)
        steps[seen++] = e->ContextRecord->Rip;
    if (seen < sizeof lengths)
        e->ContextRecord->EFlags |= 0x100;
    return EXCEPTION_CONTINUE_EXECUTION;
}

TEST_USER(handling, single_steps,
          "a handler that sets TF each time is called once for each instruction of the code, a "
          "system call too, and for none of its own")
{
    uint64_t at = (uint64_t)registers_steps_first;
    PVOID h = handle(step_on);
    registers_steps();
    CHECK_EQ(seen, sizeof lengths);
    for (unsigned i = 0; i < sizeof lengths && i < seen; i++)
        CHECK_EQ(steps[i], at += lengths[i]);
    RemoveVectoredExceptionHandler(h);
}

static uint64_t stack_limit; /* in the handler */

static LONG come_back(PEXCEPTION_POINTERS e)
{
    note(e);
    asm volatile("mov %%gs:0x10,%0" : "=r"(stack_limit)); /* NT_TIB.StackLimit */
    e->ContextRecord->Rip = (uint64_t)registers_deep_back;
    return EXCEPTION_CONTINUE_EXECUTION;
}

TEST_USER(handling, recursion,
          "an endless recursion is STATUS_STACK_OVERFLOW in the fifth page from the end, and a "
          "handler can handle it on the four below, where StackLimit is then")
{
    MEMORY_BASIC_INFORMATION info = { 0 };
    PVOID h = handle(come_back);
    uint64_t here = (uint64_t)__builtin_frame_address(0);
    CHECK_EQ(registers_deep(), 1);
    CHECK_EQ(seen, 1);
    CHECK_STATUS(record.ExceptionCode, STATUS_STACK_OVERFLOW);
    CHECK_EQ(record.NumberParameters, 2);
    CHECK_EQ(record.ExceptionInformation[0], EXCEPTION_WRITE_FAULT);
    CHECK_EQ(record.ExceptionInformation[1], context.Rsp);
    /* 16 pages, less those kept and what the loader has above. */
    CHECK_RANGE(here - context.Rsp, 9 * 4096, 16 * 4096);
    CHECK_EQ(VirtualQuery((PVOID)context.Rsp, &info, sizeof info), sizeof info);
    uint64_t lowest = (uint64_t)info.AllocationBase + 4096; /* the page below is never there */
    CHECK_EQ(context.Rsp / 4096, lowest / 4096 + 4);
    CHECK_EQ(stack_limit, lowest);
    RemoveVectoredExceptionHandler(h);
}
