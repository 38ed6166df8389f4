/* SPDX-License-Identifier: MIT */
/* The service fuzz: services that make nothing: delays, calls queued to threads,
 * contexts and exceptions, files and images that there are not, the console. */
#include "tests/ring3/fuzz.h"

#define CONSOLE_MAX 256u

NTSTATUS ZwCreateFile(PHANDLE, ACCESS_MASK, POBJECT_ATTRIBUTES, PVOID, PLARGE_INTEGER, ULONG, ULONG,
                      ULONG, ULONG, PVOID, ULONG);
NTSTATUS ZwQueueApcThread(HANDLE, PVOID, PVOID, PVOID, PVOID);
NTSTATUS ZwTestAlert(void);
NTSTATUS load_image(PCSTR, SIZE_T, PVOID *, SIZE_T *);

/* --- Groups. --- */

NTSTATUS fuzz_create_profile(HANDLE *to, HANDLE process, uint64_t base, uint64_t size, ULONG log2,
                             void *buffer, ULONG length, KPROFILE_SOURCE source, KAFFINITY cpu_mask)
{
    if (fuzz_one_in(2))
        return ZwCreateProfile(to, process, (PVOID)base, size, log2, buffer, length, source,
                               cpu_mask);
    GROUP_AFFINITY groups[2] = { { .Mask = cpu_mask }, { .Mask = cpu_mask } };
    USHORT n = cpu_mask == ~0ull ? 0 : (USHORT)(1 + fuzz_below(2));
    if (n && fuzz_one_in(8)) {
        groups[n - 1].Reserved[fuzz_below(3)] = 1;
        fuzz_refuse(STATUS_INVALID_PARAMETER);
    } else if (n && fuzz_one_in(8)) {
        groups[n - 1].Group = (USHORT)(1 + fuzz_below(0xffff));
        fuzz_refuse(STATUS_INVALID_PARAMETER);
    }
    const void *from = n ? fuzz_in(groups, n * sizeof groups[0]) : fuzz_bad_pointer();
    if (n == 2 && fuzz_refused()) /* the first of them may be there, and be anything */
        fuzz_allow(STATUS_INVALID_PARAMETER);
    if (!n && (uint64_t)from % 4 == 0)
        from = (const uint8_t *)from + 1; /* nobody looks at it */
    return ZwCreateProfileEx(to, process, (PVOID)base, size, log2, buffer, length, source, n,
                             (PGROUP_AFFINITY)(uint64_t)from);
}

/* --- Contexts and exceptions. --- */

static CONTEXT context __attribute__((aligned(16)));
static EXCEPTION_RECORD record;

static CONTEXT *some_context(ULONG flags)
{
    for (unsigned i = 0; i < sizeof context / 4; i++)
        ((uint32_t *)&context)[i] = (uint32_t)fuzz_random();
    context.ContextFlags = flags;
    unsigned how = fuzz_below(8);
    if (how == 0) {
        fuzz_refuse(STATUS_DATATYPE_MISALIGNMENT);
        return (CONTEXT *)(void *)((uint8_t *)&context + 1 + fuzz_below(15));
    }
    if (how > 2)
        return &context;
    void *bad = fuzz_bad_pointer();
    fuzz_refuse((uint64_t)bad % 16 ? STATUS_DATATYPE_MISALIGNMENT : STATUS_ACCESS_VIOLATION);
    return bad;
}

/* Ring 3 goes on after the call: what noise may change is put right. The named registers, which a
 * call leaves alone by Windows' convention, are saved where a function begins that has this. */
#define PUT_RIGHT()                                                                                \
    do {                                                                                           \
        static const uint32_t mxcsr = 0x1f80;                                                      \
        asm volatile("fninit\nldmxcsr %0"                                                          \
                     :                                                                             \
                     : "m"(mxcsr)                                                                  \
                     : "memory", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12",        \
                       "xmm13", "xmm14", "xmm15");                                                 \
    } while (0)

static void go_on_elsewhere(void)
{
    static const ULONG harmless[] = { CONTEXT_AMD64, CONTEXT_SEGMENTS, CONTEXT_DEBUG_REGISTERS,
                                      CONTEXT_FLOATING_POINT };
    bool bad = fuzz_one_in(2);
    CONTEXT *c = some_context(bad ? CONTEXT_CONTROL : FUZZ_ONE_OF(harmless));
    if (bad) {
        context.Rip = 0x800000000000 + (fuzz_random() >> fuzz_below(24)) % 0xffff000000000000;
        fuzz_refuse(STATUS_ACCESS_VIOLATION);
    }
    if (context.ContextFlags == CONTEXT_DEBUG_REGISTERS)
        fuzz_refuse(STATUS_NOT_SUPPORTED); /* by chance they are not 0 */
    NTSTATUS status = ZwContinue(c, (BOOLEAN)fuzz_below(2));
    PUT_RIGHT();
    FUZZ_ANSWER(fuzz_refused() ? status : STATUS_SUCCESS); /* else RAX is the context's */
}

static void raise(void)
{
    bool first = fuzz_one_in(2);
    CONTEXT *c = first ? some_context(CONTEXT_AMD64) : fuzz_bad_pointer();
    record.NumberParameters = 16 + ((ULONG)fuzz_random() >> fuzz_below(28)) / 2;
    fuzz_refuse(STATUS_INVALID_PARAMETER);
    const void *from = fuzz_one_in(3) ? fuzz_bad_pointer() : &record;
    if (from != &record)
        fuzz_refuse(STATUS_ACCESS_VIOLATION);
    FUZZ_ANSWER(ZwRaiseException((PEXCEPTION_RECORD)(uint64_t)from, c, first));
}

/* --- What is not there. --- */

static void create_file(void)
{
    static WCHAR text[] = u"\\Device\\fuzz";
    UNICODE_STRING name = { sizeof text - sizeof text[0], sizeof text, text };
    OBJECT_ATTRIBUTES a = { .Length = sizeof a, .ObjectName = &name };
    HANDLE *to = fuzz_out(sizeof *to);
    fuzz_refuse(STATUS_OBJECT_NAME_NOT_FOUND);
    switch (fuzz_below(8)) {
    case 0:
        name.Length = (USHORT)(2 * fuzz_below(0x8000) + 1);
        fuzz_refuse(STATUS_OBJECT_NAME_INVALID);
        break;
    case 1:
        name.Buffer = fuzz_bad_pointer();
        fuzz_refuse(STATUS_ACCESS_VIOLATION);
        break;
    case 2:
        a.ObjectName = NULL;
        fuzz_refuse(STATUS_OBJECT_NAME_INVALID);
        break;
    case 3:
        a.Length = fuzz_below(sizeof a);
        fuzz_refuse(STATUS_INVALID_PARAMETER);
        break;
    }
    const void *from = fuzz_in(&a, sizeof a);
    FUZZ_ANSWER(ZwCreateFile(to, (ACCESS_MASK)fuzz_random(), (POBJECT_ATTRIBUTES)(uint64_t)from,
                             fuzz_bad_pointer(), fuzz_bad_pointer(), 0, 0, 1, 0, fuzz_bad_pointer(),
                             (ULONG)fuzz_random()));
}

static void load_library(void)
{
    static const char name[] = "\x01no.dll";
    PVOID *base = fuzz_out(sizeof *base);
    const char *from = fuzz_in(name, sizeof name);
    SIZE_T length = fuzz_one_in(4) ? fuzz_random() >> fuzz_below(53) : sizeof name - 1;
    if (length > sizeof name)
        fuzz_allow(STATUS_ACCESS_VIOLATION);
    fuzz_refuse(STATUS_DLL_NOT_FOUND);
    FUZZ_ANSWER(load_image(from, length, base, fuzz_bad_pointer()));
}

static void console(void)
{
    bool too_long = fuzz_one_in(2);
    ULONG length = too_long ? CONSOLE_MAX + 1 + (ULONG)(fuzz_random() >> 22) : 8 + fuzz_below(200);
    fuzz_refuse(too_long ? STATUS_INVALID_PARAMETER : STATUS_ACCESS_VIOLATION);
    FUZZ_ANSWER(write_console(fuzz_bad_pointer(), length));
}

/* --- Waiting for nothing. --- */

static void delay(void)
{
    LARGE_INTEGER time = { .QuadPart = fuzz_one_in(2) ? 1 : -(LONGLONG)fuzz_below(50) };
    const void *from = fuzz_in(&time, sizeof time);
    BOOLEAN alertable = (BOOLEAN)fuzz_below(2);
    fuzz_allow(STATUS_NO_YIELD_PERFORMED);
    FUZZ_ANSWER(ZwDelayExecution(alertable, (PLARGE_INTEGER)(uint64_t)from));
    FUZZ_ANSWER(ZwTestAlert());
}

/* Never with success: the thread would call any address. */
static void queue_call(void)
{
    HANDLE h;
    if (fuzz_handle(FUZZ_THREAD, THREAD_SET_CONTEXT, &h)) {
        h = fuzz_no_handle();
        fuzz_refuse(STATUS_INVALID_HANDLE);
    }
    FUZZ_ANSWER(ZwQueueApcThread(h, fuzz_bad_pointer(), NULL, fuzz_bad_pointer(), NULL));
}

const struct fuzz_op fuzz_other_ops[] = {
    { go_on_elsewhere, 4 }, { raise, 2 }, { create_file, 2 }, { load_library, 2 },
    { console, 2 },         { delay, 3 }, { queue_call, 3 },  { NULL, 0 },
};
