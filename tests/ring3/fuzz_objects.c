/* SPDX-License-Identifier: MIT */
/* The service fuzz: handles, and the state of what threads wait for. */
#include "tests/ring3/fuzz.h"

#define ALL_RIGHTS 0x1fffffu
#define LIMIT_MAX 5

static const ACCESS_MASK all_of[] = {
    [FUZZ_EVENT] = EVENT_ALL_ACCESS,
    [FUZZ_SEMAPHORE] = SEMAPHORE_ALL_ACCESS,
    [FUZZ_MUTANT] = MUTANT_ALL_ACCESS,
};

/* What is asked for, and what it comes to. */
static ACCESS_MASK some_access(enum fuzz_kind kind, ACCESS_MASK *asked)
{
    *asked = fuzz_one_in(3)   ? MAXIMUM_ALLOWED
             : fuzz_one_in(4) ? (ACCESS_MASK)fuzz_random() & ALL_RIGHTS
                              : all_of[kind];
    return *asked == MAXIMUM_ALLOWED ? all_of[kind] : *asked;
}

static bool is_pseudo(HANDLE h) { return h == NtCurrentThread() || h == NtCurrentProcess(); }

/* --- Handles. --- */

/* The last handle to a thread that is suspended stays: nobody else ends it. */
static bool last_of_suspended(const struct fuzz_slot *slot)
{
    const struct fuzz_thing *thing = slot->thing;
    return thing->kind == FUZZ_THREAD && thing != &fuzz_me && !thing->state && thing->handles == 1;
}

static void close_object(void)
{
    HANDLE h;
    struct fuzz_slot *slot = fuzz_handle(FUZZ_NONE, 0, &h);
    if (is_pseudo(h))
        fuzz_refuse(STATUS_INVALID_HANDLE);
    else if (slot && last_of_suspended(slot))
        h = fuzz_no_handle(), fuzz_refuse(STATUS_INVALID_HANDLE);
    if (FUZZ_ANSWER(ZwClose(h)))
        fuzz_taken(slot);
}

static void duplicate(void)
{
    HANDLE h;
    ULONG options = fuzz_below(4);
    ACCESS_MASK access =
        fuzz_one_in(2) ? 0 : (ACCESS_MASK)(fuzz_random() & fuzz_random()) & ALL_RIGHTS;
    HANDLE from = fuzz_one_in(16) ? fuzz_no_handle() : NtCurrentProcess(),
           in = fuzz_one_in(16) ? NULL : NtCurrentProcess();
    if (fuzz_full())
        return;
    struct fuzz_slot *slot =
        fuzz_handle(FUZZ_NONE, options & DUPLICATE_SAME_ACCESS ? 0 : access, &h);
    HANDLE *to = fuzz_out(sizeof *to);
    if (from != NtCurrentProcess() || in != NtCurrentProcess())
        fuzz_refuse(STATUS_NOT_SUPPORTED);
    if (!FUZZ_ANSWER(ZwDuplicateObject(from, h, in, to, access, (ULONG)fuzz_random(), options)))
        return;
    fuzz_given(*to, slot->thing, options & DUPLICATE_SAME_ACCESS ? slot->access : access);
    if (options & DUPLICATE_CLOSE_SOURCE && !is_pseudo(h))
        fuzz_taken(slot);
}

/* --- Making them. --- */

static POBJECT_ATTRIBUTES some_attributes(void)
{
    static WCHAR text[] = { 'n' };
    static UNICODE_STRING name = { 1, 2, text };
    OBJECT_ATTRIBUTES a = { .Length = sizeof a };
    if (!fuzz_one_in(4))
        return NULL;
    if (fuzz_one_in(4)) {
        a.Length = fuzz_below(sizeof a);
        fuzz_refuse(STATUS_INVALID_PARAMETER);
    } else if (fuzz_one_in(4)) {
        a.ObjectName = &name;
        fuzz_refuse(STATUS_OBJECT_NAME_INVALID); /* half a character */
    }
    const void *p = fuzz_in(&a, sizeof a);
    return (POBJECT_ATTRIBUTES)(p ? (uint64_t)p : 8); /* NULL would be none */
}

static void made(bool did, const HANDLE *handle, enum fuzz_kind kind, ACCESS_MASK access,
                 const struct fuzz_thing *as)
{
    struct fuzz_thing *thing = did ? fuzz_thing(kind) : NULL;
    if (!thing)
        return;
    *thing = *as;
    thing->kind = kind;
    fuzz_given(*handle, thing, access);
}

static void create_event(void)
{
    if (fuzz_full())
        return;
    ACCESS_MASK asked, access = some_access(FUZZ_EVENT, &asked);
    HANDLE *to = fuzz_out(sizeof *to);
    POBJECT_ATTRIBUTES attributes = some_attributes();
    unsigned type = fuzz_one_in(8) ? fuzz_below(100) : fuzz_below(2), on = fuzz_below(4);
    if (type > SynchronizationEvent)
        fuzz_refuse(STATUS_INVALID_PARAMETER);
    struct fuzz_thing as = { .state = on != 0, .manual = type == NotificationEvent };
    made(FUZZ_ANSWER(ZwCreateEvent(to, asked, attributes, (EVENT_TYPE)type, (BOOLEAN)on)), to,
         FUZZ_EVENT, access, &as);
}

static void create_semaphore(void)
{
    if (fuzz_full())
        return;
    ACCESS_MASK asked, access = some_access(FUZZ_SEMAPHORE, &asked);
    HANDLE *to = fuzz_out(sizeof *to);
    POBJECT_ATTRIBUTES attributes = some_attributes();
    struct fuzz_thing as = { .state = (LONG)fuzz_below(LIMIT_MAX + 2) - 1,
                             .limit = (LONG)fuzz_below(LIMIT_MAX) };
    if (fuzz_one_in(8))
        as.limit = INT32_MAX;
    if (as.limit < 1 || as.state < 0 || as.state > as.limit)
        fuzz_refuse(STATUS_INVALID_PARAMETER);
    made(FUZZ_ANSWER(ZwCreateSemaphore(to, asked, attributes, as.state, as.limit)), to,
         FUZZ_SEMAPHORE, access, &as);
}

static void create_mutant(void)
{
    if (fuzz_full())
        return;
    ACCESS_MASK asked, access = some_access(FUZZ_MUTANT, &asked);
    HANDLE *to = fuzz_out(sizeof *to);
    POBJECT_ATTRIBUTES attributes = some_attributes();
    BOOLEAN owned = (BOOLEAN)fuzz_below(3);
    struct fuzz_thing as = { .state = owned ? 0 : 1 };
    made(FUZZ_ANSWER(ZwCreateMutant(to, asked, attributes, owned)), to, FUZZ_MUTANT, access, &as);
}

/* --- Changing them. --- */

/* Where the previous state goes, which is written when all is done: a bad pointer keeps nothing
 * from it. */
static LONG *previous(bool *bad)
{
    LONG *p = fuzz_one_in(3) ? NULL : fuzz_late(sizeof *p, bad);
    if (!p)
        *bad = false;
    if (*bad && !fuzz_refused())
        fuzz_expect(STATUS_ACCESS_VIOLATION);
    return p;
}

/* Success or refused too late, it was done. */
static void check_previous(const LONG *p, bool bad, LONG before)
{
    if (p && !bad)
        CHECK_EQ(*p, before);
}

static void change_event(void)
{
    static NTSTATUS (*const calls[])(HANDLE, PLONG) = { ZwSetEvent, ZwResetEvent, ZwPulseEvent };
    HANDLE h;
    bool bad = false;
    unsigned which = fuzz_below(4);
    struct fuzz_slot *slot = fuzz_handle(FUZZ_EVENT, EVENT_MODIFY_STATE, &h);
    if (which == 3) {
        if (FUZZ_ANSWER(ZwClearEvent(h)))
            slot->thing->state = 0;
        return;
    }
    LONG *before = previous(&bad);
    if (!FUZZ_ANSWER(calls[which](h, before)))
        return;
    check_previous(before, bad, slot->thing->state);
    slot->thing->state = which == 0;
}

static void release_semaphore(void)
{
    HANDLE h;
    bool bad = false;
    LONG n = fuzz_one_in(8) ? (LONG)fuzz_random() : (LONG)fuzz_below(LIMIT_MAX);
    struct fuzz_slot *slot = fuzz_handle(FUZZ_SEMAPHORE, SEMAPHORE_MODIFY_STATE, &h);
    if (n < 1)
        fuzz_refuse(STATUS_INVALID_PARAMETER);
    if (slot && n > slot->thing->limit - slot->thing->state)
        fuzz_refuse(STATUS_SEMAPHORE_LIMIT_EXCEEDED);
    LONG *before = previous(&bad);
    if (!FUZZ_ANSWER(ZwReleaseSemaphore(h, n, before)) || !slot)
        return;
    check_previous(before, bad, slot->thing->state);
    slot->thing->state += n;
}

static void release_mutant(void)
{
    HANDLE h;
    bool bad = false;
    struct fuzz_slot *slot = fuzz_handle(FUZZ_MUTANT, 0, &h);
    if (slot && slot->thing->state == 1)
        fuzz_refuse(STATUS_MUTANT_NOT_OWNED);
    LONG *before = previous(&bad);
    if (!FUZZ_ANSWER(ZwReleaseMutant(h, before)) || !slot)
        return;
    check_previous(before, bad, slot->thing->state);
    slot->thing->state++;
}

static void query_object(void)
{
    enum fuzz_kind kind = (enum fuzz_kind)(FUZZ_EVENT + fuzz_below(3));
    HANDLE h;
    ULONG *returned, length = fuzz_one_in(8) ? fuzz_below(20) : 8,
                     info_class = fuzz_one_in(16) ? 2 + fuzz_below(9) : 0;
    struct fuzz_slot *slot = fuzz_handle(kind, EVENT_QUERY_STATE, &h);
    LONG *info = fuzz_out(8);
    returned = fuzz_out_optional(sizeof *returned);
    if (length != 8)
        fuzz_refuse(STATUS_INFO_LENGTH_MISMATCH);
    if (info_class)
        fuzz_refuse(STATUS_INVALID_INFO_CLASS);
    NTSTATUS status =
        kind == FUZZ_EVENT
            ? ZwQueryEvent(h, (EVENT_INFORMATION_CLASS)info_class, info, length, returned)
        : kind == FUZZ_SEMAPHORE
            ? ZwQuerySemaphore(h, (SEMAPHORE_INFORMATION_CLASS)info_class, info, length, returned)
            : ZwQueryMutant(h, (MUTANT_INFORMATION_CLASS)info_class, info, length, returned);
    if (!FUZZ_ANSWER(status))
        return;
    const struct fuzz_thing *t = slot->thing;
    CHECK_EQ((uint32_t)(kind == FUZZ_EVENT ? info[1] : info[0]), (uint32_t)t->state);
    if (kind == FUZZ_EVENT)
        CHECK_EQ((unsigned)info[0], t->manual ? NotificationEvent : SynchronizationEvent);
    else if (kind == FUZZ_SEMAPHORE)
        CHECK_EQ(info[1], t->limit);
    else
        CHECK_EQ((uint32_t)info[1] & 0xffff,
                 t->state < 1 ? 1 : 0); /* owned by the caller, not abandoned */
    if (returned)
        CHECK_EQ(*returned, 8);
}

const struct fuzz_op fuzz_object_ops[] = {
    { close_object, 10 }, { duplicate, 8 },    { create_event, 4 },      { create_semaphore, 4 },
    { create_mutant, 4 }, { change_event, 8 }, { release_semaphore, 6 }, { release_mutant, 6 },
    { query_object, 8 },  { NULL, 0 },
};
