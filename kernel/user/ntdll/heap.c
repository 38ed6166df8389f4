/* SPDX-License-Identifier: MIT */
/* Heaps. Small blocks have fixed sizes, each with a list of free blocks; new blocks are cut from
 * arenas. A large block is its own region. A double free ends the process, as on Windows. */
#include "unwind.h"

#define HEADER 16u
#define LARGE 0x8000u /* block sizes, with header, above which a block is a region */
#define ARENA 0x100000u
#define COMMIT 0x10000u
#define CLASSES 40u
#define IN_USE 0x6b6c4275u
#define FREED 0x65657246u

struct block {          /* HEADER bytes before the caller's memory */
    ULONG state, class; /* CLASSES: a region */
    SIZE_T size;        /* as requested */
};

struct free_block {
    struct block block;
    struct free_block *next;
};

struct region { /* an arena, or a large block */
    struct region *next, *previous;
    SIZE_T unused[2];
};

struct heap {
    struct region all; /* a ring of its arenas and large blocks */
    RTL_CRITICAL_SECTION lock;
    struct free_block *lists[CLASSES];
    uint8_t *cut, *committed, *end; /* of the arena that blocks are cut from */
};

static struct heap process_heap;

/* 16, 32, ... 128 bytes, then four sizes for each power of two. */
static SIZE_T class_size(ULONG class)
{
    if (class < 8)
        return 16u * (class + 1);
    ULONG power = (class - 8) / 4, quarter = (class - 8) % 4;
    return ((SIZE_T)128 << power) + ((SIZE_T)32 << power) * (quarter + 1);
}

static ULONG class_of(SIZE_T size)
{
    if (size <= 128)
        return (ULONG)((size + 15) / 16 - 1);
    ULONG power = 63u - (ULONG)__builtin_clzll(size - 1) - 7;
    ULONG quarter = (ULONG)((size - 1 - ((SIZE_T)128 << power)) >> (5 + power));
    return 8 + 4 * power + quarter;
}

static void *get_region(SIZE_T size, ULONG type)
{
    void *base = NULL;
    NTSTATUS status =
        NtAllocateVirtualMemory(CURRENT_PROCESS, &base, 0, &size, type, PAGE_READWRITE);
    return NT_SUCCESS(status) ? base : NULL;
}

static bool commit(void *from, SIZE_T size)
{
    return NT_SUCCESS(
        NtAllocateVirtualMemory(CURRENT_PROCESS, &from, 0, &size, MEM_COMMIT, PAGE_READWRITE));
}

static void free_region(void *base)
{
    SIZE_T none = 0;
    NtFreeVirtualMemory(CURRENT_PROCESS, &base, &none, MEM_RELEASE);
}

static void link_region(struct heap *heap, struct region *region)
{
    region->next = heap->all.next;
    region->previous = &heap->all;
    heap->all.next->previous = region;
    heap->all.next = region;
}

static void unlink_region(struct region *region)
{
    region->next->previous = region->previous;
    region->previous->next = region->next;
}

/* --- Small blocks. --- */

static bool new_arena(struct heap *heap)
{
    struct region *arena = get_region(ARENA, MEM_RESERVE);
    if (!arena)
        return false;
    if (!commit(arena, COMMIT)) {
        free_region(arena);
        return false;
    }
    link_region(heap, arena);
    heap->cut = (uint8_t *)(arena + 1);
    heap->committed = (uint8_t *)arena + COMMIT;
    heap->end = (uint8_t *)arena + ARENA;
    return true;
}

static struct block *cut_block(struct heap *heap, SIZE_T size)
{
    if ((SIZE_T)(heap->end - heap->cut) < size && !new_arena(heap))
        return NULL;
    while ((SIZE_T)(heap->committed - heap->cut) < size) {
        if (!commit(heap->committed, COMMIT))
            return NULL;
        heap->committed += COMMIT;
    }
    struct block *block = (struct block *)heap->cut;
    heap->cut += size;
    return block;
}

static struct block *get_small(struct heap *heap, ULONG class)
{
    struct free_block *free = heap->lists[class];
    struct block *block = &free->block;
    if (free)
        heap->lists[class] = free->next;
    else
        block = cut_block(heap, class_size(class));
    if (block)
        block->class = class;
    return block;
}

static struct block *get_large(struct heap *heap, SIZE_T size)
{
    struct region *region = get_region(size + sizeof(struct region), MEM_RESERVE | MEM_COMMIT);
    if (!region)
        return NULL;
    link_region(heap, region);
    struct block *block = (struct block *)(region + 1);
    block->class = CLASSES;
    return block;
}

/* --- Exports. --- */

static struct heap *heap_of(HANDLE handle) { return handle ? handle : &process_heap; }

PVOID NTAPI RtlAllocateHeap(HANDLE HeapHandle, ULONG Flags, SIZE_T Size)
{
    struct heap *heap = heap_of(HeapHandle);
    SIZE_T whole = (Size ? Size : 1) + HEADER;
    if (Size > (SIZE_T)1 << 46)
        return NULL;
    bool large = whole > LARGE;
    RtlEnterCriticalSection(&heap->lock);
    struct block *block = large ? get_large(heap, whole) : get_small(heap, class_of(whole));
    RtlLeaveCriticalSection(&heap->lock);
    if (!block)
        return NULL;
    block->state = IN_USE;
    block->size = Size;
    if (Flags & HEAP_ZERO_MEMORY && !large)
        memset(block + 1, 0, Size);
    return block + 1;
}

/* Ends the program; what is blamed is its own code that called last, not a library's. */
static void broken(void)
{
    struct text text = { 0 };
    CONTEXT at;
    text_add(&text, "# heap: a block is freed or grown that is none, or was freed before, or was "
                    "written over from the one before it");
    text_print(&text);
    RtlCaptureContext(&at);
    unwind_to_program(&at);
    EXCEPTION_RECORD record = { .ExceptionCode = STATUS_HEAP_CORRUPTION,
                                .ExceptionFlags = EXCEPTION_NONCONTINUABLE,
                                .ExceptionAddress = (PVOID)at.Rip };
    NtRaiseException(&record, &at, FALSE);
}

static struct block *block_of(void *address)
{
    struct block *block = (struct block *)address - 1;
    if ((ULONG_PTR)address % 16 || block->state != IN_USE)
        broken();
    return block;
}

BOOLEAN NTAPI RtlFreeHeap(HANDLE HeapHandle, ULONG Flags, PVOID BaseAddress)
{
    struct heap *heap = heap_of(HeapHandle);
    if (!BaseAddress)
        return TRUE;
    struct block *block = block_of(BaseAddress);
    block->state = FREED;
    RtlEnterCriticalSection(&heap->lock);
    if (block->class < CLASSES) {
        struct free_block *free = (struct free_block *)block;
        free->next = heap->lists[block->class];
        heap->lists[block->class] = free;
    } else {
        struct region *region = (struct region *)block - 1;
        unlink_region(region);
        free_region(region);
    }
    RtlLeaveCriticalSection(&heap->lock);
    return TRUE;
}

SIZE_T NTAPI RtlSizeHeap(HANDLE HeapHandle, ULONG Flags, PVOID BaseAddress)
{
    return block_of(BaseAddress)->size;
}

PVOID NTAPI RtlReAllocateHeap(HANDLE HeapHandle, ULONG Flags, PVOID BaseAddress, SIZE_T Size)
{
    struct block *block = block_of(BaseAddress);
    SIZE_T old = block->size, whole = (Size ? Size : 1) + HEADER;
    bool fits = block->class < CLASSES ? whole <= LARGE && class_of(whole) == block->class
                                       : whole > LARGE && Size <= old && Size >= old / 2;
    uint8_t *to = BaseAddress;
    if (fits)
        block->size = Size;
    else
        to = RtlAllocateHeap(HeapHandle, 0, Size);
    if (!to)
        return NULL;
    if (!fits)
        memcpy(to, BaseAddress, old < Size ? old : Size);
    if (Flags & HEAP_ZERO_MEMORY && Size > old)
        memset(to + old, 0, Size - old);
    if (!fits)
        RtlFreeHeap(HeapHandle, 0, BaseAddress);
    return to;
}

static void init_heap(struct heap *heap)
{
    heap->all.next = heap->all.previous = &heap->all;
    RtlInitializeCriticalSection(&heap->lock);
}

PVOID NTAPI RtlCreateHeap(ULONG Flags, PVOID HeapBase, SIZE_T ReserveSize, SIZE_T CommitSize,
                          PVOID Lock, PRTL_HEAP_PARAMETERS Parameters)
{
    struct heap *heap = RtlAllocateHeap(NULL, HEAP_ZERO_MEMORY, sizeof *heap);
    if (heap)
        init_heap(heap);
    return heap;
}

/* NULL: success, as in Windows. The process's own heap stays and is returned. */
PVOID NTAPI RtlDestroyHeap(PVOID HeapHandle)
{
    struct heap *heap = HeapHandle;
    if (heap == &process_heap)
        return heap;
    while (heap->all.next != &heap->all) {
        struct region *region = heap->all.next;
        unlink_region(region);
        free_region(region);
    }
    RtlDeleteCriticalSection(&heap->lock);
    RtlFreeHeap(NULL, 0, heap);
    return NULL;
}

NTSTATUS heap_begin(void)
{
    init_heap(&process_heap);
    teb()->peb->heap = &process_heap;
    return STATUS_SUCCESS;
}

void *heap_get(size_t size) { return RtlAllocateHeap(NULL, HEAP_ZERO_MEMORY, size); }
void heap_put(void *block) { RtlFreeHeap(NULL, 0, block); }
