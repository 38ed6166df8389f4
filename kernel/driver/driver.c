/* SPDX-License-Identifier: MIT */
/* The table of drivers: one thread changes it, at PASSIVE_LEVEL; it is read at any IRQL. What an
 * address means: the driver that it is in, the missing import that it stands for. */
#include "kernel/driver/driver.h"
#include "kernel/base/bits.h"
#include "kernel/base/print.h"
#include "kernel/base/string.h"
#include "kernel/driver/io.h"
#include "kernel/ke/caller.h"
#include "kernel/ke/process.h"
#include "kernel/ke/thread.h"
#include "kernel/mm/vm.h"

#define SLOT_SIZE ((uint64_t)PE_SIZE_MAX * 2) /* what follows an image is not mapped */

static struct driver drivers[DRIVERS_MAX];

struct driver *driver_free_slot(void)
{
    for_each_in(d, drivers)
        if (!d->base)
            return d;
    return NULL;
}

void driver_take_slot(struct driver *driver)
{
    driver->base = VM_DRIVERS + (uint64_t)(driver - drivers) * SLOT_SIZE;
}

struct driver *driver_at(uint64_t address)
{
    for_each_in(d, drivers)
        if (d->base && address - d->base < d->pe.size)
            return d;
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

/* After the image nothing is mapped: the use of an address there is an exception. */
#define MISSING_STEP 16u
static uint64_t missing_start(const struct driver *driver) { return driver->base + PE_SIZE_MAX; }

uint64_t driver_missing_address(const struct driver *driver, unsigned n)
{
    return missing_start(driver) + n * MISSING_STEP;
}

const char *driver_missing_import(uint64_t address, const char **library)
{
    struct pe_imports at = { 0 };
    struct pe_import import;
    const struct driver *driver = driver_at_slot(address);
    if (!driver || address < missing_start(driver))
        return NULL;
    for (uint64_t n = (address - missing_start(driver)) / MISSING_STEP;; n--) {
        if (pe_next_import(&driver->pe, driver->pages, &at, &import) != PE_FOUND)
            return NULL;
        if (!n)
            break;
    }
    *library = import.library;
    return import.name ? import.name : "(a number)";
}

#define SERVICE_MAX 320u

NTSTATUS NtLoadDriver(PUNICODE_STRING DriverServiceName)
{
    UNICODE_STRING name;
    WCHAR wide[SERVICE_MAX];
    char file[IMAGE_NAME_MAX] = "";
    unsigned n = 0;
    const struct process *caller = thread_current()->process;
    if (caller && !caller->load_privilege)
        return STATUS_PRIVILEGE_NOT_HELD;
    NTSTATUS status = caller_get(&name, DriverServiceName, sizeof name);
    if (NT_SUCCESS(status) && (!name.Length || name.Length % 2 || name.Length > sizeof wide))
        status = STATUS_OBJECT_NAME_INVALID;
    if (NT_SUCCESS(status))
        status = caller_get(wide, name.Buffer, name.Length);
    if (!NT_SUCCESS(status))
        return status;
    for (unsigned i = 0; i < name.Length / sizeof(WCHAR); i++)
        if (wide[i] == '\\')
            n = 0;
        else if (n >= sizeof file - sizeof ".sys" || wide[i] < ' ' || wide[i] > '~')
            return STATUS_OBJECT_NAME_INVALID;
        else
            file[n++] = (char)wide[i];
    print_to(file + n, sizeof file - n, ".sys");
    for_each_in(d, drivers)
        if (d->base && string_same(d->name, file))
            return STATUS_IMAGE_ALREADY_LOADED;
    return STATUS_OBJECT_NAME_NOT_FOUND;
}

void driver_left(struct driver *driver, const char *format, ...)
{
    char text[200];
    va_list args;
    va_start(args, format);
    print_to_va(text, sizeof text, format, args);
    va_end(args);
    print("# %s left %s\n", driver->name, text);
    driver->left++;
}
