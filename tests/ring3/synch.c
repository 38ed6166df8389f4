/* SPDX-License-Identifier: MIT */
/* Events as ring 3 has them, and names of objects. */
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

/* --- Making them. --- */

static NTSTATUS make_event(PHANDLE h, POBJECT_ATTRIBUTES a)
{
    return ZwCreateEvent(h, EVENT_ALL_ACCESS, a, NotificationEvent, FALSE);
}
static NTSTATUS make_semaphore(PHANDLE h, POBJECT_ATTRIBUTES a)
{
    return ZwCreateSemaphore(h, SEMAPHORE_ALL_ACCESS, a, 0, 1);
}
static NTSTATUS make_mutant(PHANDLE h, POBJECT_ATTRIBUTES a)
{
    return ZwCreateMutant(h, MUTANT_ALL_ACCESS, a, FALSE);
}
static NTSTATUS (*const makers[])(PHANDLE, POBJECT_ATTRIBUTES) = { make_event, make_semaphore,
                                                                   make_mutant };

TEST_USER(synch, names,
          "an object's name is its own while it is there: another one of its kind is refused, or "
          "opened; one of another kind is refused; half a character and too many are")
{
    static WCHAR text[301] = u"one";
    HANDLE first, same, none = UNMAPPED;
    for (unsigned k = 0; k < ARRAYSIZE(makers); k++) {
        UNICODE_STRING name = { 6, 6, text };
        OBJECT_ATTRIBUTES a = { .Length = sizeof a, .ObjectName = &name };
        REQUIRE_OK(makers[k](&first, &a));
        CHECK_STATUS(makers[k](&none, &a), STATUS_OBJECT_NAME_COLLISION);
        a.Attributes = OBJ_OPENIF;
        CHECK_STATUS(makers[(k + 1) % ARRAYSIZE(makers)](&none, &a), STATUS_OBJECT_TYPE_MISMATCH);
        CHECK_STATUS(makers[k](&same, &a), STATUS_OBJECT_NAME_EXISTS);
        close_handle(first);
        CHECK_STATUS(makers[k](&first, &a), STATUS_OBJECT_NAME_EXISTS); /* the other keeps it */
        name.Length = 4;                                                /* "on" */
        CHECK_STATUS(makers[k](&none, &a), STATUS_SUCCESS);
        close_handle(none);
        name.Length = 600;
        CHECK_STATUS(makers[k](&none, &a), STATUS_SUCCESS);
        close_handle(none);
        none = UNMAPPED;
        name.Length = 602;
        CHECK_STATUS(makers[k](&none, &a), STATUS_OBJECT_NAME_INVALID);
        name.Length = 3;
        CHECK_STATUS(makers[k](&none, &a), STATUS_OBJECT_NAME_INVALID);
        name = (UNICODE_STRING){ 6, 6, KERNEL_ADDRESS };
        CHECK_STATUS(makers[k](&none, &a), STATUS_ACCESS_VIOLATION);
        a.RootDirectory = first;
        CHECK_STATUS(makers[k](&none, &a), STATUS_INVALID_HANDLE);
        CHECK(none == UNMAPPED);
        close_handle(first);
        close_handle(same);
    }
    OBJECT_ATTRIBUTES a = { .Length = sizeof a };
    UNICODE_STRING name = { 6, 6, text };
    EVENT_BASIC_INFORMATION info;
    a.ObjectName = &name, a.Attributes = OBJ_OPENIF;
    REQUIRE_OK(make_event(&first, &a)); /* what had the name before is gone */
    CHECK_STATUS(make_event(&same, &a), STATUS_OBJECT_NAME_EXISTS);
    CHECK_OK(ZwSetEvent(first, NULL));
    CHECK_OK(ZwQueryEvent(same, EventBasicInformation, &info, sizeof info, NULL));
    CHECK_EQ(info.EventState, 1);
    close_handle(first);
    close_handle(same);
}

/* --- Events. --- */

static NTSTATUS clear_event(HANDLE handle, PLONG previous)
{
    if (previous)
        *previous = FILL;
    return ZwClearEvent(handle);
}

static NTSTATUS (*const changers[])(HANDLE, PLONG) = { ZwSetEvent, ZwResetEvent, clear_event };

TEST_USER(synch, events,
          "set, reset and clear change the state and return the state before, to those who "
          "ask for it")
{
    static const struct {
        unsigned what;
        LONG before, after;
    } steps[] = {
        { 0, 0, 1 }, { 0, 1, 1 }, { 1, 1, 0 }, { 1, 0, 0 }, { 0, 0, 1 }, { 2, FILL, 0 },
    };
    for (unsigned type = 0; type < 2; type++) {
        HANDLE handle = event((EVENT_TYPE)type, FALSE);
        for (unsigned i = 0; i < ARRAYSIZE(steps); i++) {
            LONG previous = 99;
            EVENT_BASIC_INFORMATION info = { 9, 9 };
            CHECK_STATUS(changers[steps[i].what](handle, i % 2 ? &previous : NULL), STATUS_SUCCESS);
            CHECK_EQ(previous, i % 2 ? steps[i].before : 99);
            CHECK_OK(ZwQueryEvent(handle, EventBasicInformation, &info, sizeof info, NULL));
            CHECK_EQ(info.EventType, type);
            CHECK_EQ(info.EventState, steps[i].after);
        }
        CHECK_STATUS(ZwSetEvent(handle, NULL), STATUS_SUCCESS);
        CHECK_STATUS(try_one(handle), STATUS_SUCCESS);
        CHECK_STATUS(try_one(handle), type == NotificationEvent ? STATUS_SUCCESS : STATUS_TIMEOUT);
        close_handle(handle);
    }
}
