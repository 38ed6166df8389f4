/* SPDX-License-Identifier: MIT */
/* The test of the Win32 functions of trace sessions that needs ring 0: a caller without the
 * right to use them. */
#include "tests/harness/kernel.h"
#include "tests/ring3/ring3.h"
#include "tests/harness/user.h"

TEST(etw_win32, restricted, "a restricted process may neither start, control nor read sessions")
{
    struct process *process = user_process();
    REQUIRE(process);
    process->restricted = true;
    struct thread *thread = user_start(process, user_trace_restricted, 0);
    user_wait(thread);
    user_finish(process, thread);
}
