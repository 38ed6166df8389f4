/* SPDX-License-Identifier: MIT */
/* The table of drivers: one thread changes it, at PASSIVE_LEVEL; it is read at any IRQL. */
#include "kernel/driver/driver.h"
#include "kernel/base/print.h"
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

void driver_place(uint64_t address, char *text, size_t room)
{
    const struct driver *driver = driver_at(address);
    *text = 0;
    if (driver)
        print_to(text, room, "%s+0x%lx", driver->name, address - driver->base);
}
