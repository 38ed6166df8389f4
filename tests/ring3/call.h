/* SPDX-License-Identifier: MIT */
/* How ring 0 starts a thread in ring 3: user_begin gets the address of one of these. */
#pragma once
#include <stdint.h>

struct user_call {
    uint64_t function, argument;
};
#define USER_CALLS 64u
extern struct user_call user_calls[USER_CALLS];
extern uint64_t user_calls_made;
/* Runs the function; then the thread ends with STATUS_SUCCESS, and the process with its last
 * thread. */
unsigned user_begin(const struct user_call *call);
