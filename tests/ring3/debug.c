/* SPDX-License-Identifier: MIT */
/* Debug registers of threads. tests/programs/debug.c has every register, kind and length. */
#include "tests/ring3/debug.h"
#include "tests/ring3/helpers.h"

#define TF 0x100u
#define RF 0x10000u
#define STEP 0x4000u
#define LE 0x100u
#define WRITES 1u
#define ACCESSES 3u
#define WRITES_EACH 100

extern const char debug_place[], debug_walk_jump[], debug_walk_target[], debug_walk_end[],
    debug_fault_target[];
extern void debug_places(void), debug_walk(void), debug_mov_ss(void), debug_fault(void);

static CONTEXT hit; /* the last one */
static volatile uint64_t hits;
static void (*then)(CONTEXT *c);

static LONG on_hit(PEXCEPTION_POINTERS e)
{
    if (e->ExceptionRecord->ExceptionCode != (DWORD)STATUS_SINGLE_STEP)
        return EXCEPTION_CONTINUE_SEARCH;
    memcpy(&hit, e->ContextRecord, sizeof hit);
    hits++;
    if (then)
        then(e->ContextRecord);
    return EXCEPTION_CONTINUE_EXECUTION;
}

/* Dr2 of a thread, the handler's count at 0. */
static void arm(HANDLE thread, const volatile void *address, ULONG64 dr7)
{
    CONTEXT c = { .ContextFlags = CONTEXT_DEBUG_REGISTERS, .Dr2 = (ULONG64)address, .Dr7 = dr7 };
    CHECK(SetThreadContext(thread, &c));
    hits = 0;
}

static ULONG64 dr7_of(unsigned kind, unsigned length)
{
    return 1u << 4 | (kind | length << 2) << 24;
}

TEST_USER(debug_registers, values,
          "what is written reads back, but an address of the kernel's as 0, and of Dr7 and Dr6 the "
          "bits that threads have alone [DR-01 slow]")
{
    for (unsigned bit = 0; bit < 64; bit++) {
        ULONG64 one = UINT64_C(1) << bit, address = bit < 47 ? one : 0;
        CONTEXT c = {
            .ContextFlags = CONTEXT_DEBUG_REGISTERS, .Dr0 = one, .Dr3 = one, .Dr6 = one, .Dr7 = one
        };
        CHECK(SetThreadContext(GetCurrentThread(), &c));
        c.Dr0 = c.Dr3 = c.Dr6 = c.Dr7 = 1;
        CHECK(GetThreadContext(GetCurrentThread(), &c));
        CHECK_EQ(c.Dr0, address);
        CHECK_EQ(c.Dr3, address);
        CHECK_EQ(c.Dr6, one & 0xe00f);
        CHECK_EQ(c.Dr7, one & 0xffff0355);
    }
    arm(GetCurrentThread(), NULL, 0);
}

static void go_past(CONTEXT *c) { c->EFlags |= hits == 2 ? RF : 0; }

TEST_USER(debug_registers, hits,
          "a breakpoint on execution comes before the instruction, again until RF is set; one on "
          "data after the access, not beside it; Dr6 names it [DR-02]")
{
    static volatile uint64_t data[3];
    PVOID h = AddVectoredExceptionHandler(1, on_hit);
    then = go_past;
    arm(GetCurrentThread(), debug_place, dr7_of(0, 0));
    debug_places();
    CHECK_EQ(hits, 2);
    CHECK_EQ(hit.Rip, (ULONG64)debug_place);
    CHECK_EQ(hit.Dr6, 4);
    then = NULL;
    for (unsigned kind = WRITES; kind <= ACCESSES; kind += 2) {
        arm(GetCurrentThread(), &data[1], dr7_of(kind, 2));
        data[0] = data[2] = 1;
        CHECK_EQ(hits, 0);
        (void)data[1];
        CHECK_EQ(hits, kind == ACCESSES);
        data[1] = 1;
        CHECK_EQ(hits, 1 + (kind == ACCESSES));
        CHECK_EQ(hit.Dr6, 4);
    }
    arm(GetCurrentThread(), NULL, 0);
    data[1] = 2;
    CHECK_EQ(hits, 0);
    RemoveVectoredExceptionHandler(h);
}

TEST_USER(debug_registers, kernel,
          "the kernel's accesses to such data are not reported and harm nothing, nor does one that "
          "MOV SS puts off into a system call [DR-03]")
{
    static volatile LARGE_INTEGER delay = { .QuadPart = -1 };
    static CONTEXT c = { .ContextFlags = CONTEXT_CONTROL };
    PVOID h = AddVectoredExceptionHandler(1, on_hit);
    arm(GetCurrentThread(), &delay, dr7_of(ACCESSES, 2));
    CHECK_STATUS(ZwDelayExecution(FALSE, (PLARGE_INTEGER)&delay), STATUS_SUCCESS);
    CHECK_EQ(hits, 0);
    arm(GetCurrentThread(), &c.Rip, dr7_of(WRITES, 2));
    CHECK(GetThreadContext(GetCurrentThread(), &c));
    CHECK_EQ(hits, 0);
    asm volatile("incq %0" : "+m"(c.Rip));
    CHECK_EQ(hits, 1); /* it is still on */
    arm(GetCurrentThread(), &debug_ss, dr7_of(ACCESSES, 1));
    for (unsigned i = 0; i < 10; i++)
        debug_mov_ss();
    CHECK(hits <= 10); /* some processors do not put it off */
    arm(GetCurrentThread(), NULL, 0);
    RemoveVectoredExceptionHandler(h);
}

static volatile uint64_t shared[2];
static uint64_t of_thread[3], ready; /* atomic */

static LONG on_write(PEXCEPTION_POINTERS e)
{
    if (e->ExceptionRecord->ExceptionCode != (DWORD)STATUS_SINGLE_STEP)
        return EXCEPTION_CONTINUE_SEARCH;
    __atomic_fetch_add(&of_thread[e->ContextRecord->Rbx % 3], 1, __ATOMIC_RELAXED);
    return EXCEPTION_CONTINUE_EXECUTION;
}

static DWORD write_both(PVOID number)
{
    __atomic_fetch_add(&ready, 1, __ATOMIC_RELEASE);
    while (__atomic_load_n(&ready, __ATOMIC_ACQUIRE) < 4)
        Sleep(1);
    for (unsigned i = 0; i < WRITES_EACH; i++) {
        asm volatile("lock incq %0\n\tlock incq %1"
                     : "+m"(shared[0]), "+m"(shared[1])
                     : "b"(number));
        ZwYieldExecution();
    }
    return 0;
}

TEST_USER(debug_registers, threads,
          "each thread hits its own breakpoint, on whatever CPU, and not another's [DR-04 slow]")
{
    PVOID h = AddVectoredExceptionHandler(1, on_write);
    HANDLE threads[3];
    ready = of_thread[0] = of_thread[1] = of_thread[2] = 0;
    for (unsigned i = 0; i < 3; i++)
        threads[i] = ring3_start(write_both, (PVOID)(uint64_t)i);
    CHECK(ring3_wait(&ready, 3));
    arm(threads[0], &shared[0], dr7_of(WRITES, 2));
    arm(threads[1], &shared[1], dr7_of(WRITES, 2));
    __atomic_store_n(&ready, 4, __ATOMIC_RELEASE);
    for (unsigned i = 0; i < 3; i++)
        CHECK_EQ(ring3_end(threads[i]), 0);
    CHECK_EQ(of_thread[0], WRITES_EACH);
    CHECK_EQ(of_thread[1], WRITES_EACH);
    CHECK_EQ(of_thread[2], 0);
    RemoveVectoredExceptionHandler(h);
}

/* --- The last branch. --- */

static ULONG64 wanted;
static CONTEXT at_target;

static void step_on(CONTEXT *c)
{
    c->Dr7 = wanted;
    if (c->Rip == (ULONG64)debug_walk_target)
        memcpy(&at_target, &hit, sizeof hit);
    if (c->Rip != (ULONG64)debug_walk_end)
        c->EFlags |= TF;
}

/* An interrupt may take the place of the branch where only one is recorded: then again. */
void user_debug_walk(uint64_t dr7)
{
    PVOID h = AddVectoredExceptionHandler(1, on_hit);
    wanted = dr7;
    then = step_on;
    debug_walk();
    for (unsigned i = 0; i < 4 && dr7 & LE && !at_target.LastBranchFromRip; i++)
        debug_walk();
    then = NULL;
    arm(GetCurrentThread(), NULL, 0);
    RemoveVectoredExceptionHandler(h);
    CHECK_EQ(at_target.Dr6, STEP);
    user_values[0] = at_target.DebugControl;
    user_values[1] = at_target.LastBranchFromRip
                         ? at_target.LastBranchFromRip - (ULONG64)debug_walk_jump + 1
                         : 0;
    user_values[2] =
        at_target.LastBranchToRip ? at_target.LastBranchToRip - (ULONG64)debug_walk_target + 1 : 0;
    user_values[3] = hit.LastBranchFromRip;          /* none led to the last step */
    user_reads = hit.Rip == (ULONG64)debug_walk_end; /* it was one */
}

static CONTEXT at_breakpoint;

static LONG on_breakpoint(PEXCEPTION_POINTERS e)
{
    if (e->ExceptionRecord->ExceptionCode != (DWORD)STATUS_BREAKPOINT)
        return EXCEPTION_CONTINUE_SEARCH;
    memcpy(&at_breakpoint, e->ContextRecord, sizeof at_breakpoint);
    e->ContextRecord->Rip++;
    return EXCEPTION_CONTINUE_EXECUTION;
}

static ULONG64 last_branch(void)
{
    CONTEXT c = { .ContextFlags = CONTEXT_DEBUG_REGISTERS };
    Sleep(1); /* what a thread has recorded is noted at a switch */
    CHECK(GetThreadContext(GetCurrentThread(), &c));
    return c.LastBranchFromRip;
}

static void look_once(CONTEXT *c)
{
    ULONG64 now = last_branch();
    if (c->Rip == (ULONG64)debug_walk_target)
        user_values[0] = now && now != c->LastBranchFromRip;
    step_on(c);
}

void user_debug_watch(uint64_t dr7)
{
    PVOID h = AddVectoredExceptionHandler(1, on_hit);
    wanted = dr7;
    then = look_once;
    debug_walk();
    then = NULL;
    RemoveVectoredExceptionHandler(h);
    h = AddVectoredExceptionHandler(1, on_breakpoint);
    arm(GetCurrentThread(), NULL, dr7);
    user_values[1] = last_branch() != 0;
    asm volatile("int3");
    user_values[2] = at_breakpoint.DebugControl;
    user_values[3] = at_breakpoint.LastBranchFromRip | at_breakpoint.LastBranchToRip;
    CHECK_EQ(at_breakpoint.Dr7, dr7);
    arm(GetCurrentThread(), NULL, 0);
    RemoveVectoredExceptionHandler(h);
}

static CONTEXT at_fault;

static LONG on_fault(PEXCEPTION_POINTERS e)
{
    if (e->ExceptionRecord->ExceptionCode != (DWORD)STATUS_ILLEGAL_INSTRUCTION)
        return EXCEPTION_CONTINUE_SEARCH;
    at_fault.ContextFlags = CONTEXT_DEBUG_REGISTERS;
    Sleep(1); /* as in last_branch */
    CHECK(GetThreadContext(GetCurrentThread(), &at_fault));
    e->ContextRecord->Rip += 2;
    return EXCEPTION_CONTINUE_EXECUTION;
}

static uint64_t distance(ULONG64 address, const void *place)
{
    return address ? address - (ULONG64)place + 1 : 0;
}

/* An interrupt until the switch is the last exception in its turn: then again, each time later
 * after the tick that ended the sleep. */
void user_debug_exception(uint64_t dr7)
{
    PVOID h = AddVectoredExceptionHandler(1, on_fault);
    for (unsigned i = 0; i < 16 && at_fault.LastExceptionFromRip != (ULONG64)debug_fault; i++) {
        arm(GetCurrentThread(), NULL, dr7);
        for (volatile unsigned later = 5000 * i; later; later--)
            ;
        debug_fault();
    }
    arm(GetCurrentThread(), NULL, 0);
    RemoveVectoredExceptionHandler(h);
    CHECK((LONG64)(at_fault.LastExceptionFromRip | at_fault.LastExceptionToRip) >= 0);
    user_values[0] = distance(at_fault.LastExceptionFromRip, debug_fault);
    user_values[1] = distance(at_fault.LastExceptionToRip, debug_fault_target);
}

void user_debug_spin(uint64_t dr7)
{
    arm(GetCurrentThread(), NULL, dr7);
    __atomic_store_n(&user_state, 1, __ATOMIC_RELEASE);
    for (unsigned looks = 1; __atomic_load_n(&user_state, __ATOMIC_ACQUIRE) == 1; looks++)
        if (looks % 4096 == 0)
            YieldProcessor();
    arm(GetCurrentThread(), NULL, 0);
}
