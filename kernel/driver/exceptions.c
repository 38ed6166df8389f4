/* SPDX-License-Identifier: MIT */
/* Exceptions of drivers, on their way to handlers.sys (kernel/user/handlers), which finds their
 * __try blocks. It is loaded with the first driver and stays. NT: what the kernel does with a
 * driver's bad pointer is no exception of the driver's; kernel stacks of 16 KB have room for one
 * exception inside another, hardly for three. */
#include "hal/machine/smp.h"
#include "kernel/base/layout.h"
#include "kernel/base/print.h"
#include "kernel/base/string.h"
#include "kernel/base/vectors.h"
#include "kernel/base/x86.h"
#include "kernel/driver/bugcheck.h"
#include "kernel/driver/driver.h"
#include "kernel/ke/context.h"
#include "kernel/ke/exception.h"
#include "kernel/ke/sched.h"
#include "kernel/ke/thread.h"
#include "kernel/trap.h"

#define STACK_FOR_HANDLERS 8192 /* search and unwinding use 7 KB, five CONTEXTs included */

static struct driver *handlers;

void exceptions_go_to(struct driver *driver) { handlers = driver; }

void *exceptions_export(const char *name)
{
    uint32_t rva;
    const char *elsewhere;
    return handlers && pe_export(&handlers->pe, handlers->pages, name, 0, &rva, &elsewhere) &&
                   !elsewhere
               ? (void *)(handlers->base + rva)
               : NULL;
}

/* --- From the processor. --- */

/* At RSP when the dispatcher begins. */
struct fault {
    struct exception_frame e;
    const struct trap_frame *frame;
    uint64_t address; /* CR2 */
};

static void fill_fault(struct fault *fault, const struct trap_frame *f, uint64_t address)
{
    struct exception_frame *e = &fault->e;
    struct trap_frame at = *f;
    memset(fault, 0, sizeof *fault);
    e->context.ContextFlags = CONTEXT_ALL;
    context_get(f, &e->context);
    exception_record(&at, address, STATUS_ACCESS_VIOLATION, &e->record);
    e->rip = f->rip, e->cs = f->cs, e->eflags = f->rflags, e->rsp = f->rsp, e->ss = f->ss;
    fault->frame = f;
    fault->address = address;
}

/* Returns if there is no handlers.sys, or too little stack for it: where a driver's tables are
 * wrong handlers.sys causes an exception itself, and comes here again. NT: no handler sees a #DB,
 * which is not on the thread's stack. */
static void dispatch_to_handlers(const struct trap_frame *frame, uint64_t address)
{
    struct fault fault __attribute__((aligned(16)));
    void *dispatcher = exceptions_export("KiUserExceptionDispatcher");
    const uint64_t left = (uint64_t)&fault - (uint64_t)thread_current()->stack;
    if (!dispatcher || left < STACK_FOR_HANDLERS || left > KERNEL_STACK_SIZE)
        return;
    fill_fault(&fault, frame, address);
    asm volatile("mov %0,%%rsp\n"
                 "push %1\n"
                 "popfq\n"
                 "jmp *%2"
                 :
                 : "r"(&fault), "r"(frame->rflags), "r"(dispatcher)
                 : "memory");
    __builtin_unreachable();
}

/* A page fault: the page does not exist, or the IRQL is too high for page faults. */
static void page_fault(const struct trap_frame *f, uint64_t address, const char *words)
{
    uint64_t irql = read_cr8(), access = f->error >> 1 & 1;
    if (irql >= DISPATCH_LEVEL || !(f->rflags & RFLAGS_IF))
        bug_check_at(f->rip, DRIVER_IRQL_NOT_LESS_OR_EQUAL,
                     (uint64_t[]){ address, irql, access, f->rip }, words);
    if (address >= DIRECT_MAP && (f->error & 1) && access)
        bug_check_at(f->rip, ATTEMPTED_WRITE_TO_READONLY_MEMORY,
                     (uint64_t[]){ address, f->error, (uint64_t)f, 0 }, words);
    if (address >= DIRECT_MAP)
        bug_check_at(f->rip, PAGE_FAULT_IN_NONPAGED_AREA,
                     (uint64_t[]){ address, access, f->rip, 0 }, words);
}

/* A call comes from the return address on the stack; the exception is at the import itself. */
static void missing_import(const struct trap_frame *f, uint64_t address)
{
    char words[160];
    const char *library, *name = driver_missing_import(address, &library);
    const uint64_t caller = f->rip == address ? *(const uint64_t *)f->rsp : f->rip;
    if (!name)
        return;
    print_to(words, sizeof words, "%s %s %s!%s, an import that is missing here",
             driver_at_slot(address)->name, f->rip == address ? "calls" : "reads", library, name);
    bug_check_at(caller, PAGE_FAULT_IN_NONPAGED_AREA, (uint64_t[]){ address, 0, caller, 0 }, words);
}

/* NT: what is below the stack is no guard page: it is overwritten already. */
void exception_stack_check(uint64_t rsp, uint64_t place)
{
    const uint64_t *p = (const uint64_t *)(void *)thread_current()->stack;
    const uint64_t *const end = p + KERNEL_STACK_SIZE / sizeof *p;
    if (rsp >= (uint64_t)p && *p == SCHED_STACK_MAGIC)
        return;
    for (; p < end && !driver_at(place); p++)
        place = *p;
    if (driver_at(place))
        bug_check_at(place, UNEXPECTED_KERNEL_MODE_TRAP,
                     (uint64_t[]){ EXC_DOUBLE_FAULT, rsp, 0, 0 },
                     "it needs more than a kernel stack's 16 KB");
}

void exception_trap(const struct trap_frame *f, uint64_t address)
{
    char words[96];
    if (f->vector == EXC_PAGE_FAULT)
        missing_import(f, address);
    exception_stack_check(f->rsp, f->rip);
    if (!driver_at(bug_check_place(f, address)))
        return;
    print_to(words, sizeof words, "exception %lu, address 0x%lx, IRQL %lu", f->vector, address,
             read_cr8());
    if (f->vector == EXC_PAGE_FAULT)
        page_fault(f, address, words);
    if (f->vector == EXC_FAST_FAIL)
        bug_check_at(f->rip, KERNEL_SECURITY_CHECK_FAILURE,
                     (uint64_t[]){ (uint32_t)f->rcx, (uint64_t)f, 0, 0 }, "INT 29h");
    dispatch_to_handlers(f, address);
    struct trap_frame at = *f;
    EXCEPTION_RECORD record;
    exception_record(&at, address, STATUS_ACCESS_VIOLATION, &record);
    bug_check_exception((uint32_t)record.ExceptionCode, f, address);
}

/* --- From the tick. --- */

#define DISPATCH_LIMIT_NS 1000000000u
#define DISPATCH_TICKS 5u /* when somebody asks */

bool driver_hangs;

/* NT: Windows allows a DPC 20 s and all of them 2 minutes; here it is a second of ticks, or some
 * ticks when the machine seems to hang: under an emulator PAUSE makes time slow. */
void exception_tick(const struct trap_frame *f, uint64_t irql)
{
    static uint64_t ticks[MAX_CPUS]; /* a CPU's own: one after the other at such an IRQL */
    const uint64_t limit = __atomic_load_n(&driver_hangs, __ATOMIC_RELAXED)
                               ? DISPATCH_TICKS
                               : DISPATCH_LIMIT_NS / sched_tick_ns();
    const uint64_t where = driver_at(f->rip) ? f->rip : driver_caller();
    uint64_t *n = &ticks[cpu_number()];
    if (!trap_from_user(f)) /* else RSP is ring 3's */
        exception_stack_check(f->rsp, f->rip);
    /* With many CPUs each tick may come in another smp_call, none of which is long. */
    *n = irql >= DISPATCH_LEVEL && where && !smp_waits() ? *n + 1 : 0;
    if (*n > limit)
        bug_check_at(where, DPC_WATCHDOG_VIOLATION, (uint64_t[]){ 1, limit, 0, 0 },
                     "too long at DISPATCH_LEVEL or above: a loop, or a lock that nobody releases");
}

/* --- For handlers.sys. --- */

/* NULL: no driver has the address. */
PVOID exception_table(uint64_t pc, uint64_t *base, ULONG *count)
{
    struct driver *driver = driver_at(pc);
    if (!driver)
        return NULL;
    const struct pe_directory *d = &driver->pe.directories[PE_EXCEPTIONS];
    *base = driver->base;
    *count = d->size / 12; /* RUNTIME_FUNCTION */
    return (PVOID)(driver->base + d->rva);
}

VOID exception_stack(uint64_t *low, uint64_t *high)
{
    *low = (uint64_t)thread_current()->stack;
    *high = *low + KERNEL_STACK_SIZE;
}

VOID exception_unhandled(const EXCEPTION_RECORD *record, const CONTEXT *context)
{
    const struct fault *fault = (const struct fault *)context;
    if (record == &fault->e.record)
        bug_check_exception((uint32_t)record->ExceptionCode, fault->frame, fault->address);
    struct trap_frame raised = { .rip = (uint64_t)record->ExceptionAddress };
    bug_check_exception((uint32_t)record->ExceptionCode, &raised, 0);
}
