/* SPDX-License-Identifier: MIT */
/* Doubly linked rings, as drivers know them from wdm.h. The caller's lock guards them. */
#pragma once
#include "kernel/nt/nt_dispatcher.h"

#define CONTAINING_RECORD(address, type, field)                                                    \
    ((type *)(void *)((char *)(address)-offsetof(type, field)))

static inline void InitializeListHead(PLIST_ENTRY ListHead)
{
    ListHead->Flink = ListHead->Blink = ListHead;
}
static inline bool IsListEmpty(const LIST_ENTRY *ListHead) { return ListHead->Flink == ListHead; }

static inline void InsertTailList(PLIST_ENTRY ListHead, PLIST_ENTRY Entry)
{
    Entry->Flink = ListHead;
    Entry->Blink = ListHead->Blink;
    ListHead->Blink->Flink = Entry;
    ListHead->Blink = Entry;
}

static inline void InsertHeadList(PLIST_ENTRY ListHead, PLIST_ENTRY Entry)
{
    InsertTailList(ListHead->Flink, Entry);
}

/* True if the list is empty now. */
static inline bool RemoveEntryList(PLIST_ENTRY Entry)
{
    Entry->Blink->Flink = Entry->Flink;
    Entry->Flink->Blink = Entry->Blink;
    return Entry->Flink == Entry->Blink;
}
