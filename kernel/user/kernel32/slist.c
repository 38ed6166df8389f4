/* SPDX-License-Identifier: MIT */
/* Lists of entries that threads push and pop at once: a bit of the header is a spin lock. NT: none
 * is taken there. */
#include "kernel32.h"

/* The header as <winnt.h> has it: depth and sequence, then 4 bits that are reserved and the first
 * entry's address. */
#define LOCKED 1ull
#define ENTRY(word) ((PSLIST_ENTRY)((word) & ~15ull))

static ULONGLONG lock(PSLIST_HEADER header)
{
    ULONGLONG *word = &header->Region;
    while (__atomic_fetch_or(word, LOCKED, __ATOMIC_ACQUIRE) & LOCKED)
        SwitchToThread();
    return *word & ~LOCKED;
}

static void unlock(PSLIST_HEADER header, PSLIST_ENTRY first, int depth)
{
    header->HeaderX64.Depth = (USHORT)depth;
    header->HeaderX64.Sequence++;
    __atomic_store_n(&header->Region, (ULONGLONG)(ULONG_PTR)first, __ATOMIC_RELEASE);
}

VOID WINAPI InitializeSListHead(PSLIST_HEADER ListHead) { *ListHead = (SLIST_HEADER){ 0 }; }

/* Each returns what was first, or NULL. Entries are aligned to 16 bytes. */
PSLIST_ENTRY WINAPI InterlockedPushEntrySList(PSLIST_HEADER ListHead, PSLIST_ENTRY ListEntry)
{
    PSLIST_ENTRY first = ENTRY(lock(ListHead));
    ListEntry->Next = first;
    unlock(ListHead, ListEntry, ListHead->HeaderX64.Depth + 1);
    return first;
}

PSLIST_ENTRY WINAPI InterlockedPopEntrySList(PSLIST_HEADER ListHead)
{
    PSLIST_ENTRY first = ENTRY(lock(ListHead));
    unlock(ListHead, first ? first->Next : NULL, ListHead->HeaderX64.Depth - !!first);
    return first;
}

PSLIST_ENTRY WINAPI InterlockedFlushSList(PSLIST_HEADER ListHead)
{
    PSLIST_ENTRY first = ENTRY(lock(ListHead));
    unlock(ListHead, NULL, 0);
    return first;
}

USHORT WINAPI QueryDepthSList(PSLIST_HEADER ListHead) { return ListHead->HeaderX64.Depth; }
