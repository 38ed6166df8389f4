/* SPDX-License-Identifier: MIT */
/* Any IRQL, no lock. Sources: bugcodes.h; "Bug Check Code Reference" for the parameters. */
#include "kernel/driver/bugcheck.h"
#include "kernel/base/assert.h"
#include "kernel/base/bits.h"
#include "kernel/base/print.h"
#include "kernel/base/x86.h"
#include "kernel/driver/driver.h"
#include "kernel/ke/thread.h"
#include "kernel/nt/nt.h"
#include "kernel/trap.h"

#define NAME(code)                                                                                 \
    {                                                                                              \
        code, #code                                                                                \
    }
static const struct {
    unsigned code;
    const char *name;
} names[] = {
    NAME(IRQL_NOT_LESS_OR_EQUAL),
    NAME(SPIN_LOCK_ALREADY_OWNED),
    NAME(SPIN_LOCK_NOT_OWNED),
    NAME(BAD_POOL_HEADER),
    NAME(KMODE_EXCEPTION_NOT_HANDLED),
    NAME(NO_MORE_IRP_STACK_LOCATIONS),
    NAME(MULTIPLE_IRP_COMPLETE_REQUESTS),
    NAME(PAGE_FAULT_IN_NONPAGED_AREA),
    NAME(SYSTEM_THREAD_EXCEPTION_NOT_HANDLED),
    NAME(ATTEMPTED_SWITCH_FROM_DPC),
    NAME(ATTEMPTED_WRITE_TO_READONLY_MEMORY),
    NAME(SPECIAL_POOL_DETECTED_MEMORY_CORRUPTION),
    NAME(BAD_POOL_CALLER),
    NAME(TIMER_OR_DPC_INVALID),
    NAME(IRQL_UNEXPECTED_VALUE),
    NAME(DRIVER_VERIFIER_DETECTED_VIOLATION),
    NAME(DRIVER_VERIFIER_IOMANAGER_VIOLATION),
    NAME(DRIVER_IRQL_NOT_LESS_OR_EQUAL),
    NAME(DRIVER_UNLOADED_WITHOUT_CANCELLING_PENDING_OPERATIONS),
    NAME(WORKER_INVALID),
    NAME(CLOCK_WATCHDOG_TIMEOUT),
    NAME(KERNEL_SECURITY_CHECK_FAILURE),
};

static const char *bug_check_name(unsigned code)
{
    for (unsigned i = 0; i < ARRAY_SIZE(names); i++)
        if (names[i].code == code)
            return names[i].name;
    return "a driver's own";
}

void bug_check_at(uint64_t where, unsigned code, const uint64_t p[4], const char *words)
{
    char place[96];
    driver_place(where, place, sizeof place);
    panic("bug check 0x%08x %s (0x%lx, 0x%lx, 0x%lx, 0x%lx)%s%s%s%s", code, bug_check_name(code),
          p[0], p[1], p[2], p[3], *place ? " in " : "", place, *words ? ": " : "", words);
}

void bug_check(unsigned code, const uint64_t parameters[4], const char *words)
{
    bug_check_at(driver_caller(), code, parameters, words);
}

void bug_check_exception(uint64_t status, const struct trap_frame *f, uint64_t address)
{
    char words[96];
    if (f->vector || f->rsp)
        print_to(words, sizeof words, "exception %lu, address 0x%lx, IRQL %lu", f->vector, address,
                 read_cr8());
    else
        print_to(words, sizeof words, "raised, IRQL %lu", read_cr8());
    if (thread_current()->process)
        bug_check_at(f->rip, KMODE_EXCEPTION_NOT_HANDLED,
                     (uint64_t[]){ status, f->rip, f->error, address }, words);
    bug_check_at(f->rip, SYSTEM_THREAD_EXCEPTION_NOT_HANDLED,
                 (uint64_t[]){ status, f->rip, (uint64_t)f, 0 }, words);
}
