/* SPDX-License-Identifier: MIT */
/* Lists that threads push to and pop from at once, as Windows has them without a lock: each
 * operation stopped before each of its instructions, while others take, give back and free what it
 * has seen; and four threads that lose nothing. Prints what is wrong, and how many checks it
 * made. */
#define _WIN32_WINNT 0x0a00
#include <windows.h>
#include "check.h"

#define STEPS 100 /* an operation has fewer instructions, twice over */
#define THREADS 4
#define ITERATIONS 25000
#define ENTRIES 5 /* few, so that the same come back soon */
#define TRAP 0x100u

static struct entry {
    SLIST_ENTRY link;
    LONG volatile owners;
} * entries[ENTRIES];
static SLIST_HEADER list;

static PSLIST_ENTRY entry(unsigned n) { return &entries[n]->link; }

static void make(unsigned n)
{
    if (!entries[n])
        entries[n] = VirtualAlloc(NULL, 4096, MEM_COMMIT | MEM_RESERVE, PAGE_READWRITE);
}

static void drop(PSLIST_ENTRY e)
{
    for (unsigned n = 0; n < ENTRIES && e; n++)
        if (entry(n) == e)
            entries[n] = NULL;
    if (e)
        VirtualFree(e, 0, MEM_RELEASE);
}

static void push(unsigned n) { InterlockedPushEntrySList(&list, entry(n)); }

/* Takes all; the number of the first, then of the second, ... in decimal digits, each one more. */
static int take_all(void)
{
    int digits = 0, depth = 0;
    const USHORT reported = QueryDepthSList(&list);
    for (PSLIST_ENTRY e = InterlockedFlushSList(&list); e; e = e->Next, depth++)
        for (unsigned n = 0; n < ENTRIES; n++)
            if (e == entry(n))
                digits = 10 * digits + (int)n + 1;
    IS(reported, depth);
    IS(QueryDepthSList(&list), 0);
    return digits;
}

/* --- One operation, and before one of its instructions another one. --- */

enum { PUSH, POP, FLUSH };
enum { TAKE, CHANGE, TAKE_ALL, GIVE };
static unsigned meanwhile, at, steps;
static LONG volatile violations;
static BOOL done;
static volatile BOOL traced;
static void *volatile missing;

static void do_meanwhile(void)
{
    PSLIST_ENTRY one, two;
    done = TRUE;
    switch (meanwhile) {
    case TAKE: drop(InterlockedPopEntrySList(&list)); break;
    case CHANGE: /* the first comes back, what follows it is another one */
        one = InterlockedPopEntrySList(&list);
        two = InterlockedPopEntrySList(&list);
        push(3);
        if (one)
            InterlockedPushEntrySList(&list, one);
        drop(two);
        break;
    case TAKE_ALL: InterlockedFlushSList(&list); break;
    case GIVE: push(3);
    }
}

static LONG CALLBACK step(EXCEPTION_POINTERS *e)
{
    const DWORD code = e->ExceptionRecord->ExceptionCode;
    if (code == (DWORD)STATUS_ACCESS_VIOLATION) {
        InterlockedIncrement(&violations);
        if (missing && VirtualAlloc(missing, 4096, MEM_COMMIT | MEM_RESERVE, PAGE_READWRITE))
            return EXCEPTION_CONTINUE_EXECUTION;
    }
    if (code != (DWORD)STATUS_SINGLE_STEP)
        return EXCEPTION_CONTINUE_SEARCH;
    if (!traced)
        return EXCEPTION_CONTINUE_EXECUTION;
    if (steps++ == at)
        do_meanwhile();
    e->ContextRecord->EFlags |= TRAP;
    return EXCEPTION_CONTINUE_EXECUTION;
}

/* What the operation returned, as a digit, and what it left. */
static int interrupted(unsigned operation)
{
    PSLIST_ENTRY got = NULL;
    for (unsigned n = 0; n < ENTRIES; n++)
        make(n);
    for (unsigned n = 3; n--;)
        push(n);
    const PSLIST_ENTRY first[] = { entry(0), entry(1), entry(2), entry(3) };
    steps = 0;
    done = FALSE;
    traced = TRUE;
    __builtin_ia32_writeeflags_u64(__builtin_ia32_readeflags_u64() | TRAP);
    switch (operation) {
    case PUSH: got = InterlockedPushEntrySList(&list, entry(4)); break;
    case POP: got = InterlockedPopEntrySList(&list); break;
    case FLUSH: got = InterlockedFlushSList(&list);
    }
    traced = FALSE;
    int digit = 0;
    for (int n = 0; n < 4; n++)
        if (got == first[n])
            digit = n + 1;
    return 1000000 * digit + take_all();
}

/* Whichever comes first, one of two results: the operation before the other one, or after it. */
static void steps_of(unsigned operation, unsigned other, int before, int after)
{
    unsigned late = 0, early = 0;
    meanwhile = other;
    for (at = 0; at < STEPS; at++) {
        const int result = interrupted(operation);
        if (!done)
            break;
        late += result == after;
        early += result == before;
        if (result != after && result != before)
            printf("operation %u, other %u before instruction %u: %d\n", operation, other, at,
                   result);
    }
    IS(at < STEPS, 1);
    IS(late + early, at);
    IS(late > 3 && early > 0, 1); /* four instructions, at least, before it is done */
}

/* The list is 0, 1, 2, in digits 123; 4 is pushed, and 3 meanwhile. */
static void interruptions(void)
{
    steps_of(PUSH, TAKE, 1000123, 2000523);
    steps_of(POP, TAKE, 1000003, 2000003);
    steps_of(FLUSH, TAKE, 1000000, 2000000);
    steps_of(PUSH, CHANGE, 1005423, 1005143);
    steps_of(POP, CHANGE, 1000024, 1000043);
    steps_of(FLUSH, CHANGE, 1000004, 1000000);
    steps_of(PUSH, TAKE_ALL, 1000000, 5);
    steps_of(POP, TAKE_ALL, 1000000, 0);
    steps_of(PUSH, GIVE, 1045123, 4054123);
    steps_of(POP, GIVE, 1000423, 4000123);
    steps_of(FLUSH, GIVE, 1000004, 4000000);
}

/* --- Four threads. --- */

static LONG volatile shared_twice, empty;

/* What a thread has taken is its own: it may be freed, and another one put in its place. */
static PSLIST_ENTRY own(PSLIST_ENTRY e, BOOL replace)
{
    struct entry *mine = (struct entry *)e;
    if (InterlockedIncrement(&mine->owners) != 1)
        InterlockedIncrement(&shared_twice);
    InterlockedDecrement(&mine->owners);
    if (!replace)
        return e;
    VirtualFree(e, 0, MEM_RELEASE);
    return VirtualAlloc(NULL, 4096, MEM_COMMIT | MEM_RESERVE, PAGE_READWRITE);
}

static DWORD WINAPI take_and_give(LPVOID unused)
{
    for (unsigned i = 1; i <= ITERATIONS; i++) {
        PSLIST_ENTRY e = i % 64 ? InterlockedPopEntrySList(&list) : InterlockedFlushSList(&list);
        if (!e)
            InterlockedIncrement(&empty);
        for (PSLIST_ENTRY next; e; e = next) {
            next = i % 64 ? NULL : e->Next;
            InterlockedPushEntrySList(&list, own(e, i % 32 == 1));
        }
    }
    return 0;
}

static void together(void)
{
    HANDLE threads[THREADS];
    unsigned n = 0;
    for (n = 0; n < ENTRIES; n++) {
        make(n);
        push(n);
    }
    for (n = 0; n < THREADS; n++)
        threads[n] = CreateThread(NULL, 0, take_and_give, NULL, 0, NULL);
    for (n = 0; n < THREADS; n++)
        IS(end_of(threads[n]), 0);
    memset(entries, 0, sizeof entries); /* the threads have put others in their places */
    IS(QueryDepthSList(&list), ENTRIES);
    n = 0;
    for (PSLIST_ENTRY e = InterlockedFlushSList(&list); e && n <= ENTRIES; e = e->Next)
        n++;
    IS(n, ENTRIES);
    IS(shared_twice, 0);
    /* A host may stop the thread that holds all until the others have made their iterations. */
    IS(empty < THREADS * ITERATIONS * 7 / 8, 1);
}

/* An entry that was freed and is still in the list is the program's error, which it sees. */
static void freed(void)
{
    make(0);
    push(0);
    missing = entries[0];
    VirtualFree(missing, 0, MEM_RELEASE);
    IS(InterlockedPopEntrySList(&list) == missing, 1);
    IS(violations, 1);
    IS(QueryDepthSList(&list), 0);
}

int main(void)
{
    PVOID handler = AddVectoredExceptionHandler(1, step);
    memset(&list, -1, sizeof list);
    InitializeSListHead(&list);
    IS(InterlockedPopEntrySList(&list) == NULL, 1);
    interruptions();
    together();
    IS(violations, 0); /* nor does a handler of the program see what was freed */
    freed();
    RemoveVectoredExceptionHandler(handler);
    return check_result();
}
