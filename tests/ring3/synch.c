/* SPDX-License-Identifier: MIT */
/* Events as ring 3 has them. */
#include "tests/ring3/helpers.h"

static HANDLE event(EVENT_TYPE type, BOOLEAN state)
{
    HANDLE handle = NULL;
    CHECK_STATUS(ZwCreateEvent(&handle, EVENT_ALL_ACCESS, NULL, type, state), STATUS_SUCCESS);
    return handle;
}

static NTSTATUS try_one(HANDLE handle)
{
    LARGE_INTEGER now = { .QuadPart = 0 };
    return ZwWaitForSingleObject(handle, FALSE, &now);
}

static void close_handle(HANDLE handle) { CHECK_STATUS(NtClose(handle), STATUS_SUCCESS); }

static NTSTATUS (*const changers[])(HANDLE, PLONG) = { ZwSetEvent, ZwResetEvent };

TEST_USER(synch, events,
          "set and reset change the state and return the state before, to those who "
          "ask for it")
{
    static const struct {
        unsigned what;
        LONG before;
    } steps[] = { { 0, 0 }, { 0, 1 }, { 1, 1 }, { 1, 0 }, { 0, 0 }, { 0, 1 } };
    for (unsigned type = 0; type < 2; type++) {
        HANDLE handle = event((EVENT_TYPE)type, FALSE);
        for (unsigned i = 0; i < ARRAYSIZE(steps); i++) {
            LONG previous = 99;
            CHECK_STATUS(changers[steps[i].what](handle, i % 2 ? &previous : NULL), STATUS_SUCCESS);
            CHECK_EQ(previous, i % 2 ? steps[i].before : 99);
        }
        CHECK_STATUS(ZwSetEvent(handle, NULL), STATUS_SUCCESS);
        CHECK_STATUS(try_one(handle), STATUS_SUCCESS);
        CHECK_STATUS(try_one(handle), type == NotificationEvent ? STATUS_SUCCESS : STATUS_TIMEOUT);
        close_handle(handle);
    }
}
