/* SPDX-License-Identifier: MIT */
/* Services called from ring 3 while one of their claims fails (tests/harness/refuse.h): what is
 * refused says why, writes nothing, and succeeds when it is called again. */
#include "tests/ring3/etw.h"

#define MARK ((HANDLE)0x1234567)

NTSTATUS load_image(PCSTR, SIZE_T, PVOID *, SIZE_T *);
NTSTATUS ZwQueueApcThread(HANDLE, PVOID, PVOID, PVOID, PVOID);
NTSTATUS ZwTestAlert(void);
NTSTATUS ZwCreateTimer(PHANDLE, ACCESS_MASK, POBJECT_ATTRIBUTES, ULONG);
NTSTATUS ZwTraceEvent(HANDLE, ULONG, ULONG, PVOID);

static uint32_t runs; /* atomic */
static struct session session;

static NTSTATUS new_event(HANDLE *made)
{
    return ZwCreateEvent(made, EVENT_ALL_ACCESS, NULL, NotificationEvent, FALSE);
}

static NTSTATUS new_semaphore(HANDLE *made)
{
    return ZwCreateSemaphore(made, SEMAPHORE_ALL_ACCESS, NULL, 0, 1);
}

static NTSTATUS new_mutant(HANDLE *made)
{
    return ZwCreateMutant(made, MUTANT_ALL_ACCESS, NULL, FALSE);
}

static NTSTATUS new_timer(HANDLE *made)
{
    return ZwCreateTimer(made, TIMER_ALL_ACCESS, NULL, 0); /* NotificationTimer */
}

static NTSTATUS duplicate(HANDLE *made)
{
    return NtDuplicateObject(NtCurrentProcess(), NtCurrentThread(), NtCurrentProcess(), made,
                             THREAD_ALL_ACCESS, 0, 0);
}

static void close_new(HANDLE made) { CHECK_OK(NtClose(made)); }

static DWORD WINAPI note_begin(LPVOID unused)
{
    __atomic_fetch_add(&runs, 1, __ATOMIC_RELAXED);
    return 0;
}

static NTSTATUS thread(HANDLE *made)
{
    return NtCreateThreadEx(made, THREAD_ALL_ACCESS, NULL, NtCurrentProcess(),
                            (PVOID)(uint64_t)note_begin, NULL, 0, 0, 0, 0, NULL);
}

static void wait_for_end(HANDLE made)
{
    CHECK_OK(ZwWaitForSingleObject(made, FALSE, NULL));
    CHECK_EQ(__atomic_load_n(&runs, __ATOMIC_RELAXED), 1); /* none that was refused */
    close_new(made);
}

static NTSTATUS memory(HANDLE *made)
{
    SIZE_T size = 4 * RING3_PAGE;
    PVOID base = (PVOID)0x400000000000;
    NTSTATUS status = NtAllocateVirtualMemory(NtCurrentProcess(), &base, 0, &size,
                                              MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE);
    if (NT_SUCCESS(status))
        *made = base;
    return status;
}

static void free_memory(HANDLE made) { ring3_free(made); }

/* A page that all processes share becomes the process's own. */
static NTSTATUS own_page(HANDLE *made)
{
    PVOID base = (PVOID)((uint64_t)note_begin & ~(uint64_t)(RING3_PAGE - 1));
    SIZE_T size = RING3_PAGE;
    ULONG old;
    NTSTATUS status =
        NtProtectVirtualMemory(NtCurrentProcess(), &base, &size, PAGE_EXECUTE_READWRITE, &old);
    if (NT_SUCCESS(status))
        *made = base;
    return status;
}

static NTSTATUS image(HANDLE *made)
{
    static const char name[] = "advapi32.dll";
    SIZE_T size;
    PVOID base;
    NTSTATUS status = load_image(name, sizeof name - 1, &base, &size); /* again: elsewhere */
    if (NT_SUCCESS(status))
        *made = base;
    return status;
}

static void keep_it(HANDLE made) { (void)made; }

static NTSTATUS profile(HANDLE *made)
{
    static ULONG counts[4];
    return ZwCreateProfile(made, NtCurrentProcess(), (PVOID)(uint64_t)note_begin, 16, 2, counts,
                           sizeof counts, ProfileTime, 1);
}

static void run_profile(HANDLE made)
{
    if (!NT_SUCCESS(ZwStartProfile(made)))
        CHECK_OK(ZwStartProfile(made));
    CHECK_OK(ZwStopProfile(made));
    close_new(made);
}

static NTSTATUS begin_session(HANDLE *made)
{
    struct session_info d;
    session_describe(&d, SESSION_NAME);
    d.info.BufferSize = 4;
    d.info.MaximumBuffers = 2;
    NTSTATUS status = session_control(EtwStartLoggerCode, &d);
    session.trace = d.info.Wnode.HistoricalContext;
    if (NT_SUCCESS(status))
        *made = (HANDLE)session.trace;
    return status;
}

static NTSTATUS connect_it(void)
{
    TRACE_CONSUMER consumer = { NULL, 0 };
    ULONG n = 0;
    NTSTATUS status = NtTraceControl(EtwRealtimeConnectCode, &session.trace, sizeof session.trace,
                                     &consumer, sizeof consumer, &n);
    session.consumer = consumer.Handle;
    return status;
}

static NTSTATUS send_it(void)
{
    EVENT_TRACE_HEADER header = { .Size = sizeof header };
    return ZwTraceEvent((HANDLE)session.trace, ETW_NT_FLAGS_TRACE_HEADER, sizeof header, &header);
}

static void use_session(HANDLE made)
{
    if (!NT_SUCCESS(connect_it()))
        CHECK_OK(connect_it());
    if (!NT_SUCCESS(send_it()))
        CHECK_OK(send_it());
    session_stop(&session);
    session_close(&session);
}

static NTSTATUS enable_once(HANDLE *made)
{
    return RtlEnableThreadProfiling(NtCurrentThread(), 1, 0, made);
}

static void enable_no_more(HANDLE made) { ring3_disable(made); }

static const struct action {
    NTSTATUS (*call)(HANDLE *made);
    void (*undo)(HANDLE made);
    NTSTATUS may[2];
} actions[USER_CLAIMS] = {
    { new_event, close_new, { STATUS_INSUFFICIENT_RESOURCES } },
    { new_semaphore, close_new, { STATUS_INSUFFICIENT_RESOURCES } },
    { new_mutant, close_new, { STATUS_INSUFFICIENT_RESOURCES } },
    { new_timer, close_new, { STATUS_INSUFFICIENT_RESOURCES } },
    { duplicate, close_new, { STATUS_INSUFFICIENT_RESOURCES } },
    { thread, wait_for_end, { STATUS_NO_MEMORY, STATUS_INSUFFICIENT_RESOURCES } },
    { memory, free_memory, { STATUS_NO_MEMORY } },
    { own_page, keep_it, { STATUS_NO_MEMORY } },
    { image, keep_it, { STATUS_NO_MEMORY } },
    { profile, run_profile, { STATUS_INSUFFICIENT_RESOURCES } },
    { begin_session, use_session, { STATUS_NO_MEMORY, STATUS_INSUFFICIENT_RESOURCES } },
    { enable_once, enable_no_more, { STATUS_NO_MEMORY } },
};

void user_claims(uint64_t which)
{
    const struct action *a = &actions[which];
    HANDLE made = MARK;
    if (which >= USER_CLAIMS)
        return;
    NTSTATUS status = a->call(&made);
    if (!NT_SUCCESS(status)) {
        CHECK_STATUS(status, a->may[1] && status == a->may[1] ? a->may[1] : a->may[0]);
        CHECK(made == MARK);
        status = a->call(&made);
    }
    if (CHECK_OK(status))
        a->undo(made);
}
