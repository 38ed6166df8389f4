/* SPDX-License-Identifier: MIT */
/* A process: an address space, handles, threads. Every process runs the one ring-3 image (linker.ld). */
#pragma once
#include "kernel/lock.h"
#include "kernel/object.h"

#define PROCESS_THREADS_MAX 64
#define PROCESS_REGIONS_MAX 32
#define PROCESS_STACK_PAGES 16          /* of each thread, unless stack_pages says otherwise */
#define PROCESS_STACK_PAGES_LARGE 256   /* as many as Windows gives a thread at the most, here at once */

struct region {
    uint64_t base, pages; /* pages 0: free entry */
};

struct process {
    struct object object; /* signaled when the last thread has ended */
    uint64_t *pml4;
    NTSTATUS exit_status;
    bool profile_privilege; /* atomic: SeSystemProfilePrivilege is enabled */
    bool restricted;      /* of low integrity; constant */
    uint32_t threads;     /* atomic: not ended yet */
    bool fault_ends_all;  /* an exception ends the process, as in Windows; else only its thread, as tests want it */
    uint64_t stacks_used; /* atomic: bit per stack slot */
    uint64_t fault_rip, fault_address; /* of the exception that ended it; for a message */
    struct lock lock;     /* guards what follows */
    bool ending;          /* process_end was called: no thread begins any more */
    NTSTATUS end_status;
    struct thread *members[PROCESS_THREADS_MAX]; /* not ended yet, by stack slot */
    uint64_t stacks_mapped;
    unsigned stack_pages; /* at most PROCESS_STACK_PAGES_LARGE; before the first thread */
    uint64_t next_base;
    struct region regions[PROCESS_REGIONS_MAX];
    struct handle_entry handles[HANDLES_MAX]; /* L: handle_lock */
};

/* A process with the ring-3 image mapped and no thread; one reference for the caller. NULL without memory. */
struct process *process_create(void);
void process_destroy(struct process *process);
/* A stack for a new thread: its top, or 0. Slots are given back by the thread's end, pages by the process's. */
uint64_t process_stack(struct process *process, unsigned *slot);
/* A thread begins (false: the process is ending), a thread ends. */
bool process_join(struct process *process, struct thread *thread);
void process_leave(struct process *process, struct thread *thread);
/* Ends the process of the current thread: this one now, the others at their next return to ring 3. */
__attribute__((noreturn)) void process_end(NTSTATUS status);
/* Reads memory of a process that need not be the current one. False if any byte is not mapped. */
bool process_read(const struct process *process, void *to, uint64_t from, size_t size);

NTSTATUS NtAllocateVirtualMemory(HANDLE ProcessHandle, PVOID *BaseAddress, ULONG_PTR ZeroBits, PSIZE_T RegionSize,
                                 ULONG AllocationType, ULONG Protect);
NTSTATUS NtFreeVirtualMemory(HANDLE ProcessHandle, PVOID *BaseAddress, PSIZE_T RegionSize, ULONG FreeType);
NTSTATUS NtProtectVirtualMemory(HANDLE ProcessHandle, PVOID *BaseAddress, PSIZE_T RegionSize, ULONG NewProtect,
                                PULONG OldProtect);
