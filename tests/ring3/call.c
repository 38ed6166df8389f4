/* SPDX-License-Identifier: MIT */
#include "tests/ring3/call.h"
#include "tests/ring3/services.h"

struct user_call user_calls[USER_CALLS];
uint64_t user_calls_made;

/* Not by RtlExitUserThread: ring 0 may start more threads in a process after the last has ended. */
unsigned user_begin(const struct user_call *call)
{
    ((void (*)(uint64_t))call->function)(call->argument);
    NtTerminateThread(NtCurrentThread(), STATUS_SUCCESS);
    __builtin_unreachable();
}
