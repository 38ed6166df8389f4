/* SPDX-License-Identifier: MIT */
/* Lists of entries that threads push, and take all at once: what a C library keeps so. No thread
 * waits for another one, which may be suspended, or ended, or of a lower priority: the header of
 * <winnt.h>, depth and sequence, then the first entry's address, changes by one CMPXCHG16B. */
#include "ntdll.h"

#define ENTRY(region)                                                                              \
    ((PSLIST_ENTRY)((region) & ~15ull)) /* below it are 4 bits that are reserved */
#define CHANGE 0x10000ull               /* sequence: 1 more */

static SLIST_HEADER read_header(const SLIST_HEADER *header)
{
    SLIST_HEADER seen;
    seen.Alignment = __atomic_load_n(&header->Alignment, __ATOMIC_ACQUIRE);
    seen.Region = __atomic_load_n(&header->Region, __ATOMIC_ACQUIRE);
    return seen;
}

/* False: the header was no longer the one that was seen, which is now what it is. */
static bool change_header(PSLIST_HEADER header, SLIST_HEADER *seen, ULONGLONG numbers,
                          PSLIST_ENTRY first)
{
    bool done;
    asm volatile("lock cmpxchg16b %1"
                 : "=@ccz"(done), "+m"(*header), "+a"(seen->Alignment), "+d"(seen->Region)
                 : "b"(numbers), "c"(first)
                 : "memory");
    return done;
}

VOID NTAPI RtlInitializeSListHead(PSLIST_HEADER ListHead) { *ListHead = (SLIST_HEADER){ 0 }; }

/* Each returns what was first, or NULL. Entries are aligned to 16 bytes. */
PSLIST_ENTRY NTAPI RtlInterlockedPushEntrySList(PSLIST_HEADER ListHead, PSLIST_ENTRY ListEntry)
{
    SLIST_HEADER seen = read_header(ListHead);
    do
        ListEntry->Next = ENTRY(seen.Region);
    while (!change_header(ListHead, &seen, seen.Alignment + CHANGE + 1, ListEntry));
    return ENTRY(seen.Region);
}

PSLIST_ENTRY NTAPI RtlInterlockedFlushSList(PSLIST_HEADER ListHead)
{
    SLIST_HEADER seen = read_header(ListHead);
    while (ENTRY(seen.Region) &&
           !change_header(ListHead, &seen, (seen.Alignment | (CHANGE - 1)) + 1, NULL))
        ;
    return ENTRY(seen.Region);
}
