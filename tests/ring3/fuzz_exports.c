/* SPDX-License-Identifier: MIT */
/* The export fuzz: calls each function that ntdll, kernel32, advapi32 and msvcrt export,
 * by their export tables, with arguments that are hostile or look right. An exception of the call
 * goes on after it; what a call did to this process, to its heap, locks or handlers, stays, and
 * may end or stop it, as on Windows. Ring 0 ends it then: tests/kernel/service_fuzz.c. */
#include "tests/ring3/fuzz.h"
#include "tests/ring3/helpers.h"

enum { ARGUMENTS = 11, SLOT = 256, ALL = 64, RESULTS = 32, LIBRARIES = 4 };
#define HUGE (UINT64_C(1) << 40) /* more memory than there is: none may take it from others */

static const char *const libraries[LIBRARIES] = { "ntdll.dll", "kernel32.dll", "advapi32.dll",
                                                  "msvcrt.dll" };
struct library {
    const uint8_t *base;
    const IMAGE_EXPORT_DIRECTORY *exports;
};

static struct library all[LIBRARIES];
static uint8_t slots[ALL][SLOT] __attribute__((aligned(16)));
static uint64_t results[RESULTS];
static HANDLE handles[8];
static CONTEXT back;
static uint64_t me;

static LONG NTAPI survive(PEXCEPTION_POINTERS e)
{
    if (GetCurrentThreadId() != me) /* one that a call has made */
        ExitThread(0);
    memcpy(e->ContextRecord, &back, sizeof back);
    return EXCEPTION_CONTINUE_EXECUTION;
}

static DWORD WINAPI thread_of_nothing(LPVOID unused)
{
    (void)unused;
    return 0;
}

/* --- Arguments. --- */

static uint64_t any_number(void)
{
    static const uint64_t plain[] = { 0,  1,    2,    3,       4,        8,          16,
                                      48, 0x40, 0x78, 0x100,   0x1000,   0x3000,     0x8000,
                                      23, 32,   47,   0x10000, 0x1fffff, 0xc0000005, 0xffffffff };
    uint64_t n =
        fuzz_below(8) ? plain[fuzz_below(ARRAYSIZE(plain))] : fuzz_random() >> fuzz_below(53);
    if (!fuzz_below(8))
        n = -n;
    return n >= 0x100000 && n < HUGE && fuzz_below(3) ? n | HUGE
           : n % HUGE < 0x100000                      ? n
                                                      : n | HUGE;
}

static uint64_t handle(void)
{
    if (fuzz_below(3))
        return (uint64_t)handles[fuzz_below(ARRAYSIZE(handles))];
    return fuzz_below(3) ? -1ull - fuzz_below(6) : 4ull * fuzz_below(100);
}

static uint64_t argument(void)
{
    switch (fuzz_below(10)) {
    case 0:
    case 1:
    case 2: return any_number();
    case 3:
    case 4:
    case 5: return (uint64_t)slots[fuzz_below(ALL)] + (fuzz_below(4) ? 0 : fuzz_below(SLOT));
    case 6: return handle();
    case 7: return results[fuzz_below(RESULTS)];
    case 8:
        return (uint64_t)(fuzz_below(2) ? (void *)thread_of_nothing
                                        : (void *)libraries[fuzz_below(LIBRARIES)]);
    }
    return (uint64_t)fuzz_bad_pointer();
}

/* What a structure may be: its size first, times, names, an array of handles, pointers. */
static void fill_slot(uint8_t *slot)
{
    static const WCHAR wide[] = u"fuzzed";
    uint64_t *words = (uint64_t *)(void *)slot;
    for (unsigned i = 0; i < SLOT / 8; i++)
        words[i] = fuzz_below(3) ? any_number() : argument();
    switch (fuzz_below(8)) {
    case 0: memset(slot, 0, SLOT); break;
    case 1: words[0] = fuzz_below(2) ? -(uint64_t)fuzz_below(2000) : fuzz_below(2000); break;
    case 2: memcpy(slot, "fuzzed", 7); break;
    case 3: memcpy(slot, wide, sizeof wide); break;
    case 4: /* UNICODE_STRING */
        words[0] = (sizeof wide - 2) | (uint64_t)sizeof wide << 16;
        words[1] = (uint64_t)wide;
        break;
    case 5: /* OBJECT_ATTRIBUTES */
        words[0] = 48;
        words[1] = 0;
        words[2] = (uint64_t)slots[fuzz_below(ALL)];
        words[3] = fuzz_below(2) ? 0x80 : any_number();
        words[4] = words[5] = 0;
        break;
    case 6:
        for (unsigned i = 0; i < 8; i++)
            words[i] = handle();
        break;
    }
}

/* --- Calls. --- */

static bool open_library(struct library *l, const char *name)
{
    l->base = (const uint8_t *)LoadLibraryA(name);
    if (!l->base)
        return false;
    const IMAGE_DOS_HEADER *dos = (const void *)l->base;
    const IMAGE_NT_HEADERS *nt = (const void *)(l->base + dos->e_lfanew);
    l->exports = (const void *)(l->base + nt->OptionalHeader.DataDirectory[0].VirtualAddress);
    return l->exports->NumberOfNames > 0;
}

typedef uint64_t function(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t,
                          uint64_t, uint64_t, uint64_t, uint64_t);

/* NULL: no function, but data. */
static function *any_export(void)
{
    const struct library *l = &all[fuzz_below(LIBRARIES)];
    const DWORD *names = (const void *)(l->base + l->exports->AddressOfNames);
    const char *name = (const char *)l->base + names[fuzz_below(l->exports->NumberOfNames)];
    function *f = (function *)GetProcAddress((HMODULE)l->base, name);
    MEMORY_BASIC_INFORMATION where;
    bool code = f && VirtualQuery((LPCVOID)f, &where, sizeof where) &&
                where.Protect & (PAGE_EXECUTE | PAGE_EXECUTE_READ);
    return code ? f : NULL;
}

/* RtlCaptureContext returns once more where the call fails: no local of one_call lives then. */
static struct {
    function *to;
    uint64_t a[ARGUMENTS];
    volatile bool begun;
} call;

static void one_call(void)
{
    const uint64_t *a = call.a;
    call.to = any_export();
    for (unsigned i = 0; i < ARGUMENTS; i++)
        call.a[i] = argument();
    fill_slot(slots[fuzz_below(ALL)]);
    call.begun = !call.to;
    RtlCaptureContext(&back);
    if (call.begun)
        return;
    call.begun = true;
    results[fuzz_below(RESULTS)] =
        call.to(a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8], a[9], a[10]);
}

/* From here on this process writes nothing on the console, where the tests' own lines are. */
static bool be_silent(void)
{
    static const uint8_t succeed[] = { 0x31, 0xc0, 0xc3 }; /* xor eax, eax; ret */
    uint8_t *service = (uint8_t *)GetProcAddress(GetModuleHandleA("ntdll"), "write_console");
    DWORD old;
    if (!service || !VirtualProtect(service, sizeof succeed, PAGE_EXECUTE_READWRITE, &old))
        return false;
    memcpy(service, succeed, sizeof succeed);
    return VirtualProtect(service, sizeof succeed, old, &old);
}

void user_fuzz_exports(uint64_t what)
{
    me = GetCurrentThreadId();
    fuzz_seed(what & 0xffffffff);
    for (unsigned i = 0; i < LIBRARIES; i++)
        if (!CHECK(open_library(&all[i], libraries[i])))
            return;
    handles[0] = CreateEventA(NULL, FALSE, TRUE, NULL);
    handles[1] = CreateSemaphoreA(NULL, 1, 2, NULL);
    handles[2] = CreateMutexA(NULL, FALSE, NULL);
    handles[3] = ring3_handle(THREAD_ALL_ACCESS);
    handles[4] = GetCurrentThread();
    handles[5] = GetCurrentProcess();
    if (!CHECK(AddVectoredExceptionHandler(1, survive) != NULL))
        return;
    for (unsigned i = 0; i < ALL; i++)
        fill_slot(slots[i]);
    if (!CHECK(be_silent()))
        return;
    __atomic_store_n(&user_state, 1, __ATOMIC_RELEASE);
    for (uint64_t calls = what >> 32; calls; calls--) {
        one_call();
        user_reads++;
    }
    ZwTerminateProcess(NtCurrentProcess(), STATUS_SUCCESS);
}
