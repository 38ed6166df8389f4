/* SPDX-License-Identifier: MIT */
/* Exceptions of ring 3 become the exit status of the thread, with the place and the address for
 * ring 0 to see. The statuses are those of Windows' exception records. The code that dies:
 * tests/ring3/exceptions.h. */
#include "kernel/nt/nt_context.h"
#include "tests/harness/kernel.h"
#include "tests/ring3/exceptions.h"
#include "tests/harness/peek.h"

struct row {
    enum exception_kind kind;
    const char *name;
    NTSTATUS status;
    uint64_t address;
};

#define ROW(name, code, status, address) { KIND_##name, #name, status, address },
#define ROWS(list)                                                                                 \
    (const struct row[])                                                                           \
    {                                                                                              \
        list(ROW) { KIND_COUNT, NULL, 0, 0 }                                                       \
    }

static void check_row(const struct row *row)
{
    struct process *process = user_process();
    struct thread *thread = process ? user_start(process, user_exception, row->kind) : NULL;
    if (CHECK(thread != NULL)) {
        sched_wait(&thread->object, SCHED_FOREVER, Executive);
        bool ok = CHECK_STATUS(thread->exit_status, row->status);
        if (row->address != ANY)
            ok &= CHECK_EQ(thread->fault_address, row->address);
        bool in_text = user_in_text(thread->fault_rip);
        /* A jump to nowhere faults there; if the address is not canonical, on Intel's CPUs at the
         * jump. */
        ok &= CHECK(in_text || thread->fault_rip == thread->fault_address ||
                    (row->kind == KIND_execute_non_canonical &&
                     thread->fault_rip == UINT64_C(0x0000800000000000)));
        ok &= CHECK_EQ(peek(process, &user_exception_count), 0);
        if (!ok)
            test_note("exception %s", row->name);
        object_release(&thread->object);
    }
    if (process)
        object_release(&process->object);
}

static void check_rows(const struct row *rows)
{
    for (; rows->name; rows++)
        check_row(rows);
}

TEST(exceptions, arithmetic, "division by zero, and the exceptions of x87 arithmetic [slow]")
{
    check_rows(ROWS(ARITHMETIC));
}
TEST(exceptions, floating_point, "stack faults of x87 and exceptions of SSE each have their status")
{
    if (user_run(user_exception, KIND_sse_divide) == STATUS_SUCCESS)
        SKIP("this CPU raises no exceptions of SSE");
    check_rows(ROWS(EMULATED));
}

TEST(exceptions, illegal, "undefined instructions, whatever the stack pointer")
{
    check_rows(ROWS(ILLEGAL));
}

TEST(exceptions, debugging, "breakpoints and single steps") { check_rows(ROWS(DEBUGGING)); }

TEST(exceptions, memory,
     "reads, writes, jumps and software interrupts that ring 3 may not make [slow]")
{
    check_rows(ROWS(MEMORY));
}

TEST(exceptions, privileged,
     "ring 0's instructions are STATUS_PRIVILEGED_INSTRUCTION in ring 3 [TP-98 slow]")
{
    check_rows(ROWS(PRIVILEGED));
}

TEST(exceptions, caches, "INVD and WBINVD are ring 0's too")
{
    if (user_run(user_exception, KIND_wbinvd) == STATUS_SUCCESS)
        SKIP("QEMU from 9.1 on executes INVD and WBINVD in ring 3");
    check_rows(ROWS(CACHES));
}
