/* SPDX-License-Identifier: MIT */
#include "tests/harness/refuse.h"
#include "kernel/base/refuse.h"
#include "tests/harness/clean.h"
#include "tests/harness/kernel.h"

#define FIRST 8u /* claims of which each is refused */
#define LAST 3u
#define BETWEEN 5u

HANDLE refuse_made;

void refuse_close_made(void) { CHECK_OK(NtClose(refuse_made)); }
void refuse_undo_nothing(void) {}

static struct {
    const char *name;
    unsigned at; /* 0: no claim is refused */
} now;

static void say_which(void) { print("# refused: %s, claim %u\n", now.name, now.at); }

static void arm(const struct thread *thread, unsigned at)
{
    now.at = at;
    refusal.at = at;
    refusal.claims = 0;
    __atomic_store_n(&refusal.thread, thread, __ATOMIC_RELEASE);
}

static unsigned disarm(void)
{
    __atomic_store_n(&refusal.thread, NULL, __ATOMIC_RELEASE);
    return refusal.claims;
}

/* The next claim to refuse, of so many. */
static unsigned after(unsigned at, unsigned claims)
{
    const unsigned step = claims / BETWEEN + 1;
    if (test_long() || at < FIRST || at + LAST >= claims)
        return at + 1;
    return at + step + LAST < claims ? at + step : claims - LAST;
}

/* What there is, and in the process; page tables that it has made stay. */
struct found {
    uint64_t counts[CLEAN_KINDS], regions, pages;
};

static uint64_t own_pages(const struct process *process)
{
    uint64_t entry, n = 0;
    for (uint64_t at = 0; (at = vm_next(process->pml4, at, USER_END, &entry)) < USER_END;
         at += PAGE_SIZE)
        n++;
    return n;
}

static struct found look(const struct process *process)
{
    struct found found;
    clean_count(found.counts);
    found.regions = process ? process->memory.count : 0;
    found.pages = process ? own_pages(process) : 0;
    return found;
}

static void check_as(const struct process *process, const struct found *before)
{
    CHECK(clean_unchanged(before->counts, !process));
    if (!process)
        return;
    CHECK_EQ(process->memory.count, before->regions);
    CHECK_EQ(own_pages(process), before->pages);
}

static NTSTATUS call_row(const struct refusal_row *row, unsigned at, unsigned *claims)
{
    refuse_made = REFUSE_MARK;
    arm(thread_current(), at);
    NTSTATUS status = row->call();
    *claims = disarm();
    return status;
}

static void check_others(const struct refusal_row *row, const struct process *process)
{
    const struct found before = look(process);
    HANDLE made = refuse_made;
    for (unsigned i = 0; i < REFUSED_OTHERS && row->others[i].call; i++) {
        refuse_made = REFUSE_MARK;
        CHECK_STATUS(row->others[i].call(), row->others[i].status);
        CHECK(refuse_made == REFUSE_MARK || (row->clears && !refuse_made));
        refuse_made = made;
        check_as(process, &before);
        if (row->use)
            row->use();
    }
}

static void check_refused(const struct refusal_row *row, const struct process *process,
                          const struct found *before, NTSTATUS status)
{
    unsigned i = 0;
    while (i < ARRAY_SIZE(row->may) - 1 && status != row->may[i] && row->may[i + 1])
        i++;
    CHECK_STATUS(status, row->may[i]);
    CHECK(NT_SUCCESS(status) || refuse_made == (row->clears ? NULL : REFUSE_MARK));
    if (NT_SUCCESS(status))
        row->undo();
    check_as(process, before);
    if (row->use)
        row->use();
}

/* Returns how many claims the call made before it ended. */
static unsigned refuse_one(const struct refusal_row *row, unsigned at)
{
    unsigned claims, more;
    const struct found outer = look(NULL);
    struct process *process = row->in_process ? user_pretend() : NULL;
    if (row->make)
        row->make();
    const struct found before = look(process);
    NTSTATUS status = call_row(row, at, &claims);
    if (at && claims >= at) {
        check_refused(row, process, &before, status);
        status = call_row(row, 0, &more);
    }
    if (CHECK_OK(status)) {
        if (!at)
            check_others(row, process);
        row->undo();
    }
    if (row->unmake)
        row->unmake();
    if (process)
        user_pretend_end(process);
    CHECK(clean_unchanged(outer.counts, at != 0)); /* the first call makes tables that stay */
    return claims;
}

void refuse_each(const struct refusal_row *rows, unsigned count)
{
    test_on_failure = say_which;
    for (const struct refusal_row *row = rows; row < rows + count; row++) {
        now.name = row->name;
        unsigned claims = refuse_one(row, 0), refused = 0;
        for (unsigned at = 1; refuse_one(row, at) >= at; at = after(at, claims))
            refused++;
        now.at = 0;
        if (refused < (test_long() || row->least < FIRST ? row->least : FIRST))
            CHECK_EQ(refused, row->least);
    }
    test_on_failure = NULL;
}

/* --- Ring 3. --- */

/* It cannot begin before its claims are counted. */
static struct thread *start_armed(struct process *process, void (*function)(uint64_t),
                                  uint64_t argument, unsigned at)
{
    struct thread *me = thread_current();
    const KPRIORITY mine = me->priority;
    sched_set_priority(me, SCHED_PRIORITIES - 1);
    struct thread *thread =
        user_thread("refused", process, (uint64_t)function, argument, cpu_set_one(cpu_number()));
    arm(thread, at);
    sched_set_priority(me, mine);
    return thread;
}

static unsigned refuse_user(void (*function)(uint64_t), uint64_t argument, unsigned at)
{
    uint64_t before[CLEAN_KINDS];
    clean_count(before);
    struct process *process = user_process();
    if (!CHECK(process != NULL))
        return 0;
    struct thread *thread = start_armed(process, function, argument, at);
    user_wait(thread);
    const unsigned claims = disarm();
    user_finish(process, thread);
    CHECK(clean_unchanged(before, true));
    return claims;
}

void refuse_ring3(void (*function)(uint64_t), uint64_t end)
{
    char name[24];
    test_on_failure = say_which;
    now.name = name;
    test_run_on(cpu_number());
    const unsigned begin = refuse_user(function, end, 0); /* ntdll's, which loads libraries */
    for (uint64_t i = 0; i < end; i++) {
        print_to(name, sizeof name, "ring 3's function %lu", i);
        const unsigned claims = refuse_user(function, i, 0) - begin;
        CHECK(claims > 0);
        for (unsigned at = 1; at <= claims; at = after(at, claims))
            CHECK(refuse_user(function, i, begin + at) >= begin + at);
    }
    test_run_anywhere();
    test_on_failure = NULL;
}
