/* SPDX-License-Identifier: MIT */
/* Trace sessions for tests in ring 0. */
#pragma once
#include "kernel/etw.h"
#include "tests/etw_session.h"

#define SESSION_BYTES 0x20000

/* Stops recording, and reads what there is; SESSION_BYTES at `bytes`, which should be enough. */
static inline struct records session_drain(struct session *s, void *bytes)
{
    ULONG n = 0;
    CHECK_STATUS(session_mask(s, 0, 0), STATUS_SUCCESS);
    CHECK_STATUS(session_flush(s), STATUS_SUCCESS);
    CHECK_STATUS(session_read(s, bytes, SESSION_BYTES, &n), STATUS_SUCCESS);
    CHECK(n > 0);
    return records_of(bytes, n);
}

static inline NTSTATUS counter_list(const struct session *s, const ULONG *sources, ULONG count)
{
    return session_list(EventTraceProfileCounterListInformation, s->trace, sources, count);
}

static inline NTSTATUS event_list(const struct session *s, const ULONG *hooks, ULONG count)
{
    return session_list(EventTraceProfileEventListInformation, s->trace, hooks, count);
}
