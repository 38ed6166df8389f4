/* SPDX-License-Identifier: MIT */
/* Lists of entries that threads push and pop at once. No thread waits for another one, which may be
 * suspended, or ended, or of a lower priority: the header of <winnt.h>, depth and sequence, then
 * the first entry's address, changes by one CMPXCHG16B. Depth and sequence grow with each change as
 * one number, so that a header that was changed and changed back is not taken for the same. */
#include "unwind.h"

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

/* Who takes an entry may free it at once. Another thread that has seen it reads what is no longer
 * the next entry, or has a fault, which slist_skip() steps over; its change then fails. */
__attribute__((noinline)) static PSLIST_ENTRY next_of(PSLIST_ENTRY entry, PSLIST_HEADER header,
                                                      ULONGLONG numbers)
{
    asm volatile(".globl slist_read, slist_read_end\n"
                 "slist_read: mov (%0), %0\n"
                 "slist_read_end:"
                 : "+c"(entry)
                 : "d"(header), "a"(numbers)
                 : "memory");
    return entry;
}

extern const char slist_read[], slist_read_end[];
bool slist_skip(EXCEPTION_POINTERS *pointers)
{
    PCONTEXT context = pointers->ContextRecord;
    if (pointers->ExceptionRecord->ExceptionCode != (DWORD)STATUS_ACCESS_VIOLATION ||
        context->Rip != (DWORD64)slist_read ||
        read_header((PSLIST_HEADER)context->Rdx).Alignment == context->Rax)
        return false;
    context->Rip = (DWORD64)slist_read_end;
    return true;
}

PSLIST_ENTRY NTAPI RtlInterlockedPopEntrySList(PSLIST_HEADER ListHead)
{
    PSLIST_ENTRY first;
    SLIST_HEADER seen = read_header(ListHead);
    do
        first = ENTRY(seen.Region);
    while (first && !change_header(ListHead, &seen, seen.Alignment + CHANGE - 1,
                                   next_of(first, ListHead, seen.Alignment)));
    return first;
}

PSLIST_ENTRY NTAPI RtlInterlockedFlushSList(PSLIST_HEADER ListHead)
{
    SLIST_HEADER seen = read_header(ListHead);
    while (ENTRY(seen.Region) &&
           !change_header(ListHead, &seen, (seen.Alignment | (CHANGE - 1)) + 1, NULL))
        ;
    return ENTRY(seen.Region);
}

USHORT NTAPI RtlQueryDepthSList(PSLIST_HEADER ListHead) { return ListHead->HeaderX64.Depth; }
