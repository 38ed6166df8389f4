/* SPDX-License-Identifier: MIT */
/* Fiber-local slots. There are no fibers, so they are thread-local slots, with a callback for
 * values left when a thread ends or the slot is freed. Slot 0 is never given.
 * Guard: `slots_lock`. */
#include "ntdll.h"

#define SLOTS 128u

/* A thread's slots, at teb->fls_slots. All blocks are in a list. */
struct fls_values {
    struct fls_values *next;
    PVOID values[SLOTS];
};

static RTL_SRWLOCK slots_lock;
static struct fls_values *blocks;
static struct {
    bool taken;
    PFLS_CALLBACK_FUNCTION callback;
} slots[SLOTS];

VOID NTAPI RtlAcquireSRWLockExclusive(PRTL_SRWLOCK SRWLock);
VOID NTAPI RtlReleaseSRWLockExclusive(PRTL_SRWLOCK SRWLock);

static struct fls_values *own_block(bool make)
{
    struct teb *me = teb();
    struct fls_values *block = (struct fls_values *)me->fls_slots;
    if (block || !make)
        return block;
    block = RtlAllocateHeap(NULL, HEAP_ZERO_MEMORY, sizeof *block);
    if (!block)
        return NULL;
    RtlAcquireSRWLockExclusive(&slots_lock);
    block->next = blocks;
    blocks = block;
    RtlReleaseSRWLockExclusive(&slots_lock);
    me->fls_slots = (void **)block;
    return block;
}

static void end_value(struct fls_values *block, ULONG i)
{
    PVOID value = block->values[i];
    block->values[i] = NULL;
    if (value && slots[i].callback)
        slots[i].callback(value);
}

/* STATUS_NO_MEMORY: all slots are taken, or there is no memory. */
NTSTATUS NTAPI RtlFlsAlloc(PFLS_CALLBACK_FUNCTION Callback, PULONG Index)
{
    NTSTATUS status = STATUS_NO_MEMORY;
    if (!own_block(true))
        return status;
    RtlAcquireSRWLockExclusive(&slots_lock);
    for (ULONG i = 1; i < SLOTS && status; i++)
        if (!slots[i].taken) {
            slots[i].taken = true;
            slots[i].callback = Callback;
            *Index = i;
            status = STATUS_SUCCESS;
        }
    RtlReleaseSRWLockExclusive(&slots_lock);
    return status;
}

/* STATUS_INVALID_PARAMETER: no such slot. */
NTSTATUS NTAPI RtlFlsFree(ULONG Index)
{
    if (Index >= SLOTS || !slots[Index].taken)
        return STATUS_INVALID_PARAMETER;
    RtlAcquireSRWLockExclusive(&slots_lock);
    struct fls_values *block = blocks;
    RtlReleaseSRWLockExclusive(&slots_lock);
    for (; block; block = block->next)
        end_value(block, Index);
    slots[Index].callback = NULL;
    slots[Index].taken = false;
    return STATUS_SUCCESS;
}

/* STATUS_INVALID_PARAMETER: no such slot. STATUS_NO_MEMORY. */
NTSTATUS NTAPI RtlFlsSetValue(ULONG Index, PVOID Value)
{
    if (Index >= SLOTS || !slots[Index].taken)
        return STATUS_INVALID_PARAMETER;
    struct fls_values *block = own_block(true);
    if (!block)
        return STATUS_NO_MEMORY;
    block->values[Index] = Value;
    return STATUS_SUCCESS;
}

NTSTATUS NTAPI RtlFlsGetValue(ULONG Index, PVOID *Value)
{
    struct fls_values *block = own_block(false);
    if (Index >= SLOTS || !slots[Index].taken)
        return STATUS_INVALID_PARAMETER;
    *Value = block ? block->values[Index] : NULL;
    return STATUS_SUCCESS;
}

void fls_end_thread(void)
{
    struct fls_values *block = own_block(false);
    if (!block)
        return;
    for (ULONG i = 0; i < SLOTS; i++)
        end_value(block, i);
    RtlAcquireSRWLockExclusive(&slots_lock);
    struct fls_values **at = &blocks;
    while (*at != block)
        at = &(*at)->next;
    *at = block->next;
    RtlReleaseSRWLockExclusive(&slots_lock);
    teb()->fls_slots = NULL;
    RtlFreeHeap(NULL, 0, block);
}
