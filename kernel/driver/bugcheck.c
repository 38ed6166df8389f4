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

#define NAME(code) { code, #code }
static const struct {
    unsigned code;
    const char *name;
} names[] = {
    NAME(IRQL_NOT_LESS_OR_EQUAL), NAME(SPIN_LOCK_ALREADY_OWNED), NAME(SPIN_LOCK_NOT_OWNED),
    NAME(KMODE_EXCEPTION_NOT_HANDLED), NAME(NO_MORE_IRP_STACK_LOCATIONS), NAME(MULTIPLE_IRP_COMPLETE_REQUESTS), NAME(PAGE_FAULT_IN_NONPAGED_AREA),
    NAME(SYSTEM_THREAD_EXCEPTION_NOT_HANDLED), NAME(ATTEMPTED_SWITCH_FROM_DPC), NAME(ATTEMPTED_WRITE_TO_READONLY_MEMORY),
    NAME(BAD_POOL_CALLER),
    NAME(TIMER_OR_DPC_INVALID), NAME(IRQL_UNEXPECTED_VALUE), NAME(DRIVER_VERIFIER_IOMANAGER_VIOLATION),
    NAME(DRIVER_IRQL_NOT_LESS_OR_EQUAL),
    NAME(DRIVER_UNLOADED_WITHOUT_CANCELLING_PENDING_OPERATIONS), NAME(CLOCK_WATCHDOG_TIMEOUT),
};

static const char *name_of(unsigned code)
{
    for (unsigned i = 0; i < ARRAY_SIZE(names); i++)
        if (names[i].code == code)
            return names[i].name;
    return "a driver's own";
}

void bug_check(unsigned code, const uint64_t p[4], uint64_t where, const char *words)
{
    char place[96];
    driver_place(where, place, sizeof place);
    panic("bug check 0x%08x %s (0x%lx, 0x%lx, 0x%lx, 0x%lx)%s%s%s%s", code, name_of(code), p[0], p[1], p[2], p[3],
          *place ? " in " : "", place, *words ? ": " : "", words);
}

/* --- Exceptions in ring 0. --- */

/* The status that Windows gives an exception. */
static NTSTATUS status_of(uint64_t vector)
{
    switch (vector) {
    case EXC_DIVIDE:
        return STATUS_INTEGER_DIVIDE_BY_ZERO;
    case EXC_DEBUG:
        return STATUS_SINGLE_STEP;
    case EXC_BREAKPOINT:
        return STATUS_BREAKPOINT;
    case EXC_INVALID_OPCODE:
        return STATUS_ILLEGAL_INSTRUCTION;
    case EXC_SIMD:
        return STATUS_FLOAT_MULTIPLE_TRAPS;
    default:
        return STATUS_ACCESS_VIOLATION;
    }
}

/* A page fault: of memory that nobody has, or at an IRQL where no page can be brought. */
static void page_fault(const struct trap_frame *f, uint64_t address, const char *words)
{
    uint64_t irql = read_cr8(), access = f->error >> 1 & 1;
    if (irql >= DISPATCH_LEVEL || !(f->rflags & RFLAGS_IF))
        bug_check(DRIVER_IRQL_NOT_LESS_OR_EQUAL, (uint64_t[]){ address, irql, access, f->rip }, f->rip, words);
    if (address >= DIRECT_MAP && (f->error & 1) && access)
        bug_check(ATTEMPTED_WRITE_TO_READONLY_MEMORY, (uint64_t[]){ address, f->error, (uint64_t)f, 0 }, f->rip, words);
    if (address >= DIRECT_MAP)
        bug_check(PAGE_FAULT_IN_NONPAGED_AREA, (uint64_t[]){ address, access, f->rip, 0 }, f->rip, words);
}

void bug_check_trap(const struct trap_frame *f, uint64_t address)
{
    char words[96];
    const uint64_t status = (uint32_t)status_of(f->vector);
    if (!driver_at(f->rip))
        return;
    print_to(words, sizeof words, "exception %lu, address 0x%lx, IRQL %lu", f->vector, address, read_cr8());
    if (f->vector == EXC_PAGE_FAULT)
        page_fault(f, address, words);
    if (thread_current()->process)
        bug_check(KMODE_EXCEPTION_NOT_HANDLED, (uint64_t[]){ status, f->rip, f->error, address }, f->rip, words);
    bug_check(SYSTEM_THREAD_EXCEPTION_NOT_HANDLED, (uint64_t[]){ status, f->rip, (uint64_t)f, 0 }, f->rip, words);
}
