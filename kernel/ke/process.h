/* SPDX-License-Identifier: MIT */
/* A process: an address space, handles, threads. */
#pragma once
#include "kernel/base/lock.h"
#include "kernel/ke/memory.h"
#include "kernel/ke/object.h"

struct process {
    struct object object; /* signaled when the last thread has ended */
    uint64_t *pml4;
    NTSTATUS exit_status;
    bool profile_privilege;   /* atomic: SeSystemProfilePrivilege is enabled */
    bool load_privilege;      /* atomic: SeLoadDriverPrivilege is */
    bool restricted;          /* of low integrity; constant */
    uint32_t threads;         /* atomic: not ended yet */
    uint64_t exception_entry; /* where ring 3 handles exceptions (KiUserExceptionDispatcher); 0:
                                 nowhere */
    bool announced;           /* atomic: process creation has been reported */
    bool fault_ends_all; /* an exception ends the process, as in Windows; else only its thread, as
                            tests want it */
    uint64_t stack_reserve,
        stack_commit;      /* of its threads, in bytes: whole pages; before the first thread,
                              by the image */
    uint64_t peb, start;   /* start: the program's entry point */
    uint64_t thread_entry; /* ntdll's routine where its threads begin */
    bool faulted;          /* an exception ended it: that of the next two */
    uint64_t fault_rip, fault_address; /* for a message */
    struct lock lock;                  /* guards what follows */
    bool ending;                       /* process_end was called: no thread begins any more */
    NTSTATUS end_status;
    struct thread *first;    /* not ended yet, by sibling */
    uint64_t ended_cycles;   /* of threads that have ended */
    uint64_t created, ended; /* clock_ns; ended: atomic, 0: it lives */
    struct handle_table handles;
    struct memory memory; /* L: its own mutex */
};
extern const struct object_type process_type;

/* A process without an image and without a thread; one reference for the caller. NULL without
 * memory. */
struct process *process_create(void);
/* Allocates the stack and TEB of a new thread in its process; false: no memory. */
bool process_equip(struct process *process, struct thread *thread);
/* A thread begins (false: the process is ending), a thread ends. */
bool process_join(struct process *process, struct thread *thread);
void process_leave(struct process *process, struct thread *thread);
/* Ends the process of the current thread: this one now, the others at their next return to ring 3.
 */
__attribute__((noreturn)) void process_end(NTSTATUS status);
/* Ends the other threads of the current thread's process, and waits until they have gone.
 * PASSIVE_LEVEL. */
void process_end_others(NTSTATUS status);
/* memory_fault for the current thread, whose stack may grow by it. */
NTSTATUS process_fault(uint64_t address);
/* Writes memory of a process of which no thread runs yet, or that none of them uses. False if any
 * byte is not mapped. */
bool process_write(struct process *process, uint64_t to, const void *from, size_t size);
