/* SPDX-License-Identifier: MIT */
/* What ring 3 finds in records of its own system calls and threads. */
#include "tests/ring3/etw.h"

#define BYTES (32 * RING3_PAGE)
#define CALLS 20

static uint8_t *bytes;

static bool start_hooks(struct session *s)
{
    bytes = ring3_pages(BYTES / RING3_PAGE);
    SetThreadAffinityMask(GetCurrentThread(), 1);
    return CHECK(bytes != NULL) && session_start(s, 64, 16);
}

static struct records finish_hooks(struct session *s)
{
    ULONG n = 0;
    CHECK_STATUS(session_mask(s, 0, 0), STATUS_SUCCESS);
    CHECK_STATUS(session_flush(s), STATUS_SUCCESS);
    CHECK_STATUS(session_read(s, bytes, BYTES, &n), STATUS_SUCCESS);
    CHECK_EQ(session_stop(s), 0);
    session_close(s);
    return records_of(bytes, n);
}

TEST_USER(etw_hooks, system_calls,
          "each system call is recorded at entry with its service's address and at exit with its "
          "status")
{
    static const HANDLE none = (HANDLE)0x1000;
    struct session s;
    ULONG unknown = 0, closed = 0;
    bool inside = true; /* of the call that sets the mask */
    uint64_t address = 1, close_address = 0;
    REQUIRE(start_hooks(&s));
    CHECK_STATUS(session_mask(&s, PERF_SYSCALL, 0), STATUS_SUCCESS);
    for (unsigned i = 0; i < CALLS; i++) {
        CHECK_STATUS(no_such_service(), STATUS_INVALID_SYSTEM_SERVICE);
        CHECK_STATUS(NtClose(none), STATUS_INVALID_HANDLE);
    }
    struct records all = finish_hooks(&s);
    for (struct record r; (r = next_record(&all)).header;) {
        bool enters = r.header->HookId == PERFINFO_LOG_TYPE_SYSCALL_ENTER;
        CHECK_EQ(r.buffer->ClientContext.ProcessorIndex, 0);
        CHECK_EQ(r.size, enters ? 8 : 4);
        CHECK(enters != inside);
        inside = enters;
        if (enters) {
            address = (uint64_t)((const PERFINFO_SYSCALL_ENTER_DATA *)r.payload)->SysCallAddr;
            continue;
        }
        NTSTATUS status = ((const PERFINFO_SYSCALL_EXIT_DATA *)r.payload)->ReturnValue;
        unknown += !address && status == STATUS_INVALID_SYSTEM_SERVICE;
        if (status == STATUS_INVALID_HANDLE) {
            CHECK(address >> 63 && (!closed || address == close_address));
            close_address = address;
            closed++;
        }
    }
    CHECK_EQ(unknown, CALLS);
    CHECK_EQ(closed, CALLS);
}

static DWORD thread_of_nothing(PVOID unused) { return GetCurrentThreadId(); }

TEST_USER(etw_hooks, threads,
          "creation, readiness, first switch and end of a thread are recorded in this order")
{
    static const USHORT order[] = { WMI_LOG_TYPE_THREAD_CREATE, PERFINFO_LOG_TYPE_READY_THREAD,
                                    PERFINFO_LOG_TYPE_CONTEXTSWAP, WMI_LOG_TYPE_THREAD_DELETE };
    EVENT_TRACE_GROUPMASK_INFORMATION info = { EventTraceGroupMaskInformation,
                                               0,
                                               { { PERF_THREAD } } };
    struct session s;
    static struct {
        uint64_t time;
        WMI_EXTENDED_THREAD_INFORMATION thread;
    } seen[4];
    SYSTEM_INFO system;
    GetSystemInfo(&system);
    REQUIRE(start_hooks(&s));
    info.TraceHandle = s.trace;
    info.EventTraceGroupMasks.Masks[1] =
        PERF_MASK_BITS(PERF_CONTEXT_SWITCH) | PERF_MASK_BITS(PERF_DISPATCHER);
    CHECK_OK(ZwSetSystemInformation(SystemPerformanceTraceInformation, &info, sizeof info));
    ULONG id = (ULONG)ring3_run(thread_of_nothing, NULL);
    struct records all = finish_hooks(&s);
    for (struct record r; (r = next_record(&all)).header;)
        for (unsigned i = 0; i < 4; i++)
            if (r.header->HookId == order[i] && !seen[i].time &&
                (i == 0 || i == 3 ? ((const WMI_EXTENDED_THREAD_INFORMATION *)r.payload)->ThreadId
                                  : *(const ULONG *)r.payload) == id) {
                seen[i].time = r.header->TimeStamp;
                if (i == 0 || i == 3)
                    seen[i].thread = *(const WMI_EXTENDED_THREAD_INFORMATION *)r.payload;
            }
    for (unsigned i = 0; i < 4; i++)
        CHECK(seen[i].time > (i ? seen[i - 1].time : 0));
    for (unsigned i = 0; i < 4; i += 3) {
        const WMI_EXTENDED_THREAD_INFORMATION *t = &seen[i].thread;
        CHECK_EQ(t->ProcessId, GetCurrentProcessId());
        CHECK(t->Win32StartAddr == (PVOID)thread_of_nothing);
        CHECK_EQ((uint8_t *)t->UserStackBase - (uint8_t *)t->UserStackLimit, 16 * RING3_PAGE);
        CHECK((uint64_t)t->StackLimit >> 63 && t->StackBase > t->StackLimit);
        CHECK_EQ(t->Affinity, system.dwActiveProcessorMask);
    }
}
