/* SPDX-License-Identifier: MIT */
/* Ring 3 as the tests in ring 0 see it. */
#pragma once
#include "kernel/base/cpu_set.h"
#include "kernel/ke/process.h"
#include "tests/harness/test.h"

struct thread;

/* Before the first process: lays out the image and the libraries it needs. */
void user_init(void);
/* A process with ring3.exe and no thread yet; its exceptions end only the thread. NULL without
 * memory. */
struct process *user_process(void);
/* Whether this is an address of ring3.exe's own code. */
bool user_in_text(uint64_t address);
/* Starts function(argument) in such a process, on these CPUs, with a reference to the thread; NULL
 * without memory, or without a process. */
struct thread *user_thread(const char *name, struct process *process, uint64_t function,
                           uint64_t argument, struct cpu_set affinity);
/* Reads memory of a process that need not be the current one. False if any byte is not mapped. */
bool user_read(const struct process *process, void *to, uint64_t from, size_t size);

/* A record of the registry with pointers that ring 0 can follow: ring-3 tests stand in the ring-3
 * image. */
struct test user_test(const struct test *record);
/* user_thread on any CPU. */
struct thread *user_start(struct process *process, void (*function)(uint64_t), uint64_t argument);
/* What the process's checks found counts as this test's own. */
void user_report(const struct process *process);
/* Waits for its end; NULL, which is false: a check failed. */
bool user_wait(struct thread *thread);
/* Waits for the thread's end, counts its checks here, lets go of both; its exit status, which
 * user_finish checks. NULL: a failed check. */
NTSTATUS user_end(struct process *process, struct thread *thread);
void user_finish(struct process *process, struct thread *thread);
/* Runs a ring-3 function in a process of its own and returns the thread's exit status; its checks
 * count here. */
NTSTATUS user_run(void (*function)(uint64_t), uint64_t argument);

/* The calling thread of ring 0 is taken for one of a new process, whose services it calls with its
 * own memory; NULL, a failed check: no memory. user_profile enables its profiling, with the
 * elements `mask`, or disables it. user_pretend_end ends both. */
struct process *user_pretend(void);
NTSTATUS user_profile(bool enable, uint64_t mask);
void user_pretend_end(struct process *process);

/* Shared by ring 3's half of the checks (ring3/check.c) and this one. */
extern struct test_report user_test_report; /* a ring-3 address */
