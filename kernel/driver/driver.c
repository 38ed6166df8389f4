/* SPDX-License-Identifier: MIT */
/* The table of drivers: one thread changes it, at PASSIVE_LEVEL; it is read at any IRQL. Calls of
 * their routines, at any IRQL: what a call saves is on its stack. */
#include "kernel/driver/driver.h"
#include "kernel/base/irql.h"
#include "kernel/base/print.h"
#include "kernel/base/x86.h"
#include "kernel/driver/bugcheck.h"
#include "kernel/ke/thread.h"
#include "kernel/mm/vm.h"

#define SLOT_SIZE ((uint64_t)PE_SIZE_MAX * 2) /* what follows an image is not mapped */

static struct driver drivers[DRIVERS_MAX];

struct driver *driver_free_slot(void)
{
    for (unsigned i = 0; i < DRIVERS_MAX; i++)
        if (!drivers[i].base)
            return &drivers[i];
    return NULL;
}

void driver_take_slot(struct driver *driver)
{
    driver->base = VM_DRIVERS + (uint64_t)(driver - drivers) * SLOT_SIZE;
}

struct driver *driver_at(uint64_t address)
{
    for (unsigned i = 0; i < DRIVERS_MAX; i++)
        if (drivers[i].base && address - drivers[i].base < drivers[i].pe.size)
            return &drivers[i];
    return NULL;
}

uint64_t driver_caller(void) { return thread_current()->driver_caller; }

struct driver *driver_at_slot(uint64_t address)
{
    const uint64_t n = (address - VM_DRIVERS) / SLOT_SIZE;
    return address >= VM_DRIVERS && n < DRIVERS_MAX && drivers[n].base ? &drivers[n] : NULL;
}

void driver_place(uint64_t address, char *text, size_t capacity)
{
    const struct driver *driver = driver_at(address);
    *text = 0;
    if (driver)
        print_to(text, capacity, "%s+0x%lx", driver->name, address - driver->base);
}

void driver_enter(struct driver_call *call, const void *routine)
{
    call->routine = (uint64_t)routine;
    call->irql = irql_current();
    if (call->irql < DISPATCH_LEVEL)
        thread_use_fpu();
    fxsave(call->fpu);
}

void driver_leave(struct driver_call *call)
{
    uint64_t irql = irql_current();
    if (irql != call->irql)
        bug_check_at(call->routine, IRQL_UNEXPECTED_VALUE,
                     (uint64_t[]){ irql, call->irql, call->routine, 0 },
                     "it returns at another IRQL than it was called at");
    fxrstor(call->fpu);
}
