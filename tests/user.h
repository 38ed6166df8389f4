/* SPDX-License-Identifier: MIT */
/* Ring 3 as the tests in ring 0 see it. */
#pragma once
#include "kernel/ke/process.h"
#include "tests/test.h"

struct thread;

/* A record of the registry with pointers that ring 0 can follow: ring-3 tests stand in the ring-3
 * image. */
struct test user_test(const struct test *record);
/* Starts function(argument) in the process, with a reference to the thread; NULL without memory. */
struct thread *user_start(struct process *process, void (*function)(void), uint64_t argument);
/* What the process's checks found counts as this test's own. */
void user_report(const struct process *process);
/* After the thread (may be NULL) ended: checks its exit status, counts its checks here, lets go of
 * both. */
void user_finish(struct process *process, struct thread *thread);
/* Runs a ring-3 function in a process of its own and returns the thread's exit status; its checks
 * count here. */
NTSTATUS user_run(void (*function)(void), uint64_t argument);

/* Shared by ring 3's half of the checks (ring3/check.c) and this one. */
extern struct test_report user_test_report; /* a ring-3 address */
