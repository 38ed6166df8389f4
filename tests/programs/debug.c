/* SPDX-License-Identifier: MIT */
/* Debug registers of threads: breakpoints of each kind and length, of two threads at once, on
 * memory that services use; steps; the last branch before a step, where the machine records it. */
#include "nt.h"

#define TF 0x100u
#define RF 0x10000u
#define LE 0x100u
#define GE 0x200u
#define STEP 0x4000u
#define WRITES 1u
#define PORTS 2u
#define ACCESSES 3u
#define LOG 16
#define ROUNDS 200

NTSTATUS NTAPI NtDelayExecution(BOOLEAN, PLARGE_INTEGER);

/* What the handler saw, and what it does then. */
struct hit {
    CONTEXT context;
    PVOID address;
};
static struct hit hits[LOG];
static volatile LONG hit_count;
static void (*next)(CONTEXT *context);

static LONG CALLBACK handle(EXCEPTION_POINTERS *e)
{
    if (e->ExceptionRecord->ExceptionCode != STATUS_SINGLE_STEP)
        return EXCEPTION_CONTINUE_SEARCH;
    LONG n = hit_count++;
    if (n < LOG) {
        hits[n].context = *e->ContextRecord;
        hits[n].address = e->ExceptionRecord->ExceptionAddress;
    }
    if (next)
        next(e->ContextRecord);
    return EXCEPTION_CONTINUE_EXECUTION;
}

static DWORD64 enabled(unsigned i, unsigned kind, unsigned size)
{
    static const unsigned char lengths[9] = { [1] = 0, [2] = 1, [4] = 3, [8] = 2 };
    return 1u << 2 * i | (DWORD64)(kind | (unsigned)lengths[size] << 2) << (16 + 4 * i);
}

static void set(HANDLE thread, DWORD64 a0, DWORD64 a1, DWORD64 a2, DWORD64 a3, DWORD64 dr7)
{
    CONTEXT c = { .ContextFlags = CONTEXT_DEBUG_REGISTERS };
    c.Dr0 = a0, c.Dr1 = a1, c.Dr2 = a2, c.Dr3 = a3, c.Dr7 = dr7;
    IS(SetThreadContext(thread, &c), TRUE);
    hit_count = 0;
}

static void set_one(unsigned i, const volatile void *at, DWORD64 dr7)
{
    DWORD64 a[4] = { 0 };
    a[i] = (DWORD64)at;
    set(GetCurrentThread(), a[0], a[1], a[2], a[3], dr7);
}

static void off(void) { set(GetCurrentThread(), 0, 0, 0, 0, 0); }

static CONTEXT get(HANDLE thread)
{
    CONTEXT c = { .ContextFlags = CONTEXT_DEBUG_REGISTERS };
    IS(GetThreadContext(thread, &c), TRUE);
    return c;
}

/* --- Values. --- */

static void check_values(void)
{
    const DWORD64 bad[] = { (DWORD64)KERNEL_ADDRESS, 0x0000800000000000, ~0ull,
                            0x00007fffffff0000 };
    for (int i = 0; i < 4; i++) {
        set(GetCurrentThread(), bad[i], bad[i], bad[i], bad[i], 0x155);
        CONTEXT c = get(GetCurrentThread());
        IS(c.Dr0 | c.Dr1 | c.Dr2 | c.Dr3, 0);
        IS(c.Dr7, 0x155);
    }
    off();
    for (int bit = 0; bit < 64; bit++) {
        DWORD64 one = 1ull << bit, kept = 0xffff0355;
        CONTEXT c = { .ContextFlags = CONTEXT_DEBUG_REGISTERS,
                      .Dr0 = 5,
                      .Dr1 = 6,
                      .Dr2 = 7,
                      .Dr3 = 8,
                      .Dr6 = one,
                      .Dr7 = one };
        IS(SetThreadContext(GetCurrentThread(), &c), TRUE);
        c = get(GetCurrentThread());
        IS(c.Dr7, one & kept);
        IS(c.Dr6, one & 0xe00f);
        IS(c.Dr0 == 5 && c.Dr1 == 6 && c.Dr2 == 7 && c.Dr3 == 8, TRUE);
    }
    off();
}

/* --- Execution. --- */

extern char places[4][8];
void run_places(void);
asm(".text\n"
    ".balign 8\n"
    "run_places:\n"
    "    xor %eax, %eax\n"
    ".balign 8\n"
    "places:\n"
    "    inc %eax\n.balign 8\n"
    "    inc %eax\n.balign 8\n"
    "    inc %eax\n.balign 8\n"
    "    inc %eax\n.balign 8\n"
    "    ret\n");

static void resume(CONTEXT *c) { c->EFlags |= RF; }
/* Without RF the instruction is not executed, and hits again. */
static void resume_third(CONTEXT *c) { c->EFlags |= hit_count == 3 ? RF : 0; }

static void check_execution(void)
{
    next = resume;
    set(GetCurrentThread(), (DWORD64)places[3], (DWORD64)places[1], (DWORD64)places[2],
        (DWORD64)places[0], 0x55);
    for (int round = 1; round <= 2; round++) {
        static const int order[] = { 3, 1, 2, 0 };
        hit_count = 0;
        run_places();
        IS(hit_count, 4);
        for (int i = 0; i < 4; i++) {
            IS(hits[i].context.Dr6, 1u << order[i]);
            IS(hits[i].context.Rip, (DWORD64)places[i]);
            IS((DWORD64)hits[i].address, (DWORD64)places[i]);
            IS((DWORD)hits[i].context.Rax, i);
            IS(hits[i].context.EFlags & RF, 0);
            IS(hits[i].context.Dr7, 0x55);
        }
    }
    next = resume_third;
    set_one(2, places[1], enabled(2, 0, 1));
    run_places();
    IS(hit_count, 3);
    IS((DWORD)hits[2].context.Rax, 1);
    next = NULL;
    off();
    run_places();
    IS(hit_count, 0);
}

/* --- Data. --- */

static volatile unsigned char data[24] __attribute__((aligned(8)));

static int hits_of(unsigned i, unsigned kind, unsigned size, int at, int write)
{
    set_one(i, data + 8, enabled(i, kind, size));
    if (write)
        data[at] = 1;
    else
        (void)data[at];
    int count = hit_count;
    if (count)
        IS(hits[0].context.Dr6, 1u << i);
    return count;
}

static void check_data(void)
{
    for (unsigned i = 0; i < 4; i++)
        for (int size = 1; size <= 8; size *= 2)
            for (unsigned kind = WRITES; kind <= ACCESSES; kind += 2) {
                IS(hits_of(i, kind, size, 7, 1), 0);
                IS(hits_of(i, kind, size, 8, 1), 1);
                IS(hits_of(i, kind, size, 7 + size, 1), 1);
                IS(hits_of(i, kind, size, 8 + size, 1), 0);
                IS(hits_of(i, kind, size, 7 + size, 0), kind == ACCESSES);
            }
    IS(hits_of(0, PORTS, 4, 8, 1), 0); /* which ring 3 does not have, and the kernel does */
    Sleep(2);
    IS(hit_count, 0);
    set_one(1, data + 8, enabled(1, ACCESSES, 8));
    memset((void *)data, 0, 16); /* by bytes or by words: in each is the place */
    IS(hit_count > 0, TRUE);
    off();
    data[8] = 1;
    IS(hit_count, 0);
}

/* The trap comes after the instruction, whose RIP is the next one's. */
extern char stored[];
static void check_trap(void)
{
    set_one(3, data + 8, enabled(3, WRITES, 1));
    asm volatile("movb $3, %0\n.globl stored\nstored: nop" : "=m"(data[8]));
    IS(hit_count, 1);
    IS(hits[0].context.Rip, (DWORD64)stored);
    IS(data[8], 3);
    off();
}

/* --- The kernel's accesses. --- */

static void check_kernel(void)
{
    static CONTEXT c;
    LARGE_INTEGER interval = { .QuadPart = -1 };
    c.ContextFlags = CONTEXT_CONTROL;
    for (unsigned kind = WRITES; kind <= ACCESSES; kind += 2) {
        set_one(0, &c.Rip, enabled(0, kind, 8));
        for (int i = 0; i < 3; i++)
            IS(GetThreadContext(GetCurrentThread(), &c), TRUE);
        IS(hit_count, 0); /* as in Windows */
        asm volatile("incq %0" : "+m"(c.Rip));
        IS(hit_count, 1);
    }
    set_one(1, &interval, enabled(1, ACCESSES, 8));
    IS(NtDelayExecution(FALSE, &interval), 0);
    IS(hit_count, 0);
    off();
}

/* MOV SS puts off the breakpoint that it hits: into the kernel, by SYSCALL and INT n. */
static volatile ULONG ss __attribute__((aligned(8))) = 0x2b;
static LONG CALLBACK skip_int3(EXCEPTION_POINTERS *e)
{
    if (e->ExceptionRecord->ExceptionCode != STATUS_BREAKPOINT)
        return EXCEPTION_CONTINUE_SEARCH;
    e->ContextRecord->Rip++;
    return EXCEPTION_CONTINUE_EXECUTION;
}

static void check_mov_ss(void)
{
    PVOID handler = AddVectoredExceptionHandler(0, skip_int3);
    set_one(0, &ss, enabled(0, ACCESSES, 2));
    for (int i = 0; i < 100; i++) {
        ULONG64 rax = 0xfffff; /* no service */
        asm volatile("mov %1, %%ss\nsyscall" : "+a"(rax) : "m"(ss) : "rcx", "r11", "memory");
        asm volatile("mov %0, %%ss\nint3" : : "m"(ss) : "memory");
    }
    IS(hit_count <= 200, TRUE); /* some processors trap at once */
    hit_count = 0;
    (void)ss;
    IS(hit_count, 1);
    off();
    RemoveVectoredExceptionHandler(handler);
}

/* --- Threads. --- */

static volatile DWORD64 shared[2];
static volatile LONG of_thread[2], wrong, ready;

static LONG CALLBACK count_threads(EXCEPTION_POINTERS *e)
{
    if (e->ExceptionRecord->ExceptionCode != STATUS_SINGLE_STEP)
        return EXCEPTION_CONTINUE_SEARCH;
    CONTEXT *c = e->ContextRecord;
    if (c->Dr6 == 1 && c->Rbx == 0x1000)
        InterlockedIncrement(&of_thread[0]);
    else if (c->Dr6 == 8 && c->Rbx == 0x1001)
        InterlockedIncrement(&of_thread[1]);
    else
        InterlockedIncrement(&wrong);
    return EXCEPTION_CONTINUE_EXECUTION;
}

/* Each writes both; its own breakpoint is on one of them. The third has none. */
static DWORD WINAPI write_both(LPVOID number)
{
    InterlockedIncrement(&ready);
    while (ready < 4)
        Sleep(0);
    for (int i = 0; i < ROUNDS; i++) {
        asm volatile("lock incq %0\nlock incq %1"
                     : "+m"(shared[0]), "+m"(shared[1])
                     : "b"(0x1000 + (ULONG_PTR)number));
        if (i % 8 == 0)
            SwitchToThread();
        if (i % 32 == 0)
            Sleep(1);
    }
    return 0;
}

static void check_threads(void)
{
    PVOID handler = AddVectoredExceptionHandler(1, count_threads);
    HANDLE threads[3];
    for (ULONG_PTR i = 0; i < 3; i++)
        threads[i] = CreateThread(NULL, 0, write_both, (LPVOID)i, 0, NULL);
    while (ready < 3)
        Sleep(1);
    set(threads[0], (DWORD64)&shared[0], 0, 0, 0, enabled(0, WRITES, 8));
    set(threads[1], 0, 0, 0, (DWORD64)&shared[1], enabled(3, ACCESSES, 8));
    CONTEXT c = get(threads[1]);
    IS(c.Dr3, (DWORD64)&shared[1]);
    IS(c.Dr0, 0);
    IS(get(threads[2]).Dr7, 0);
    ready = 4;
    for (int i = 0; i < 3; i++)
        IS(end_of(threads[i]), 0);
    IS(of_thread[0], ROUNDS);
    IS(of_thread[1], ROUNDS);
    IS(wrong, 0);
    IS(shared[0], 3 * ROUNDS);
    RemoveVectoredExceptionHandler(handler);
}

/* --- Steps and branches. --- */

extern char s_begin[], s_jump[], s_jumped[], s_call[], s_function[], s_return[], s_returned[],
    s_jcc[], s_taken[], s_end[];
void walk(void);
asm(".text\n"
    "walk:\n"
    "    pushfq\n    orl $0x100, (%rsp)\n    popfq\n"
    "s_begin: nop\n"
    "s_jump: jmp s_jumped\n    nop\n"
    "s_jumped: lea s_function(%rip), %rax\n"
    "s_call: call *%rax\n"
    "s_returned: xor %eax, %eax\n"
    "    jnz s_end\n"
    "s_jcc: jz s_taken\n    nop\n"
    "s_taken: nop\n"
    "s_end: ret\n"
    "s_function: nop\n"
    "s_return: ret\n");

static DWORD64 asked;
static void step_on(CONTEXT *c)
{
    c->Dr7 = asked;
    if (c->Rip != (DWORD64)s_end)
        c->EFlags |= TF;
}

static int is_at(int n, const char *from, const char *to)
{
    const CONTEXT *c = &hits[n].context;
    return c->LastBranchFromRip == (DWORD64)from && c->LastBranchToRip == (DWORD64)to;
}

struct step {
    const char *rip, *from; /* where it stops; the branch that led there, if any */
};
static const struct step every[] = {
    { s_jump, 0 },          { s_jumped, s_jump }, { s_call, 0 },
    { s_function, s_call }, { s_return, 0 },      { s_returned, s_return },
    { s_returned + 2, 0 },  { s_jcc, 0 },         { s_taken, s_jcc },
    { s_end, 0 },
};
static const struct step branches[] = {
    { s_jump, 0 },      { s_jumped, s_jump }, { s_function, s_call }, { s_returned, s_return },
    { s_taken, s_jcc },
};

static int follow(const struct step steps[], int count, DWORD64 dr7)
{
    int known = 0;
    off();
    asked = dr7;
    next = step_on;
    hit_count = 0;
    walk();
    next = NULL;
    IS(hit_count >= count, TRUE);
    for (int i = 0; i < count; i++) {
        IS(hits[i].context.Rip, (DWORD64)steps[i].rip);
        IS(hits[i].context.Dr6, STEP);
        if (!hits[i].context.LastBranchFromRip)
            continue;
        known++;
        IS(is_at(i, steps[i].from, steps[i].rip), TRUE);
    }
    off();
    return known;
}

/* An interrupt between a branch and its step leaves a machine with a pair nothing of the branch. */
static int most_of(const struct step steps[], int count, DWORD64 dr7)
{
    int best = 0, wanted = 4;
    for (int i = 0; i < 5 && best < wanted; i++) {
        int known = follow(steps, count, dr7);
        best = known > best ? known : best;
    }
    return best;
}

static void check_branches(void)
{
    const int all = sizeof every / sizeof every[0], few = sizeof branches / sizeof branches[0];
    IS(follow(every, all, 0), 0);
    IS(hits[3].context.DebugControl, 0);
    int known = most_of(every, all, LE);
    int records = (int)hits[3].context.DebugControl & 1;
    IS(known, records ? 4 : 0);
    off();
    asked = GE | LE;
    next = step_on;
    walk();
    next = NULL;
    int steps = hits[1].context.DebugControl & 2;
    IS(hits[1].context.DebugControl & ~3ull, 0);
    IS(most_of(steps ? branches : every, steps ? few : all, GE | LE), records ? 4 : 0);
    printf("branches %s, steps by %s\n", records ? "recorded" : "not recorded",
           steps ? "branch" : "instruction");
}

int main(void)
{
    AddVectoredExceptionHandler(0, handle);
    check_values();
    check_execution();
    check_data();
    check_trap();
    check_kernel();
    check_mov_ss();
    check_threads();
    check_branches();
    return check_result();
}
