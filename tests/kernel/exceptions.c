/* SPDX-License-Identifier: MIT */
/* Exceptions of ring 3 become the exit status of the thread, with the place and the address for
 * ring 0 to see. The statuses are those of Windows' exception records. The code that dies:
 * tests/ring3/exceptions.h. */
#include "kernel/ke/fpu.h"
#include "kernel/nt/nt_context.h"
#include "tests/ring3/exceptions.h"
#include "tests/harness/peek.h"

struct row {
    enum exception_kind kind;
    const char *name;
    NTSTATUS status;
    uint64_t address;
};

#define ROW(name, code, ...) { KIND_##name, #name, __VA_ARGS__ },
#define ROWS(list)                                                                                 \
    (const struct row[])                                                                           \
    {                                                                                              \
        list(ROW) { KIND_COUNT, NULL, 0, 0 }                                                       \
    }

static void check_row(const struct row *row)
{
    struct process *process = user_process();
    struct thread *thread = user_start(process, user_exception, row->kind);
    if (user_wait(thread)) {
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

TEST(exceptions, each,
     "ring 3's arithmetic, undefined and privileged instructions, breakpoints, steps and accesses "
     "that it may not make have their status and address [TP-98 slow]")
{
    check_rows(ROWS(EXCEPTIONS));
}

TEST(exceptions, floating_point, "stack faults of x87 and exceptions of SSE each have their status")
{
    if (user_run(user_exception, KIND_sse_divide) == STATUS_SUCCESS)
        SKIP("this CPU raises no exceptions of SSE");
    check_rows(ROWS(EMULATED));
}

TEST(exceptions, bases,
     "ring 3 reads and writes its FS and GS base; where the CPU has no FSGSBASE, that is undefined")
{
    const struct row *rows = ROWS(BASES);
    for (; rows->name && fpu_facts.bases; rows++)
        CHECK_OK(user_run(user_exception, rows->kind));
    check_rows(rows);
}

TEST(exceptions, caches, "INVD and WBINVD are ring 0's too")
{
    if (user_run(user_exception, KIND_wbinvd) == STATUS_SUCCESS)
        SKIP("QEMU from 9.1 on executes INVD and WBINVD in ring 3");
    check_rows(ROWS(CACHES));
}
