/* SPDX-License-Identifier: MIT */
/* Trace sessions for tests in ring 0. */
#pragma once
#include "hal/owners.h"
#include "kernel/etw/etw_class.h"
#include "kernel/etw/etw_control.h"
#include "kernel/ke/etw.h"
#include "kernel/mm/phys.h"
#include "tests/harness/etw_session.h"

#define SESSION_BYTES 0x20000

#define SESSION_PAGES (SESSION_BYTES / PAGE_SIZE)

/* A session with SESSION_BYTES to read into, for a test that runs on processor 0; and its end, with
 * nothing lost and no counter left owned. */
static inline bool session_begin(struct session *s, uint8_t **bytes)
{
    *bytes = phys_alloc(SESSION_PAGES);
    test_run_on(0);
    return CHECK(*bytes != NULL) && session_start(s, 64, 16);
}

static inline void session_end(struct session *s, uint8_t *bytes)
{
    CHECK_EQ(session_stop(s), 0);
    session_close(s);
    phys_free(bytes, SESSION_PAGES);
    test_run_anywhere();
    CHECK_EQ(hal_counters_owned(), 0);
}

/* Stops recording, and reads what there is; SESSION_BYTES at `bytes`, which should be enough. */
static inline struct records session_drain(struct session *s, void *bytes)
{
    ULONG n = 0;
    CHECK_OK(session_mask(s, 0, 0));
    CHECK_OK(session_flush(s));
    CHECK_OK(session_read(s, bytes, SESSION_BYTES, &n));
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
