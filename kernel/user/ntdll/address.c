/* SPDX-License-Identifier: MIT */
/* Waiting for a value to change: the base of critical sections, slim locks and condition variables.
 * A waiter is in the list of its address and sleeps on its thread's own event, so that a wait is
 * one context switch. */
#include "ntdll.h"
#include "ntdll_wait.h"

#define LISTS 64u

struct waiter {
    struct waiter *next;
    const volatile void *address;
    HANDLE event;
};

struct list {
    LONG volatile taken;
    struct waiter *first;
};

static struct list lists[LISTS];

static struct list *list_of(const volatile void *address)
{
    ULONG_PTR key = (ULONG_PTR)address >> 3;
    return &lists[(key ^ key >> 6 ^ key >> 12) % LISTS];
}

/* Held for a few instructions. The holder may be preempted, so a waiter yields. While the process
 * ends only one thread is left, and the lock is ignored. */
static void lock_list(struct list *list)
{
    while (InterlockedExchange(&list->taken, 1) && !shutting_down) {
        YieldProcessor();
        NtYieldExecution();
    }
}

static void unlock_list(struct list *list) { InterlockedExchange(&list->taken, 0); }

static bool equal_values(const volatile void *a, const void *b, SIZE_T size)
{
    switch (size) {
    case 1: return *(const volatile UCHAR *)a == *(const UCHAR *)b;
    case 2: return *(const volatile USHORT *)a == *(const USHORT *)b;
    case 4: return *(const volatile ULONG *)a == *(const ULONG *)b;
    default: return *(const volatile ULONG64 *)a == *(const ULONG64 *)b;
    }
}

static HANDLE own_event(void)
{
    struct teb *me = teb();
    if (!me->wait_event)
        NtCreateEvent(&me->wait_event, EVENT_ALL_ACCESS, NULL, SynchronizationEvent, FALSE);
    return me->wait_event;
}

/* False: a waker has removed it already, and sets its event. */
static bool remove_waiter(struct list *list, const struct waiter *waiter)
{
    struct waiter **at = &list->first;
    lock_list(list);
    while (*at && *at != waiter)
        at = &(*at)->next;
    bool found = *at;
    if (found)
        *at = waiter->next;
    unlock_list(list);
    return found;
}

/* Waits while the value at Address is the one at CompareAddress. May end early.
 * STATUS_INVALID_PARAMETER: AddressSize is not 1, 2, 4 or 8. STATUS_NO_MEMORY: no event.
 * STATUS_TIMEOUT. */
NTSTATUS NTAPI RtlWaitOnAddress(volatile VOID *Address, PVOID CompareAddress, SIZE_T AddressSize,
                                PLARGE_INTEGER Timeout)
{
    struct list *list = list_of(Address);
    struct waiter waiter = { NULL, Address, own_event() };
    if (AddressSize - 1 > 7 || (AddressSize & (AddressSize - 1)))
        return STATUS_INVALID_PARAMETER;
    if (!waiter.event)
        return STATUS_NO_MEMORY;
    lock_list(list);
    if (!equal_values(Address, CompareAddress, AddressSize)) {
        unlock_list(list);
        return STATUS_SUCCESS;
    }
    struct waiter **last = &list->first;
    while (*last)
        last = &(*last)->next;
    *last = &waiter;
    unlock_list(list);
    NTSTATUS status = NtWaitForSingleObject(waiter.event, FALSE, Timeout);
    /* It is still there if the time is over, or the program set the event, a handle like others. */
    if (!remove_waiter(list, &waiter) && status != STATUS_SUCCESS)
        status = NtWaitForSingleObject(waiter.event, FALSE, NULL); /* which comes soon */
    return status;
}

static bool wake_one(const volatile void *address)
{
    struct list *list = list_of(address);
    HANDLE event = NULL;
    lock_list(list);
    for (struct waiter **at = &list->first; *at; at = &(*at)->next)
        if ((*at)->address == address) {
            event = (*at)->event;
            *at = (*at)->next;
            break;
        }
    unlock_list(list);
    if (event)
        NtSetEvent(event, NULL);
    return event != NULL;
}

VOID NTAPI RtlWakeAddressSingle(PVOID Address) { wake_one(Address); }

VOID NTAPI RtlWakeAddressAll(PVOID Address)
{
    while (wake_one(Address))
        ;
}
