/* SPDX-License-Identifier: MIT */
/* Branch records of ring 3's own branches: each flag leaves out its class and no other; and the
 * Win32 functions for them. */
#include "tests/ring3/etw.h"
#include "tests/ring3/etw_win32.h"

#define BYTES (32 * RING3_PAGE)
#define FAR_BRANCH 0x100u
#define CALL_STACK 0x200u
#define ROWS 8

extern void trace_branches(void), trace_calls(void);
extern const ULONG64 trace_branch_rows[ROWS][2], trace_call_rows[3][2];

static uint8_t *bytes;

/* The entries of the second of the program's calls of no service; false: there is no such list. */
static bool record_branches(ULONG options, void (*program)(void), const ETW_LAST_BRANCH **entries,
                            ULONG *count)
{
    static const ULONG hook = PERFINFO_LOG_TYPE_SYSCALL_ENTER;
    struct session s;
    struct record event;
    ULONG n = 0, calls = 0, some;
    bytes = bytes ? bytes : ring3_pages(BYTES / RING3_PAGE);
    if (!CHECK(bytes != NULL) || !session_start(&s, 64, 16))
        return false;
    win32_privilege(true);
    NTSTATUS status = session_branches(&s, options);
    bool there = NT_SUCCESS(status);
    if (there) {
        CHECK_STATUS(session_list(EventTraceLastBranchEventListInformation, s.trace, &hook, 1),
                     STATUS_SUCCESS);
        CHECK_STATUS(session_mask(&s, PERF_SYSCALL, 0), STATUS_SUCCESS);
        program();
        CHECK_STATUS(session_mask(&s, 0, 0), STATUS_SUCCESS);
        CHECK_STATUS(session_flush(&s), STATUS_SUCCESS);
        CHECK_STATUS(session_read(&s, bytes, BYTES, &n), STATUS_SUCCESS);
    } else {
        CHECK_STATUS(status, STATUS_NOT_SUPPORTED);
    }
    struct records all = records_of(bytes, n);
    for (const ETW_LAST_BRANCH *e; (e = next_branches(&all, hook, &event, &some)) != NULL;)
        if (!((const PERFINFO_SYSCALL_ENTER_DATA *)event.payload)->SysCallAddr && calls++ == 1) {
            *entries = e;
            *count = some;
        }
    CHECK_EQ(calls, there ? 2 : 0);
    win32_privilege(false);
    CHECK_EQ(session_stop(&s), 0);
    session_close(&s);
    return there && calls == 2;
}

/* The flag that leaves a row out. */
static ULONG flag_of(unsigned row)
{
    static const ULONG flags[ROWS] = { 4, 8, 0x20, 0x10, 0x20, 0x40, 0x80, FAR_BRANCH };
    return flags[row];
}

/* Ring 0 is hidden, too: what begins or ends there processors may show or not, and timers may
 * interrupt. */
static void check_filter(ULONG options)
{
    const ETW_LAST_BRANCH *entries = NULL;
    ULONG count = 0, n = 0;
    if (!record_branches(options | FAR_BRANCH | 1, trace_branches, &entries, &count))
        return;
    for (unsigned row = ROWS - 1; row-- > 0;)
        if (!(options & flag_of(row))) {
            if (!CHECK(n < count))
                return;
            CHECK_EQ(entries[n].From, trace_branch_rows[row][0]);
            CHECK_EQ(entries[n].To, trace_branch_rows[row][1]);
            n++;
        }
    CHECK_EQ(count, n);
}

TEST_USER(etw_lbr, filters,
          "each flag leaves out the branches of its class and no others, each two of them both "
          "[ET-66 slow]")
{
    SetThreadAffinityMask(GetCurrentThread(), 1);
    check_filter(0);
    for (unsigned a = 2; a <= 7; a++)
        for (unsigned b = a; b <= 7 && (b == a || test_long()); b++)
            check_filter(1u << a | 1u << b);
}

/* An interrupt before the SYSCALL has its address, too, but goes elsewhere, and is older. */
static ULONG count_system_calls(const ETW_LAST_BRANCH *e, ULONG count)
{
    ULONG64 handler = 0;
    ULONG calls = 0;
    for (ULONG i = 0; i < count; i++)
        if (e[i].From == trace_branch_rows[ROWS - 1][0]) {
            handler = handler ? handler : e[i].To;
            calls += e[i].To == handler && handler >> 63;
        }
    return calls;
}

TEST_USER(etw_lbr, rings,
          "the flags of rings leave out what is in that ring, and that of far branches leaves out "
          "SYSCALL [ET-66 slow]")
{
    const ETW_LAST_BRANCH *e = NULL;
    ULONG count = 0, classes = 0x0fc;
    SetThreadAffinityMask(GetCurrentThread(), 1);
    if (!record_branches(classes, trace_branches, &e, &count))
        return;
    CHECK_EQ(count_system_calls(e, count), 1);
    CHECK(record_branches(classes | FAR_BRANCH, trace_branches, &e, &count));
    CHECK_EQ(count, 0);
    CHECK(record_branches(1, trace_branches, &e, &count));
    for (ULONG i = 0; i < count; i++)
        CHECK(!(e[i].From >> 63) || !(e[i].To >> 63));
    CHECK(record_branches(2, trace_branches, &e, &count));
    for (ULONG i = 0; i < count; i++)
        CHECK(e[i].From >> 63 || e[i].To >> 63);
    CHECK(record_branches(3, trace_branches, &e, &count));
    CHECK_EQ(count, 0);
}

TEST_USER(etw_lbr, call_stack,
          "as a call stack the record has the calls that have not returned, the newest first "
          "[ET-66 slow]")
{
    const ETW_LAST_BRANCH *e = NULL;
    ULONG count = 0;
    SetThreadAffinityMask(GetCurrentThread(), 1);
    if (!record_branches(CALL_STACK | 1, trace_calls, &e, &count))
        return;
    CHECK_EQ(count, 3);
    for (ULONG i = 0; i < count && i < 3; i++) {
        CHECK_EQ(e[i].From, trace_call_rows[2 - i][0]);
        CHECK_EQ(e[i].To, trace_call_rows[2 - i][1]);
    }
}

TEST_USER(etw_lbr, win32,
          "TraceConfigureLastBranchRecord and classes 20 and 21: every code that they return, "
          "of two sessions, too [ET-63 ET-67 slow]")
{
    CLASSIC_EVENT_ID events[5] = { { ThreadGuid, 36, { 0 } }, { LastBranchGuid, 32, { 0 } } };
    ULONG none = 0, odd = 1u << 20, hooks[5] = { PERFINFO_LOG_TYPE_CONTEXTSWAP };
    TRACEHANDLE a = 0, b = 0;
    struct properties q;
    REQUIRE(win32_start(&a));
    CHECK_EQ(TraceConfigureLastBranchRecord(a, 0, events, 1), ERROR_PRIVILEGE_NOT_HELD);
    CHECK_EQ(TraceSetInformation(a, TraceLbrEventListInfo, hooks, 4), ERROR_PRIVILEGE_NOT_HELD);
    win32_privilege(true);
    win32_describe(&q);
    q.p.MaximumBuffers = 32;
    REQUIRE(CHECK_EQ(StartTraceW(&b, L"win32 other", &q.p), ERROR_SUCCESS));
    CHECK_EQ(TraceSetInformation(a, TraceLbrConfigurationInfo, &none, 3), ERROR_BAD_LENGTH);
    CHECK_EQ(TraceSetInformation(a, TraceLbrConfigurationInfo, NULL, 4), ERROR_INVALID_PARAMETER);
    CHECK_EQ(TraceSetInformation(a, TraceLbrConfigurationInfo, &odd, 4), ERROR_INVALID_PARAMETER);
    CHECK_EQ(TraceSetInformation(0x77, TraceLbrConfigurationInfo, &none, 4),
             ERROR_WMI_INSTANCE_NOT_FOUND);
    CHECK_EQ(TraceSetInformation(a, TraceLbrEventListInfo, hooks, 5), ERROR_INCORRECT_SIZE);
    CHECK_EQ(TraceSetInformation(a, TraceLbrEventListInfo, hooks, 20), ERROR_INCORRECT_SIZE);
    CHECK_EQ(TraceSetInformation(a, TraceLbrEventListInfo, hooks, 0), ERROR_INVALID_PARAMETER);
    CHECK_EQ(TraceConfigureLastBranchRecord(a, 0, NULL, 1), ERROR_INVALID_PARAMETER);
    CHECK_EQ(TraceConfigureLastBranchRecord(a, 0, events, 0), ERROR_INVALID_PARAMETER);
    CHECK_EQ(TraceConfigureLastBranchRecord(a, 0, events, 5), ERROR_INVALID_PARAMETER);
    CHECK_EQ(TraceConfigureLastBranchRecord(a, 0, events + 1, 1), ERROR_INVALID_PARAMETER);
    CHECK_EQ(TraceConfigureLastBranchRecord(a, EVNTRACE_LBR_SAMPLED, events, 1),
             ERROR_NOT_SUPPORTED);
    ULONG first = TraceConfigureLastBranchRecord(a, 0, events, 2);
    if (first == ERROR_SUCCESS) {
        CHECK_EQ(TraceConfigureLastBranchRecord(a, 0, events, 1), ERROR_WMI_ALREADY_ENABLED);
        CHECK_EQ(TraceSetInformation(a, TraceLbrEventListInfo, hooks, 4),
                 ERROR_WMI_ALREADY_ENABLED);
        CHECK_EQ(TraceConfigureLastBranchRecord(b, 0, events, 1), ERROR_BUSY);
    } else {
        CHECK_EQ(first, ERROR_NOT_SUPPORTED);
    }
    CHECK_EQ(win32_stop(a), ERROR_SUCCESS);
    CHECK_EQ(TraceConfigureLastBranchRecord(b, 0, events, 1), first);
    CHECK_EQ(win32_stop(b), ERROR_SUCCESS);
    win32_privilege(false);
}
