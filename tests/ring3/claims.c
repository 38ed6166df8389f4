/* SPDX-License-Identifier: MIT */
/* Services called from ring 3 while one of their claims fails (tests/harness/refuse.h): what is
 * refused says why, writes nothing, and succeeds when it is called again. */
#include "tests/ring3/helpers.h"

#define MARK ((HANDLE)0x1234567)

NTSTATUS load_image(PCSTR, SIZE_T, PVOID *, SIZE_T *);

static uint32_t runs; /* atomic */

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
    { thread, wait_for_end, { STATUS_NO_MEMORY, STATUS_INSUFFICIENT_RESOURCES } },
    { own_page, keep_it, { STATUS_NO_MEMORY } },
    { image, keep_it, { STATUS_NO_MEMORY } },
    { profile, run_profile, { STATUS_INSUFFICIENT_RESOURCES } },
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
