/* SPDX-License-Identifier: MIT */
/* A user's program instead of the tests: the command line says `program`, the image holds user_program
 * (kernel/user/program.c). With trace=EVENTS pmc=COUNTERS a trace of its run is exported. */
#include "tests/program.h"
#include "boot/multiboot.h"
#include "hal/hal.h"
#include "kernel/ctf.h"
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

static unsigned fail(const char *why)
{
    print("# FAIL %s\n", why);
    return EXIT_FAIL;
}

/* False: nothing was started, and the line that says why was printed. */
static bool start_trace(const char *events)
{
    char counters[BOOT_LINE_MAX] = "";
    boot_option(kernel_boot_info, "pmc", counters, sizeof counters);
    const char *wrong = ctf_start(events, counters);
    if (wrong)
        print("# FAIL trace: %s\n", wrong);
    return !wrong;
}

static unsigned run(void)
{
    struct process *process = process_create();
    if (!process)
        return fail("no memory for a process");
    process->fault_ends_all = true;
    process->stack_pages = PROCESS_STACK_PAGES_LARGE;
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

unsigned program_run(void)
{
    char events[BOOT_LINE_MAX];
    bool traced = boot_option(kernel_boot_info, "trace", events, sizeof events);
    if (!user_program)
        return fail("this image holds no program");
    if (traced && !start_trace(events))
        return EXIT_FAIL;
    unsigned code = run();
    if (traced && !ctf_stop())
        return fail("trace: the second serial port takes nothing more");
    return code;
}
