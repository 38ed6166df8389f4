/* SPDX-License-Identifier: MIT */
/* A user's program instead of the tests: the command line says `program`, the image holds user_program
 * (kernel/user/program.c). */
#include "tests/program.h"
#include "hal/hal.h"
#include "kernel/main.h"
#include "kernel/print.h"
#include "kernel/sched.h"
#include "kernel/thread.h"
#include "tests/user.h"

extern void user_program(void) __attribute__((weak));

struct name {
    NTSTATUS status;
    const char *text;
};

#define NAME(status) { status, #status }
/* How a program may end that did not mean to. */
static const struct name names[] = {
    NAME(STATUS_ACCESS_VIOLATION), NAME(STATUS_ILLEGAL_INSTRUCTION), NAME(STATUS_PRIVILEGED_INSTRUCTION),
    NAME(STATUS_INTEGER_DIVIDE_BY_ZERO), NAME(STATUS_BREAKPOINT), NAME(STATUS_SINGLE_STEP),
    NAME(STATUS_FLOAT_MULTIPLE_TRAPS), NAME(STATUS_NO_MEMORY),
};

static const char *name_of(NTSTATUS status)
{
    for (unsigned i = 0; i < sizeof names / sizeof names[0]; i++)
        if (names[i].status == status)
            return names[i].text;
    return "status";
}

unsigned program_run(void)
{
    struct process *process = user_program ? process_create() : NULL;
    if (!process) {
        print("# FAIL %s\n", user_program ? "no memory for a process" : "this image holds no program");
        return EXIT_FAIL;
    }
    process->fault_ends_all = true;
    struct thread *thread = thread_create_user("program", process, (uint64_t)user_program, 0, ~0ul);
    if (thread)
        sched_wait(&process->object, SCHED_FOREVER, Executive);
    print_fresh_line();
    NTSTATUS status = thread ? process->exit_status : STATUS_NO_MEMORY;
    if (status == STATUS_SUCCESS)
        print("# PASS the program ended with 0\n");
    else if (NT_SUCCESS(status))
        print("# FAIL the program ended with %d\n", status);
    else if (process->fault_rip)
        print("# FAIL the program ended by %s 0x%08x at 0x%lx, address 0x%lx\n", name_of(status), (unsigned)status,
              process->fault_rip, process->fault_address);
    else
        print("# FAIL the program ended with %s 0x%08x\n", name_of(status), (unsigned)status);
    return status == STATUS_SUCCESS ? EXIT_PASS : EXIT_FAIL;
}
