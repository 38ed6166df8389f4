/* SPDX-License-Identifier: MIT */
/* The stacks after system calls, as the kernel walks them, are those that RtlVirtualUnwind walks in
 * the program; a stack that is none ends the walk and nothing else. */
#include "session.h"

#define DEPTH 16
#define CYCLES_MAX 2500 /* of 16 frames on the default machine, where an instruction takes one */
enum { ENTER = 51, STACK = 32, ADDRESSES = 128 };

static const GUID stack_events = {
    0xdef2fe46, 0x7bd6, 0x4b80, { 0xbd, 0x94, 0xf5, 0x7f, 0xe2, 0x0d, 0x0c, 0xe3 }
};

/* System calls where a prologue has done its first half, and an epilogue its first. The data of the
 * prologue are of version 2, which tell of epilogues too, as no assembler makes them. */
void in_prologue(ULONG64 number);
void in_epilogue(ULONG64 number);
__asm__("in_prologue:\n"
        "push %rbx\nmov %rcx, %rax\nmov %rcx, %r10\nsyscall\nsub $0x48, %rsp\n"
        "add $0x48, %rsp\npop %rbx\nret\n1:\n"
        ".section .xdata, \"dr\"\n.p2align 2\n"
        "2: .byte 2, 13, 4, 0, 3, 0x16, 0, 0x06, 13, 0x82, 1, 0x30\n"
        ".section .pdata, \"dr\"\n.rva in_prologue, 1b, 2b\n.text\n"
        ".seh_proc in_epilogue\nin_epilogue:\n"
        "push %rbx\n.seh_pushreg %rbx\n"
        "sub $0x48, %rsp\n.seh_stackalloc 0x48\n.seh_endprologue\n"
        "add $0x48, %rsp\nmov %rcx, %rax\nmov %rcx, %r10\nsyscall\n"
        "pop %rbx\nret\n.seh_endproc\n");

/* Functions whose data have four parts, of 8 bytes of the stack each, which is the most that the
 * kernel reads, and five. */
void in_parts(ULONG64 number);
void in_more_parts(ULONG64 number);
#define IN_PARTS(name, first, size)                                                                \
    name ":\nsub $" size ", %rsp\nmov %rcx, %rax\nmov %rcx, %r10\nsyscall\nnop\n"                  \
         "add $" size ", %rsp\nret\n1:\n"                                                          \
         ".section .pdata, \"dr\"\n.rva " name ", 1b, " first "\n.text\n"
#define PART(name, next)                                                                           \
    name ": .byte 0x21, 4, 1, 0, 4, 2, 0, 0\n.rva in_parts, in_more_parts, " next "\n"
__asm__(IN_PARTS("in_parts", "part_2", "0x20")
            IN_PARTS("in_more_parts", "part_1",
                     "0x28") ".section .xdata, \"dr\"\n.p2align 2\n" PART("part_1", "part_2")
                PART("part_2", "part_3") PART("part_3", "part_4")
                    PART("part_4", "part_5") "part_5: .byte 1, 4, 1, 0, 4, 2, 0, 0\n.text\n");

static NTSTATUS(NTAPI *yield_call)(void);
static ULONG64 expected[64], wanted[2][64], *bad; /* of deep, of plain */
static ULONG expected_count, counts[2], matches, half_done, addresses, stacks, longest, from_kernel,
    shown;
static LONG64 entered, cost;

static __declspec(noinline) void capture(void)
{
    CONTEXT c;
    RtlCaptureContext(&c);
    while (c.Rip && expected_count < ARRAYSIZE(expected)) {
        DWORD64 base, frame;
        PVOID data;
        PRUNTIME_FUNCTION f = RtlLookupFunctionEntry(c.Rip, &base, NULL);
        expected[expected_count++] = c.Rip;
        if (!f)
            break;
        RtlVirtualUnwind(UNW_FLAG_NHANDLER, base, c.Rip, f, &c, &data, &frame, NULL);
    }
}

/* Frames of several kinds: pushed registers, saved ones, large ones, with a frame pointer. */
static __declspec(noinline) ULONG64 deep(unsigned n, ULONG64 a, ULONG64 b, double x)
{
    volatile char *block = __builtin_alloca(16 + n * 64);
    volatile char large[5000];
    block[0] = large[n] = (char)n;
    if (n)
        a += deep(n - 1, a + b, b * 3, x * 2) + (ULONG64)block[0];
    else {
        capture();
        yield_call();
    }
    return a * b + (ULONG64)x + (ULONG64)large[n];
}

/* Frames as most functions have them. */
static __declspec(noinline) ULONG64 plain(unsigned n, ULONG64 a)
{
    volatile ULONG64 kept = a; /* else GCC makes a loop of it, and a jump of the call */
    if (n)
        return plain(n - 1, a + 3) + kept;
    expected_count = 0;
    capture();
    yield_call();
    return kept;
}

static __declspec(noinline) void call_in_kernel(void);

static void on_stack(const EVENT_RECORD *e)
{
    const ULONG64 *data = e->UserData, *at = data + 2;
    ULONG count = e->UserDataLength / 8 - 2;
    stacks++;
    longest = count > longest ? count : longest;
    IS(data[0], entered);
    IS((ULONG)data[1], GetCurrentProcessId());
    while (count && *at >> 63) /* the kernel's */
        at++, count--;
    if (count && *at - (ULONG64)call_in_kernel < 128) {
        from_kernel++;
        shown += count > 1;
    }
    /* The stub and deep, of which capture stands for its own and another place of deep's. */
    for (unsigned i = 0; i < 2; i++)
        if (count == counts[i] && !memcmp(at + 2, wanted[i] + 2, (count - 2) * sizeof *at)) {
            matches++;
            addresses = e->UserDataLength / 8 - 2; /* of the last one, and what it cost */
            cost = e->EventHeader.TimeStamp.QuadPart - entered;
        }
    /* One of these functions, main, its callers. */
    half_done += count > 2 && count < counts[1] &&
                 (*at - (ULONG64)in_prologue < 32 || *at - (ULONG64)in_epilogue < 32 ||
                  *at - (ULONG64)in_parts < 64) &&
                 !memcmp(at + 2, wanted[1] + counts[1] - count + 2, (count - 2) * sizeof *at);
}

static VOID WINAPI on_event(PEVENT_RECORD e)
{
    const BYTE opcode = e->EventHeader.EventDescriptor.Opcode;
    if (!memcmp(&e->EventHeader.ProviderId, &call_events, sizeof(GUID)) && opcode == ENTER)
        entered = e->EventHeader.TimeStamp.QuadPart;
    else if (!memcmp(&e->EventHeader.ProviderId, &stack_events, sizeof(GUID)) && opcode == STACK)
        on_stack(e);
}

static void keep(unsigned which)
{
    memcpy(wanted[which], expected, sizeof expected);
    counts[which] = expected_count;
}

static ULONG yield_number(void)
{
    ULONG number;
    memcpy(&number, (const BYTE *)yield_call + 4, 4); /* MOV R10, RCX; MOV EAX, number */
    return number;
}

/* A system call with this stack pointer. */
static inline __attribute__((always_inline)) void call_with(ULONG64 rsp)
{
    ULONG64 number = yield_number();
    __asm__ volatile("mov %%rsp, %%rbx\nmov %[rsp], %%rsp\nsyscall\nmov %%rbx, %%rsp"
                     : "+a"(number)
                     : [rsp] "r"(rsp)
                     : "rbx", "rcx", "r10", "r11", "memory");
}

/* With each in the kernel's half that a program knows to be there: KUSER_SHARED_DATA, some of whose
 * words could be addresses of ring 3. None of them is shown. */
static __declspec(noinline) void call_in_kernel(void)
{
    for (ULONG64 offset = 0; offset < 0x400; offset += 8)
        call_with(0xfffff78000000000 + offset);
}

static void set_stacks(TRACEHANDLE session, const CLASSIC_EVENT_ID *events)
{
    CLASSIC_EVENT_ID is[4];
    ULONG size = 0;
    CLASSIC_EVENT_ID none = { call_events, 99, { 0 } };
    IS(TraceSetInformation(session, TraceStackTracingInfo, &none, 24), ERROR_NOT_SUPPORTED);
    IS(TraceQueryInformation(session, TraceStackTracingInfo, is, sizeof is, &size), 0);
    IS(size, 0);
    IS(TraceSetInformation(session, TraceStackTracingInfo, (PVOID)events, 24), 0);
    IS(TraceQueryInformation(session, TraceStackTracingInfo, is, 23, &size), ERROR_BAD_LENGTH);
    IS(size, 24);
    IS(TraceQueryInformation(session, TraceStackTracingInfo, is, sizeof is, &size), 0);
    IS(size, 24);
    IS(memcmp(is, events, size), 0);
    IS(TraceQueryInformation(0xfff, TraceStackTracingInfo, is, sizeof is, &size),
       ERROR_WMI_INSTANCE_NOT_FOUND);
}

int main(void)
{
    static struct session s = SESSION;
    const CLASSIC_EVENT_ID calls = { call_events, ENTER, { 0 } };
    TRACEHANDLE session = 0;
    yield_call = (void *)GetProcAddress(GetModuleHandleA("ntdll.dll"), "NtYieldExecution");
    bad = VirtualAlloc(NULL, 0x10000, MEM_COMMIT | MEM_RESERVE, PAGE_READWRITE);
    for (unsigned i = 0; i < 0x10000 / 8; i++)
        bad[i] = (ULONG64)deep + 0x40; /* frames without an end */
    s.p.EnableFlags = EVENT_TRACE_FLAG_SYSTEMCALL;
    IS(StartTraceW(&session, L"Stacks", &s.p), 0);
    set_stacks(session, &calls);
    deep(DEPTH, 1, 2, 3.0);
    keep(0);
    plain(DEPTH - 11, 1); /* with the kernel's addresses, and main's callers, 16 */
    keep(1);
    in_prologue(yield_number());
    in_epilogue(yield_number());
    in_parts(yield_number());
    in_more_parts(yield_number()); /* shows itself alone */
    const ULONG64 first = (ULONG64)bad, last = first + 0x10000 - 8;
    const ULONG64 wrong[] = { 0,     8,     0x10001, 0x7fffffff0000, 0x7ffffffefff8, 1ull << 47,
                              ~7ull, first, last };
    for (unsigned i = 0; i < ARRAYSIZE(wrong); i++)
        call_with(wrong[i]);
    call_in_kernel();
    IS(TraceSetInformation(session, TraceStackTracingInfo, NULL, 0), 0); /* no more */
    yield_call();
    HANDLE reader = start_reader(&s, on_event);
    end_session(session, &s, reader);
    printf("%lu stacks, %lu match; one of %lu addresses takes %lld cycles\n", stacks,
           matches + half_done, addresses, cost);
    IS(counts[0] >= DEPTH + 3, 1);
    IS(matches, 2);
    IS(half_done, 3);
    IS(from_kernel, 0x400 / 8);
    IS(shown, 0);
    IS(addresses >= 16, 1);
    IS(stacks >= 4 + ARRAYSIZE(wrong), 1);
    IS(longest <= ADDRESSES && longest > DEPTH, 1);
    IS(cost > 0 && cost <= CYCLES_MAX, 1);
    return check_result();
}
